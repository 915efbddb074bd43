"""Other profiles for a queue that is in use."""

from math import inf

from asched.core.cluster.changes import Change
from asched.core.cluster.nominated import Nominator
from asched.core.queue.backoff import BackoffTimes
from asched.core.queue.queue import SchedulingQueue
from asched.core.queue.reprofile import reprofile
from asched.core.queue.waking import unknown_room
from tests.builders import a_node, a_pod
from tests.unit.core.queue.queues import NODE_ADD, NOW_S, a_profile, a_queue, names


def by_name_backwards(pod, timestamp_s):
    return tuple(-ord(letter) for letter in pod.metadata.name)


def of(name, scheduler="one"):
    return a_pod(name).spec(schedulerName=scheduler).build()


def reject(queue, pod):
    queue.add(pod, NOW_S)
    queued = queue.pop(NOW_S)
    queue.return_failed(queued, pod, ["Fit"], [], NOW_S)


def test_what_rests_is_tried_again():
    queue = a_queue("one")
    reject(queue, of("a"))
    assert names(queue.places.listing().unschedulable) == ["a"]

    reprofile(queue, {"one": a_profile()}, BackoffTimes(), NOW_S)

    assert names(queue.places.listing().active) == ["a"]


def test_pods_of_a_profile_that_went_leave_from_wherever_they_are():
    queue = a_queue("one", "two")
    reject(queue, of("unschedulable", "two"))
    queue.add(of("waiting", "two"), NOW_S)
    queue.add(of("mine"), NOW_S)

    reprofile(queue, {"one": a_profile()}, BackoffTimes(), NOW_S)

    assert len(queue.places) == 1
    assert names(queue.places.listing().active) == ["mine"]


def test_pauses_are_those_of_the_new_configuration():
    queue = a_queue("one")
    reprofile(queue, {"one": a_profile()}, BackoffTimes(100, 100), NOW_S)
    reject(queue, of("a"))

    queue.move(Change(NODE_ADD[0].trigger, None, a_node("n").build()), NOW_S + 50)
    assert names(queue.places.listing().backoff) == ["a"]


class Unknowing:
    """Only attempts tell."""

    room_test = staticmethod(unknown_room)

    def __call__(self, _queued):
        return None


def test_whoever_is_due_is_tried_in_the_new_order():
    """Keys of the two orders cannot be compared."""
    queue = SchedulingQueue(
        {"one": a_profile()},
        Nominator({}.get),
        class_key_of=lambda pod: pod.metadata.name,
        dry_runner=Unknowing(),
    )
    for name in "bac":
        reject(queue, of(name))
    change = Change(NODE_ADD[0].trigger, None, a_node("n").build())
    queue.move(change, NOW_S + 50)
    queue.tick(NOW_S + 50)
    assert len(queue.places.unschedulable.due) == 3
    numbers = a_profile(lambda pod, _: ord(pod.metadata.name))

    reprofile(queue, {"one": numbers}, BackoffTimes(), NOW_S + 60)

    for later_s in (60, 90):
        tried = list(iter(lambda at_s=NOW_S + later_s: queue.pop(at_s), None))
        assert names(tried) == ["a", "b", "c"]
        for queued in tried:
            queue.return_failed(queued, queued.pod, ["Fit"], [], NOW_S + later_s)
        queue.move(change, NOW_S + later_s + 20)


def test_many_pods_move_over_in_slices_and_end_as_in_one_go():
    outcomes = []
    for steps in (7, inf):
        queue = a_queue("one", "two")
        for number in range(20):
            reject(queue, of(f"resting{number}", "one" if number % 2 else "two"))
        for number in range(20):
            queue.add(of(f"waiting{number}", "one" if number % 2 else "two"), NOW_S)
        queue.sliced_work.budget.open(steps)
        reprofile(queue, {"one": a_profile(by_name_backwards)}, BackoffTimes(), NOW_S)
        turns = 0
        while queue.sliced_work.pieces:
            queue.sliced_work.budget.open(steps)
            queue.sliced_work.go_on()
            turns += 1
        assert (turns > 5) is (steps == 7)
        assert not len(queue.places.unschedulable)
        outcomes.append(names(iter(lambda queue=queue: queue.pop(NOW_S), None)))
    assert outcomes[0] == outcomes[1]
    assert len(outcomes[0]) == 20


def test_rooms_that_are_promised_to_pods_of_a_profile_that_went_stay_promised():
    """They may be another scheduler's by now, whose nominations count like ours."""
    queue = a_queue("one", "two")
    pod = a_pod("a").spec(schedulerName="two").status(nominatedNodeName="n1").build()
    queue.nominator = Nominator({pod.key: pod}.get)
    queue.add(pod, NOW_S)
    assert queue.nominator.node_of(pod.metadata.uid) == "n1"

    reprofile(queue, {"one": a_profile()}, BackoffTimes(), NOW_S)

    assert len(queue.places) == 0
    assert queue.nominator.node_of(pod.metadata.uid) == "n1"
