"""What an API server and its controllers do for an instance: claims are made from templates, writes
of a scheduler are carried out, volumes are bound and made.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from itertools import count
from typing import Any

from asched.core.cluster.facts import Done, Fact, Refused, Seen
from asched.core.framework.effects import Effect, Patch
from asched.core.model.decode import decode
from asched.core.model.kinds import (
    KINDS,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    RESOURCE_CLAIM,
    Kind,
)
from tests.gangs.instances import Instance

Json = dict[str, Any]
SELECTED = "volume.kubernetes.io/selected-node"
FOLLOWED = (RESOURCE_CLAIM, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM)


def complete(instance: Instance) -> None:
    """Claims from templates that nobody made so far, for pods as they are."""
    templates = {o["metadata"]["name"]: o for o in instance.objects if _is_template(o)}
    instance.objects = [o for o in instance.objects if not _is_template(o)]
    for pod in instance.pods:
        told = pod.setdefault("status", {}).setdefault("resourceClaimStatuses", [])
        known = {one["name"] for one in told}
        for reference in pod["spec"].get("resourceClaims") or ():
            template = reference.get("resourceClaimTemplateName")
            if template is None or reference["name"] in known:
                continue
            name = f"{pod['metadata']['name']}-{reference['name']}"
            told.append({"name": reference["name"], "resourceClaimName": name})
            owner = {"kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
            metadata = {"name": name, "namespace": pod["metadata"]["namespace"]}
            metadata |= {"uid": f"uid-{name}", "resourceVersion": "1"}
            made = {"metadata": {**metadata, "ownerReferences": [{**owner, "controller": True}]}}
            spec = deepcopy(templates[template]["spec"]["spec"])
            instance.objects.append({"kind": "ResourceClaim", **made, "spec": spec})


def _is_template(one: Json) -> bool:
    return bool(one["kind"] == "ResourceClaimTemplate")


class Api:
    """The objects of an instance, as they become."""

    def __init__(self, instance: Instance) -> None:
        self.objects = {_key(one): deepcopy(one) for one in instance.objects}
        self._versions = count(2)

    def answers(self, effects: list[Effect]) -> list[Fact]:
        """What a scheduler hears of its writes, and sees happen."""
        facts: list[Fact] = []
        for effect in effects:
            if isinstance(effect, Patch) and effect.kind in FOLLOWED:
                facts += self._patched(effect)
        return facts

    def _patched(self, effect: Patch) -> Iterator[Fact]:
        known = self.objects.get((effect.kind.name, effect.name))
        if known is None:
            yield Refused(effect.id, 404, f'"{effect.name}" not found')
            return
        wanted = effect.body.get("metadata", {}).get("resourceVersion", "")
        if wanted not in ("", known["metadata"].get("resourceVersion", "")):
            yield Refused(effect.id, 409, "the object has been modified")
            return
        merge(known, effect.body)
        yield Done(effect.id, self._stored(known))
        yield _seen(effect.kind, known)
        ref = known["spec"].get("claimRef")
        if effect.kind is PERSISTENT_VOLUME and ref:
            yield from self._bound(ref["name"], known)
        node = known["metadata"].get("annotations", {}).get(SELECTED)
        if effect.kind is PERSISTENT_VOLUME_CLAIM and node and not known["spec"].get("volumeName"):
            volume = self._made(known, node)
            yield _seen(PERSISTENT_VOLUME, volume)
            yield from self._bound(effect.name, volume)

    def _stored(self, one: Json) -> Json:
        one["metadata"]["resourceVersion"] = str(next(self._versions))
        return deepcopy(one)

    def _bound(self, name: str, volume: Json) -> Iterator[Fact]:
        claim = self.objects["PersistentVolumeClaim", name]
        claim["spec"]["volumeName"] = volume["metadata"]["name"]
        annotations = claim["metadata"].setdefault("annotations", {})
        annotations["pv.kubernetes.io/bind-completed"] = "yes"
        claim["status"]["phase"] = "Bound"
        self._stored(claim)
        yield _seen(PERSISTENT_VOLUME_CLAIM, claim)

    def _made(self, claim: Json, node: str) -> Json:
        name = f"made-for-{claim['metadata']['name']}"
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        terms = {"required": {"nodeSelectorTerms": [{"matchFields": [field]}]}}
        spec = {"nodeAffinity": terms, "accessModes": claim["spec"]["accessModes"]}
        spec["capacity"] = claim["spec"]["resources"]["requests"]
        spec["storageClassName"] = claim["spec"]["storageClassName"]
        made = {"kind": "PersistentVolume", "metadata": {"name": name, "uid": f"uid-{name}"}}
        self.objects["PersistentVolume", name] = {**made, "spec": spec}
        self._stored(self.objects["PersistentVolume", name])
        return self.objects["PersistentVolume", name]


def merge(into: Json, patch: Mapping[str, Any]) -> None:
    """RFC 7396."""
    for key, value in patch.items():
        if value is None:
            into.pop(key, None)
        elif isinstance(value, Mapping):
            if not isinstance(into.get(key), dict):
                into[key] = {}
            merge(into[key], value)
        else:
            into[key] = deepcopy(value)


def _key(one: Json) -> tuple[str, str]:
    return one["kind"], one["metadata"]["name"]


def _seen(kind: Kind, one: Json) -> Seen:
    return Seen(kind, decode(kind.record, one))


def seen(one: Json) -> Seen:
    """Raises KeyError for a kind that no scheduler follows."""
    return _seen({kind.name: kind for kind in KINDS}[one["kind"]], one)
