"""A plugin that does not know what became of its write is not cut off, whoever goes meanwhile."""

from asched.core.framework.effects import WaitFor
from asched.core.framework.points import PreBindPlugin, ReservePlugin
from asched.core.framework.status import SUCCESS, failure
from tests.builders import a_node, a_pod
from tests.core.cycle.playbook import Play


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
