"""Work of controllers and drivers of a real cluster, done once for a workload.

    volumes bound to their claims     for createPods with templates of both
    claims made from claim templates  the resource claim controller
    slices published per node         the test driver of scheduler_perf
    claims allocated up front         allocResourceClaims

They write through the world, so both modes get the same objects.
"""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final

from asched.core.dra.cel.evaluate import compile_expression, device_variable
from asched.core.dra.cel.values import CelError
from asched.core.model.claim import Device
from asched.core.model.decode import decode
from asched_lab.bench.manifests import JsonObject
from asched_lab.bench.opcodes import Op
from asched_lab.bench.templates import Template
from asched_lab.bench.workload import Workload
from asched_lab.bench.world import CannotRunError, World

RESOURCE_VERSION: Final = "resource.k8s.io/v1"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"


class BoundVolumes:
    """One volume and one claim per pod, bound to each other before the pod comes."""

    def __init__(self, volume: Template, claim: Template, namespace: str, count: int) -> None:
        self._volume = volume
        self._claim = claim
        self._namespace = namespace
        self._count = count

    @classmethod
    def of(cls, op: Op, workload: Workload, namespace: str) -> "BoundVolumes | None":
        if not op["persistentVolumeTemplatePath"]:
            return None
        volume = Template.read(workload.path(op["persistentVolumeTemplatePath"]))
        claim = Template.read(workload.path(op["persistentVolumeClaimTemplatePath"]))
        return cls(volume, claim, namespace, op["count"])

    def mounted(self, pod: JsonObject, number: int) -> JsonObject:
        """The pod with the claim of its number as a volume."""
        spec = pod["spec"]
        mount = {"name": "vol", "persistentVolumeClaim": {"claimName": f"pvc-{number}"}}
        return {**pod, "spec": {**spec, "volumes": [*(spec.get("volumes") or ()), mount]}}

    async def create(self, world: World, numbers: Iterable[int]) -> None:
        """Create the pairs of some pods."""
        volumes, claims = [], []
        for number in numbers:
            volume, claim = self._pair(number)
            volumes.append(volume)
            claims.append(claim)
        await world.create(volumes)
        await world.create(claims, self._namespace)

    def _pair(self, number: int) -> tuple[JsonObject, JsonObject]:
        volume = self._volume.of(number, self._count)
        claim = self._claim.of(number, self._count)
        claim_name, volume_name = f"pvc-{number}", f"{self._namespace}-pv-{number}"
        spec = dict(volume["spec"])
        for source, member in (("csi", "volumeHandle"), ("awsElasticBlockStore", "volumeID")):
            if source in spec:
                spec[source] = {**spec[source], member: volume_name}
        reference = {"kind": "PersistentVolumeClaim", "name": claim_name}
        spec["claimRef"] = {**reference, "namespace": self._namespace, "apiVersion": "v1"}
        claim_metadata = {**(claim.get("metadata") or {}), "name": claim_name}
        annotations = {**(claim_metadata.get("annotations") or {}), BIND_COMPLETED: "true"}
        claim_metadata["annotations"] = annotations
        bound = {"phase": "Bound"}
        return (
            {
                **volume,
                "metadata": {**(volume.get("metadata") or {}), "name": volume_name},
                "spec": spec,
                "status": bound,
            },
            {
                **claim,
                "metadata": claim_metadata,
                "spec": {**claim["spec"], "volumeName": volume_name},
                "status": bound,
            },
        )


async def make_claims(world: World, pods: Sequence[JsonObject]) -> None:
    """Claims of pods that name a claim template, and the pods' statuses that name the claims."""
    templates: dict[tuple[str, str], JsonObject] = {}
    steps = []
    for pod in pods:
        wanted = [
            entry
            for entry in pod["spec"].get("resourceClaims") or ()
            if entry.get("resourceClaimTemplateName")
        ]
        for entry in wanted:
            key = (pod["metadata"]["namespace"], entry["resourceClaimTemplateName"])
            if key not in templates:
                templates[key] = await _template(world, *key)
        if wanted:
            steps.append(partial(_make_claims_of, world, pod, wanted, templates))
    await world.many(steps)


async def _make_claims_of(
    world: World,
    pod: JsonObject,
    wanted: Iterable[JsonObject],
    templates: Mapping[tuple[str, str], JsonObject],
) -> None:
    metadata = pod["metadata"]
    namespace = metadata["namespace"]
    statuses = []
    for entry in wanted:
        template = templates[namespace, entry["resourceClaimTemplateName"]]
        name = world.names.suffixed(f"{metadata['name']}-{entry['name']}-")
        await world.create([_claim(template, pod, entry["name"], name)], namespace)
        statuses.append({"name": entry["name"], "resourceClaimName": name})
    body = {"status": {"resourceClaimStatuses": statuses}}
    await world.patch("pods", namespace, metadata["name"], body, "status")


async def _template(world: World, namespace: str, name: str) -> JsonObject:
    for template in await world.listed("resourceclaimtemplates", namespace):
        if template["metadata"]["name"] == name:
            return template
    raise ValueError(f"there is no resource claim template {namespace}/{name}")


def _claim(template: JsonObject, pod: JsonObject, entry: str, name: str) -> JsonObject:
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod["metadata"]["name"],
        "uid": pod["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": RESOURCE_VERSION,
        "kind": "ResourceClaim",
        "metadata": {
            "name": name,
            "annotations": {"resource.kubernetes.io/pod-claim-name": entry},
            "ownerReferences": [owner],
        },
        "spec": template["spec"]["spec"],
    }


async def publish_slices(world: World, driver: str, pattern: str, devices_max: int) -> None:
    """A slice of `devices_max` devices for every node whose name matches."""
    taints = [
        {**rule["spec"]["taint"], "timeAdded": "2026-01-01T00:00:00Z"}
        for rule in await world.listed("devicetaintrules")
        if not rule["spec"].get("deviceSelector")
    ]
    slices = [
        _slice(driver, node["metadata"]["name"], devices_max, taints)
        for node in await world.listed("nodes")
        if fnmatchcase(node["metadata"]["name"], pattern)
    ]
    await world.create(slices)


def _slice(driver: str, node: str, devices_max: int, taints: list[JsonObject]) -> JsonObject:
    devices = []
    for number in range(devices_max):
        device: JsonObject = {
            "name": f"instance-{number}",
            "attributes": {
                "model": {"string": "A100"},
                "family": {"string": "GRACE"},
                "driverVersion": {"version": "1.2.3"},
                "dra.example.com/numa": {"int": number},
            },
            "capacity": {"memory": {"value": "1Gi"}},
        }
        if taints:
            device["taints"] = taints
        devices.append(device)
    return {
        "apiVersion": RESOURCE_VERSION,
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{driver}"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


async def allocate_claims(world: World, namespace: str) -> None:
    """Allocate to each claim of a namespace the next free device that its class selects.

    Raises CannotRunError for claims of more than one device.
    """
    classes = {c["metadata"]["name"]: c for c in await world.listed("deviceclasses")}
    free = [
        (slice_["spec"], device)
        for slice_ in await world.listed("resourceslices")
        for device in slice_["spec"].get("devices") or ()
    ]
    steps = []
    for claim in await world.listed("resourceclaims", namespace):
        requests = claim["spec"]["devices"]["requests"]
        exactly = requests[0].get("exactly") or {}
        if len(requests) != 1 or exactly.get("count", 1) != 1 or not exactly:
            raise CannotRunError("allocResourceClaims supports claims of one device only")
        device_class = classes.get(exactly["deviceClassName"])
        selectors = [
            *((device_class or {}).get("spec", {}).get("selectors") or ()),
            *(exactly.get("selectors") or ()),
        ]
        at = next((i for i, (spec, d) in enumerate(free) if _selects(selectors, spec, d)), None)
        if device_class is None or at is None:
            raise ValueError(f"no device is left for claim {claim['metadata']['name']}")
        spec, device = free.pop(at)
        body = {"status": {"allocation": _allocation(requests[0]["name"], spec, device)}}
        name = claim["metadata"]["name"]
        steps.append(partial(world.patch, "resourceclaims", namespace, name, body, "status"))
    await world.many(steps)


def _selects(selectors: list[JsonObject], spec: JsonObject, device: JsonObject) -> bool:
    shown = device_variable(spec["driver"], decode(Device, device))
    try:
        return all(
            compile_expression(selector["cel"]["expression"]).matches(shown)
            for selector in selectors
        )
    except CelError:
        return False


def _allocation(request: str, spec: JsonObject, device: JsonObject) -> dict[str, Any]:
    result = {
        "request": request,
        "driver": spec["driver"],
        "pool": spec["pool"]["name"],
        "device": device["name"],
    }
    allocation: dict[str, Any] = {"devices": {"results": [result]}}
    if spec.get("nodeName"):
        on_node = {"key": "metadata.name", "operator": "In", "values": [spec["nodeName"]]}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [on_node]}]}
    elif spec.get("nodeSelector"):
        allocation["nodeSelector"] = spec["nodeSelector"]
    return allocation
