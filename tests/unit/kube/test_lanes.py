"""Queues of the lanes: order, bounds, and folding of status patches."""

import pytest

from asched.core.framework.effects import (
    Lane,
    PatchPodStatus,
    PodRef,
)
from asched.kube.lanes import QueuedWrite, StatusQueue, fold


def pod(uid):
    return PodRef(namespace="t", name=uid, uid=uid)


def patch(uid, type_="PodScheduled", nominated=None, **condition):
    fields = {"type": type_, **condition} if type_ else None
    return PatchPodStatus(pod=pod(uid), condition=fields, nominated_node_name=nominated)


def job(effect, id_=1, at_s=0.0):
    return QueuedWrite(Lane.STATUS, effect, at_s, (id_,))


def test_a_newer_patch_of_a_pod_takes_the_place_of_the_older():
    queue = StatusQueue(10)
    queue.put(job(patch("a", message="old", status="False"), 1, 0.0))
    queue.put(job(patch("b"), 2, 1.0))
    queue.put(job(patch("a", message="new"), 3, 2.0))
    assert len(queue) == 2
    first = queue.take()
    assert first.ids == (1, 3)
    assert first.effect.condition == {"type": "PodScheduled", "message": "new", "status": "False"}


def test_one_patch_of_a_pod_at_a_time():
    queue = StatusQueue(10)
    queue.put(job(patch("a", message="1"), 1))
    first = queue.take()
    assert queue.is_under_way("a")
    queue.put(job(patch("a", message="2"), 2))
    queue.put(job(patch("b"), 3))
    assert queue.take().ids == (3,)
    assert queue.take() is None
    queue.done(first)
    assert queue.take().ids == (2,)


def test_a_patch_that_goes_back_lets_the_newer_one_win():
    queue = StatusQueue(10)
    queue.put(job(patch("a", message="old", reason="R"), 1))
    first = queue.take()
    queue.put(job(patch("a", message="new"), 2))
    queue.done(first)
    queue.put_back(first)
    merged = queue.take()
    assert merged.ids == (1, 2)
    assert merged.effect.condition == {"type": "PodScheduled", "message": "new", "reason": "R"}
    queue.done(merged)
    queue.put_back(merged)
    assert queue.take() is merged


def test_a_binding_overtakes_only_the_condition_it_writes_itself():
    queue = StatusQueue(10)
    queue.put(job(patch("a"), 1))
    queue.put(job(patch("a", "DisruptionTarget"), 2))
    assert queue.overtaken_by_binding("a").ids == (1,)
    assert queue.overtaken_by_binding("a") is None
    assert queue.overtaken_by_binding("x") is None
    assert queue.take().ids == (2,)


@pytest.mark.parametrize(
    ("older", "newer", "nominated"),
    [(None, None, None), ("n", None, "n"), ("n", "", ""), (None, "m", "m"), ("n", "m", "m")],
)
def test_the_newer_nomination_wins_where_it_says_something(older, newer, nominated):
    folded = fold(patch("a", nominated=older), patch("a", nominated=newer))
    assert folded.nominated_node_name == nominated


def test_folding_keeps_the_newest_order_of_conditions():
    older = PatchPodStatus(pod=pod("a"), condition={"type": "T"}, condition_types=("A",))
    newer = PatchPodStatus(pod=pod("a"), condition={"type": "T"}, condition_types=("A", "B"))
    assert fold(older, newer).condition_types == ("A", "B")
    assert fold(newer, patch("a", "T")).condition_types == ("A", "B")
