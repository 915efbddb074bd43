"""Stand-ins for the kubelet and controllers that a scheduler depends on: immediate, no faults.

    kubelet                    a deleted pod is gone
    ReplicaSet, Job, ...       a deleted pod is recreated if its controller would do so
    volumes                    a claim that names a node, or binds immediately, gets a volume
    resource claims            made from the templates of pods, freed and deleted with them

A provisioned volume reaches the zone of its node, or the node itself where it is in no zone: the
topology that its driver would report is not known.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from asched.core.model.claim import FINALIZER
from asched.core.model.storage import BETA_CLASS, BIND_COMPLETED, SELECTED_NODE
from asched.names import LABEL_HOSTNAME
from asched_lab.apiserver.context import DELETED, Change
from asched_lab.apiserver.resources import NODES, PODS, find
from asched_lab.whatif.objects import Json
from asched_lab.whatif.store import RefusedError, Store

CLAIMS: Final = find("persistentvolumeclaims")
VOLUMES: Final = find("persistentvolumes")
STORAGE_CLASSES: Final = find("storageclasses")
RESOURCE_CLAIMS: Final = find("resourceclaims")
TEMPLATES: Final = find("resourceclaimtemplates")
ZONE: Final = "topology.kubernetes.io/zone"
#: Provisioners that provision nothing.
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
#: Controllers that recreate a deleted pod. A DaemonSet's pods belong to their node.
KEEPERS: Final = ("ReplicaSet", "ReplicationController", "StatefulSet", "Job")
#: Set by the claim template controller on claims it made.
POD_CLAIM: Final = "resource.kubernetes.io/pod-claim-name"


class Hands:
    """They follow the store, and act when `work` is called.

    `went`: keys of pods deleted since the start, with the keys of the pods made in their place.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._due: list[Callable[[], None]] = []
        self.went: dict[str, str] = {}
        store.listen(PODS, self._see_pod)
        store.listen(CLAIMS, self._see_claim)
        store.listen(VOLUMES, self._see_volume)
        for claim in store.listed(CLAIMS):
            self._later(self._sync_claim, claim)
        for pod in store.listed(PODS):
            if pod["metadata"].get("deletionTimestamp"):
                self._later(self._end_pod, pod)
            elif not pod["spec"].get("nodeName"):
                self._later(self._make_claims, pod)

    def work(self) -> None:
        """Do all due work, and the work that follows from it."""
        while self._due:
            self._due.pop(0)()

    def _later(self, step: Callable[[Json], None], obj: Json) -> None:
        self._due.append(lambda: step(obj))

    # --- pods ------------------------------------------------------------------------------------

    def _see_pod(self, change: Change) -> None:
        pod = change.new.obj
        if change.type == DELETED:
            self._later(self._pod_went, pod)
        elif pod["metadata"].get("deletionTimestamp"):
            self._later(self._end_pod, pod)
        elif change.old is None and pod["spec"].get("resourceClaims"):
            self._later(self._make_claims, pod)

    def _end_pod(self, pod: Json) -> None:
        self._store.remove(PODS, pod)

    def _pod_went(self, pod: Json) -> None:
        self._free_claims(pod)
        made = recreated(pod, self._store)
        self.went[_key(pod)] = "" if made is None else _key(self._store.put(PODS, made))

    # --- resource claims -------------------------------------------------------------------------

    def _make_claims(self, pod: Json) -> None:
        """Make claims of existing templates; without them the scheduler rejects the pod."""
        now = self._store.get(PODS, pod["metadata"]["namespace"], pod["metadata"]["name"])
        if now is None:
            return
        known = {claim["name"] for claim in now["status"].get("resourceClaimStatuses") or ()}
        made = []
        for wanted in now["spec"].get("resourceClaims") or ():
            template = self._store.get(
                TEMPLATES,
                now["metadata"]["namespace"],
                wanted.get("resourceClaimTemplateName") or "",
            )
            if template is None or wanted["name"] in known:
                continue
            made.append({"name": wanted["name"], "resourceClaimName": self._claim(now, template)})
        if made:
            statuses = [*(now["status"].get("resourceClaimStatuses") or ()), *made]
            status = {**now["status"], "resourceClaimStatuses": statuses}
            self._store.put(PODS, {**now, "status": status})

    def _claim(self, pod: Json, template: Json) -> str:
        namespace = pod["metadata"]["namespace"]
        base = f"{pod['metadata']['name']}-{template['metadata']['name']}"
        metadata = {
            "generateName": f"{base[:200]}-",
            "namespace": namespace,
            "annotations": {POD_CLAIM: template["metadata"]["name"]},
            "ownerReferences": [_owned_by(pod)],
        }
        try:
            claim = {"metadata": metadata, "spec": template["spec"].get("spec") or {}}
            made = self._store.create(RESOURCE_CLAIMS, claim, namespace)
        except RefusedError:
            return ""
        return str(made["metadata"]["name"])

    def _free_claims(self, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        for claim in self._store.listed(RESOURCE_CLAIMS):
            if claim["metadata"].get("namespace") != pod["metadata"]["namespace"]:
                continue
            if any(o["uid"] == uid for o in claim["metadata"].get("ownerReferences") or ()):
                self._store.remove(RESOURCE_CLAIMS, claim)
                continue
            status = claim.get("status") or {}
            users = status.get("reservedFor") or []
            left = [user for user in users if user.get("uid") != uid]
            if len(left) < len(users):
                self._store.put(RESOURCE_CLAIMS, _reserved(claim, left))

    # --- volumes ---------------------------------------------------------------------------------

    def _see_claim(self, change: Change) -> None:
        if change.type != DELETED:
            self._later(self._sync_claim, change.new.obj)

    def _see_volume(self, change: Change) -> None:
        owner = change.new.obj["spec"].get("claimRef") or {}
        if change.type != DELETED and owner:
            claim = self._store.get(CLAIMS, owner.get("namespace", ""), owner.get("name", ""))
            if claim is not None:
                self._later(self._sync_claim, claim)

    def _sync_claim(self, claim: Json) -> None:
        metadata = claim["metadata"]
        now = self._store.get(CLAIMS, metadata["namespace"], metadata["name"])
        if now is None or now["spec"].get("volumeName"):
            return
        uid = now["metadata"].get("uid")
        for volume in self._store.listed(VOLUMES):
            owner = volume["spec"].get("claimRef") or {}
            if uid and owner.get("uid") == uid:
                self._bind(now, volume)
                return
        annotations = now["metadata"].get("annotations") or {}
        name = now["spec"].get("storageClassName") or annotations.get(BETA_CLASS) or ""
        storage_class = self._store.get(STORAGE_CLASSES, "", name)
        if storage_class is None or storage_class.get("provisioner") == NO_PROVISIONER:
            return
        waits = storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"
        node = annotations.get(SELECTED_NODE, "")
        if node or not waits:
            made = _volume(now, name, self._reach(node))
            self._bind(now, self._store.put(VOLUMES, made))

    def _reach(self, node: str) -> Json:
        """Node labels that a volume made for a node requires."""
        known = self._store.get(NODES, "", node) if node else None
        labels = (known or {"metadata": {}})["metadata"].get("labels") or {}
        for key in (ZONE, LABEL_HOSTNAME):
            if key in labels:
                return {key: labels[key]}
        return {}

    def _bind(self, claim: Json, volume: Json) -> None:
        status = {**volume.get("status", {}), "phase": "Bound"}
        self._store.put(VOLUMES, {**volume, "status": status})
        metadata = claim["metadata"]
        annotations = {**(metadata.get("annotations") or {}), BIND_COMPLETED: "yes"}
        self._store.put(
            CLAIMS,
            {
                **claim,
                "metadata": {**metadata, "annotations": annotations},
                "spec": {**claim["spec"], "volumeName": volume["metadata"]["name"]},
                "status": {**claim.get("status", {}), "phase": "Bound"},
            },
        )


def recreated(pod: Json, store: Store) -> Json | None:
    """The pod that its controller makes in place of a deleted pod; None if there is no such
    controller.
    """
    metadata = pod["metadata"]
    owner = next((o for o in metadata.get("ownerReferences") or () if o.get("controller")), None)
    if owner is None or owner.get("kind") not in KEEPERS:
        return None
    identity = store.new_identity(f"{owner['name']}-")
    if owner["kind"] == "StatefulSet":
        identity["name"] = metadata["name"]
    kept = {
        name: metadata[name]
        for name in ("namespace", "labels", "annotations", "ownerReferences")
        if name in metadata
    }
    spec = {name: value for name, value in pod["spec"].items() if name != "nodeName"}
    return {"metadata": {**kept, **identity}, "spec": spec, "status": {"phase": "Pending"}}


def _reserved(claim: Json, users: list[Any]) -> Json:
    """The claim reserved for these users; without users its devices are free."""
    status = {**claim.get("status", {}), "reservedFor": users}
    if users:
        return {**claim, "status": status}
    status = {n: v for n, v in status.items() if n not in ("reservedFor", "allocation")}
    metadata = dict(claim["metadata"])
    metadata["finalizers"] = [f for f in metadata.get("finalizers") or () if f != FINALIZER]
    return {**claim, "metadata": metadata, "status": status}


def _volume(claim: Json, storage_class: str, reach: Mapping[str, str]) -> Json:
    metadata = claim["metadata"]
    name = f"pvc-{metadata['uid']}"
    asked = (claim["spec"].get("resources") or {}).get("requests") or {}
    spec: Json = {
        "storageClassName": storage_class,
        "capacity": {"storage": asked.get("storage", "0")},
        "accessModes": claim["spec"].get("accessModes") or [],
        "claimRef": {
            "kind": "PersistentVolumeClaim",
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
        },
    }
    if reach:
        terms = [{"key": k, "operator": "In", "values": [v]} for k, v in reach.items()]
        selector = {"nodeSelectorTerms": [{"matchExpressions": terms}]}
        spec["nodeAffinity"] = {"required": selector}
    return {"metadata": {"name": name, "uid": name}, "spec": spec, "status": {}}


def _owned_by(pod: Json) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod["metadata"]["name"],
        "uid": pod["metadata"]["uid"],
        "controller": True,
    }


def _key(obj: Json) -> str:
    return f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"
