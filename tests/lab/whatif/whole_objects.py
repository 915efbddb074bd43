"""Objects with every field of their type, made from the lab's tables of types, and variations."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

from asched_lab.apiserver.resources import BY_KIND
from asched_lab.apiserver.schema import TYPES, Field, type_name
from asched_lab.whatif.objects import ADMISSION, CONTROLLERS, WATCHED

Json = dict[str, Any]
Path = tuple[str | int, ...]

#: Every kind that the lab reads and its API server serves.
KINDS: Final = [
    key for key in dict.fromkeys((*WATCHED, *ADMISSION, *CONTROLLERS)) if key in BY_KIND
]
SCALARS: Final = {
    "str": "x",
    "bool": True,
    "int32": 1,
    "int64": 1,
    "qty": "1",
    "amount": "1",
    "time": "2026-01-01T00:00:00Z",
    "micro": "2026-01-01T00:00:00.000000Z",
    "ios": 1,
    "any": {},
}
#: Values that rules restrict, by the field or by its type and name.
VALUES: Final = {
    "SelectorRequirement.operator": "In",
    "ScopeRequirement.operator": "In",
    "Toleration.operator": "Equal",
    "DeviceToleration.operator": "Equal",
    "Toleration.effect": "NoExecute",
    "DeviceToleration.effect": "NoExecute",
    "Taint.effect": "NoSchedule",
    "whenUnsatisfiable": "DoNotSchedule",
    "nodeAffinityPolicy": "Honor",
    "nodeTaintsPolicy": "Honor",
    "PodSpec.restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "imagePullPolicy": "Always",
    "preemptionPolicy": "PreemptLowerPriority",
    "priorityClassName": "",
    "priority": 0,
    "PodSpec.nodeName": "",
    "schedulingGates": None,
    "OwnerReference.kind": "ReplicaSet",
    "PodStatus.phase": "Pending",
    "PodSpec.overhead": {},
    "runtimeClassName": "",
    "ContainerPort.hostPort": 1,
    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
    "completionMode": "Indexed",
    "suspend": False,
    "managedBy": None,
    "selector": {"matchLabels": {"x": "x"}},
    "ServiceSpec.selector": {"x": "x"},
    "ReplicationControllerSpec.selector": {"x": "x"},
    "accessModes": ["ReadWriteOnce"],
    "resourceVersion": "",
    "finalizers": [],
    "deletionTimestamp": None,
    "StatefulSetSpec.serviceName": "x",
    "volumeBindingMode": "WaitForFirstConsumer",
    "LimitRangeItem.type": "Container",
    "VolumeResources.requests": {"storage": "1"},
    "ResourceRequirements.requests": {"cpu": "1"},
    "ResourceRequirements.limits": {"cpu": "1"},
    "NodeStatus.allocatable": {"cpu": "4", "memory": "4Gi", "pods": "99"},
    "maxUnavailable": None,
    "mismatchLabelKeys": ["y"],
    "allocationMode": "ExactCount",
}
#: Fields that rules require, although a server does not fill them in.
NEEDED: Final = frozenset({"Container.image", "SelectorRequirement.values"})
#: Types that contain themselves, or repeat a pod's many fields: their parts are tested by the Pod.
SHORT: Final = {
    "PodTemplateSpec": {
        "metadata": {"labels": {"x": "x"}},
        "spec": {"containers": [{"name": "x", "image": "x"}]},
    },
    "VolumeAttachmentSource": {"persistentVolumeName": "x"},
    "ObjectMeta": {"name": "x"},
}


def whole(key: tuple[str, str]) -> Json:
    """An object of the kind with every field of its type. A type that occurs several times has all
    its fields at the first place, and those that a server always has at the others.
    """
    maker = _Maker()
    meta, body = maker.struct("ObjectMeta"), maker.struct(type_name(BY_KIND[key]))
    meta |= {"name": "x", "namespace": "default"}
    if not BY_KIND[key].namespaced:
        del meta["namespace"]
    return {"apiVersion": key[0], "kind": key[1], **body, "metadata": meta}


class _Maker:
    def __init__(self) -> None:
        self._made = set[str]()

    def struct(self, name: str) -> Json:
        is_first = name not in self._made
        self._made.add(name)
        made = {
            field.name: self._value(name, field)
            for field in TYPES[name].values()
            if is_first or field.always or f"{name}.{field.name}" in NEEDED
        }
        return {name: value for name, value in made.items() if value is not None}

    def _value(self, type_text: str, field: Field) -> Any:
        for known in (f"{type_text}.{field.name}", field.name):
            if known in VALUES:
                return deepcopy(VALUES[known])
        return self._of_form(field.form)

    def _of_form(self, form: str) -> Any:
        if form.startswith("["):
            return [self._of_form(form[1:-1])]
        if form.startswith("{"):
            return {"x": self._of_form(form[1:-1])}
        if form in SHORT:
            return deepcopy(SHORT[form])
        return deepcopy(SCALARS[form]) if form in SCALARS else self.struct(form)


def paths(value: Any, inside: Path = ()) -> Iterator[Path]:
    """The path of every field, at every depth."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield (*inside, name)
            yield from paths(item, (*inside, name))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from paths(item, (*inside, number))


def forms(key: tuple[str, str]) -> list[tuple[Path, str]]:
    """Path and form of each field of the whole object whose type no earlier kind has."""
    seen: set[str] = set()
    for earlier in KINDS[: KINDS.index(key)]:
        seen |= {of for _, _, of in _forms(whole(earlier), type_name(BY_KIND[earlier]), (), "")}
    found = _forms(whole(key), type_name(BY_KIND[key]), (), "")
    return [(path, form) for path, form, of in found if path and form != "any" and of not in seen]


def _forms(value: Any, form: str, path: Path, of: str) -> Iterator[tuple[Path, str, str]]:
    """(path, form, the type that it is a field of)."""
    yield path, form, of
    if form.startswith("["):
        for number, item in enumerate(value):
            yield from _forms(item, form[1:-1], (*path, number), of)
    elif form.startswith("{"):
        for name, item in value.items():
            yield from _forms(item, form[1:-1], (*path, name), of)
    elif form in TYPES:
        for name, item in value.items():
            if name in TYPES[form]:
                yield from _forms(item, TYPES[form][name].form, (*path, name), form)


def without(obj: Json, path: Path) -> Json:
    """The object without one field."""
    made = deepcopy(obj)
    del _at(made, path[:-1])[path[-1]]
    return made


def with_value(obj: Json, path: Path, value: Any) -> Json:
    made = deepcopy(obj)
    _at(made, path[:-1])[path[-1]] = value
    return made


def only(key: tuple[str, str], path: Path, value: Any) -> Json:
    """An object with a name and this field alone."""
    made = value
    for step in reversed(path):
        made = [made] if isinstance(step, int) else {step: made}
    metadata = made.get("metadata", {})
    if isinstance(metadata, dict):
        made["metadata"] = {"name": "x", **metadata}
    return {"apiVersion": key[0], "kind": key[1], **made}


def _at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def written(path: Path) -> str:
    """A path as messages write it."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".")
