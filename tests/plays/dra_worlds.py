"""Small worlds of devices: slices, classes and claims in a line each."""

from typing import Any

from asched.core.config.gates import default_gates
from asched.core.config.versions import BASE
from asched.core.dra.allocator import DeviceSearch, Solution
from asched.core.dra.inventory import Inventory, Taken
from asched.core.dra.plan import ClaimPlan, plan
from asched.core.model.claim import (
    AllocationResult,
    DeviceClass,
    ResourceClaim,
    ResourceSlice,
)
from asched.core.model.decode import decode

DRIVER = "gpu.example.com"
NODE = "n1"
STEPS_MAX = 100_000


def a_device(name: str, **fields: Any) -> dict[str, Any]:
    """`model=`, `numa=` and the like become attributes; other keywords are fields of the API."""
    attributes = {
        key: {"string": value} if isinstance(value, str) else {"int": value}
        for key, value in fields.pop("attributes", {}).items()
    }
    return {"name": name, "attributes": attributes, **fields}


def a_slice(*devices: dict[str, Any] | str, name: str = "", **fields: Any) -> ResourceSlice:
    """A slice on node n1, in a pool of that name, unless told otherwise."""
    pool = {"name": fields.pop("pool", NODE), "generation": fields.pop("generation", 1)}
    pool["resourceSliceCount"] = fields.pop("of", 1)
    spec: dict[str, Any] = {"driver": fields.pop("driver", DRIVER), "pool": pool}
    if not {"nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"} & fields.keys():
        spec["nodeName"] = NODE
    spec |= fields
    spec["devices"] = [a_device(d) if isinstance(d, str) else d for d in devices]
    return decode(ResourceSlice, {"metadata": {"name": name or pool["name"]}, "spec": spec})


def a_class(name: str = "gpu", *selectors: str, **spec: Any) -> DeviceClass:
    chosen = [{"cel": {"expression": text}} for text in selectors]
    return decode(DeviceClass, {"metadata": {"name": name}, "spec": {"selectors": chosen, **spec}})


def asks(*selectors: str, count: int = 1, **fields: Any) -> dict[str, Any]:
    """What is asked for once; `all=True` for every device."""
    mode = {"allocationMode": "All"} if fields.pop("all", False) else {"count": count}
    return {
        "deviceClassName": fields.pop("of", "gpu"),
        "allocationMode": "ExactCount",
        "selectors": [{"cel": {"expression": text}} for text in selectors],
        **mode,
        **fields,
    }


def a_claim(*requests: dict[str, Any], name: str = "c", **devices: Any) -> ResourceClaim:
    """Requests r0, r1 and so on; a list of alternatives is given as {"firstAvailable": [...]}."""
    named = [
        {"name": f"r{i}", **(r if "firstAvailable" in r else {"exactly": r})}
        for i, r in enumerate(requests)
    ]
    return decode(
        ResourceClaim,
        {
            "metadata": {"name": name, "namespace": "d", "uid": f"uid-{name}"},
            "spec": {"devices": {"requests": named, **devices}},
        },
    )


def first_of(*alternatives: dict[str, Any]) -> dict[str, Any]:
    return {"firstAvailable": [{"name": f"s{i}", **a} for i, a in enumerate(alternatives)]}


def held(*devices: str, pool: str = NODE, **fields: Any) -> AllocationResult:
    """An allocation that holds devices."""
    results = [
        {"request": "r0", "driver": DRIVER, "pool": pool, "device": device, **fields}
        for device in devices
    ]
    return decode(AllocationResult, {"devices": {"results": results}})


class World:
    """Slices and classes, what is taken, and one node at a time; by the rules of `minor`."""

    def __init__(
        self, *slices: ResourceSlice, classes: tuple[DeviceClass, ...] = (), minor: str = BASE
    ) -> None:
        self.rules = default_gates(minor)
        self.inventory = Inventory(slices)
        self.inventory.follow(self.rules)
        self.classes = {c.metadata.name: c for c in classes or (a_class(),)}
        self.taken = Taken()

    def plans(self, *claims: ResourceClaim) -> tuple[ClaimPlan, ...]:
        return tuple(plan(claim, self.classes.get) for claim in claims)

    def solve(
        self, *claims: ResourceClaim, node: str = NODE, labels: dict[str, str] | None = None
    ) -> Solution | None:
        labels = labels or {}
        pools = self.inventory.pools_for(node, labels)
        place = (node, labels)
        plans = self.plans(*claims)
        return DeviceSearch(pools, plans, self.taken, place, STEPS_MAX, self.rules).run()

    def devices(self, *claims: ResourceClaim, **where: Any) -> list[list[str]] | None:
        """The names of the chosen devices of each claim; None if there is no solution."""
        found = self.solve(*claims, **where)
        if found is None:
            return None
        return [[chosen.device.id.device for chosen in claim] for claim in found.devices]
