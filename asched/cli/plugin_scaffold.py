"""The two files that `asched plugins new` writes; `@MODULE@` and the like are filled in."""

from typing import Final

PLUGIN: Final = '''"""@CLASS@: says in one line which nodes it keeps pods away from, and why.

    asched demo --plugin @MODULE@.py
    asched run --plugin @MODULE@:@CLASS@ ...
"""

from dataclasses import dataclass

from asched.plugin import Node, Pod


@dataclass
class Args:
    """What `pluginConfig[].args` may hold; `freeCores` there is `free_cores` here."""

    free_cores: float = 0.5


class @CLASS@:
    def __init__(self, args: Args) -> None:
        self.args = args

    def filter(self, pod: Pod, node: Node) -> str | None:
        """None: the pod may go there. A text: it may not, and this is what its owner reads."""
        if node.cpu_free - pod.cpu < self.args.free_cores:
            return "node(s) would have too few free cores"
        return None

    def score(self, pod: Pod, node: Node) -> int:
        """0 to 100: how good the node is for the pod."""
        return round(100 * max(node.cpu_free, 0) / max(node.cpu, 1))
'''

TEST: Final = '''"""@CLASS@ at work on a small cluster in memory."""

from @MODULE@ import @CLASS@

from asched.testing import given, node, pod


def test_a_full_node_is_left_alone() -> None:
    world = given([node("small", cpu=1), node("big", cpu=8)], plugins=[@CLASS@])

    assert world.schedule(pod("web", cpu="800m")).node == "big"


def test_the_owner_is_told_why() -> None:
    world = given([node("small", cpu=1)], plugins=[@CLASS@])

    outcome = world.schedule(pod("web", cpu="800m"))

    assert outcome.node == ""
    assert "1 node(s) would have too few free cores" in outcome.message


def test_the_reserve_can_be_configured() -> None:
    args = {"@CLASS@": {"freeCores": 0}}
    world = given([node("small", cpu=1)], plugins=[@CLASS@], args=args)

    assert world.schedule(pod("web", cpu="800m")).node == "small"
'''
