"""Where the zone labels of volumes let a pod go."""

from dataclasses import dataclass, field
from operator import attrgetter

import pytest

from asched.core.framework.registrations import Hint
from asched.core.framework.status import Code, Status, unresolvable
from asched.core.model.volume import StorageClass
from asched.core.plugins.volumes.hints import after_named_claim_changed
from asched.core.plugins.volumes.zone import VolumeZone, after_class_added, after_volume_changed
from tests.volume_builders import (
    a_claim,
    a_class,
    a_cluster,
    a_node,
    a_pod,
    a_volume,
    judge,
    rejected,
    see,
)

GA, BETA = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"


@dataclass(frozen=True)
class Case:
    name: str
    volume: dict[str, str]
    node: dict[str, str] = field(default_factory=dict)
    rejected: bool = False


CASES = [
    Case("the zone is equal", {GA: "a"}, {GA: "a"}),
    Case("the zone differs", {GA: "a"}, {GA: "b"}, rejected=True),
    Case("one of several zones", {GA: "a__b"}, {GA: "b"}),
    Case("none of several zones", {GA: "a__b"}, {GA: "c"}, rejected=True),
    Case("a node without any such label passes", {GA: "a"}, {"other": "x"}),
    Case("a node with a region alone lacks the zone", {GA: "a"}, {REGION: "r"}, rejected=True),
    Case("a beta label is met by its newer name", {BETA: "a"}, {GA: "a"}),
    Case("a beta label on the node wins", {BETA: "a"}, {BETA: "b", GA: "a"}, rejected=True),
    Case("a newer label is not met by a beta one", {GA: "a"}, {BETA: "a"}, rejected=True),
    Case("zone and region must both hold", {GA: "a", REGION: "r"}, {GA: "a", REGION: "q"}, True),
    Case("spaces do not count", {GA: " a __ b "}, {GA: "b"}),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_filter(case: Case) -> None:
    node = a_node("n1", **case.node)
    volume = a_volume("pv", labels=case.volume, claim=("c", "uid-c"))
    cluster = a_cluster(node, volume, a_claim("c", volume="pv"))

    assert rejected(VolumeZone(cluster), cluster, a_pod("p", "c")) == (
        {"n1"} if case.rejected else set()
    )


@pytest.mark.parametrize("labels", [None, {"disk": "ssd"}, {GA: "a____b"}, {GA: ""}])
def test_a_volume_without_a_readable_zone_is_no_matter(labels: dict[str, str] | None) -> None:
    cluster = a_cluster(a_volume("pv", labels=labels), a_claim("c", volume="pv"))

    verdict = judge(VolumeZone(cluster), cluster, a_pod("p", "c"))

    assert isinstance(verdict, Status)
    assert verdict.code is Code.SKIP


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        (a_claim("other"), 'persistentvolumeclaim "c" not found'),
        (a_claim("c"), "PersistentVolumeClaim had no pv name and storageClass name"),
        (a_claim("c", cls="nope"), 'storageclass.storage.k8s.io "nope" not found'),
        (a_claim("c", cls="silent"), 'VolumeBindingMode not set for StorageClass "silent"'),
        (a_claim("c", cls="now"), "PersistentVolume had no name"),
        (a_claim("c", volume="gone"), 'persistentvolume "gone" not found'),
    ],
    ids=str,
)
def test_claims_that_stop_the_pod(claim: object, reason: str) -> None:
    cluster = a_cluster(a_class("silent", mode=None), a_class("now", mode="Immediate"))
    see(cluster, claim)  # type: ignore[arg-type]

    verdict = judge(VolumeZone(cluster), cluster, a_pod("p", "c"))

    assert verdict == unresolvable(reason)


def test_hints() -> None:
    pod = a_pod("p", "c", ephemeral=["e"])
    late: StorageClass = a_class("late")

    assert after_class_added(pod, None, late) is Hint.QUEUE
    assert after_class_added(pod, None, a_class("now", mode="Immediate")) is Hint.SKIP
    assert after_named_claim_changed(pod, None, a_claim("c")) is Hint.QUEUE
    assert after_named_claim_changed(pod, a_claim("p-e"), a_claim("p-e")) is Hint.SKIP
    old, new = a_volume("pv", labels={GA: "a__b"}), a_volume("pv", labels={GA: "b__a", "x": "y"})
    assert after_volume_changed(pod, None, new) is Hint.QUEUE
    assert after_volume_changed(pod, old, new) is Hint.SKIP
    assert after_volume_changed(pod, old, a_volume("pv")) is Hint.QUEUE
