"""Plugins that fail at each extension point, and a cluster to run them in."""

from typing import Any

from asched.testing import World, node, pod

NODES = [node("n1"), node("n2")]


def mischief(**methods: Any) -> type[Any]:
    """A class called Bad that behaves badly for pods labelled bad, and agrees otherwise."""

    def only_for_bad(method: Any, good: Any) -> Any:
        def called(self: Any, *args: Any) -> Any:
            return method(self, *args) if "bad" in args[0].labels else good

        return called

    made = {
        name: only_for_bad(method, 50 if name == "score" else None)
        for name, method in methods.items()
    }
    if "pre_score" in made:
        made["score"] = lambda _self, _pod, _node: 50
    return type("Bad", (), made)


def after(world: World) -> None:
    """The loop lives, and the next pod is none the worse."""
    assert world.schedule(pod("good")).node != ""


POINTS = {
    "pre_filter": "preFilter",
    "filter": "filter",
    "pre_score": "preScore",
    "score": "score",
    "reserve": "reserve",
    "permit": "permit",
    "pre_bind": "preBind",
}
