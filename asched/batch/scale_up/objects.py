"""Requests for new nodes, by gang, and their objects: PodTemplates, and a ProvisioningRequest that
names them.

A request has all pods of the gang that have to start, also those with room on existing nodes:
cluster-autoscaler uses this room first, too. Its name is derived from its content, so that a create
whose answer was lost is repeated without effect. Other clients can derive it, too: an object of the
name is asched's if its owner and its content are. The PodGroup owns all of these objects: they do
not outlive it. Labels in which equal pods differ, such as an index, are left out of their template.

Bounds  SETS_MAX templates: the API allows as many.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
import orjson

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.gang import kind_of, object_of
from asched.core.cluster.pod_groups import coscheduled_key
from asched.core.model.decode import decode
from asched.core.model.kinds import (
    COSCHEDULING_GROUP,
    POD_GROUP,
    POD_TEMPLATE,
    PROVISIONING_REQUEST,
    Kind,
)
from asched.core.model.pod import Pod, spec_key
from asched.core.model.provisioning import PodTemplate, ProvisioningRequest
from asched.names import PREFIX

Json = dict[str, Any]


class ScaleUp(msgspec.Struct, eq=False):
    """One request. `uid` is the group's, `until_s` in seconds of turns. `bodies` are not created
    yet.
    """

    key: str
    uid: str
    namespace: str
    name: str
    profile: str
    new_nodes: str
    until_s: float
    templates: int
    bodies: tuple[dict[str, Any], ...] = ()
    #: objects by number, as they were created; empty for a request of an earlier process
    made: dict[int, PodTemplate | ProvisioningRequest] = msgspec.field(default_factory=dict)
    write_s: float = -math.inf
    is_writing: bool = False
    #: whether the watch has shown it; whether its end was seen, or it was refused
    is_seen: bool = False
    is_over: bool = False
    #: whether the autoscaler ended it: it failed, or its nodes were not used in time
    is_unfulfilled: bool = False

    @property
    def object_key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def nodes(self) -> int:
        """The number of new nodes, as in `new_nodes`; 1 if that is not known."""
        count = self.new_nodes.partition(" ")[0]
        return int(count) if count.isascii() and count.isdigit() else 1

    def name_of(self, number: int) -> str:
        """The name of one of its objects, of which the last one is the request."""
        return self.name if number == self.templates else template_name(self.name, number)

    @property
    def text(self) -> str:
        """What the conditions of the gang say about it."""
        what = f"{self.new_nodes} (ProvisioningRequest {self.name})"
        return f"; new nodes are requested for the gang: {what}"

    @property
    def end_text(self) -> str:
        """What the conditions of the gang say until the next request. Empty: autoscalers may add
        nodes for single pods, since none has handled the request.
        """
        what = f"{self.new_nodes} were requested without success"
        return f"; {what}; the next request follows a pause" if self.is_unfulfilled else ""


CLASS_NAME: Final = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
VALID_UNTIL_SECONDS: Final = "ValidUntilSeconds"
#: The label of asched's requests, and their annotations: the profile that made it, and how many new
#: nodes of which shape it needs.
LABEL: Final = f"{PREFIX}/group-scale-up"
PROFILE: Final = f"{PREFIX}/scheduler-name"
NEW_NODES: Final = f"{PREFIX}/new-nodes"
SETS_MAX: Final = 32
#: Fields of a pod's spec that its template must not have.
OF_PODS: Final = ("nodeName", "schedulingGates", "schedulingGroup", "activeDeadlineSeconds")
MERGED: Final = ("matchLabelKeys", "mismatchLabelKeys")
#: Of a container; an init container may have the second.
RESTARTS: Final = ("restartPolicyRules", "restartPolicy")
#: Pods whose specs are compared in one part.
PODS_AT_ONCE: Final = 64


class PodSets(msgspec.Struct):
    """Equal pods, labels aside: a pod of each set, the labels that all have, and their number."""

    by_spec: dict[bytes, tuple[Pod, dict[str, str], int]] = msgspec.field(default_factory=dict)

    def collect(self, pods: Sequence[Pod]) -> Iterator[None]:
        """Add pods, in parts."""
        for number, pod in enumerate(pods, 1):
            key = spec_key(pod, pods[0])
            like, labels, count = self.by_spec.get(key) or (pod, dict(pod.labels), 0)
            common = {
                name: value for name, value in labels.items() if pod.labels.get(name) == value
            }
            self.by_spec[key] = like, common, count + 1
            if not number % PODS_AT_ONCE:
                yield


def bodies(
    cluster: Cluster, key: str, sets: PodSets, *, profile: str, new_nodes: str, valid_s: int
) -> tuple[Json, ...]:
    """The bodies of all objects, the request last. `key` is that of the group, which exists."""
    group, kind = object_of(cluster, key), kind_of(key)
    templates = [
        ({"metadata": {"labels": labels}, "spec": _spec(pod)}, count)
        for pod, labels, count in sets.by_spec.values()
    ]
    text = orjson.dumps((group.metadata.uid, templates), option=orjson.OPT_SORT_KEYS)
    name = f"asched-{hashlib.sha256(text).hexdigest()[:16]}"
    owner = {
        "apiVersion": cluster.served_kind(kind).group_version,
        "kind": kind.name,
        "name": group.metadata.name,
        "uid": group.metadata.uid,
    }
    shared = {
        "namespace": group.metadata.namespace,
        "labels": {LABEL: "true"},
        "ownerReferences": [owner],
    }
    pod_templates = [
        _body(POD_TEMPLATE, {"name": template_name(name, number), **shared}, template=template)
        for number, (template, _) in enumerate(templates)
    ]
    spec = {
        "provisioningClassName": CLASS_NAME,
        "parameters": {VALID_UNTIL_SECONDS: str(valid_s)},
        "podSets": [
            {"podTemplateRef": {"name": template_name(name, number)}, "count": count}
            for number, (_, count) in enumerate(templates)
        ],
    }
    notes = {PROFILE: profile, NEW_NODES: new_nodes}
    metadata = {"name": name, **shared, "annotations": notes}
    return (*pod_templates, _body(cluster.served_kind(PROVISIONING_REQUEST), metadata, spec=spec))


def _body(kind: Kind, metadata: Json, **content: Json) -> Json:
    head = {"apiVersion": kind.group_version, "kind": kind.name}
    return {**head, "metadata": metadata, **content}


def template_name(request: str, number: int) -> str:
    return f"{request}-{number}"


def is_owned(stored: PodTemplate | ProvisioningRequest, uid: str) -> bool:
    """Whether the group with this uid owns an object."""
    return any(owner.uid == uid for owner in stored.metadata.owner_references or ())


def has_content(stored: PodTemplate | ProvisioningRequest, body: Json) -> bool:
    """Whether an object is what its create asked for."""
    if isinstance(stored, PodTemplate):
        return has_template(stored, decode(PodTemplate, body))
    return decode(ProvisioningRequest, body).spec == stored.spec


def has_template(stored: PodTemplate, made: PodTemplate) -> bool:
    """Whether two templates make equal pods."""
    new, old = stored.template, made.template
    return new.spec == old.spec and (new.metadata.labels or {}) == (old.metadata.labels or {})


def profile_of(request: ProvisioningRequest) -> str:
    """The profile that made a request; empty for requests of other clients."""
    metadata = request.metadata
    if LABEL not in (metadata.labels or ()) or request.spec.provisioning_class_name != CLASS_NAME:
        return ""
    return (metadata.annotations or {}).get(PROFILE, "")


def group_of(request: ProvisioningRequest) -> tuple[str, str]:
    """(key, uid) of the group that owns a request; empty without one."""
    for owner in request.metadata.owner_references or ():
        name = f"{request.metadata.namespace}/{owner.name}"
        for kind in (COSCHEDULING_GROUP, POD_GROUP):
            group = kind.group_version.partition("/")[0]
            if owner.kind == kind.name and owner.api_version.partition("/")[0] == group:
                is_label = kind is COSCHEDULING_GROUP
                return coscheduled_key(name) if is_label else name, owner.uid
    return "", ""


def _spec(pod: Pod) -> Json:
    """The parts of a pod's spec that decide where it fits, as a template may have them. The API
    server has added the keys of `matchLabelKeys` to the selectors, and refuses a template with
    both.
    """
    claim = "persistentVolumeClaim"
    spec: Json = {k: v for k, v in msgspec.to_builtins(pod.spec).items() if k not in OF_PODS}
    for name in ("affinity", "topologySpreadConstraints"):
        if name in spec:
            spec[name] = _without(spec[name], MERGED)
    for name, dropped in (("containers", RESTARTS), ("initContainers", RESTARTS[:1])):
        if name in spec:
            spec[name] = [_without(container, dropped) for container in spec[name]]
    volumes = [volume for volume in spec.pop("volumes", ()) if claim in volume]
    if volumes:
        spec["volumes"] = [{"name": v["name"], claim: v[claim]} for v in volumes]
    return spec


def _without(part: Any, names: Sequence[str]) -> Any:
    """A copy of JSON without these fields."""
    if isinstance(part, dict):
        return {k: _without(v, names) for k, v in part.items() if k not in names}
    return [_without(each, names) for each in part] if isinstance(part, list | tuple) else part
