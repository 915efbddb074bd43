"""Equal pods wait for room: what an attempt at one of them says of the others."""

import numpy as np

from asched.core.framework.effects import Bind
from asched.core.framework.points import FilterPlugin, PermitPlugin
from asched.core.framework.status import Code, Status
from asched.core.model.kinds import NODE, POD
from asched.core.state.facts import Seen
from tests.builders import a_node, a_pod
from tests.core.cycle.playbook import Play


class Patience(PermitPlugin):
    name = "Patience"

    def permit(self, pod, node):
        return Status(Code.WAIT, ("not yet",)), 600.0


def waiting(play: Play, *names: str) -> None:
    """Pods that each fill a node of one CPU, and find none."""
    play.turn(*(Seen(POD, a_pod(name).requests(cpu="1").build()) for name in names))
    assert play.of(Bind) == []


def nodes(play: Play, *names: str) -> None:
    play.turn(*(Seen(NODE, a_node(name).allocatable(cpu="1").build()) for name in names))


def placed(play: Play) -> list[str]:
    return sorted(info.pod.metadata.name for info in play.parts.cluster.placed.values())


def test_a_pod_that_waits_at_permit_keeps_no_room_from_its_equals() -> None:
    play = Play(a_node("small").allocatable(cpu="100m"), plugins=[Patience])
    waiting(play, "a", "b", "c")

    nodes(play, "n1", "n2")

    assert placed(play) == ["a", "b"]


def test_each_is_tried_where_a_plugin_thinks_of_each_by_itself() -> None:
    class Picky(FilterPlugin):
        name = "Picky"
        tried: list[str] = []  # noqa: RUF012 - of this test alone

        def filter(self, pod, nodes, data):
            self.tried.append(pod.pod.metadata.name)
            return np.full(nodes.size, pod.pod.metadata.name != "c", dtype=np.int32)

        def explain(self, pod, code):
            return Status(Code.UNSCHEDULABLE, ("not you",))

    play = Play(a_node("small").allocatable(cpu="100m"), plugins=[Picky])
    waiting(play, "a", "b", "c")
    Picky.tried.clear()

    nodes(play, "n1")

    assert sorted(set(Picky.tried)) == ["a", "b", "c"]
    assert placed(play) == ["c"]
