"""Claims of a gang's pods, by trying every choice: devices for resource claims, volumes for claims
that wait for their first consumer. On raw objects; it shares no code with the scheduler.

What was chosen so far is a set of (claim, choice): the devices of a resource claim, the volume of a
claim, or the node on which one is to be made.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Final, NamedTuple

from asched_lab.sim.checker import amount, selects

Json = Mapping[str, Any]
#: Name of the claim, and what was chosen for it.
Chosen = frozenset[tuple[str, Any]]
#: Selectors that are understood here, by their text: whether a device's attributes meet them.
SELECTORS: Final = {
    'device.driver == "gpu.example.com"': lambda _: True,
    'device.attributes["gpu.example.com"].size >= 2': lambda a: a["size"]["int"] >= 2,
}
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


class Device(NamedTuple):
    pool: str
    name: str


class Claims:
    """All there is to choose from. `namespace`less: small instances have one."""

    def __init__(self, objects: Sequence[Json]) -> None:
        by_kind: dict[str, dict[str, Json]] = {}
        for one in objects:
            by_kind.setdefault(one["kind"], {})[one["metadata"]["name"]] = one
        self.claims = by_kind.get("PersistentVolumeClaim", {})
        self.volumes = by_kind.get("PersistentVolume", {})
        self.storage = by_kind.get("StorageClass", {})
        self.requests = by_kind.get("ResourceClaim", {})
        self.classes = by_kind.get("DeviceClass", {})
        self.slices = by_kind.get("ResourceSlice", {})
        self.devices = {
            Device(s["spec"]["pool"]["name"], d["name"]): (s, d)
            for s in self.slices.values()
            for d in s["spec"]["devices"]
        }
        #: what claims have at the beginning
        self.given: Chosen = frozenset(
            (f"device/{name}", devices_of(claim))
            for name, claim in self.requests.items()
            if claim.get("status", {}).get("allocation")
        )

    def served(self, node: Json, pod: Json, chosen: Chosen) -> Iterator[Chosen]:
        """Every way to serve all claims of a pod on a node; `chosen` itself if it has none."""
        wanted = [f"volume/{name}" for name in claims_of(pod)]
        wanted += [f"device/{name}" for name in requests_of(pod)]
        yield from self._served(node, list(dict.fromkeys(wanted)), chosen)

    def _served(self, node: Json, wanted: list[str], chosen: Chosen) -> Iterator[Chosen]:
        if not wanted:
            yield chosen
            return
        kind, _, name = wanted[0].partition("/")
        known = dict(chosen).get(wanted[0])
        serves = self._volumes if kind == "volume" else self._devices
        for one in serves(node, name, known, chosen):
            more = chosen if known is not None or one is None else chosen | {(wanted[0], one)}
            yield from self._served(node, wanted[1:], more)

    # --- volumes ---------------------------------------------------------------------------------

    def _volumes(self, node: Json, name: str, known: Any, chosen: Chosen) -> Iterator[Any]:
        claim = self.claims.get(name)
        if claim is None:
            return
        spec = claim["spec"]
        if spec.get("volumeName"):
            if reaches(self.volumes[spec["volumeName"]], node):
                yield None
            return
        if known is not None:
            kind, where = known
            here = node["metadata"]["name"]
            if where == here if kind == "made" else reaches(self.volumes[where], node):
                yield known
            return
        found = self.storage.get(spec.get("storageClassName", ""))
        if found is None or found["volumeBindingMode"] != "WaitForFirstConsumer":
            return
        taken = {where for _, (kind, where) in _of(chosen, "volume") if kind == "is"}
        fitting = [
            volume["metadata"]["name"]
            for volume in self.volumes.values()
            if volume["metadata"]["name"] not in taken and self._suits(volume, spec)
            if reaches(volume, node)
        ]
        yield from (("is", name) for name in fitting)
        if not fitting and found["provisioner"] != NO_PROVISIONER and _allows(found, node):
            yield ("made", node["metadata"]["name"])

    def _suits(self, volume: Json, spec: Json) -> bool:
        asked, has = spec["resources"]["requests"]["storage"], volume["spec"]["capacity"]["storage"]
        return (
            not volume["spec"].get("claimRef")
            and volume["spec"].get("storageClassName") == spec.get("storageClassName")
            and set(spec["accessModes"]) <= set(volume["spec"]["accessModes"])
            and amount(has) >= amount(asked)
        )

    # --- devices ---------------------------------------------------------------------------------

    def _devices(self, node: Json, name: str, known: Any, chosen: Chosen) -> Iterator[Any]:
        claim = self.requests.get(name)
        if claim is None:
            return
        if known is not None:
            if all(sees(node, self.devices[one][0]) for one in known):
                yield known
            return
        taken = frozenset(one for _, devices in _of(chosen, "device") for one in devices)
        devices = claim["spec"]["devices"]
        for found in self._answers(node, devices["requests"], taken):
            if self._holds(devices.get("constraints") or (), found):
                yield tuple(sorted(one for _, one in found))

    def _answers(
        self, node: Json, requests: Sequence[Json], taken: frozenset[Device]
    ) -> Iterator[list[tuple[str, Device]]]:
        if not requests:
            yield []
            return
        name = requests[0]["name"]
        for asked in requests[0].get("firstAvailable") or [requests[0]["exactly"]]:
            free = [
                one
                for one, (where, device) in self.devices.items()
                if one not in taken and sees(node, where) and self._is_meant(asked, device)
            ]
            for some in self._unlike(free, int(asked.get("count") or 1)):
                for rest in self._answers(node, requests[1:], taken | set(some)):
                    yield [*((name, one) for one in some), *rest]

    def _unlike(self, free: list[Device], count: int) -> Iterator[tuple[Device, ...]]:
        """Sets of so many devices, of those that look the same the first ones."""
        seen = set()
        for some in combinations(free, count):
            look = tuple(sorted(self._look(one) for one in some))
            if look not in seen:
                seen.add(look)
                yield some

    def _look(self, one: Device) -> str:
        where, device = self.devices[one]
        return f"{where['spec']['pool']['name']} {device.get('attributes')}"

    def _is_meant(self, asked: Json, device: Json) -> bool:
        selectors = self.classes[asked["deviceClassName"]]["spec"].get("selectors") or ()
        return all(
            SELECTORS[one["cel"]["expression"]](device["attributes"])  # type: ignore[no-untyped-call]
            for one in (*selectors, *(asked.get("selectors") or ()))
        )

    def _holds(self, constraints: Sequence[Json], found: list[tuple[str, Device]]) -> bool:
        for one in constraints:
            attribute = one["matchAttribute"].rpartition("/")[2]
            values = [self.devices[d][1]["attributes"].get(attribute) for _, d in found]
            if any(value is None or value != values[0] for value in values):
                return False
        return True


def _of(chosen: Chosen, kind: str) -> Iterator[tuple[str, Any]]:
    return ((name, what) for name, what in chosen if name.startswith(f"{kind}/"))


def claims_of(pod: Json) -> list[str]:
    """Names of its volume claims."""
    named = (v.get("persistentVolumeClaim") for v in pod["spec"].get("volumes") or ())
    return [claim["claimName"] for claim in named if claim]


def requests_of(pod: Json) -> list[str]:
    """Names of its resource claims: named, or made from a template for it."""
    statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    made = {one["name"]: one["resourceClaimName"] for one in statuses}
    listed = pod["spec"].get("resourceClaims") or ()
    return [one.get("resourceClaimName") or made[one["name"]] for one in listed]


def devices_of(claim: Json) -> tuple[Device, ...]:
    """What it has."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    return tuple(sorted(Device(r["pool"], r["device"]) for r in results))


def reaches(volume: Json, node: Json) -> bool:
    """Whether a node can use a volume."""
    return _chosen_by((volume["spec"].get("nodeAffinity") or {}).get("required"), node)


def sees(node: Json, where: Json) -> bool:
    """Whether the devices of a slice can be used on a node."""
    spec = where["spec"]
    if spec.get("nodeName"):
        return bool(spec["nodeName"] == node["metadata"]["name"])
    return bool(spec.get("allNodes")) or _chosen_by(spec.get("nodeSelector"), node)


def _chosen_by(selector: Json | None, node: Json) -> bool:
    if selector is None:
        return True
    asked = {"requiredDuringSchedulingIgnoredDuringExecution": selector}
    return selects(node, {"spec": {"affinity": {"nodeAffinity": asked}}, "metadata": {}})


def _allows(storage: Json, node: Json) -> bool:
    terms = storage.get("allowedTopologies") or ()
    labels = node["metadata"].get("labels") or {}
    return not terms or any(
        all(labels.get(one["key"]) in one["values"] for one in term["matchLabelExpressions"])
        for term in terms
    )
