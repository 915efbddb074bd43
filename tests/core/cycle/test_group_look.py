"""A look at a gang that waits: whether counting tells that it has no places by now."""

from typing import Any

from asched.batch.groups.dry_run import GangLooks
from asched.core.model.kinds import NODE, POD
from asched.core.queue.queued import QueuedPod
from asched.core.state.facts import Gone, Seen
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.core.cycle.attempts import KEY, GroupScene, members
from tests.core.cycle.gang_plays import a_member


def room(name: str, cpu: int, pods: int = 10) -> NodeBuilder:
    return a_node(name).allocatable(cpu=str(cpu), memory="8Gi", pods=str(pods))


class Scene(GroupScene):
    def __init__(self, *nodes: NodeBuilder, minimum: int = 3, **more: Any) -> None:
        super().__init__(*(nodes or (room("n0", 1), room("n1", 1))), minimum=minimum, **more)
        self.looks = GangLooks()

    def waits(self, *pods: PodBuilder) -> None:
        for pod in pods:
            self.play.see(pod.spec(schedulerName="default-scheduler"))

    def is_in_vain(self, key: str = KEY) -> bool:
        """As `Looks` has it: what it found is forgotten when anything moves."""
        self.looks.forget()
        return self.again(key)

    def again(self, key: str = KEY) -> bool:
        queued = QueuedPod(self.cluster.pods_seen["default/p0"], 0.0)
        queued.gang = key
        runner = self.context.runners["default-scheduler"]
        return self.looks.has_no_places(self.context, runner, queued)


def a_scene(*nodes: NodeBuilder, count: int = 3, priority: int = 0, **more: Any) -> Scene:
    scene = Scene(*nodes, **more)
    scene.waits(*(pod.priority(priority) for pod in members(count)))
    return scene


def test_all_nodes_together_may_have_too_little() -> None:
    assert a_scene().is_in_vain()
    assert not a_scene(room("n0", 1), room("n1", 2)).is_in_vain()


def test_only_as_many_as_are_needed_count() -> None:
    assert not a_scene(minimum=2).is_in_vain()
    assert a_scene(minimum=3, count=2).is_in_vain() is False, "it is not complete: a gate's matter"
    scene = a_scene(minimum=3)
    scene.waits(a_member("placed").on("n0"))
    assert scene.is_in_vain(), "two places are left to be found, on one node of one CPU"
    scene.cluster.apply(Seen(NODE, room("n2", 1).build()))
    assert not scene.is_in_vain()


def test_the_cheapest_pods_are_enough() -> None:
    scene = Scene(room("n0", 2), minimum=2)
    scene.waits(a_member("p0", cpu="9"), a_member("p1", cpu="1"), a_member("p2", cpu="1"))
    assert not scene.is_in_vain()


def test_places_among_the_pods_of_nodes_count_too() -> None:
    assert a_scene(room("n0", 9, pods=2)).is_in_vain()
    assert not a_scene(room("n0", 9, pods=3)).is_in_vain()


def test_bounds_tell_more_than_totals() -> None:
    """Six CPUs are free, and no node has two."""
    nodes = [room(f"n{number}", 1) for number in range(6)]
    scene = Scene(*nodes, minimum=2)
    scene.waits(*members(2, cpu="2"))
    assert scene.is_in_vain()


def test_gangs_that_may_evict_others_are_tried() -> None:
    low = a_pod("low").requests(cpu="100m").priority(1).on("n0")
    assert a_scene(priority=1, placed=(low,)).is_in_vain()
    assert not a_scene(priority=2, placed=(low,)).is_in_vain()
    never = Scene(placed=(low,))
    never.waits(*(p.priority(2).spec(preemptionPolicy="Never") for p in members(3)))
    assert never.is_in_vain()


def test_a_gang_with_a_promise_is_tried() -> None:
    scene = a_scene()
    scene.context.nominator.add(scene.cluster.pods_seen["default/p1"], "n0")
    assert not scene.is_in_vain()
    other = a_scene()
    other.waits(a_pod("stranger"))
    other.context.nominator.add(other.cluster.pods_seen["default/stranger"], "n0")
    assert other.is_in_vain(), "a promise to a stranger gives nobody room"


def test_a_pod_that_its_status_nominates_is_beyond_counting() -> None:
    scene = Scene()
    scene.waits(*members(2), a_member("p2").status(nominatedNodeName="gone"))
    scene.context.nominator.delete("uid-p2")
    assert not scene.is_in_vain()


def test_one_pod_of_another_scheduler_is_beyond_counting() -> None:
    scene = Scene()
    scene.waits(*members(2))
    scene.play.see(a_member("p2").spec(schedulerName="another"))
    assert not scene.is_in_vain()


def test_without_a_search_each_gang_is_tried() -> None:
    scene = a_scene()
    scene.context.gang_search_steps = 0
    assert not scene.is_in_vain()


def test_what_was_found_is_kept_until_it_is_forgotten() -> None:
    scene = a_scene()
    assert scene.is_in_vain()
    scene.cluster.apply(Seen(NODE, room("n2", 9).build()))
    assert scene.again(), "whoever keeps it forgets it when anything moves"
    assert not scene.is_in_vain()


def test_a_pod_that_came_or_went_is_read_anew() -> None:
    scene = a_scene(minimum=2, count=2)
    assert not scene.is_in_vain()
    scene.cluster.apply(Gone(POD, scene.cluster.pods_seen["default/p1"]))
    scene.waits(a_member("p1", cpu="2"))
    assert scene.is_in_vain()
