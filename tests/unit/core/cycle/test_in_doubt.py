"""A plugin that does not know what became of its write is not cut off, whoever goes meanwhile."""

import numpy as np

from asched.core.cluster.changes import ASSIGNED_POD, Action, Trigger
from asched.core.framework.effects import Bind, WaitFor
from asched.core.framework.points import FilterPlugin, PreBindPlugin, ReservePlugin
from asched.core.framework.registrations import Registration
from asched.core.framework.status import SUCCESS, Reason, failure
from tests.builders import a_node, a_pod
from tests.playbook import Play

HELD = Reason("node(s) had what somebody else may have", resolvable=False)


class Doubt(ReservePlugin, PreBindPlugin):
    """Holds something until it knows, 60 s later."""

    name = "Doubt"

    def reserve(self, pod, node, data):
        return SUCCESS

    def unreserve(self, pod, node):
        self.log.append("given back")

    def pre_bind_pre_flight(self, pod, node):
        return SUCCESS

    def pre_bind(self, pod, node):
        yield WaitFor(ready=lambda: False, timeout_s=60.0, in_doubt=True)
        self.log.append("known")
        return failure("it was not carried out")


def test_what_is_in_doubt_is_not_given_back_before_it_is_known() -> None:
    log: list[str] = []
    pod = a_pod("web")
    play = Play(a_node("n1"), plugins=[type("Doubt", (Doubt,), {"log": log})])
    play.see(pod)
    play.lose(pod)
    play.turn(after_s=59)
    assert log == []
    play.turn(after_s=1)
    assert log == ["known", "given back"]
    assert play.machine.is_idle


class Elsewhere(FilterPlugin):
    """Rejects others while Doubt holds something."""

    name = "Elsewhere"
    depends_on = None
    reasons = (HELD,)

    def registrations(self):
        return (Registration(Trigger(ASSIGNED_POD, Action.DELETE)),)

    def filter(self, pod, nodes, data):
        is_held = "given back" not in self.log and pod.pod.metadata.name == "next"
        return np.full(nodes.size, int(is_held), dtype=np.int32)


def test_who_waits_for_what_was_in_doubt_hears_when_it_is_given_back() -> None:
    log: list[str] = []
    kinds = [type(kind.name, (kind,), {"log": log}) for kind in (Doubt, Elsewhere)]
    play = Play(a_node("n1"), plugins=kinds)
    play.see(a_pod("web"))
    play.see(a_pod("next"))
    play.lose(a_pod("web"))
    play.turn(after_s=30)  # the place is free, and what is in doubt is not
    assert not play.of(Bind)

    play.turn(after_s=30)
    play.turn(after_s=1)

    assert log[:2] == ["known", "given back"]
    assert play.node_of("uid-next") == "n1"
