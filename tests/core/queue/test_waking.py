"""Changes that hints overlook: whom they wake, and what is remembered of a look in vain."""

import pytest

from asched.core.framework.expecting import Expecting
from asched.core.framework.points import Hint, Registration
from asched.core.model.pod import Pod
from asched.core.queue.backoff import BackoffTimes
from asched.core.queue.profile import QueueProfile
from asched.core.queue.queued import QueuedPod
from asched.core.queue.round import LOOK_STEPS, LOOKS_MAX
from asched.core.queue.unschedulable import RejectorGroup
from asched.core.state.changes import ASSIGNED_POD_DELETE, Change, Trigger
from tests.core.queue.queues import Looked
from tests.core.queue.waiting import (
    NODE_ADDED,
    NODE_LABEL,
    PROFILE,
    VOLUME_ADDED,
    Gate,
    Scene,
    a_node,
    a_pod,
    always,
    by_priority,
)


def scene(look: Looked, *, by_class: bool = False, gates: tuple[Gate, ...] = ()) -> Scene:
    """Fit hears of nodes, Ports of volumes; Fit overlooks changes of labels."""
    made = Scene(class_key_of=(lambda pod: pod.metadata.namespace) if by_class else lambda _: None)
    profile = QueueProfile(
        by_priority,
        {"Fit": [Registration(NODE_ADDED)], "Ports": [Registration(VOLUME_ADDED)]},
        gates,
        extra_events={"Fit": [Registration(NODE_LABEL)]},
        blame=look,
    )
    made.queue.learn({PROFILE: profile}, BackoffTimes(1, 10))
    return made


def unschedulable(one: Scene) -> list[str]:
    return one.names().get("unschedulable", [])


def test_a_pod_that_fits_follows_an_overlooked_change() -> None:
    one = scene(Looked())
    one.add(a_pod("web"))
    one.reject("Fit", now_s=1.2)

    assert one.move(NODE_LABEL, now_s=1.3) == 1
    assert one.names() == {"backoff": ["web"]}


def test_a_pod_that_does_not_fit_rests_on() -> None:
    one = scene(Looked(web="Fit"))
    one.add(a_pod("web"))
    one.reject("Fit", now_s=1.2)

    assert one.move(NODE_LABEL, now_s=1.3) == 0
    assert unschedulable(one) == ["web"]


def test_nobody_is_looked_at_whom_a_hint_wakes_anyway_or_who_is_not_concerned() -> None:
    look = Looked()
    one = scene(look)
    one.add(a_pod("a"), a_pod("b"))
    one.reject("Fit", now_s=1.2)
    one.reject("Ports", now_s=1.2)

    one.move(NODE_ADDED, now_s=1.3)
    one.move(NODE_LABEL, now_s=1.3)

    assert look.asked == []
    assert unschedulable(one) == ["b"]


def test_whoever_was_blamed_at_a_look_is_heard_from_then_on() -> None:
    look = Looked(web="Ports")
    one = scene(look)
    one.add(a_pod("web"))
    one.reject("Fit", now_s=1.2)
    assert one.move(VOLUME_ADDED, now_s=1.3) == 0

    one.move(NODE_LABEL, now_s=1.4)
    assert one.move(VOLUME_ADDED, now_s=1.5) == 0, "it does not fit yet"
    look.blamed.clear()

    assert one.move(VOLUME_ADDED, now_s=1.6) == 1


def test_the_next_attempt_forgets_who_was_blamed_between() -> None:
    one = scene(Looked(web="Ports"))
    one.add(a_pod("web"))
    one.reject("Fit", now_s=1.2)
    one.move(NODE_LABEL, now_s=1.3)
    one.move(NODE_ADDED, now_s=5.0)
    queued = one.reject("Fit", now_s=5.1)

    assert queued.also_blamed == frozenset()
    assert queued.rejectors == {"Fit"}


def test_pods_of_a_class_are_looked_at_once() -> None:
    look = Looked(a="Ports", b="Ports")
    one = scene(look, by_class=True)
    one.add(a_pod("a"), a_pod("b"))
    for _ in range(2):
        one.reject("Fit", now_s=1.2)

    one.move(NODE_LABEL, now_s=1.3)
    assert look.asked == ["a"]
    look.blamed.clear()

    assert [queued.also_blamed for queued in one.queue.places.unschedulable] == [{"Ports"}] * 2
    assert one.move(VOLUME_ADDED, now_s=1.4) == 2, "both remember whom the look blamed"


def test_one_change_causes_no_more_than_so_many_looks() -> None:
    look = Looked(**{f"p{n}": "Fit" for n in range(LOOKS_MAX + 2)})
    one = scene(look)
    one.add(*(a_pod(f"p{n}") for n in range(LOOKS_MAX + 2)))
    for _ in range(LOOKS_MAX + 2):
        one.reject("Fit", now_s=1.2)

    assert one.move(NODE_LABEL, now_s=1.3) == 2, "the rest is woken unseen"
    assert len(look.asked) == LOOKS_MAX
    assert one.queue.sliced.budget.spent >= LOOKS_MAX * LOOK_STEPS


def test_a_change_that_upstream_does_not_make_wakes_only_who_fits() -> None:
    one = scene(Looked(b="Fit"))
    one.add(a_pod("a"), a_pod("b"))
    for _ in range(2):
        one.reject("Fit", now_s=1.2)

    one.queue.move(Change(NODE_ADDED, None, a_node("n"), only_if_fits=True), 1.3)

    assert unschedulable(one) == ["b"]


@pytest.mark.parametrize(("fits", "place"), [(True, "backoff"), (False, "unschedulable")])
def test_an_overlooked_change_during_the_attempt_counts_when_the_pod_returns(
    fits: bool, place: str
) -> None:
    one = scene(Looked() if fits else Looked(web="Fit"))
    one.add(a_pod("web"))
    queued = one.pop(1.0)
    one.move(NODE_LABEL, now_s=1.1)

    one.fail(queued, "Fit", now_s=1.2)

    assert one.names() == {place: ["web"]}


def test_a_gated_pod_hears_nothing_that_its_gate_does_not_overlook() -> None:
    look = Looked()
    one = scene(look, gates=(Gate("Gates"),))
    one.add(a_pod("web", gates=["Gates"]))

    assert one.move(NODE_LABEL) == 0
    assert look.asked == []


@pytest.mark.parametrize("by_class", [False, True])
def test_a_gate_that_goes_on_to_refuse_spares_its_pod_the_look(by_class: bool) -> None:
    look, gate = Looked(), Gate("Gates")
    one = scene(look, by_class=by_class)
    extra_events = {"Gates": [Registration(NODE_LABEL)]}
    profile = QueueProfile(by_priority, {}, (gate,), extra_events=extra_events, blame=look)
    one.queue.learn({PROFILE: profile}, BackoffTimes(1, 10))
    one.add(a_pod("shut", gates=["Gates"]), a_pod("opened", gates=["Gates"]))
    one.queue.places.get("default/opened").pod = a_pod("opened")

    assert one.move(NODE_LABEL) == 1
    assert look.asked == ["opened"]
    assert one.names()["gated"] == ["shut"]


def test_a_hint_for_overlooked_changes_may_say_no() -> None:
    look = Looked()
    one = scene(look)
    skip = Registration(Trigger(*NODE_LABEL[:2]), lambda pod, old, new: Hint.SKIP)
    profile = QueueProfile(by_priority, {"Fit": []}, extra_events={"Fit": [skip]}, blame=look)
    one.queue.learn({PROFILE: profile}, BackoffTimes(1, 10))
    one.add(a_pod("web"))
    one.reject("Fit", now_s=1.2)

    assert one.move(NODE_LABEL, now_s=1.3) == 0
    assert look.asked == []


@pytest.mark.parametrize(("node", "told"), [("n1", "n1"), ("", "")])
def test_a_look_after_a_departure_is_told_of_the_node(node: str, told: str) -> None:
    """Of a pod that only had room promised, no node is told: any may have been promised before."""
    look = Looked(web="Fit")
    one = scene(look)
    extra_events = {"Fit": [Registration(ASSIGNED_POD_DELETE)]}
    profile = QueueProfile(by_priority, {"Fit": []}, extra_events=extra_events, blame=look)
    one.queue.learn({PROFILE: profile}, BackoffTimes(1, 10))
    one.add(a_pod("web"))
    one.reject("Fit", now_s=1.2)
    gone = a_pod("gone", node=node) if node else a_pod("gone")

    one.queue.move(Change(ASSIGNED_POD_DELETE, gone, None), 1.3)

    assert look.left == [told]


class MakingRoom(Gate):
    """Room is being made for pods on nodes, as DefaultPreemption tells it."""

    def __init__(self, **nodes: str) -> None:
        super().__init__("Preemption")
        self.nodes = Expecting({f"default/{name}": node for name, node in nodes.items()})
        self.departed: list[str] = []

    def expecting(self, departed: Pod) -> Expecting:
        self.departed.append(departed.metadata.name)
        return self.nodes


@pytest.mark.parametrize("by_class", [True, False])
@pytest.mark.parametrize(
    ("like_fits", "woken"), [(False, ["here", "nowhere"]), (True, ["elsewhere", "here", "nowhere"])]
)
def test_whoever_gets_room_elsewhere_follows_a_departure_only_if_it_fits(
    by_class: bool, like_fits: bool, woken: list[str]
) -> None:
    look = Looked() if like_fits else Looked(elsewhere="Ports", here="Ports", nowhere="Ports")
    one = departed(look, MakingRoom(elsewhere="n2"), by_class=by_class)

    assert sorted(one.names()["backoff"]) == woken
    assert look.asked == ["elsewhere"]
    unschedulable_now = [
        q for group in one.queue.places.unschedulable.groups() for q in group_pods(group)
    ]
    assert all(q.also_blamed == {"Ports"} for q in unschedulable_now if q.stands_apart)


@pytest.mark.parametrize("by_class", [True, False])
def test_nobody_is_looked_at_for_a_node_that_more_pods_will_leave(by_class: bool) -> None:
    look = Looked()
    one = departed(look, MakingRoom(here="n1", elsewhere="n2"), by_class=by_class)

    assert sorted(one.names()["backoff"]) == ["here", "nowhere"]
    assert look.asked == []


def test_a_departure_is_told_though_nobody_rests() -> None:
    gate = MakingRoom()
    one = scene(Looked())
    heard = {"Fit": [Registration(ASSIGNED_POD_DELETE)]}
    one.queue.learn({PROFILE: QueueProfile(by_priority, heard, (gate,))}, BackoffTimes(1, 10))

    one.queue.move(Change(ASSIGNED_POD_DELETE, a_pod("gone", node="n1"), None), 1.3)

    assert gate.departed == ["gone"]


def departed(look: Looked, gate: MakingRoom, *, by_class: bool, answer: Hint = Hint.QUEUE) -> Scene:
    """Three pods rest, and one more leaves node n1."""
    one = scene(look, by_class=by_class)
    fit = Registration(ASSIGNED_POD_DELETE, always(answer))
    heard = {"Fit": [fit], "Ports": [Registration(VOLUME_ADDED)]}
    one.queue.learn(
        {PROFILE: QueueProfile(by_priority, heard, (gate,), blame=look)}, BackoffTimes(1, 10)
    )
    one.add(a_pod("here"), a_pod("elsewhere"), a_pod("nowhere"))
    for _ in range(3):
        queued = one.pop(1.2)
        made = queued.key in gate.nodes.node_of
        one.queue.return_failed(queued, queued.pod, ("Fit",), (), 1.2, is_promised=made)

    one.queue.move(Change(ASSIGNED_POD_DELETE, a_pod("gone", node="n1"), None), 1.3)
    return one


def group_pods(group: RejectorGroup) -> list[QueuedPod]:
    return [queued for equals in group.classes.values() for queued in equals]
