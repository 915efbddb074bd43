"""DeviceTaintRules from outside."""

from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.control_plane import SERVERS, Plane, a_plane, refusal
from tests.e2e.inside import a_node
from tests.e2e.outside import a_process

Json = dict[str, Any]
GATES: Final = "DRADeviceTaintRules=true"
SERVED: Final = "resource.k8s.io/v1beta2"
DRIVER: Final = "gpu.example.com"


def a_slice(node: str) -> Json:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": name} for name in ("a", "b")]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"slice-{node}"},
        "spec": {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": devices},
    }


def a_rule(name: str, **selector: str) -> Json:
    taint = {"key": "example.com/broken", "effect": "NoSchedule"}
    return {
        "apiVersion": SERVED,
        "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": {"deviceSelector": selector, "taint": taint},
    }


def a_claim(name: str, *, tolerates: bool) -> Json:
    exactly: Json = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    if tolerates:
        exactly["tolerations"] = [{"key": "example.com/broken", "operator": "Exists"}]
    requests = [{"name": "gpu", "exactly": exactly}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": requests}},
    }


def a_pod(name: str, claim: str) -> Json:
    container = {"name": "main", "image": "app", "resources": {"claims": [{"name": "gpu"}]}}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedulerName": "asched",
            "containers": [container],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": claim}],
        },
    }


@pytest.mark.parametrize("kind", SERVERS)
async def test_only_claims_that_tolerate_its_taint_get_a_device(kind: str, tmp_path: Path) -> None:
    """n1 is tainted as a pool, device a of n2 by its name: one device is free for all claims."""
    async with a_plane(kind, gates=GATES, versions=SERVED) as plane:
        found = await devices(plane, tmp_path)
    assert found["plain"] == [("n2", "b")]
    assert found["late"] == []
    assert found["tolerant"] in ([("n1", "a")], [("n2", "a")])


async def devices(plane: Plane, folder: Path) -> dict[str, list[tuple[str, str]]]:
    """Pool and device of each claim, in the end."""
    of_class = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "spec": {}}
    classes = [{**of_class, "metadata": {"name": "gpu"}}]
    await plane.create("/apis/resource.k8s.io/v1/deviceclasses", classes)
    rules = [a_rule("pool", pool="n1"), a_rule("device", driver=DRIVER, device="a")]
    await plane.create(f"/apis/{SERVED}/devicetaintrules", rules)
    await plane.create("/apis/resource.k8s.io/v1/resourceslices", [a_slice("n1"), a_slice("n2")])
    await plane.create("/api/v1/nodes", [a_node(name) for name in ("n1", "n2")])
    flags = (
        f"--kubeconfig={plane.kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        f"--feature-gates={GATES}",
    )
    claims = "/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims"
    async with a_process(folder, *flags) as process:
        for name, tolerates in (("plain", False), ("late", False), ("tolerant", True)):
            await plane.create(claims, [a_claim(name, tolerates=tolerates)])
            await plane.create_pods([a_pod(name, name)])
            await plane.until(
                lambda pods: all(pod["spec"].get("nodeName") or refusal(pod) for pod in pods)
            )
        assert "Traceback" not in process.words, process.words[-3000:]
    return {
        claim["metadata"]["name"]: [(one["pool"], one["device"]) for one in _results(claim)]
        for claim in await plane.every("/apis/resource.k8s.io/v1/resourceclaims")
    }


def _results(claim: Json) -> list[Json]:
    allocation = claim.get("status", {}).get("allocation") or {}
    results: list[Json] = allocation.get("devices", {}).get("results") or []
    return results
