"""The rule by itself: who may enter, who waits, what is worth another try, and the order."""

import pytest

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Seen
from asched.core.cluster.shortages import Shortages
from asched.core.config.args import CoschedulingArgs
from asched.core.framework.registrations import Hint
from asched.core.framework.status import Code
from asched.core.model.decode import decode
from asched.core.model.kinds import COSCHEDULING_GROUP, NODE, POD
from asched.core.model.pod import Pod
from asched.core.model.workload import CoschedulingGroup
from asched.core.plugins.coscheduling import Coscheduling
from tests.builders import a_node, a_pod

KEY = "scheduling.x-k8s.io:default/crew"


def a_group(name: str = "crew", minimum: int = 2, **spec: object) -> CoschedulingGroup:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return decode(CoschedulingGroup, {"metadata": metadata, "spec": {"minMember": minimum, **spec}})


def a_member(name: str, group: str = "crew") -> Pod:
    return a_pod(name).labels({"scheduling.x-k8s.io/pod-group": group}).build()


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.apply(Seen(NODE, a_node("n1").allocatable(cpu="4").build()))
    return made


def test_pods_wait_outside_for_their_group_and_for_each_other(cluster: Cluster) -> None:
    plugin = Coscheduling(None, cluster)
    cluster.apply(Seen(POD, a_member("a")))
    status = plugin.pre_enqueue(a_member("a"))
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message == 'waiting for the PodGroup "crew" of scheduling.x-k8s.io to appear'

    cluster.apply(Seen(COSCHEDULING_GROUP, a_group()))
    status = plugin.pre_enqueue(a_member("a"))
    assert status.message == "waiting for minMember pods of the PodGroup to appear"

    cluster.apply(Seen(POD, a_member("b")))
    assert plugin.pre_enqueue(a_member("a")).is_success
    assert plugin.pre_enqueue(a_pod("of-no-group").build()).is_success


@pytest.mark.parametrize(
    ("spec", "patience_s"), [({}, 7.0), ({"scheduleTimeoutSeconds": 30}, 30.0)]
)
def test_a_pod_with_a_place_waits_for_the_others(
    cluster: Cluster, spec: dict[str, int], patience_s: float
) -> None:
    plugin = Coscheduling(CoschedulingArgs(permit_waiting_time_s=7), cluster)
    cluster.apply(Seen(COSCHEDULING_GROUP, a_group(**spec)))
    infos = []
    for name in "ab":
        cluster.apply(Seen(POD, a_member(name)))
        infos.append(cluster.classes.info_of(a_member(name)))
        cluster.assume(infos[-1], "n1")
        if name == "a":
            status, waits_s = plugin.permit(infos[0], "n1")
            assert (status.code, waits_s) == (Code.WAIT, patience_s)
            assert cluster.pod_groups.get(KEY).held

    status, _ = plugin.permit(infos[1], "n1")
    assert status.is_success
    assert not cluster.pod_groups.get(KEY).held


def test_an_object_that_went_meanwhile_is_an_error(cluster: Cluster) -> None:
    cluster.apply(Seen(POD, a_member("a")))
    status, _ = Coscheduling(None, cluster).permit(cluster.classes.info_of(a_member("a")), "n1")
    assert status.code is Code.ERROR
    assert status.message == (
        'failed to get podGroup default/crew: podgroup.scheduling.x-k8s.io "crew" not found'
    )


def test_what_helps(cluster: Cluster) -> None:
    plugin = Coscheduling(None, cluster)
    hints = [registration.hint for registration in plugin.registrations()]
    joins, group_changes, room_comes, _ = hints
    cluster.apply(Seen(POD, a_member("a")))
    assert joins(a_member("a"), None, a_member("b")) is Hint.SKIP, "nobody knows the group"
    cluster.apply(Seen(COSCHEDULING_GROUP, a_group()))
    assert joins(a_member("a"), None, a_member("b")) is Hint.SKIP, "b is not there yet"
    assert group_changes(a_member("a"), None, a_group()) is Hint.SKIP
    cluster.apply(Seen(POD, a_member("b")))
    assert joins(a_member("a"), None, a_member("b")) is Hint.QUEUE
    assert joins(a_member("a"), None, a_member("c", "other")) is Hint.SKIP
    assert group_changes(a_member("a"), None, a_group()) is Hint.QUEUE
    assert group_changes(a_member("a"), None, a_group("other")) is Hint.SKIP

    assert room_comes(a_member("a"), None, None) is Hint.SKIP, "it lacks no resources"
    cluster.singleton(Shortages).note(KEY, {"cpu": 5000})
    assert room_comes(a_member("a"), None, None) is Hint.SKIP
    cluster.apply(Seen(NODE, a_node("n2").allocatable(cpu="1").build()))
    assert room_comes(a_member("a"), None, None) is Hint.QUEUE
