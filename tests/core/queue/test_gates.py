"""PreEnqueue: who is asked, in which order, and what a refusal leaves behind."""

import pytest

from asched.core.framework.expecting import Expecting
from asched.core.framework.points import PostFilterPlugin, PostFilterResult
from asched.core.framework.status import SUCCESS
from asched.core.queue.gates import Gates
from asched.core.queue.profile import QueueProfile
from asched.core.queue.queued import QueuedPod
from tests.core.queue.waiting import PROFILE, Gate, Witness, a_pod


def a_profile(*gates: Gate) -> dict[str, QueueProfile]:
    registrations = {"fit": (), "ports": ()}
    sort_key = lambda pod, _: pod.key  # noqa: E731
    return {PROFILE: QueueProfile(sort_key, registrations, gates)}


class MakingRoom(Gate, PostFilterPlugin):
    """Holds a pod back while others leave for it."""

    preempts = True

    def post_filter(self, pod, rejection, trial):
        return PostFilterResult(SUCCESS)


def test_the_first_refusal_gates_the_pod_and_counts_once() -> None:
    one, two, witness = Gate("one"), Gate("two"), Witness()
    gates = Gates(a_profile(one, two), witness)
    queued = QueuedPod(a_pod("web", gates=["one", "two"]), 0.0)

    assert not gates.admit(queued)
    assert not gates.admit(queued)

    assert queued.gated_by == "one"
    assert queued.rejected_by == {"one"}
    assert witness.waiting_for == {"one": 1}
    assert two.asked == []


def test_the_gate_of_last_time_is_asked_first() -> None:
    one, two = Gate("one"), Gate("two")
    gates = Gates(a_profile(one, two), Witness())
    queued = QueuedPod(a_pod("web", gates=["two"]), 0.0)
    gates.admit(queued)
    one.asked.clear()

    assert not gates.admit(queued)

    assert queued.gated_by == "two"
    assert one.asked == []


def test_a_pod_passes_when_nobody_objects() -> None:
    gates = Gates(a_profile(Gate("one")), Witness())
    queued = QueuedPod(a_pod("web", gates=["one"]), 0.0)
    gates.admit(queued)
    queued.pod = a_pod("web")

    assert gates.admit(queued)

    assert not queued.is_gated
    assert queued.rejected_by == {"one"}  # told in the next attempt's favour: its hints still count


def test_a_profile_without_gates_lets_everybody_pass() -> None:
    assert Gates({}, Witness()).admit(QueuedPod(a_pod("web", gates=["one"]), 0.0))


def test_whoever_rejected_a_pod_before_room_was_made_for_it_goes_on_to_hear() -> None:
    queued, witness = QueuedPod(a_pod("web", gates=["room"]), 0.0), Witness()
    queued.rejected_by = frozenset(("fit",))

    assert not Gates(a_profile(MakingRoom("room")), witness).admit(queued)

    assert queued.rejected_by == {"fit", "room"}
    assert witness.waiting_for == {"room": 1}


@pytest.mark.parametrize("rejected_by", [(), ("of another profile",)])
def test_where_it_is_forgotten_who_rejected_it_everybody_hears(rejected_by: list[str]) -> None:
    """Its profile was gone for a while, or is another one now."""
    queued, witness = QueuedPod(a_pod("web", gates=["room"]), 0.0), Witness()
    queued.rejected_by = frozenset(rejected_by)
    gates = Gates(a_profile(MakingRoom("room")), witness)

    assert not gates.admit(queued)
    assert not gates.admit(queued)

    assert queued.rejected_by == {"fit", "ports", "room", *rejected_by}
    assert witness.waiting_for == {"fit": 1, "ports": 1, "room": 1}


def test_a_gate_that_waits_for_objects_is_the_only_one_to_hear() -> None:
    """One that takes part in PostFilter without making room has nobody else's rejection to end."""

    class Waiting(MakingRoom):
        preempts = False

    queued = QueuedPod(a_pod("web", gates=["claims"]), 0.0)

    assert not Gates(a_profile(Waiting("claims")), Witness()).admit(queued)

    assert queued.rejected_by == {"claims"}


def test_a_gate_that_raises_holds_its_pod_and_is_told() -> None:
    class Broken(Gate):
        def pre_enqueue(self, pod):
            raise RuntimeError("of no use")

    witness = Witness()
    queued = QueuedPod(a_pod("web"), 0.0)

    assert not Gates(a_profile(Broken("broken")), witness).admit(queued)

    assert queued.gated_by == "broken"
    assert witness.raised == [("broken", "preEnqueue", "RuntimeError('of no use')")]


def test_how_long_the_gates_took_is_told() -> None:
    class Timed(Witness):
        def gates_asked(self, profile, duration_s):
            told.append((profile, duration_s))

    told: list[tuple[str, float]] = []
    times = iter((10.0, 12.5))
    gates = Gates(a_profile(Gate("one")), Timed(), lambda: next(times))
    gates.admit(QueuedPod(a_pod("web"), 0.0))
    assert told == [(PROFILE, 2.5)]


class Knowing(Gate):
    """Says whom it would hold, and for whom room is being made where."""

    def __init__(self, name, **node_of):
        super().__init__(name)
        self.node_of = node_of

    def holding(self):
        return set(self.node_of)

    def expecting(self, departed):
        return Expecting(self.node_of)


def test_the_gate_that_is_named_says_whom_it_holds() -> None:
    gates = Gates(a_profile(Knowing("one", a="n1"), Knowing("two", b="n2")), Witness())
    assert gates.holding(PROFILE, "two") == {"b"}
    assert gates.holding(PROFILE, "three") == ()
    assert gates.holding("another", "two") == ()


def test_room_that_is_being_made_is_known_of_all_gates_together() -> None:
    def expecting(*plugins):
        (found,) = Gates(a_profile(*plugins), Witness()).expecting(a_pod("gone")).values()
        return dict(found.node_of)

    one, two = Knowing("one", a="n1"), Knowing("two", b="n2")
    assert expecting(Knowing("nothing")) == {}
    assert expecting(one, Knowing("nothing")) == {"a": "n1"}
    assert expecting(one, two) == {"a": "n1", "b": "n2"}


class Broken(Gate):
    """A user's plugin with mistakes in what is asked beside its verdict."""

    def holding(self):
        raise RuntimeError("oops")

    def expecting(self, departed):
        return {"default/web": departed.spec.node_name}


def test_what_a_plugin_says_beside_its_verdicts_ends_nothing() -> None:
    node_of = {"default/web": "n1"}
    expects, witness = MakingRoom("room"), Witness()
    expects.expecting = lambda _departed: Expecting(node_of)
    gates = Gates(a_profile(Broken("mine"), expects), witness)

    assert gates.holding(PROFILE, "mine") == ()
    assert gates.expecting(a_pod("gone"))[PROFILE].node_of == node_of
    assert [raised[:2] for raised in witness.raised] == [("mine", "holding"), ("mine", "expecting")]
