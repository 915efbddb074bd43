"""The rule by itself: who may enter, who waits, and what is worth another try."""

import pytest

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Gone, Seen
from asched.core.framework.registrations import Hint
from asched.core.framework.status import Code, Status
from asched.core.framework.waiting import WaitingPod, WaitingPods
from asched.core.model.kinds import NODE, POD, POD_GROUP
from asched.core.model.meta import ObjectMeta
from asched.core.model.pod import Pod
from asched.core.model.workload import GangPolicy, PodGroup, PodGroupPolicy, PodGroupSpec
from asched.core.plugins.gang_scheduling import PERMIT_TIMEOUT_S, GangScheduling
from tests.builders import a_node, a_pod


class World:
    """One node, and whatever pods and groups a test adds."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.cluster.apply(Seen(NODE, a_node("n1").build()))
        self.plugin = GangScheduling(self.cluster)
        self.waiting = self.cluster.singleton(WaitingPods.of)

    def see(self, *pods: Pod) -> None:
        for pod in pods:
            self.cluster.apply(Seen(POD, pod))

    def permit(self, pod: Pod) -> tuple[Status, float]:
        """Assume the pod, ask about it, and let it wait if that is the answer."""
        info = self.cluster.classes.info_of(pod)
        self.cluster.assume(info, "n1")
        status, patience_s = self.plugin.permit(info, "n1")
        if status.code is Code.WAIT:
            waiting = WaitingPod(info, "n1", "default-scheduler")
            waiting.deadlines[self.plugin.name] = (patience_s, patience_s)
            self.waiting.add(waiting)
            self.waiting.held += 1
        return status, patience_s


@pytest.fixture
def world() -> World:
    return World()


def a_group(name: str = "crew", namespace: str = "default", *, gang: int | None = 2) -> PodGroup:
    policy = PodGroupPolicy(gang=None if gang is None else GangPolicy(min_count=gang))
    return PodGroup(
        metadata=ObjectMeta(namespace=namespace, name=name),
        spec=PodGroupSpec(scheduling_policy=policy),
    )


def a_member(name: str, group: str = "crew", namespace: str = "default") -> Pod:
    return a_pod(name, namespace).spec(schedulingGroup={"podGroupName": group}).build()


def test_a_pod_waits_outside_for_its_group(world: World) -> None:
    world.cluster.apply(Seen(POD_GROUP, a_group("other")))
    world.cluster.apply(Seen(POD_GROUP, a_group(namespace="elsewhere")))
    world.see(a_member("a"), a_member("b"))

    status = world.plugin.pre_enqueue(a_member("a"))

    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message == 'waiting for pods\'s pod group "crew" to appear in scheduling queue'


def test_a_pod_waits_outside_for_the_rest_of_its_gang(world: World) -> None:
    world.cluster.apply(Seen(POD_GROUP, a_group()))
    world.see(a_member("a"), a_member("x", group="other"), a_member("b", namespace="elsewhere"))
    status = world.plugin.pre_enqueue(a_member("a"))
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message == "waiting for minCount pods from a gang to appear in scheduling queue"

    world.see(a_member("b"))

    assert world.plugin.pre_enqueue(a_member("a")).is_success


def test_the_pod_that_completes_the_gang_lets_its_mates_go_and_nobody_else(world: World) -> None:
    world.cluster.apply(Seen(POD_GROUP, a_group(gang=3)))
    world.cluster.apply(Seen(POD_GROUP, a_group("other", gang=3)))
    members = [a_member("a"), a_member("b"), a_member("c")]
    stranger = a_member("x", group="other")
    world.see(*members, stranger)
    for pod in (members[0], stranger, members[1]):
        status, patience_s = world.permit(pod)
        assert (status.code, patience_s) == (Code.WAIT, PERMIT_TIMEOUT_S)
        assert status.message == "waiting for minCount pods from a gang to be scheduled"
    open_before = [waiting.is_settled for waiting in world.waiting]

    assert world.permit(members[2])[0].is_success

    assert open_before == [False, False, False]
    settled = {waiting.info.pod.metadata.name: waiting.is_settled for waiting in world.waiting}
    assert settled == {"a": True, "b": True, "x": False}


def test_a_pod_whose_group_went_meanwhile_ends_in_an_error(world: World) -> None:
    world.see(a_member("a"))

    status, _ = world.permit(a_member("a"))

    assert status.code is Code.ERROR


def hint(world: World, resource: str, pod: Pod, new: object) -> Hint:
    (found,) = [r for r in world.plugin.registrations() if r.trigger.resource == resource]
    assert found.hint is not None
    return found.hint(pod, None, new)


def test_a_pod_of_the_same_group_is_worth_a_try_once_the_gang_is_complete(world: World) -> None:
    world.cluster.apply(Seen(POD_GROUP, a_group()))
    a, b = a_member("a"), a_member("b")
    world.see(a)
    assert hint(world, POD.resource, a, b) is Hint.SKIP

    world.see(b)

    assert hint(world, POD.resource, a, b) is Hint.QUEUE
    assert hint(world, POD.resource, a, a_member("x", group="other")) is Hint.SKIP
    assert hint(world, POD.resource, a, a_member("b", namespace="elsewhere")) is Hint.SKIP
    assert hint(world, POD.resource, a, a_pod("plain").build()) is Hint.SKIP
    world.cluster.apply(Gone(POD_GROUP, a_group()))
    assert hint(world, POD.resource, a, b) is Hint.SKIP
