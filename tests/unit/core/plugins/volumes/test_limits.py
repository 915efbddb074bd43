"""How many volumes of a driver a node takes."""

from typing import Any

import pytest

from asched.core.cluster.cluster import Cluster
from asched.core.config.gates import DEFAULT_GATES
from asched.core.framework.status import Code, Status, failure, unresolvable
from asched.core.plugins.volumes.limits import (
    TOO_MANY,
    NodeVolumeLimits,
)
from tests.volume_builders import (
    a_claim,
    a_class,
    a_cluster,
    a_csi_node,
    a_driver,
    a_node,
    a_pod,
    a_volume,
    an_attachment,
    judge,
    lose,
    rejected,
)

EBS = "ebs.csi.aws.com"


def a_pair(number: int, handle: str = "", driver: str = "csi") -> tuple[Any, Any]:
    """A volume and the claim that is bound to it."""
    volume = a_volume(f"pv{number}", csi=(driver, handle or f"h{number}"))
    return volume, a_claim(f"c{number}", volume=f"pv{number}")


def a_world(limit: int | None, *more: Any) -> Cluster:
    return a_cluster(
        a_node("n1"),
        a_csi_node("n1", {"csi": limit}),
        *(o for i in range(5) for o in a_pair(i)),
        *more,
    )


def test_the_limit_may_be_reached_but_not_passed() -> None:
    cluster = a_world(2, a_pod("user", "c0", node="n1"))
    plugin = NodeVolumeLimits(cluster)

    assert judge(plugin, cluster, a_pod("p", "c1")) == {}
    assert judge(plugin, cluster, a_pod("p", "c1", "c2")) == {"n1": TOO_MANY.status}


def test_a_volume_in_use_there_is_not_new() -> None:
    cluster = a_world(1, a_pod("user", "c0", node="n1"))

    assert judge(NodeVolumeLimits(cluster), cluster, a_pod("p", "c0")) == {}


@pytest.mark.parametrize("limit", [None, 1])
def test_without_a_limit_or_a_csi_node_any_number_goes(limit: int | None) -> None:
    cluster = a_world(limit, a_node("n2"))

    assert rejected(NodeVolumeLimits(cluster), cluster, a_pod("p", "c0", "c1")) == (
        set() if limit is None else {"n1"}
    )


def test_an_unbound_claim_counts_under_the_provisioner_of_its_class() -> None:
    cluster = a_world(1, a_class("late", "csi"), a_claim("new", cls="late"), a_claim("bare"))
    plugin = NodeVolumeLimits(cluster)

    assert rejected(plugin, cluster, a_pod("p", "c0", "new")) == {"n1"}
    assert rejected(plugin, cluster, a_pod("p", "c0", "bare")) == set()


def test_a_claim_whose_volume_is_gone_counts_under_its_class() -> None:
    lost = a_claim("lost", volume="gone", cls="late")
    cluster = a_world(1, a_class("late", "csi"), lost)

    assert rejected(NodeVolumeLimits(cluster), cluster, a_pod("p", "c0", "lost")) == {"n1"}


def test_an_attachment_that_no_pod_uses_counts_and_counts_again_for_the_pod_that_wants_it() -> None:
    attachment = an_attachment("va", "n1", "csi", "pv0")
    cluster = a_world(2, attachment)
    plugin = NodeVolumeLimits(cluster)

    assert rejected(plugin, cluster, a_pod("p", "c1")) == set()
    assert rejected(plugin, cluster, a_pod("p", "c1", "c2")) == {"n1"}
    assert rejected(plugin, cluster, a_pod("p", "c0", "c1")) == {"n1"}  # c0 counts twice
    lose(cluster, attachment)
    assert rejected(plugin, cluster, a_pod("p", "c0", "c1")) == set()


def test_in_tree_volumes_count_under_the_driver_that_took_over() -> None:
    disk = {"awsElasticBlockStore": {"volumeID": "aws://zone/vol-1"}}
    volume = a_volume("pv9", awsElasticBlockStore={"volumeID": "vol-1"})
    cluster = a_cluster(
        a_node("n1"),
        a_csi_node("n1", {EBS: 1}),
        volume,
        a_claim("c9", volume="pv9"),
        a_pod("user", "c9", node="n1"),
    )
    plugin = NodeVolumeLimits(cluster)

    assert rejected(plugin, cluster, a_pod("p", disks=[disk])) == set()
    other = {"awsElasticBlockStore": {"volumeID": "vol-2"}}
    assert rejected(plugin, cluster, a_pod("p", disks=[other])) == {"n1"}


def test_a_disk_the_driver_cannot_name_is_an_error_where_there_is_a_csi_node() -> None:
    cluster = a_world(1, a_node("n2"))
    disk = {"awsElasticBlockStore": {"volumeID": "aws://zone/disk"}}

    verdict = judge(NodeVolumeLimits(cluster), cluster, a_pod("p", disks=[disk]))

    assert isinstance(verdict, dict)
    assert {name: status.code for name, status in verdict.items()} == {"n1": Code.ERROR}
    info = cluster.classes.info_of(a_pod("p", disks=[disk]))
    codes = NodeVolumeLimits(cluster).filter(info, cluster.view(), None)
    assert (codes >= NodeVolumeLimits.errors_from).tolist() == [True, False]


@pytest.mark.parametrize(
    ("pod", "status"),
    [
        (
            a_pod("p", "nope"),
            unresolvable('looking up PVC default/nope: persistentvolumeclaim "nope" not found'),
        ),
        (
            a_pod("p", ephemeral=["e"]),
            failure("PVC default/p-e was not created for pod default/p (pod is not owner)"),
        ),
    ],
    ids=str,
)
def test_claims_that_cannot_be_counted(pod: Any, status: Status) -> None:
    cluster = a_world(1, a_claim("p-e"))

    assert judge(NodeVolumeLimits(cluster), cluster, pod) == {"n1": status}


def test_with_scaling_a_driver_may_insist_on_being_installed() -> None:
    cluster = a_world(1, a_node("n2"), a_driver("csi", insists=True))
    pod = a_pod("p", "c0")

    gates = {**DEFAULT_GATES, "VolumeLimitScaling": True}
    verdict = judge(NodeVolumeLimits(cluster, gates), cluster, pod)

    told = Status(Code.UNSCHEDULABLE, ("csi CSI driver is not installed on the node",))
    assert verdict == {"n2": told}
    assert judge(NodeVolumeLimits(cluster), cluster, pod) == {}


def told(driver: str) -> Status:
    return Status(Code.UNSCHEDULABLE, (f"{driver} CSI driver is not installed on the node",))
