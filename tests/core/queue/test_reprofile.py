"""Other profiles for a queue that is in use."""

from math import inf

from msgspec.structs import replace

from asched.core.queue.backoff import BackoffTimes
from asched.core.queue.gangs import Gangs
from asched.core.queue.queue import SchedulingQueue
from asched.core.queue.reprofile import reprofile
from asched.core.queue.round import unknown_room
from asched.core.state.changes import Change
from asched.core.state.nominated import Nominator
from tests.builders import a_node, a_pod
from tests.core.queue.queues import NODE_ADD, NOW_S, a_profile, a_queue, names
from tests.core.queue.waiting import Gate


def by_name_backwards(pod, timestamp_s):
    return tuple(-ord(letter) for letter in pod.metadata.name)


def of(name, scheduler="one"):
    return a_pod(name).spec(schedulerName=scheduler).build()


def reject(queue, pod):
    queue.add(pod, NOW_S)
    queued = queue.pop(NOW_S)
    queue.return_failed(queued, pod, ["Fit"], [], NOW_S)


def test_the_active_lane_is_sorted_anew():
    queue = a_queue("one")
    for name in "bac":
        queue.add(of(name), NOW_S)

    reprofile(queue, {"one": a_profile(by_name_backwards)}, BackoffTimes(), NOW_S)

    assert names(queue.places.listing().active) == ["c", "b", "a"]


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


def test_pods_that_are_tried_together_from_now_on_are_of_one_class_then():
    queue = a_queue("one")
    for name in ("a", "b"):
        group = {"podGroupName": "crew"}
        reject(queue, a_pod(name).spec(schedulerName="one", schedulingGroup=group).build())
    queue.gangs = Gangs(tries_groups=True)

    reprofile(queue, {"one": a_profile()}, BackoffTimes(), NOW_S)
    for _ in range(2):
        queued = queue.pop(NOW_S)
        queue.return_failed(queued, queued.pod, ("Fit",), (), NOW_S)

    (group,) = queue.places.unschedulable.groups()
    assert [len(equals) for equals in group.classes.values()] == [2]


def test_pauses_are_those_of_the_new_configuration():
    queue = a_queue("one")
    reprofile(queue, {"one": a_profile()}, BackoffTimes(100, 100), NOW_S)
    reject(queue, of("a"))

    queue.move(Change(NODE_ADD[0].trigger, None, a_node("n").build()), NOW_S + 50)
    assert names(queue.places.listing().backoff) == ["a"]


def test_profiles_are_those_of_the_new_configuration():
    queue = a_queue("one")
    reprofile(queue, {"one": a_profile(), "two": a_profile()}, BackoffTimes(), NOW_S)
    reject(queue, of("a", "two"))
    assert names(queue.places.listing().unschedulable) == ["a"]


def test_pods_behind_a_gate_are_grouped_as_the_new_configuration_tries_them():
    queue = a_queue("one")
    held = replace(a_profile(), pre_enqueue=(Gate("hold"),))
    reprofile(queue, {"one": held}, BackoffTimes(), NOW_S)
    for name in ("a", "b"):
        spec = {"schedulingGroup": {"podGroupName": "crew"}, "schedulingGates": [{"name": "hold"}]}
        queue.add(a_pod(name).spec(schedulerName="one", **spec).build(), NOW_S)
    for tries_groups, gang, sizes in ((True, "default/crew", [2]), (False, "", [1, 1])):
        queue.gangs = Gangs(tries_groups=tries_groups)

        reprofile(queue, {"one": held}, BackoffTimes(), NOW_S)

        (group,) = queue.places.unschedulable.groups()
        assert [len(equals) for equals in group.classes.values()] == sizes
        assert {queued.gang for queued in queue.places.unschedulable} == {gang}


class Unknowing:
    """Only attempts tell."""

    room_left = staticmethod(unknown_room)

    def __call__(self, _queued):
        return None


def test_whoever_is_due_is_tried_in_the_new_order():
    """Keys of the two orders cannot be compared."""
    queue = SchedulingQueue(
        {"one": a_profile()},
        Nominator({}.get),
        class_key_of=lambda pod: pod.metadata.name,
        look=Unknowing(),
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
        queue.sliced.budget.open(steps)
        reprofile(queue, {"one": a_profile(by_name_backwards)}, BackoffTimes(), NOW_S)
        turns = 0
        while queue.sliced:
            queue.sliced.budget.open(steps)
            queue.sliced.go_on()
            turns += 1
        assert (turns > 5) is (steps == 7)
        assert not len(queue.places.unschedulable)
        outcomes.append(names(iter(lambda queue=queue: queue.pop(NOW_S), None)))
    assert outcomes[0] == outcomes[1]
    assert len(outcomes[0]) == 20


def test_pods_that_are_active_know_with_whom_they_are_tried_from_now_on():
    queue = a_queue("one")
    group = {"podGroupName": "crew"}
    queue.add(a_pod("a").spec(schedulerName="one", schedulingGroup=group).build(), NOW_S)
    queue.gangs = Gangs(tries_groups=True)

    reprofile(queue, {"one": a_profile()}, BackoffTimes(), NOW_S)

    assert queue.pop(NOW_S).gang == "default/crew"


def test_whose_equals_pods_are_is_asked_anew():
    """The rules of the new profiles may tell pods apart that were equal for the old ones."""
    told = ["old"]
    queue = SchedulingQueue(
        {"one": a_profile()}, Nominator({}.get), class_key_of=lambda pod: (told[0], pod.key)
    )
    reject(queue, of("rests"))
    queue.add(of("active"), NOW_S)
    told[0] = "new"

    reprofile(queue, {"one": a_profile()}, BackoffTimes(), NOW_S)

    keys = {queued.class_key for queued in queue.places.all()}
    assert keys == {("new", "default/active"), ("new", "default/rests")}


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
