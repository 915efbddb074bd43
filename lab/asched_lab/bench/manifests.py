"""New objects: names, namespaces, uids and the defaults that an API server fills in.

Both worlds make their objects here, so that the same workload file gives the same objects. Parts of
a parsed template are shared between the objects made of it and never changed.
"""

import random
from collections.abc import Iterator, Mapping
from typing import Any, Final

from asched import names

JsonObject = dict[str, Any]

SUFFIX_LENGTH: Final = 5
_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"

#: Fields of a pod's spec that the server or the scheduler set, and that no update may change.
RETAINED_BY_UPDATES: Final = (
    "nodeName",
    "schedulerName",
    "priority",
    "priorityClassName",
    "preemptionPolicy",
    "serviceAccountName",
    "serviceAccount",
)
#: Objects of createNodes and createPods that name no template.
DEFAULT_NODE: Final[JsonObject] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {},
    "spec": {},
    "status": {
        "capacity": {"pods": "110", "cpu": "4", "memory": "32Gi"},
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}
_DEFAULT_AMOUNTS: Final = {"cpu": "100m", "memory": "500Mi"}
DEFAULT_POD: Final[JsonObject] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "pod-"},
    "spec": {
        "containers": [
            {
                "name": "pause",
                "image": "registry.k8s.io/pause:3.10.1",
                "resources": {"limits": _DEFAULT_AMOUNTS, "requests": _DEFAULT_AMOUNTS},
            }
        ]
    },
}


class Names:
    """Names after `generateName`, the same ones for the same seed."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = random.Random(seed)
        self._given: set[str] = set()

    def suffixed(self, prefix: str) -> str:
        """A name that this object has not given out yet."""
        while True:
            name = prefix + "".join(self._rng.choices(_SUFFIX_LETTERS, k=SUFFIX_LENGTH))
            if name not in self._given:
                self._given.add(name)
                return name


def named(manifest: JsonObject, naming: Names, namespace: str = "") -> JsonObject:
    """The manifest with a name (generated if it has none) and, if given, in a namespace."""
    metadata = dict(manifest.get("metadata") or {})
    prefix = metadata.pop("generateName", "")
    if not metadata.get("name"):
        metadata["name"] = naming.suffixed(prefix or "object-")
    if namespace:
        metadata["namespace"] = namespace
    return {**manifest, "metadata": metadata}


def in_namespace(manifest: JsonObject, fallback: str) -> str:
    """The namespace of the operation, else of the manifest, else `default`."""
    return fallback or (manifest.get("metadata") or {}).get("namespace") or "default"


def served_version(manifest: JsonObject) -> JsonObject:
    """Beta versions of resource claims have the shape of the stable version, which is the one that
    is served.
    """
    if str(manifest.get("apiVersion", "")).startswith("resource.k8s.io/v1beta2"):
        return {**manifest, "apiVersion": "resource.k8s.io/v1"}
    return manifest


def scheduled_by(pod: JsonObject, scheduler_name: str) -> JsonObject:
    """The pod with our scheduler's name, unless it names another scheduler."""
    spec = pod.get("spec") or {}
    if spec.get("schedulerName") in (None, "", names.DEFAULT_SCHEDULER_NAME):
        return {**pod, "spec": {**spec, "schedulerName": scheduler_name}}
    return pod


def with_defaults(manifest: JsonObject) -> JsonObject:
    """Add what a real server adds and a scheduler reads: allocatable of nodes, requests that follow
    limits, the name of the scheduler.
    """
    kind = manifest.get("kind")
    if kind == "Node":
        return _default_node(manifest)
    if kind == "Pod":
        return _default_pod(manifest)
    if kind == "ResourceClaim":
        return {**manifest, "spec": _default_claim_spec(manifest["spec"])}
    if kind == "ResourceClaimTemplate":
        spec = manifest["spec"]
        return {**manifest, "spec": {**spec, "spec": _default_claim_spec(spec["spec"])}}
    return manifest


def _default_claim_spec(spec: JsonObject) -> JsonObject:
    """A request without a number of devices is for one device."""
    devices = spec.get("devices") or {}
    requests = []
    for request in devices.get("requests") or ():
        filled = dict(request)
        if filled.get("exactly"):
            filled["exactly"] = _default_request(filled["exactly"])
        if filled.get("firstAvailable"):
            filled["firstAvailable"] = [
                _default_request(request) for request in filled["firstAvailable"]
            ]
        requests.append(filled)
    return {**spec, "devices": {**devices, "requests": requests}}


def _default_request(request: JsonObject) -> JsonObject:
    if request.get("allocationMode", "ExactCount") != "ExactCount":
        return request
    return {"count": 1, **request, "allocationMode": "ExactCount"}


def _default_node(node: JsonObject) -> JsonObject:
    status = node.get("status") or {}
    if "allocatable" in status or "capacity" not in status:
        return node
    return {**node, "status": {**status, "allocatable": status["capacity"]}}


def _default_pod(pod: JsonObject) -> JsonObject:
    spec = dict(pod.get("spec") or {})
    spec.setdefault("schedulerName", names.DEFAULT_SCHEDULER_NAME)
    for member in ("containers", "initContainers"):
        if any((c.get("resources") or {}).get("limits") for c in spec.get(member) or ()):
            spec[member] = [_default_container(container) for container in spec[member]]
    return {**pod, "spec": spec, "status": pod.get("status") or {"phase": "Pending"}}


def _default_container(container: JsonObject) -> JsonObject:
    resources = container.get("resources") or {}
    limits = resources.get("limits") or {}
    requests = {**limits, **(resources.get("requests") or {})}
    return {**container, "resources": {**resources, "requests": requests}}


def matches(selector: Mapping[str, str] | None, labels: Mapping[str, str] | None) -> bool:
    """Whether labels match a selector; no selector matches everything."""
    if not selector:
        return True
    return labels is not None and all(labels.get(k) == v for k, v in selector.items())


def updated(old: JsonObject, manifest: JsonObject) -> JsonObject:
    """The object after an update (PUT): the manifest, with the fields that the server retains."""
    retained = {k: v for k, v in old["metadata"].items() if k not in ("labels", "annotations")}
    new = {**old, **manifest, "metadata": {**manifest["metadata"], **retained}}
    if manifest.get("kind") == "Pod":
        spec = {name: old["spec"][name] for name in RETAINED_BY_UPDATES if name in old["spec"]}
        tolerations = manifest["spec"].get("tolerations") or []
        spec["tolerations"] = [
            *tolerations,
            *(
                old_one
                for old_one in old["spec"].get("tolerations") or ()
                if old_one not in tolerations
            ),
        ]
        new["spec"] = {**manifest["spec"], **spec}
        new["status"] = old["status"]
    return new


def merged(target: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7396) applied; neither side is changed."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def claims_of(pod: JsonObject) -> Iterator[str]:
    """Names of the claims that were made for a pod and end with it."""
    status = pod.get("status") or {}
    for entry in status.get("resourceClaimStatuses") or ():
        yield entry.get("resourceClaimName", "")
    extended = status.get("extendedResourceClaimStatus") or {}
    if extended:
        yield extended.get("resourceClaimName", "")
