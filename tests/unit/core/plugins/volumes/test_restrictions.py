"""Who may not share a volume."""

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import pytest

from asched.core.framework.registrations import Hint
from asched.core.framework.status import Code, Status
from asched.core.plugins.volumes.hints import after_named_claim_changed
from asched.core.plugins.volumes.restrictions import (
    CLAIM_IN_USE,
    DISK_TAKEN,
    VolumeRestrictions,
    after_pod_deleted,
    claim_is_free,
)
from tests.volume_builders import a_claim, a_cluster, a_node, a_pod, judge


def gce(name: str, *, read_only: bool = False) -> dict[str, Any]:
    return {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def ebs(name: str, *, read_only: bool = False) -> dict[str, Any]:
    return {"awsElasticBlockStore": {"volumeID": name, "readOnly": read_only}}


def iscsi(iqn: str, portal: str = "p", *, read_only: bool = False) -> dict[str, Any]:
    return {"iscsi": {"iqn": iqn, "targetPortal": portal, "lun": 0, "readOnly": read_only}}


def rbd(*monitors: str, image: str = "i", pool: str = "p", ro: bool = False) -> dict[str, Any]:
    return {"rbd": {"monitors": monitors, "image": image, "pool": pool, "readOnly": ro}}


@dataclass(frozen=True)
class Case:
    name: str
    held: dict[str, Any]
    wanted: dict[str, Any]
    taken: bool


CASES = [
    Case("one GCE disk, both write", gce("a"), gce("a"), taken=True),
    Case("one GCE disk, one writes", gce("a", read_only=True), gce("a"), taken=True),
    Case(
        "one GCE disk, both read", gce("a", read_only=True), gce("a", read_only=True), taken=False
    ),
    Case("two GCE disks", gce("a"), gce("b"), taken=False),
    Case("EBS is never shared", ebs("a", read_only=True), ebs("a", read_only=True), taken=True),
    Case("two EBS volumes", ebs("a"), ebs("b"), taken=False),
    Case("a GCE disk is no EBS volume", gce("a"), ebs("a"), taken=False),
    Case("iSCSI is told by its name, not its portal", iscsi("q", "1"), iscsi("q", "2"), taken=True),
    Case("two iSCSI readers", iscsi("q", read_only=True), iscsi("q", read_only=True), taken=False),
    Case("RBD monitors overlap", rbd("m1", "m2"), rbd("m2", "m3"), taken=True),
    Case("RBD monitors are others", rbd("m1"), rbd("m2"), taken=False),
    Case("RBD images are others", rbd("m1"), rbd("m1", image="j"), taken=False),
    Case("RBD pools are others", rbd("m1"), rbd("m1", pool="q"), taken=False),
    Case("two RBD readers", rbd("m1", ro=True), rbd("m1", ro=True), taken=False),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_inline_disks(case: Case) -> None:
    holder = a_pod("holder", disks=[case.held], node="n1")
    cluster = a_cluster(a_node("n1"), a_node("n2"), holder)

    verdict = judge(VolumeRestrictions(cluster), cluster, a_pod("new", disks=[case.wanted]))

    assert verdict == ({"n1": DISK_TAKEN.status} if case.taken else {})


def exclusive(name: str = "c", namespace: str = "default") -> Any:
    return a_claim(name, modes=["ReadWriteOncePod"], namespace=namespace)


def test_an_exclusive_claim_in_use_rules_out_every_node() -> None:
    cluster = a_cluster(a_node("n1"), a_node("n2"), exclusive(), a_pod("user", "c", node="n1"))

    verdict = judge(VolumeRestrictions(cluster), cluster, a_pod("new", "c"))

    assert verdict == dict.fromkeys(("n1", "n2"), CLAIM_IN_USE.status)


def test_a_claim_that_does_not_exist_stops_the_pod() -> None:
    cluster = a_cluster(a_node("n1"))

    verdict = judge(VolumeRestrictions(cluster), cluster, a_pod("new", "data"))

    assert verdict == Status(
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ('persistentvolumeclaim "data" not found',)
    )


def test_on_trial_a_pod_of_another_namespace_counts_as_a_user_of_the_name() -> None:
    cluster = a_cluster(
        a_node("n1"),
        exclusive(),
        a_pod("user", "c", node="n1"),
        a_pod("stranger", "c", node="n1", namespace="other"),
    )
    plugin = VolumeRestrictions(cluster)
    pod = cluster.classes.info_of(a_pod("new", "c"))
    data = plugin.pre_filter(pod).data
    row = cluster.nodes.row_of["n1"]
    stranger = [p for p in cluster.pods_on(row).values() if p.pod.metadata.name == "stranger"]

    with cluster.supposing().gone(stranger, row):
        codes = plugin.filter(pod, cluster.view(), data)

    assert codes.tolist() == [0]
    assert plugin.filter(pod, cluster.view(), data).tolist() == [2]


@pytest.mark.parametrize(
    ("gone", "hint"),
    [
        (a_pod("gone", "c"), Hint.QUEUE),
        (a_pod("gone", "c", namespace="other"), Hint.SKIP),
        (a_pod("gone", "d"), Hint.SKIP),
        (a_pod("gone", disks=[gce("a")]), Hint.QUEUE),
        (a_pod("gone", disks=[gce("b")]), Hint.SKIP),
        (a_pod("gone"), Hint.SKIP),
    ],
)
def test_a_pod_that_goes_helps_whom_it_stood_in_the_way_of(gone: Any, hint: Hint) -> None:
    waiting = a_pod("waiting", "c", disks=[gce("a")])

    assert after_pod_deleted(waiting, gone, None) is hint


def test_only_claims_of_the_pod_help() -> None:
    waiting = a_pod("waiting", "c", ephemeral=["e"])

    assert after_named_claim_changed(waiting, None, a_claim("c")) is Hint.QUEUE
    assert after_named_claim_changed(waiting, None, a_claim("d")) is Hint.SKIP
    assert after_named_claim_changed(waiting, None, a_claim("c", namespace="other")) is Hint.SKIP
    assert after_named_claim_changed(waiting, None, a_claim("waiting-e")) is Hint.SKIP


def test_a_node_that_goes_may_take_the_user_of_a_claim_along() -> None:
    assert claim_is_free(a_pod("waiting", "c"), a_node("n"), None) is Hint.QUEUE
    assert claim_is_free(a_pod("waiting", disks=[gce("a")]), a_node("n"), None) is Hint.SKIP
