"""Queues of the lanes: order, bounds, and folding of status patches."""

import random

import pytest

from asched.core.framework.effects import (
    Bind,
    Lane,
    MarkVictim,
    PatchGroupStatus,
    PatchPodStatus,
    PodRef,
    ReadPod,
)
from asched.core.model.kinds import POD_GROUP
from asched.core.state.facts import Refused, Unknown
from asched.kube.lanes import (
    JobQueue,
    LaneState,
    QueuedWrite,
    StatusQueue,
    TurnQueue,
    fold,
    given_up,
)


def pod(uid):
    return PodRef(namespace="t", name=uid, uid=uid)


def patch(uid, type_="PodScheduled", nominated=None, **condition):
    fields = {"type": type_, **condition} if type_ else None
    return PatchPodStatus(pod=pod(uid), condition=fields, nominated_node_name=nominated)


def job(effect, id_=1, at_s=0.0):
    return QueuedWrite(Lane.STATUS, effect, at_s, (id_,))


def test_first_in_first_out_and_back_to_the_head():
    queue = JobQueue(10)
    jobs = [QueuedWrite(Lane.BINDING, Bind(pod=pod(str(n)), node="n"), float(n)) for n in range(3)]
    for each in jobs:
        queue.put(each)
    assert queue.oldest_s == 0.0
    first = queue.take()
    queue.put_back(first)
    assert [queue.take() for _ in range(4)] == [*jobs, None]
    assert queue.oldest_s is None


def test_a_queue_is_full_at_its_limit():
    for queue in (JobQueue(2), StatusQueue(2)):
        queue.put(job(patch("a")))
        assert not queue.is_full
        queue.put(job(patch("b")))
        assert queue.is_full
        assert queue.drop_oldest().effect.pod.uid == "a"
        assert len(queue) == 1


def test_a_newer_patch_of_a_pod_takes_the_place_of_the_older():
    queue = StatusQueue(10)
    queue.put(job(patch("a", message="old", status="False"), 1, 0.0))
    queue.put(job(patch("b"), 2, 1.0))
    queue.put(job(patch("a", message="new"), 3, 2.0))
    assert (len(queue), queue.folded_count) == (2, 1)
    first = queue.take()
    assert first.ids == (1, 3)
    assert first.effect.condition == {"type": "PodScheduled", "message": "new", "status": "False"}


def test_different_conditions_of_a_pod_are_different_patches():
    queue = StatusQueue(10)
    queue.put(job(patch("a")))
    queue.put(job(patch("a", "DisruptionTarget")))
    assert len(queue) == 2


def test_a_nomination_joins_the_waiting_condition():
    queue = StatusQueue(10)
    queue.put(job(patch("a", message="m")))
    queue.put(job(patch("a", None, nominated="n1")))
    taken = queue.take()
    assert taken.effect.condition["message"] == "m"
    assert taken.effect.nominated_node_name == "n1"
    assert len(queue) == 0


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


def test_what_was_begun_earlier_goes_first():
    def marking(name, turn):
        return QueuedWrite(Lane.WRITE, MarkVictim(pod=pod(name), turn=turn), 0.0)

    queue = TurnQueue(10)
    first, second, late = marking("a", 1), marking("b", 2), marking("c", 2)
    for each in (first, second, late):
        queue.put(each)
    assert queue.take() is first
    next_step = marking("a", 1)
    queue.put(next_step)

    assert queue.take() is next_step
    queue.put_back(next_step)
    assert [queue.take() for _ in range(4)] == [next_step, second, late, None]
    assert queue.oldest_s is None


def test_of_a_group_the_newest_condition_waits_and_the_next_until_it_is_written() -> None:
    def of_group(name: str, says: str) -> QueuedWrite:
        effect = PatchGroupStatus(
            kind=POD_GROUP, namespace="ns", name=name, body={"says": says}, subresource="status"
        )
        return QueuedWrite(effect.lane, effect, 0.0)

    queue = StatusQueue(10)
    for job in (of_group("a", "no"), of_group("b", "no"), of_group("a", "yes")):
        assert job.lane is Lane.STATUS
        queue.put(job)
    assert (len(queue), queue.folded_count) == (2, 1)
    first, second = queue.take(), queue.take()
    assert first is not None
    assert second is not None
    assert [job.effect.body["says"] for job in (first, second)] == ["yes", "no"]
    queue.put(of_group("a", "no more"))
    assert queue.take() is None
    queue.done(first)
    last = queue.take()
    assert last is not None
    assert last.effect.body == {"says": "no more"}


def drained(queue: JobQueue) -> list[QueuedWrite | None]:
    return [queue.take() for _ in range(len(queue))]


@pytest.mark.parametrize("seed", range(8))
def test_turns_go_by_when_they_were_begun_then_by_what_goes_back_then_by_what_came(seed):
    """Against a list that is sorted anew each time."""
    rng, queue, line, out = random.Random(seed), TurnQueue(12), [], []
    for at_s in range(200):
        deed = rng.choice(("put", "put", "back", "take", "drop"))
        if deed == "put":
            made = QueuedWrite(
                Lane.WRITE, MarkVictim(pod=pod("p"), turn=rng.randrange(3)), float(at_s)
            )
            queue.put(made)
            line.append((made.effect.turn, 1, at_s, made))
        elif deed == "back" and out:
            made = out.pop(rng.randrange(len(out)))
            queue.put_back(made)
            line.append((made.effect.turn, 0, -at_s, made))
        elif line:
            line.sort(key=lambda one: one[:3])
            taken = queue.take() if deed == "take" else queue.drop_oldest()
            assert taken is line.pop(0)[3]
            out.append(taken)
        line.sort(key=lambda one: one[:3])
        assert (len(queue), queue.is_full) == (len(line), len(line) >= 12)
        assert queue.oldest_s == (line[0][3].queued_s if line else None)
    assert drained(queue) == [one[3] for one in line]


@pytest.mark.parametrize("seed", range(8))
def test_statuses_wait_in_one_line_in_which_each_pod_and_condition_stands_once(seed):
    """Against a plain list: what the pods' conditions say in the end, who answers, in which
    order, and that of a pod one is under way at most.
    """
    rng, queue = random.Random(seed), StatusQueue(6)
    line: list[list] = []  # key, what it will have said, ids
    under_way: dict[str, tuple[list, QueuedWrite]] = {}
    folded = 0
    for number in range(300):
        deed = rng.choice(("put", "put", "take", "done", "back"))
        if deed == "put":
            key, field = (rng.choice("abc"), rng.choice("TU")), rng.choice("xyz")
            queue.put(job(patch(*key, **{field: number}), number, float(number)))
            if older := next((one for one in line if one[0] == key), None):
                older[1][field] = number
                older[2].append(number)
                folded += 1
            else:
                line.append([key, {field: number}, [number]])
        elif deed == "take":
            taken = queue.take()
            free = next((one for one in line if one[0][0] not in under_way), None)
            assert (taken is None) is (free is None)
            if free is not None:
                line.remove(free)
                assert taken.ids == tuple(free[2])
                assert taken.effect.condition == {"type": free[0][1], **free[1]}
                under_way[free[0][0]] = free, taken
        elif under_way:
            (key, says, ids), taken = under_way.pop(rng.choice(sorted(under_way)))
            queue.done(taken)
            if deed == "back":
                queue.put_back(taken)
                newer = next((one for one in line if one[0] == key), [key, {}, []])
                folded += newer in line
                line = [one for one in line if one is not newer]
                line.insert(0, [key, {**says, **newer[1]}, [*ids, *newer[2]]])
        assert {uid for uid in "abc" if queue.is_under_way(uid)} == set(under_way)
        assert (len(queue), queue.folded_count) == (len(line), folded)
        assert queue.is_full is (len(line) >= 6)
        times_s = {float(one) for one in line[0][2]} if line else {None}
        assert queue.oldest_s in times_s


def test_pods_without_a_uid_are_told_apart_by_their_keys():
    queue = StatusQueue(10)
    for name in ("a", "b", "a"):
        ref = PodRef(namespace="t", name=name, uid="")
        queue.put(job(PatchPodStatus(pod=ref, condition={"type": "T"})))
    assert [taken.effect.pod.name for taken in drained(queue)] == ["a", "b"]


@pytest.mark.parametrize("busy", ["waiting", "in flight", "delayed"])
def test_a_lane_is_idle_when_nothing_waits_nor_is_under_way_nor_will_be_tried_again(busy):
    state = LaneState(Lane.STATUS, 1, 10)
    assert state.is_idle
    if busy == "waiting":
        state.queue.put(job(patch("a")))
    elif busy == "in flight":
        state.in_flight_count += 1
    else:
        state.delayed_count += 1
    assert not state.is_idle


def test_what_is_given_up_is_refused_for_certain_only_where_nothing_may_have_happened():
    sure, unsure = job(Bind(id=7, pod=pod("a"), node="n")), job(Bind(id=8, pod=pod("a"), node="n"))
    read, unsure.maybe_done = job(ReadPod(id=9, pod=pod("a"))), True
    assert [given_up(one, "why") for one in (sure, unsure, read)] == [
        Refused(7, 0, "why"),
        Unknown(8, "why"),
        Unknown(9, "why"),
    ]
