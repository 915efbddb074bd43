"""How many volumes of a driver a node takes."""

from typing import Any

import pytest

from asched.core.config.gates import DEFAULT_GATES
from asched.core.framework.points import IDLE
from asched.core.framework.status import Code, Status, failure, unresolvable
from asched.core.model.kinds import CSI_DRIVER, CSI_NODE
from asched.core.plugins.volumes.limits import (
    TOO_MANY,
    NodeVolumeLimits,
)
from asched.core.state.cluster import Cluster
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
    see,
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


def test_two_claims_of_one_handle_are_one_volume() -> None:
    cluster = a_world(1, *a_pair(7, "h0"))

    assert judge(NodeVolumeLimits(cluster), cluster, a_pod("p", "c0", "c7")) == {}


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


def test_an_attachment_of_a_volume_in_use_counts_once() -> None:
    attachment = an_attachment("va", "n1", "csi", "pv0")
    cluster = a_world(2, attachment, a_pod("user", "c0", node="n1"))

    assert rejected(NodeVolumeLimits(cluster), cluster, a_pod("p", "c1")) == set()


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


def test_a_pod_without_such_volumes_is_no_matter() -> None:
    cluster = a_world(1)
    disk = {"iscsi": {"iqn": "q"}}

    verdict = judge(NodeVolumeLimits(cluster), cluster, a_pod("p", disks=[disk]))

    assert isinstance(verdict, Status)
    assert verdict.code is Code.SKIP


def test_with_scaling_a_driver_may_insist_on_being_installed() -> None:
    cluster = a_world(1, a_node("n2"), a_driver("csi", insists=True))
    pod = a_pod("p", "c0")

    gates = {**DEFAULT_GATES, "VolumeLimitScaling": True}
    verdict = judge(NodeVolumeLimits(cluster, gates), cluster, pod)

    told = Status(Code.UNSCHEDULABLE, ("csi CSI driver is not installed on the node",))
    assert verdict == {"n2": told}
    assert judge(NodeVolumeLimits(cluster), cluster, pod) == {}


SCALING = {**DEFAULT_GATES, "VolumeLimitScaling": True}


def told(driver: str) -> Status:
    return Status(Code.UNSCHEDULABLE, (f"{driver} CSI driver is not installed on the node",))


def test_of_drivers_that_are_not_installed_the_first_is_told_whatever_the_limits() -> None:
    volumes = [o for n, name in enumerate(("a", "b", "c"), 5) for o in a_pair(n, driver=name)]
    cluster = a_cluster(
        a_node("bare"), a_node("some"), a_node("full"),
        a_csi_node("some", {"a": None, "b": 5}), a_csi_node("full", {"a": 0}),
        a_driver("a"), a_driver("b", insists=True), a_driver("c", insists=True), *volumes,
    )  # fmt: skip
    plugin = NodeVolumeLimits(cluster, SCALING)

    assert judge(plugin, cluster, a_pod("p", "c5", "c6", "c7")) == {
        "bare": told("b"), "some": told("c"), "full": told("b")
    }  # fmt: skip
    assert judge(plugin, cluster, a_pod("p", "c5")) == {"full": TOO_MANY.status}
    assert judge(plugin, cluster, a_pod("p", "c7")) == dict.fromkeys(
        ("bare", "some", "full"), told("c")
    )
    see(cluster, *a_pair(8, driver="nobody knows it"))
    assert judge(plugin, cluster, a_pod("p", "c8")) == {}


def test_each_driver_of_a_pod_has_a_limit_of_its_own() -> None:
    cluster = a_world(1, *a_pair(7, driver="a"), *a_pair(8, driver="z"))
    plugin = NodeVolumeLimits(cluster)

    assert rejected(plugin, cluster, a_pod("p", "c7", "c8", "c0")) == set()
    assert rejected(plugin, cluster, a_pod("p", "c7", "c8", "c0", "c1")) == {"n1"}


def test_what_is_followed_for_it() -> None:
    assert NodeVolumeLimits(a_cluster()).kinds == ()
    assert set(NodeVolumeLimits(a_cluster(), SCALING).kinds) == {CSI_DRIVER, CSI_NODE}


def test_a_claim_that_cannot_be_counted_is_an_error_only_if_it_exists() -> None:
    cluster = a_world(1, a_claim("p-e"))
    plugin = NodeVolumeLimits(cluster)
    for pod, is_error in ((a_pod("p", "nope"), False), (a_pod("p", ephemeral=["e"]), True)):
        info = cluster.classes.info_of(pod)
        codes = plugin.filter(info, cluster.view(), None)
        assert codes.all()
        assert (codes >= plugin.errors_from).all() == is_error


def test_a_code_that_outlived_its_claims_is_an_error() -> None:
    cluster = a_world(1)
    plugin, info = NodeVolumeLimits(cluster), cluster.classes.info_of(a_pod("p", "late"))
    (code,) = plugin.filter(info, cluster.view(), None).tolist()
    see(cluster, a_claim("late"))

    assert plugin.explain(info, code) == failure("the pod's volumes changed meanwhile")


def test_who_shares_an_answer() -> None:
    """Volumes that nobody uses yet count by their number; those in use are known by name."""
    others = [*a_pair(7, driver="other"), a_pod("user", "c0", node="n1")]
    cluster = a_world(2, *others)
    plugin = NodeVolumeLimits(cluster)
    broken = a_pod("p", "c1", disks=[{"awsElasticBlockStore": {"volumeID": "aws://zone/disk"}}])
    pods = {
        "": a_pod("p", disks=[{"iscsi": {"iqn": "q"}}]),
        **{names: a_pod("p", *names.split()) for names in ("c1", "c2", "c1 c2", "c2 c3")},
        **{names: a_pod("p", *names.split()) for names in ("c7", "c1 c7", "c0", "c0 c1", "none")},
        "broken": broken,
    }
    infos = {name: cluster.classes.info_of(pod) for name, pod in pods.items()}
    shares = {name: plugin.share_key(info) for name, info in infos.items()}
    verdicts = {name: plugin.verdict_key(info) for name, info in infos.items()}

    assert shares[""] is verdicts[""] is IDLE
    assert len(set(shares.values())) == len(pods)
    assert verdicts["c1"] == verdicts["c2"]
    assert verdicts["c1 c2"] == verdicts["c2 c3"]
    assert len({verdicts[name] for name in ("c1", "c1 c2", "c7", "c1 c7")}) == 4
    for name in ("c0", "c0 c1", "none", "broken"):
        assert verdicts[name] == shares[name]
    assert plugin.stamp(infos[""], None) is None
    before = plugin.stamp(infos["c1"], None)
    see(cluster, a_volume("pv2", csi=("csi", "elsewhere")))
    assert plugin.stamp(infos["c1"], None) == before
    see(cluster, a_volume("pv1", csi=("csi", "elsewhere")))
    assert plugin.stamp(infos["c1"], None) != before


def test_nobody_is_counted_where_no_driver_of_the_pod_has_a_limit() -> None:
    cluster = a_world(1, *a_pair(7, driver="free"))
    plugin = NodeVolumeLimits(cluster)
    blind = {
        names: plugin.is_blind_for(cluster.classes.info_of(a_pod("p", *names.split())))
        for names in ("", "c7", "c0", "c0 c7")
    }

    assert blind == {"": True, "c7": True, "c0": False, "c0 c7": False}


def test_a_limit_that_changes_is_heard() -> None:
    cluster = a_world(1)
    plugin = NodeVolumeLimits(cluster)
    pod = a_pod("p", "c0", "c1")
    assert rejected(plugin, cluster, pod) == {"n1"}

    see(cluster, a_csi_node("n1", {"csi": 2}))

    assert rejected(plugin, cluster, pod) == set()
