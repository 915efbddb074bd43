"""SchedulingGates: the gate, its message, and when it opens."""

from asched.core.framework.registrations import Hint
from asched.core.framework.status import Code
from asched.core.plugins.scheduling_gates import SchedulingGates
from tests.builders import a_pod


def test_a_pod_without_gates_enters() -> None:
    assert SchedulingGates().pre_enqueue(a_pod().build()).is_success


def test_a_gated_pod_stays_outside_and_hears_which_gates_are_shut() -> None:
    status = SchedulingGates().pre_enqueue(a_pod().gated("quota example.com/b").build())

    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message == "waiting for scheduling gates: [quota example.com/b]"


def test_only_its_own_last_gate_wakes_a_pod() -> None:
    (registration,) = SchedulingGates().registrations()
    assert registration.hint is not None
    gated, free = a_pod().gated("a").build(), a_pod().build()

    assert registration.hint(gated, gated, free) is Hint.QUEUE
    assert registration.hint(gated, gated, gated) is Hint.SKIP
    assert registration.hint(a_pod("other").gated("a").build(), gated, free) is Hint.SKIP
