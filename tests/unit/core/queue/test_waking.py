"""Extra events: which pods they wake, and which get a dry run at once."""

import pytest

from asched.core.cluster.changes import ASSIGNED_POD_DELETE, Change
from asched.core.framework.expecting import Expecting
from asched.core.framework.registrations import Hint, Registration
from asched.core.model.pod import Pod
from asched.core.queue.backoff import BackoffTimes
from asched.core.queue.profile import QueueProfile
from asched.core.queue.waking import DRY_RUN_STEPS, DRY_RUNS_MAX
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

#: All backoffs are over by then.
LATER_S = 20.0


def scene(dry_runner: Looked, *, by_class: bool = False) -> Scene:
    """Fit has hints for nodes, Ports for volumes; changes of labels are extra events of Fit."""
    return Scene(
        {"Fit": [Registration(NODE_ADDED)], "Ports": [Registration(VOLUME_ADDED)]},
        class_key_of=(lambda pod: pod.metadata.namespace) if by_class else lambda _: None,
        extra_events={"Fit": [Registration(NODE_LABEL)]},
        dry_runner=dry_runner,
    )


def popped(one: Scene) -> list[str]:
    pods = iter(lambda: one.queue.pop(LATER_S), None)
    return [queued.pod.metadata.name for queued in pods]


@pytest.mark.parametrize(("rejectors", "tried"), [("", ["web"]), ("Fit", []), ("Ports", ["web"])])
def test_after_an_extra_event_a_dry_run_decides_whether_a_pod_is_tried(
    rejectors: str, tried: list[str]
) -> None:
    one = scene(Looked(web=rejectors) if rejectors else Looked())
    one.add(a_pod("web"))
    one.reject("Fit", now_s=1.2)

    one.move(NODE_LABEL, now_s=LATER_S)

    assert popped(one) == tried


def test_a_change_that_upstream_does_not_make_wakes_only_pods_that_fit() -> None:
    one = scene(Looked(b="Fit"))
    one.add(a_pod("a"), a_pod("b"))
    for _ in range(2):
        one.reject("Fit", now_s=1.2)

    one.queue.move(Change(NODE_ADDED, None, a_node("n"), only_if_fits=True), LATER_S)

    assert popped(one) == ["a"]


def apart(one: Scene, *names: str) -> None:
    """Pods that were rejected after they had a place."""
    one.add(*(a_pod(name) for name in names))
    for _ in names:
        queued = one.pop(1.2)
        one.queue.return_failed(queued, queued.pod, ("Fit",), (), 1.2, is_patient=True)


@pytest.mark.parametrize(("rejectors", "woken"), [("", 1), ("Fit", 0), ("Fit Ports", 1)])
def test_a_pod_apart_gets_a_dry_run_at_once(rejectors: str, woken: int) -> None:
    one = scene(Looked(web=rejectors) if rejectors else Looked())
    apart(one, "web")

    assert one.move(NODE_LABEL, now_s=1.3) == woken


def test_one_change_causes_a_limited_number_of_dry_runs_at_once() -> None:
    names = [f"p{n}" for n in range(DRY_RUNS_MAX + 2)]
    dry_runner = Looked(**dict.fromkeys(names, "Fit"))
    one = scene(dry_runner)
    apart(one, *names)

    assert one.move(NODE_LABEL, now_s=1.3) == 2, "the rest is woken without"
    assert len(dry_runner.asked) == DRY_RUNS_MAX
    assert one.queue.sliced_work.budget.spent >= DRY_RUNS_MAX * DRY_RUN_STEPS


@pytest.mark.parametrize(("fits", "place"), [(True, "backoff"), (False, "unschedulable")])
def test_an_extra_event_during_the_attempt_counts_when_the_pod_returns(
    fits: bool, place: str
) -> None:
    one = scene(Looked() if fits else Looked(web="Fit"))
    one.add(a_pod("web"))
    queued = one.pop(1.0)
    one.move(NODE_LABEL, now_s=1.1)

    one.fail(queued, "Fit", now_s=1.2)

    assert one.names() == {place: ["web"]}


class MakingRoom(Gate):
    """Room is being made for pods on nodes, as DefaultPreemption reports it."""

    def __init__(self, **nodes: str) -> None:
        super().__init__("Preemption")
        self.nodes = Expecting({f"default/{name}": node for name, node in nodes.items()})

    def expecting(self, departed: Pod) -> Expecting:
        return self.nodes


@pytest.mark.parametrize("by_class", [True, False])
@pytest.mark.parametrize(("awaits_here", "has_room"), [(True, True), (False, False)])
def test_no_dry_run_for_a_node_that_more_pods_will_leave_or_without_room(
    by_class: bool, awaits_here: bool, has_room: bool
) -> None:
    dry_runner = Looked()
    dry_runner.has_room = has_room
    one = scene(dry_runner, by_class=by_class)
    gate = MakingRoom(elsewhere="n2", **({"here": "n1"} if awaits_here else {}))
    fit = Registration(ASSIGNED_POD_DELETE, always(Hint.QUEUE))
    heard = {"Fit": [fit], "Ports": [Registration(VOLUME_ADDED)]}
    one.queue.learn({PROFILE: QueueProfile(by_priority, heard, (gate,))}, BackoffTimes(1, 10))
    one.add(a_pod("here"), a_pod("elsewhere"))
    for _ in range(2):
        queued = one.pop(1.2)
        one.queue.return_failed(queued, queued.pod, ("Fit",), (), 1.2, is_promised=True)

    one.queue.move(Change(ASSIGNED_POD_DELETE, a_pod("gone", node="n1"), None), 1.3)

    assert one.names() == {"backoff": ["here"], "unschedulable": ["elsewhere"]}
    assert dry_runner.asked == []
