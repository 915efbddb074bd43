"""The reason of PodScheduled=False: autoscalers add nodes for pods with `Unschedulable` only."""

import pytest

from asched.core.cluster.facts import Seen
from asched.core.framework.effects import PatchPodStatus
from asched.core.model.decode import decode
from asched.core.model.kinds import COSCHEDULING_GROUP, ELASTIC_QUOTA
from asched.core.model.quotas import ElasticQuota
from tests.builders import NodeBuilder, a_node, a_pod
from tests.playbook import (
    GROUP_LABEL,
    Play,
    a_label_group,
    a_label_member,
    label_gang_play,
    lasting,
    placed,
    refused,
    two_full_nodes,
)

HELPS, DOES_NOT = "Unschedulable", "NewNodesDoNotHelp"


def reasons(play: Play) -> dict[str, str]:
    return {p.pod.name: p.condition["reason"] for p in play.of(PatchPodStatus) if p.condition}


def limited(*nodes: NodeBuilder, cpu: int) -> Play:
    """Namespace default may use so many CPUs."""
    plugins = {
        "multiPoint": {
            "enabled": [{"name": "Coscheduling"}, {"name": "CapacityScheduling"}],
            "disabled": [{"name": "PrioritySort"}],
        },
        "postFilter": {"enabled": [{"name": "CapacityScheduling"}], "disabled": [{"name": "*"}]},
    }
    play = Play(*nodes, profiles=[{"schedulerName": "default-scheduler", "plugins": plugins}])
    most = {"cpu": str(cpu), "memory": "64Gi"}
    made = {"metadata": {"name": "q", "namespace": "default", "uid": "q"}}
    play.turn(
        Seen(ELASTIC_QUOTA, decode(ElasticQuota, {**made, "spec": {"max": most, "min": most}}))
    )
    return play


def room(name: str, cpu: int) -> NodeBuilder:
    return a_node(name).allocatable(cpu=str(cpu), memory="64Gi", pods="100")


@pytest.mark.parametrize(("quota", "reason"), [(8, HELPS), (4, DOES_NOT)])
def test_a_node_does_not_cure_a_full_quota(quota: int, reason: str) -> None:
    play = limited(room("n1", 2), cpu=quota)
    play.see(a_pod("large").requests(cpu="6"))
    assert reasons(play) == {"large": reason}


@pytest.mark.parametrize(("free", "quota", "reason"), [(3, 2, DOES_NOT), (2, 8, HELPS)])
def test_the_pods_of_a_gang_have_one_reason(free: int, quota: int, reason: str) -> None:
    """Two of three pods have places; their reason is that of the third."""
    play = limited(room("n1", free), cpu=quota)
    play.turn(Seen(COSCHEDULING_GROUP, a_label_group()))
    members = [a_pod(name).labels({GROUP_LABEL: "crew"}).requests(cpu="1") for name in "abc"]
    found: dict[str, str] = {}
    for member in members:
        play.see(member)
        found |= reasons(play)
    assert found == dict.fromkeys("abc", reason)


def test_a_new_node_is_not_reserved_for_a_promised_start() -> None:
    play = two_full_nodes()
    play.gang("first", *(lasting(name, None, cpu=4) for name in ("w0", "w1")))
    play.show(lasting("later", None, cpu=1))
    assert "reserved for waiting pods" in play.told["later"]
    assert reasons(play) == {"later": HELPS}


def avoided(*more: NodeBuilder) -> Play:
    """A kubelet refused a pod of ours, so the next pod of its owner waits for some seconds."""
    reference = {"kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
    first, second = (
        a_pod(name).requests(cpu="2").metadata(ownerReferences=[reference])
        for name in ("first", "second")
    )
    play = Play(room("n1", 8), *more)
    assert placed(play, first) == "n1"
    refused(play, first.build())
    play.see(second)
    assert "had refused a pod of the same owner" in play.condition()["message"]
    return play


def test_no_node_is_bought_for_a_pause_of_seconds() -> None:
    assert reasons(avoided()) == {"second": DOES_NOT}


def test_one_rejection_that_a_node_cures_is_enough() -> None:
    assert reasons(avoided(room("small", 1))) == {"second": HELPS}


def test_a_gang_that_lost_a_pod_is_nominated_to_no_node() -> None:
    """Its victims were evicted, then a member went: autoscalers would leave the others alone for
    good, and the room would stay reserved.
    """
    play = label_gang_play(room("n1", 3))
    for number in range(3):
        play.see(a_pod(f"low-{number}").requests(cpu="1").on("n1"))
    play.turn(Seen(COSCHEDULING_GROUP, a_label_group()))
    members = {name: a_label_member(name).priority(10) for name in "abc"}
    for member in members.values():
        play.see(member)
    patches = {patch.pod.name: patch for patch in play.of(PatchPodStatus)}
    assert {patches[name].nominated_node_name for name in members} == {"n1"}
    for name, member in members.items():
        written = {"type": "PodScheduled", **patches[name].condition}
        play.see(member.status(nominatedNodeName="n1", conditions=[written]))

    play.lose(members["a"])
    left: dict[str, PatchPodStatus] = {}
    for _ in range(60):
        play.turn(after_s=1.0)
        left |= {p.pod.name: p for p in play.of(PatchPodStatus) if p.pod.name in members}
    assert {n: (p.nominated_node_name, p.condition["reason"]) for n, p in left.items()} == {
        "b": ("", DOES_NOT),
        "c": ("", DOES_NOT),
    }
    assert not list(play.parts.nominator.nodes())
