"""Which pods are tried as one, what brings them back, and when a group was complete."""

import pytest

from asched.core.config.args import CoschedulingArgs
from asched.core.model.kinds import COSCHEDULING_GROUP, POD_GROUP
from asched.core.model.pod import Pod
from asched.core.queue.gangs import Gangs
from asched.core.queue.hints import Worth
from asched.core.queue.queued import QueuedPod
from tests.core.queue.waiting import PROFILE, a_pod

LABELLED = {"labels": {"scheduling.x-k8s.io/pod-group": "crew"}}
MEMBER, THEIRS, ALONE = a_pod("a", group="crew"), a_pod("b", **LABELLED), a_pod("c")
NOBODYS = a_pod("d", scheduler="another", **LABELLED)
UPSTREAM, LABELS = Gangs(tries_groups=True), Gangs(coscheduled={PROFILE: CoschedulingArgs()})
BOTH = Gangs(tries_groups=True, coscheduled={PROFILE: CoschedulingArgs()})


@pytest.mark.parametrize(
    ("gangs", "tried"),
    [
        (Gangs(), []),
        (UPSTREAM, [MEMBER]),
        (LABELS, [THEIRS]),
        (BOTH, [MEMBER, THEIRS]),
    ],
)
def test_pods_of_groups_are_tried_as_one_where_that_is_on(gangs: Gangs, tried: list[Pod]) -> None:
    pods = [MEMBER, THEIRS, ALONE, NOBODYS]
    assert [pod for pod in pods if gangs.has(pod)] == tried
    assert [bool(gangs.key_of(pod)) for pod in pods] == [pod in tried for pod in pods]
    assert gangs.are_tried == bool(tried)


def test_a_group_is_known_by_the_api_that_tells_of_it() -> None:
    assert UPSTREAM.key_of(MEMBER) == "default/crew"
    assert LABELS.key_of(THEIRS) == "scheduling.x-k8s.io:default/crew"
    assert Gangs().kinds == ()
    assert UPSTREAM.kinds == (POD_GROUP,)
    assert LABELS.kinds == (COSCHEDULING_GROUP,)
    assert BOTH.kinds == (POD_GROUP, COSCHEDULING_GROUP)


@pytest.mark.parametrize(
    ("pod", "tries_placements", "is_promised", "brought_back"),
    [
        (MEMBER, False, False, False),
        (MEMBER, True, False, True),
        (MEMBER, False, True, True),
        (THEIRS, True, False, False),
        (THEIRS, False, True, True),
        (ALONE, True, True, False),
    ],
)
def test_time_brings_back_who_is_tried_in_placements_or_waits_for_victims(
    pod: Pod, tries_placements: bool, is_promised: bool, brought_back: bool
) -> None:
    gangs = Gangs(
        tries_groups=True,
        tries_placements=tries_placements,
        coscheduled={PROFILE: CoschedulingArgs()},
    )
    queued = QueuedPod(pod, 0.0)
    queued.is_promised = is_promised
    assert gangs.brings_back(queued) == brought_back


def gated(name: str, at_s: float, arrival: int, group: str = "crew") -> QueuedPod:
    queued = QueuedPod(a_pod(name, group=group), at_s)
    queued.arrival, queued.gated_by = arrival, "GangScheduling"
    return queued


def came(*pods: QueuedPod) -> list[tuple[float, int]]:
    return [(queued.timestamp_s, queued.arrival) for queued in pods]


def woken(*pods: QueuedPod) -> list[tuple[QueuedPod, Worth]]:
    return [(queued, Worth.IMMEDIATELY) for queued in pods]


def test_a_group_came_with_its_last_pod() -> None:
    first, last, other = gated("a", 1.0, 1), gated("b", 5.0, 7), gated("x", 2.0, 2, group="other")
    UPSTREAM.complete(woken(first, last, other), None)
    assert came(first, last, other) == [(5.0, 7), (5.0, 7), (2.0, 2)]


def test_the_last_one_may_be_the_newcomer_that_woke_the_others() -> None:
    first, newcomer = gated("a", 1.0, 1), gated("b", 5.0, 7)
    newcomer.gated_by = ""
    UPSTREAM.complete(woken(first), newcomer)
    assert came(first, newcomer) == [(5.0, 7), (5.0, 7)]


def test_a_newcomer_of_another_group_and_pods_without_a_gate_keep_their_time() -> None:
    first, newcomer, free = gated("a", 1.0, 1), gated("b", 5.0, 7, "other"), gated("c", 9.0, 9)
    free.gated_by = ""
    UPSTREAM.complete(woken(first, free), newcomer)
    assert came(first, newcomer, free) == [(1.0, 1), (5.0, 7), (9.0, 9)]
