"""What a tenant writes into its own objects keeps nothing of others in a recording under
pseudonyms, and words that are not Kubernetes' own are replaced, whatever field they stand in.
"""

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from asched.core.cluster.facts import Fact, Seen
from asched.core.model.decode import decode
from asched.core.model.kinds import BY_RESOURCE, NODE
from asched_lab.replay.anonymous import Anonymized, anonymize
from asched_lab.replay.lines import Recording
from tests.builders import a_node, a_pod
from tests.unit.ops.recording.recorded import NOBODY, a_configuration, ours, record

CLAIM, CSI_DRIVER, STORAGE_CLASS = (
    BY_RESOURCE[f"{group}/{name}"]
    for group, name in (
        ("resource.k8s.io", "ResourceClaim"),
        ("storage.k8s.io", "CSIDriver"),
        ("storage.k8s.io", "StorageClass"),
    )
)
DRIVER = "disk.csi.vendor.example"


def a_claim() -> Seen:
    """A tenant's claim; its requests, drivers and conditions are called like others' objects."""
    exactly = {"deviceClassName": "acme-bank", "allocationMode": "payroll-0"}
    conditions = [{"type": "acme-bank", "reason": "payroll-0", "status": "True"}]
    document = {
        "metadata": {"name": "c", "namespace": "tenant", "uid": "c"},
        "spec": {
            "devices": {
                "requests": [
                    {"name": "acme-bank", "exactly": exactly},
                    {"name": "payroll-0", "firstAvailable": [{"name": "payroll-0"}]},
                ],
                "constraints": [{"requests": ["acme-bank", "payroll-0/payroll-0"]}],
                "config": [{"requests": ["acme-bank"], "opaque": {"driver": "payroll-0"}}],
            }
        },
        "status": {
            "devices": [
                {
                    "driver": "acme-bank",
                    "device": "payroll-0",
                    "pool": "p",
                    "conditions": conditions,
                }
            ]
        },
    }
    return Seen(CLAIM, decode(CLAIM.record, document))


def turns() -> Iterator[list[Fact]]:
    tenants = a_pod("t", "tenant").labels(
        **{"node-restriction.kubernetes.io/acme-bank": "1", "acmekubernetes.io/payroll-0": "1"}
    )
    tenants.json["spec"]["schedulerName"] = "acme-bank"
    tenants.json.setdefault("status", {})["conditions"] = [
        {"type": "acme-bank", "reason": "payroll-0", "status": "acme-bank"}
    ]
    storage = {"metadata": {"name": "fast"}, "provisioner": DRIVER}
    yield [
        a_claim(),
        Seen(CSI_DRIVER, decode(CSI_DRIVER.record, {"metadata": {"name": DRIVER}})),
        Seen(STORAGE_CLASS, decode(STORAGE_CLASS.record, storage)),
        Seen(
            NODE,
            a_node("n1")
            .labels({"topology.kubernetes.io/zone": "z"})
            .taints("node.kubernetes.io/unschedulable:PreferNoSchedule")
            .allocatable(cpu="8", memory="8Gi", pods="10")
            .build(),
        ),
        Seen(BY_RESOURCE["Pod"], tenants.build()),
    ]
    yield [ours(a_pod("payroll-0", "acme-bank").requests(cpu="100m"))]
    yield from ([] for _ in range(5))


@pytest.fixture
def written(tmp_path: Path) -> tuple[Anonymized, str, str]:
    """What is said of it, the recording, and the one under pseudonyms."""
    recording = Recording(record(tmp_path / "in", turns()))
    said = anonymize(recording, tmp_path / "out", NOBODY)
    before, after = (
        gzip.decompress(path.read_bytes()).decode() for path in (recording.path, tmp_path / "out")
    )
    return said, before, after


@pytest.mark.parametrize("name", ["acme-bank", "payroll-0", "acmekubernetes"])
def test_a_tenant_keeps_nothing_of_others(written: tuple[Anonymized, str, str], name: str) -> None:
    said, before, after = written
    assert said.differs is None
    assert name in before
    assert name not in after


def test_words_of_kubernetes_and_drivers_of_administrators_stay(
    written: tuple[Anonymized, str, str],
) -> None:
    *_, after = written
    for word in (
        *("topology.kubernetes.io/zone", "node.kubernetes.io/unschedulable", "PreferNoSchedule"),
        *(f'"provisioner":"{DRIVER}"', f'"name":"{DRIVER}"', '"memory":"8Gi"'),
    ):
        assert word in after


def test_pools_are_under_pseudonyms_and_decide_the_same(tmp_path: Path) -> None:
    pools = [{"name": "acme-bank", "namespaces": ["payroll-0"]}]
    config = a_configuration(pools=pools)
    nodes = [
        a_node("other").allocatable(cpu="9", pods="9"),
        a_node("own").labels({"asched.dev/pool": "acme-bank"}).allocatable(cpu="1", pods="9"),
    ]
    facts: list[list[Fact]] = [
        [Seen(NODE, node.build()) for node in nodes],
        [ours(a_pod("p", "payroll-0").requests(cpu="1"))],
    ]
    recording = Recording(record(tmp_path / "in", facts, config=config))

    said = anonymize(recording, tmp_path / "out", NOBODY)

    after = gzip.decompress((tmp_path / "out").read_bytes()).decode()
    assert said.differs is None
    assert "acme-bank" not in after
    assert "payroll-0" not in after
