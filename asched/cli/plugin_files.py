"""The two files that `asched plugins new` writes; `@MODULE@` and similar marks are replaced."""

from typing import Final

PLUGIN: Final = '''"""@CLASS@: say in one line which nodes it rejects for which pods, and why.

    asched demo --plugin @MODULE@.py
    asched run --plugin @MODULE@:@CLASS@ ...
"""

from dataclasses import dataclass

from asched.plugin import Node, Pod


@dataclass
class Args:
    """The fields of `pluginConfig[].args`; `freeCores` in the file is `free_cores` here."""

    free_cores: float = 0.5


class @CLASS@:
    def __init__(self, args: Args) -> None:
        self.args = args

    def filter(self, pod: Pod, node: Node) -> str | None:
        """None if the pod may run on the node, else the reason for the pod's owner."""
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


def test_a_full_node_is_rejected() -> None:
    world = given([node("small", cpu=1), node("big", cpu=8)], plugins=[@CLASS@])

    assert world.schedule(pod("web", cpu="800m")).node == "big"


def test_the_pod_has_the_reason() -> None:
    world = given([node("small", cpu=1)], plugins=[@CLASS@])

    outcome = world.schedule(pod("web", cpu="800m"))

    assert outcome.node == ""
    assert "1 node(s) would have too few free cores" in outcome.message


def test_the_reserve_can_be_configured() -> None:
    args = {"@CLASS@": {"freeCores": 0}}
    world = given([node("small", cpu=1)], plugins=[@CLASS@], args=args)

    assert world.schedule(pod("web", cpu="800m")).node == "small"
'''
