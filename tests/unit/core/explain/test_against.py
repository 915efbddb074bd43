"""Why this node and not that one: what refuses it now, and what it scored then."""

from typing import Any

from asched.core.cluster.audit import recount
from asched.insight.explain.deciding import against
from tests.builders import PodBuilder, a_node, a_pod
from tests.playbook import Play


def asked(
    play: Play, pod: PodBuilder, node: str, chosen: dict[str, Any] | None = None
) -> dict[str, Any]:
    context = play.machine.context
    runner = context.runners["default-scheduler"]
    return against(runner, context.nominator, pod.build(), node, chosen)


def a_play() -> Play:
    return Play(a_node("n1").allocatable(cpu="2"), a_node("n2").allocatable(cpu="1"))


SCORES = {"n1": 90, "n3": 50, "n4": 40}
BEST = {"best": [{"node": node, "score": score} for node, score in SCORES.items()]}


def test_a_node_that_went_is_named() -> None:
    assert asked(a_play(), a_pod(), "n9") == {
        "node": "n9",
        "refused": "there is no such node now",
    }


def test_a_node_that_would_not_take_it_says_why() -> None:
    told = asked(a_play(), a_pod().requests(cpu="2"), "n2")
    assert told == {"node": "n2", "refused": "NodeResourcesFit: Insufficient cpu", "scored": None}


def test_the_pod_is_not_in_its_own_way() -> None:
    play = a_play()
    pod = a_pod("web").requests(cpu="2").on("n1")
    play.see(pod)
    assert asked(play, pod, "n1") == {"node": "n1", "scored": None}
    assert play.node_of("uid-web") == "n1"
    assert recount(play.parts.cluster) == []


def test_what_it_scored_or_what_the_last_of_the_best_did() -> None:
    play = a_play()
    assert asked(play, a_pod(), "n1", BEST) == {"node": "n1", "scored": BEST["best"][0]}
    assert asked(play, a_pod(), "n2", BEST) == {"node": "n2", "scored": None, "below": 40}
