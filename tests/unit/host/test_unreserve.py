"""A reservation of devices that the API server holds is taken back once the pod was not bound."""

from typing import Any

import pytest

from asched_lab.apiserver.faults import Fault
from tests.unit.host.observing import Observed, observing, pod

observed = pytest.fixture(observing)

CLAIM = "resourceclaims/c/status"


class SecondWrite(Fault):
    """Hits the second call it could hit: the first one reserves, the second takes that back."""

    seen = 0

    def covers(self, method: str, path: str) -> bool:
        if not super().covers(method, path):
            return False
        self.seen += 1
        return self.seen == 2


def create_devices(world: Observed) -> None:
    """Two devices on n0, and the claim c for one of them."""
    group = "resource.k8s.io/v1"
    cls = {"apiVersion": group, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
    pool = {"name": "n0", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d.io", "nodeName": "n0", "pool": pool, "devices": [{"name": "a"}]}
    piece = {
        "apiVersion": group,
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": spec,
    }
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    claim = {
        "apiVersion": group,
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "default"},
        "spec": {"devices": {"requests": [request]}},
    }
    world.server.create("deviceclasses", cls)
    world.server.create("resourceslices", piece)
    world.server.create("resourceclaims", claim)


def claimant() -> dict[str, Any]:
    made = pod("web")
    made["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimName": "c"}]
    return made


def claim_status(world: Observed) -> dict[str, Any]:
    (claim,) = world.server.list("resourceclaims")
    return claim["status"]


def node_of(world: Observed) -> str:
    (found,) = world.server.list("pods")
    return found["spec"].get("nodeName", "")


def cancellations(world: Observed) -> list[Any]:
    """The bodies of requests that took a pod out of `reservedFor`."""
    return [body for path, body in world.bodies if path.endswith(CLAIM) and b"$patch" in body]


async def test_a_failed_binding_leaves_the_allocation_and_takes_the_reservation_back(
    observed: Observed,
) -> None:
    create_devices(observed)
    observed.server.faults.add(Fault("refuse", "/binding$", "POST", count=1, status=403))
    observed.server.create("pods", claimant())

    await observed.until(lambda: bool(cancellations(observed)))
    assert observed.writes["POST binding"] == 1
    assert not claim_status(observed).get("reservedFor")
    assert claim_status(observed)["allocation"]["devices"]["results"][0]["device"] == "a"

    await observed.until(lambda: node_of(observed) == "n0")
    (consumer,) = claim_status(observed)["reservedFor"]
    assert consumer["name"] == "web"
    assert len(cancellations(observed)) == 1


async def test_a_reservation_that_cannot_be_taken_back_serves_the_next_attempt(
    observed: Observed,
) -> None:
    create_devices(observed)
    faults = observed.server.faults
    faults.add(Fault("refuse", "/binding$", "POST", count=1, status=403))
    refused = faults.add(SecondWrite("refuse", f"{CLAIM}$", "PATCH", count=1, status=403))

    observed.server.create("pods", claimant())

    await observed.until(lambda: node_of(observed) == "n0")

    assert refused.hits == 1
    assert len(claim_status(observed)["reservedFor"]) == 1
    assert len(cancellations(observed)) == 1
