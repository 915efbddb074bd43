"""Devices of a simulated cluster: their drivers and controllers.

Claims of devices are made from templates, freed when the last pod that uses them is gone, and
deleted with their owner. A device in two allocations breaks a rule, and so does a pod that is bound
without its devices or on another node.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from asched.core.framework.effects import Bind
from asched_lab.apiserver import crud
from asched_lab.apiserver.context import DELETED, Change, Key
from asched_lab.apiserver.resources import PODS, find
from asched_lab.sim.checker import EndState, is_through
from asched_lab.sim.storage import Json
from asched_lab.sim.world import World

#: driver, pool, device
Device = tuple[str, str, str]
DEVICES_CLAIMS: Final = find("resourceclaims")
SLICES: Final = find("resourceslices")
GPU, NIC = "gpu.example.com", "nic.example.com"
#: Device class -> driver, and the least size of a device.
CLASSES: Final = {"gpu": (GPU, 1), "big-gpu": (GPU, 2), "nic": (NIC, 1)}
EXTENDED: Final = "example.com/gpu"
DEVICES_SYNC_S_MAX: Final = 2.0
#: Contents of claims: requests, each with alternatives of (class, count).
REQUESTS: Final = (
    ((("gpu", 1),),),
    ((("gpu", 2),),),
    ((("big-gpu", 1),),),
    ((("nic", 1),), (("gpu", 1),)),
    ((("big-gpu", 1), ("gpu", 2)),),
)


class Devices:
    """Follows the store."""

    def __init__(self, world: World, namespaces: Sequence[str] = ("default",)) -> None:
        """`namespaces`: those with templates of claims."""
        self._world = world
        self._ctx = world.server.ctx
        self._rng = random.Random(world.rng.random())
        store = world.server.store
        store.table(PODS.storage).listeners.append(self._see_pod)
        store.table(DEVICES_CLAIMS.storage).listeners.append(self._see_claim)
        world.on_bound.append(self._check)
        world.ledger.elsewhere.add(EXTENDED)
        for namespace in namespaces:
            for number, requests in enumerate(REQUESTS):
                template = {"metadata": {"name": f"request-{number}", "namespace": namespace}}
                world.server.create(
                    "resourceclaimtemplates", {**template, "spec": {"spec": spec_of(requests)}}
                )

    # --- classes and slices ----------------------------------------------------------------------

    def add_class(self, name: str) -> None:
        """A device class, unless it exists."""
        if self._world.server.get("deviceclasses", "", name) is not None:
            return
        driver, size = CLASSES[name]
        rule = f'device.driver == "{driver}" && device.attributes["{driver}"].size >= {size}'
        spec: Json = {"selectors": [{"cel": {"expression": rule}}]}
        if name == "gpu":
            spec["extendedResourceName"] = EXTENDED
        self._world.server.create("deviceclasses", {"metadata": {"name": name}, "spec": spec})

    def publish(self, node: str) -> None:
        """Both drivers publish the devices of a node, each in one slice or two."""
        for driver in (GPU, NIC):
            known = [s for s in self.slices() if _pool(s) == (driver, node)]
            generation = 1 + max((s["spec"]["pool"]["generation"] for s in known), default=0)
            sizes = [self._rng.choice((1, 1, 2)) for _ in range(self._rng.randint(0, 3))]
            parts = [sizes[:1], sizes[1:]] if self._rng.random() < 0.3 else [sizes]
            pool = {"name": node, "generation": generation, "resourceSliceCount": len(parts)}
            first = 0
            for part in parts:
                spec = {"driver": driver, "nodeName": node, "pool": pool}
                devices = [
                    {"name": f"device-{first + n}", "attributes": {"size": {"int": size}}}
                    for n, size in enumerate(part)
                ]
                first += len(part)
                name = f"{node}-{driver}-{next(self._world.numbers)}"
                made = {"metadata": {"name": name}, "spec": {**spec, "devices": devices}}
                wait_s = self._rng.uniform(0.0, DEVICES_SYNC_S_MAX)
                self._world.clock.after(wait_s, lambda made=made: self._create_slice(made))  # type: ignore[misc]
            for old in known:
                self._drop_later(old)

    def withdraw(self, node: str) -> None:
        """Delete all slices of a node."""
        for old in self.slices():
            if old["spec"]["pool"]["name"] == node:
                self._drop_later(old)

    def slices(self) -> list[Json]:
        return self._world.server.list("resourceslices")

    def _create_slice(self, made: Json) -> None:
        self._world.server.create("resourceslices", made)

    def _drop_later(self, old: Json) -> None:
        def drop() -> None:
            record = self._ctx.get(SLICES, "", old["metadata"]["name"])
            if record is not None:
                crud.delete(self._ctx, SLICES, record, {})

        self._world.clock.after(self._rng.uniform(0.0, DEVICES_SYNC_S_MAX), drop)

    # --- claims ----------------------------------------------------------------------------------

    def add_claim(self, name: str, namespace: str = "default") -> str:
        """Create a claim that several pods may share; return its name."""
        if self._world.server.get("resourceclaims", namespace, name) is None:
            spec = spec_of(self._rng.choice(REQUESTS))
            metadata = {"name": name, "namespace": namespace}
            self._world.server.create("resourceclaims", {"metadata": metadata, "spec": spec})
        return name

    def hold(self, name: str, device: Device) -> None:
        """Allocate one device to a claim of another scheduler."""
        metadata = {"name": name, "namespace": "default"}
        spec = spec_of(((("gpu", 1),),))
        made = self._world.server.create("resourceclaims", {"metadata": metadata, "spec": spec})
        driver, pool, name = device
        request = made["spec"]["devices"]["requests"][0]["name"]
        result = {"request": request, "driver": driver, "pool": pool, "device": name}
        status = {"allocation": {"devices": {"results": [result]}}}
        self._ctx.put(DEVICES_CLAIMS, {**made, "status": status})

    def claims(self) -> list[Json]:
        return self._world.server.list("resourceclaims")

    def delete_claim(self, name: str) -> None:
        record = self._ctx.get(DEVICES_CLAIMS, "default", name)
        if record is not None:
            crud.delete(self._ctx, DEVICES_CLAIMS, record, {})

    def _see_pod(self, change: Change) -> None:
        key, pod = change.new.key, change.new.obj
        if change.type == DELETED or is_through(pod):
            for claim in self.claims():
                self._later(_key(claim))
        elif change.old is None:
            self._world.clock.after(
                self._rng.uniform(0.0, DEVICES_SYNC_S_MAX), lambda: self._make_claims(key)
            )

    def _make_claims(self, key: Key) -> None:
        """Make the claims of a pod's templates."""
        record = self._ctx.get(PODS, *key)
        if record is None or record.obj["metadata"].get("deletionTimestamp"):
            return
        pod = record.obj
        statuses = list(pod["status"].get("resourceClaimStatuses") or ())
        for reference in pod["spec"].get("resourceClaims") or ():
            template = reference.get("resourceClaimTemplateName")
            if template is None or any(status["name"] == reference["name"] for status in statuses):
                continue
            requests = REQUESTS[int(template.partition("-")[2])]
            name = f"{key[1]}-{reference['name']}-{next(self._world.numbers)}"
            metadata = {"name": name, "namespace": key[0], "ownerReferences": [_owner(pod)]}
            self._world.server.create(
                "resourceclaims", {"metadata": metadata, "spec": spec_of(requests)}
            )
            statuses.append({"name": reference["name"], "resourceClaimName": name})
        if statuses != (pod["status"].get("resourceClaimStatuses") or []):
            status = {**pod["status"], "resourceClaimStatuses": statuses}
            self._ctx.put(PODS, {**pod, "status": status})

    def _see_claim(self, change: Change) -> None:
        if change.type == DELETED:
            return
        holders: Counter[Device] = Counter()
        for claim in self.claims():
            holders.update(devices_of(claim))
        for device, number in holders.items():
            if number > 1:
                self._world.ledger.complain(f"device {device} is held by {number} claims")
        self._later(change.new.key)

    def _later(self, key: Key) -> None:
        self._world.clock.after(self._rng.uniform(0.0, DEVICES_SYNC_S_MAX), lambda: self._sync(key))

    def _sync(self, key: Key) -> None:
        """Remove users that are gone; free an unused claim; remove the finalizer of a deleted
        claim.
        """
        record = self._ctx.get(DEVICES_CLAIMS, *key)
        if record is None:
            return
        claim = record.obj
        status = claim.get("status") or {}
        alive = {p["metadata"]["uid"] for p in self._world.pods() if not is_through(p)}
        users = status.get("reservedFor") or []
        remaining = [user for user in users if user["uid"] in alive]
        if users and remaining != users:
            status = {**status, "reservedFor": remaining}
            if not remaining:
                status = {k: v for k, v in status.items() if k not in ("reservedFor", "allocation")}
            record = self._ctx.put(DEVICES_CLAIMS, {**claim, "status": status})
            claim = record.obj
        owners = claim["metadata"].get("ownerReferences") or []
        if not remaining and any(owner["uid"] not in alive for owner in owners):
            record, _ = crud.delete(self._ctx, DEVICES_CLAIMS, record, {})
            claim = record.obj
        if not remaining and claim["metadata"].get("deletionTimestamp"):
            metadata = {k: v for k, v in claim["metadata"].items() if k != "finalizers"}
            rest = {k: v for k, v in status.items() if k != "allocation"}
            current = self._ctx.get(DEVICES_CLAIMS, *key)
            if current is not None:
                record = self._ctx.put(
                    DEVICES_CLAIMS, {**claim, "metadata": metadata, "status": rest}
                )
                crud.delete(self._ctx, DEVICES_CLAIMS, record, {})

    # --- checks ----------------------------------------------------------------------------------

    def _check(self, bind: Bind) -> None:
        """Complain about a pod that was bound without its devices."""
        complain = self._world.ledger.complain
        pod = self._world.server.get("pods", bind.pod.namespace, bind.pod.name)
        if pod is None or pod["spec"]["schedulerName"] not in self._world.scheduler_names:
            return
        for claim_name in names_of(pod):
            claim = self._world.server.get("resourceclaims", bind.pod.namespace, claim_name)
            allocation = ((claim or {}).get("status") or {}).get("allocation")
            if claim is None or allocation is None:
                complain(f"pod {bind.pod.key} was bound before its claim {claim_name}")
                continue
            users = [user["uid"] for user in claim["status"].get("reservedFor") or ()]
            if users.count(bind.pod.uid) != 1:
                complain(f"pod {bind.pod.key} was bound and {claim_name} is reserved for {users}")
            pools = {pool for _, pool, _ in devices_of(claim)}
            if pools - {bind.node}:
                complain(f"pod {bind.pod.key} on {bind.node} has devices in {pools}")
            if not any(
                Counter(devices_by_driver(claim)) == Counter(drivers) for drivers in wanted(claim)
            ):
                complain(f"claim {claim_name} got {devices_of(claim)}")

    def could_be_served(self) -> list[str]:
        """Waiting pods for which a node has room and all their devices."""
        found = []
        end = EndState(self._world.nodes(), [p for p in self._world.pods() if not is_through(p)])
        held = {device for claim in self.claims() for device in devices_of(claim)}
        for pod in self._world.waiting():
            namespace = pod["metadata"]["namespace"]
            claims = [self._world.server.get("resourceclaims", namespace, n) for n in names_of(pod)]
            has_claims = len(claims) == len(pod["spec"].get("resourceClaims") or ())
            if not has_claims or not claims or pod["metadata"].get("deletionTimestamp"):
                continue
            if any(c is None or c["metadata"].get("deletionTimestamp") for c in claims):
                continue
            for node in end.nodes:
                if end.has_place(node, pod) and self._serves(node, claims, held):
                    found.append(f"{pod['metadata']['name']} could have its devices on {node}")
                    break
        return found

    def _serves(self, node: str, claims: list[Any], held: set[Device]) -> bool:
        free = [(d, size) for d, size in self._offered(node) if d not in held]
        requests: list[tuple[str, int]] = []
        for claim in claims:
            if (claim.get("status") or {}).get("allocation") is not None:
                if any(pool != node for _, pool, _ in devices_of(claim)):
                    return False
                continue
            for request in claim["spec"]["devices"]["requests"]:
                if "exactly" not in request:
                    return False  # alternatives: left to other checks
                exactly = request["exactly"]
                requests.append((exactly["deviceClassName"], exactly.get("count", 1)))
        for name, count in sorted(requests, key=lambda request: -CLASSES[request[0]][1]):
            if self._world.server.get("deviceclasses", "", name) is None:
                return False
            driver, least = CLASSES[name]
            fits = sorted(f for f in free if f[0][0] == driver and f[1] >= least)
            fits.sort(key=lambda device: device[1])
            if len(fits) < count:
                return False
            free = [device for device in free if device not in fits[:count]]
        return True

    def _offered(self, node: str) -> Iterator[tuple[Device, int]]:
        """Devices of complete pools in their newest generation, with their size."""
        for driver in (GPU, NIC):
            members = [s["spec"] for s in self.slices() if _pool(s) == (driver, node)]
            newest = max((m["pool"]["generation"] for m in members), default=0)
            members = [m for m in members if m["pool"]["generation"] == newest]
            if not members or len(members) != members[0]["pool"]["resourceSliceCount"]:
                continue
            for member in members:
                for device in member.get("devices") or ():
                    size = device["attributes"]["size"]["int"]
                    yield (driver, node, device["name"]), size


def spec_of(alternatives_of: Any) -> Json:
    """A claim's spec from requests with their alternatives."""
    requests: list[Json] = []
    for number, alternatives in enumerate(alternatives_of):
        forms = [{"deviceClassName": name, "count": count} for name, count in alternatives]
        if len(forms) == 1:
            requests.append({"name": f"r{number}", "exactly": forms[0]})
        else:
            named: list[Json] = [{"name": f"s{n}", **form} for n, form in enumerate(forms)]
            requests.append({"name": f"r{number}", "firstAvailable": named})
    return {"devices": {"requests": requests}}


def wanted(claim: Json) -> list[list[str]]:
    """The drivers of the devices a claim may get: one list for each combination."""
    combinations: list[list[str]] = [[]]
    for request in claim["spec"]["devices"]["requests"]:
        forms = [request["exactly"]] if "exactly" in request else request["firstAvailable"]
        combinations = [
            [*known, *[CLASSES[form["deviceClassName"]][0]] * form.get("count", 1)]
            for known in combinations
            for form in forms
        ]
    return combinations


def names_of(pod: Json) -> list[str]:
    """The names of a pod's claims that exist."""
    statuses = {
        s["name"]: s.get("resourceClaimName")
        for s in pod["status"].get("resourceClaimStatuses") or ()
    }
    names = [
        reference.get("resourceClaimName") or statuses.get(reference["name"])
        for reference in pod["spec"].get("resourceClaims") or ()
    ]
    return [name for name in names if name]


def devices_of(claim: Json) -> list[Device]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    return [(result["driver"], result["pool"], result["device"]) for result in results]


def devices_by_driver(claim: Json) -> list[str]:
    return [driver for driver, _, _ in devices_of(claim)]


def _pool(resource_slice: Json) -> tuple[str, str]:
    spec = resource_slice["spec"]
    return spec["driver"], spec["pool"]["name"]


def _key(obj: Json) -> Key:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


def _owner(pod: Json) -> Json:
    metadata = pod["metadata"]
    kind: Json = {"apiVersion": "v1", "kind": "Pod", "controller": True}
    return {**kind, "name": metadata["name"], "uid": metadata["uid"]}
