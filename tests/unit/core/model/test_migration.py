"""In-tree volumes in the words of the drivers that took over."""

from typing import Any

import pytest

from asched.core.model.migration import (
    AZURE,
    EBS,
    CsiVolume,
    MigrationError,
    inline_volume,
    is_inline_migratable,
    translated_affinity,
    volume_source,
)
from tests.builders import a_node
from tests.conformance.twins.node_affinity import any_term
from tests.volume_builders import a_pod, a_volume

ZONE, BETA = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
REGION, BETA_REGION = "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"
DISK = {"awsElasticBlockStore": {"volumeID": "vol-1"}}


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"required": {"nodeSelectorTerms": list(terms)}}


ON_N = [{"key": "metadata.name", "operator": "In", "values": ["n"]}]
EMPTY = required({"matchExpressions": [{"key": ZONE, "operator": "Exists"}]})
SOME_REGION = required({"matchExpressions": [{"key": BETA_REGION, "operator": "Exists"}]})
OLD_NODE = {EBS.topology_key: "a", BETA_REGION: "r"}
FIELDS = required({"matchFields": ON_N})


def reaches(selector: Any, labels: dict[str, str]) -> bool:
    """Whether a volume with this affinity can be used on a node with these labels."""
    node = a_node("n").labels(labels).build()
    return selector is None or any_term(selector.node_selector_terms, node)


def inline(**disk: Any) -> Any:
    return a_pod("p", disks=[disk]).spec.volumes[0]  # type: ignore[index]


@pytest.mark.parametrize(
    ("disk", "expected"),
    [
        ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, CsiVolume(EBS.driver, "vol-1")),
        ({"awsElasticBlockStore": {"volumeID": "aws://z/vol-1"}}, CsiVolume(EBS.driver, "vol-1")),
        ({"awsElasticBlockStore": {"volumeID": "aws:///vol-1"}}, CsiVolume(EBS.driver, "vol-1")),
        ({"awsElasticBlockStore": {"volumeID": "disk-7"}}, CsiVolume(EBS.driver, "disk-7")),
        (
            {"gcePersistentDisk": {"pdName": "d"}},
            CsiVolume("pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"),
        ),
        ({"azureDisk": {"diskName": "n", "diskURI": "/x"}}, CsiVolume(AZURE.driver, "/x")),
        ({"portworxVolume": {"volumeID": "p"}}, CsiVolume("pxd.portworx.com", "p")),
    ],
    ids=str,
)
def test_inline_disks(disk: dict[str, Any], expected: CsiVolume) -> None:
    assert inline_volume(inline(**disk)) == expected
    assert is_inline_migratable(inline(**disk))


def test_other_volumes_have_not_moved() -> None:
    assert not is_inline_migratable(inline(rbd={"image": "i"}))
    for kind in ("vsphereVolume", "azureFile"):
        assert is_inline_migratable(inline(**{kind: {}}))
        assert inline_volume(inline(**{kind: {}})) is None
    with pytest.raises(MigrationError, match="invalid format"):
        inline_volume(inline(awsElasticBlockStore={"volumeID": "aws://z/x/vol-1"}))


@pytest.mark.parametrize(
    ("labels", "middle"),
    [
        (None, "zones/UNSPECIFIED"),
        ({ZONE: "eu-west-a"}, "zones/eu-west-a"),
        ({BETA: "eu-west-a"}, "zones/eu-west-a"),
        ({ZONE: "eu-west-a__eu-west-b"}, "regions/eu-west"),
    ],
)
def test_a_gce_volume_is_named_after_its_zones(labels: Any, middle: str) -> None:
    volume = a_volume("pv", labels=labels, gcePersistentDisk={"pdName": "d"})

    assert volume_source(volume) == CsiVolume(
        "pd.csi.storage.gke.io", f"projects/UNSPECIFIED/{middle}/disks/d"
    )


@pytest.mark.parametrize(
    ("volume", "labels", "matches"),
    [
        (a_volume("pv", reach={ZONE: ["a"]}, **DISK), {EBS.topology_key: "a"}, True),
        (a_volume("pv", reach={ZONE: ["a"]}, **DISK), {ZONE: "a"}, False),
        (a_volume("pv", reach={BETA: ["a"]}, **DISK), {EBS.topology_key: "a"}, True),
        (a_volume("pv", labels={ZONE: "a__b"}, **DISK), {EBS.topology_key: "b"}, True),
        (a_volume("pv", labels={BETA: "a"}, **DISK), {EBS.topology_key: "b"}, False),
        (
            a_volume("pv", labels={ZONE: "a"}, reach={"disk": ["x"]}, **DISK),
            {EBS.topology_key: "a", "disk": "x"},
            True,
        ),
        (
            a_volume("pv", labels={ZONE: "a"}, reach={"disk": ["x"]}, **DISK),
            {EBS.topology_key: "a"},
            False,
        ),
        (
            a_volume("pv", reach={BETA: ["a"], BETA_REGION: ["r"]}, **DISK),
            {EBS.topology_key: "a", REGION: "r"},
            True,
        ),
        (a_volume("pv", **DISK), {}, True),
        # GA labels before those of beta, wherever they are
        (a_volume("pv", labels={ZONE: "a", BETA: "b"}, **DISK), {EBS.topology_key: "a"}, True),
        (a_volume("pv", labels={BETA: "b"}, **DISK), {EBS.topology_key: "b"}, True),
        (
            a_volume("pv", labels={BETA: "b"}, reach={ZONE: ["a"]}, **DISK),
            {EBS.topology_key: "a"},
            True,
        ),
        # a region is renamed where zones are those of beta
        (
            a_volume("pv", reach={ZONE: ["a"], BETA_REGION: ["r"]}, **DISK),
            {EBS.topology_key: "a", REGION: "r"},
            False,
        ),
        (
            a_volume("pv", reach={BETA: ["a"], REGION: ["r"]}, **DISK),
            {EBS.topology_key: "a", REGION: "r"},
            True,
        ),
        (
            a_volume("pv", labels={BETA: "a"}, reach={BETA_REGION: ["r"]}, **DISK),
            {REGION: "r"},
            False,
        ),
        (a_volume("pv", reach={BETA_REGION: ["r"]}, **DISK), {BETA_REGION: "r"}, True),
        (a_volume("pv", labels={BETA: "a"}, nodeAffinity=SOME_REGION, **DISK), OLD_NODE, True),
        # a key without values is no zone, and the label counts
        (
            a_volume("pv", labels={ZONE: "a"}, nodeAffinity=EMPTY, **DISK),
            {ZONE: "x", EBS.topology_key: "a"},
            True,
        ),
        (a_volume("pv", labels={ZONE: "a"}, nodeAffinity=EMPTY, **DISK), {ZONE: "x"}, False),
        (
            a_volume("pv", labels={ZONE: "a"}, nodeAffinity=EMPTY, **DISK),
            {EBS.topology_key: "a"},
            False,
        ),
        # fields stay, alone or beside a zone
        (a_volume("pv", labels={ZONE: "a"}, nodeAffinity=FIELDS, **DISK), {}, False),
        (
            a_volume("pv", labels={ZONE: "a"}, nodeAffinity=FIELDS, **DISK),
            {EBS.topology_key: "a"},
            True,
        ),
        (a_volume("pv", nodeAffinity={"required": {}}, **DISK), {}, False),
    ],
)
def test_zones_become_the_drivers_own_topology(volume: Any, labels: Any, matches: bool) -> None:
    assert reaches(translated_affinity(volume, EBS), labels) is matches
