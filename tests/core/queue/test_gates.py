"""PreEnqueue: who is asked, in which order, and what a refusal leaves behind."""

from asched.core.queue.gates import Gates
from asched.core.queue.queued import QueuedPod
from tests.core.queue.waiting import PROFILE, Gate, Witness, a_pod


def test_the_first_refusal_gates_the_pod_and_counts_once() -> None:
    one, two, witness = Gate("one"), Gate("two"), Witness()
    gates = Gates({PROFILE: (one, two)}, witness)
    queued = QueuedPod(a_pod("web", gates=["one", "two"]), 0.0)

    assert not gates.admit(queued)
    assert not gates.admit(queued)

    assert queued.gated_by == "one"
    assert queued.rejected_by == {"one"}
    assert witness.waiting_for == {"one": 1}
    assert two.asked == []


def test_the_gate_of_last_time_is_asked_first() -> None:
    one, two = Gate("one"), Gate("two")
    gates = Gates({PROFILE: (one, two)}, Witness())
    queued = QueuedPod(a_pod("web", gates=["two"]), 0.0)
    gates.admit(queued)
    one.asked.clear()

    assert not gates.admit(queued)

    assert queued.gated_by == "two"
    assert one.asked == []


def test_a_pod_passes_when_nobody_objects() -> None:
    gates = Gates({PROFILE: (Gate("one"),)}, Witness())
    queued = QueuedPod(a_pod("web", gates=["one"]), 0.0)
    gates.admit(queued)
    queued.pod = a_pod("web")

    assert gates.admit(queued)

    assert not queued.is_gated
    assert queued.rejected_by == {"one"}  # told in the next attempt's favour: its hints still count


def test_a_profile_without_gates_lets_everybody_pass() -> None:
    assert Gates({}, Witness()).admit(QueuedPod(a_pod("web", gates=["one"]), 0.0))
