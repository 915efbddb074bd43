"""Changes that hints overlook: whom they wake, and what is remembered of a look in vain."""

import pytest

from asched.core.cluster.changes import ASSIGNED_POD_DELETE, Change
from asched.core.framework.points import Expecting, Hint, Registration
from asched.core.model.pod import Pod
from asched.core.queue.profile import QueueProfile
from asched.core.queue.queued import BackoffTimes
from asched.core.queue.waking import LOOK_STEPS, LOOKS_MAX
from tests.unit.core.queue.queues import Looked
from tests.unit.core.queue.waiting import (
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
def test_nobody_is_looked_at_for_a_node_that_more_pods_will_leave(by_class: bool) -> None:
    look = Looked()
    one = departed(look, MakingRoom(here="n1", elsewhere="n2"), by_class=by_class)

    assert sorted(one.names()["backoff"]) == ["here", "nowhere"]
    assert look.asked == []


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
