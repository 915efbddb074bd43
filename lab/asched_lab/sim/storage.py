"""Volumes of a simulated cluster: their drivers and controllers.

A volume that names a claim is bound to it; a claim that names a node gets a volume provisioned for
that node, or, while faults are in force, loses its node again because the driver failed. Changing
the claim of a volume breaks a rule, and so does a pod on a node that its volume does not reach.
"""

import random
from collections.abc import Sequence
from typing import Any, Final

from asched.core.framework.effects import Bind
from asched.core.model.storage import BIND_COMPLETED, SELECTED_NODE
from asched_lab.apiserver.context import DELETED, Change, Key
from asched_lab.apiserver.resources import find
from asched_lab.sim.world import World

Json = dict[str, Any]

CLAIMS: Final = find("persistentvolumeclaims")
VOLUMES: Final = find("persistentvolumes")
SYNC_S_MAX: Final = 3.0
#: Share of volumes that the driver cannot provision while faults are in force.
FAILING: Final = 0.3
HOST: Final = "kubernetes.io/hostname"


class Storage:
    """Follows the store."""

    def __init__(self, world: World, making_s_max: float = 0.0) -> None:
        """`making_s_max`: the driver's longest time for a volume."""
        self._world = world
        self._making_s_max = making_s_max
        self._ctx = world.server.ctx
        self._rng = random.Random(world.rng.random())
        store = world.server.store
        store.table(CLAIMS.storage).listeners.append(self._see_claim)
        store.table(VOLUMES.storage).listeners.append(self._see_volume)
        world.on_bound.append(self._check_volumes)
        for name, driver in (
            ("local", "kubernetes.io/no-provisioner"),
            ("made", "csi.example.com"),
        ):
            world.server.create(
                "storageclasses",
                {
                    "metadata": {"name": name},
                    "provisioner": driver,
                    "volumeBindingMode": "WaitForFirstConsumer",
                },
            )

    def add_local_volume(self, node: str) -> None:
        """A disk in a node, for any claim; the controller makes it available."""
        name = f"disk-{next(self._world.numbers)}"
        made = self._world.server.create("persistentvolumes", _volume(name, "local", node))
        self._ctx.put(VOLUMES, {**made, "status": {**made["status"], "phase": "Available"}})

    def add_claim(self, name: str, namespace: str = "default") -> str:
        """Create a claim of one of the two classes; return its name."""
        self._world.server.create(
            "persistentvolumeclaims",
            {
                "metadata": {"name": name, "namespace": namespace},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": self._rng.choice(("local", "made", "made")),
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            },
        )
        return name

    def mount(self, pod: Json, names: Sequence[str]) -> None:
        """Create these claims for a pod."""
        claims = [self.add_claim(name, pod["metadata"]["namespace"]) for name in names]
        pod["spec"]["volumes"] = [
            {"name": f"data-{n}", "persistentVolumeClaim": {"claimName": claim}}
            for n, claim in enumerate(claims)
        ]

    def _check_volumes(self, bind: Bind) -> None:
        """Complain about a pod that was bound without its volumes."""
        complain = self._world.ledger.complain
        pod = self._world.server.get("pods", bind.pod.namespace, bind.pod.name)
        for volume in (pod or {"spec": {}})["spec"].get("volumes") or ():
            name = volume["persistentVolumeClaim"]["claimName"]
            claim = self._world.server.get("persistentvolumeclaims", bind.pod.namespace, name)
            bound_to = claim["spec"].get("volumeName", "") if claim is not None else ""
            made = self._world.server.get("persistentvolumes", "", bound_to) if bound_to else None
            if made is not None and _node_of(made) != bind.node:
                self._world.ledger.complain(
                    f"pod {bind.pod.key} on {bind.node}: {bound_to} is elsewhere"
                )
            if claim is not None and not bound_to:
                complain(f"pod {bind.pod.key} was bound before its claim {name}")

    # --- events ----------------------------------------------------------------------------------

    def _see_claim(self, change: Change) -> None:
        if change.type != DELETED:
            self._later(change.new.key)

    def _see_volume(self, change: Change) -> None:
        before = ((change.old.obj if change.old else {}).get("spec") or {}).get("claimRef") or {}
        after = change.new.obj["spec"].get("claimRef") or {}
        was, now = before.get("uid"), after.get("uid")
        if was and now and was != now:
            self._world.ledger.complain(f"volume {change.new.key[1]} was taken from its claim")
        if after and change.type != DELETED:
            self._later((after["namespace"], after["name"]))

    def _later(self, key: Key) -> None:
        self._world.clock.after(self._rng.uniform(0.0, SYNC_S_MAX), lambda: self._sync(key))

    # --- actions ---------------------------------------------------------------------------------

    def _sync(self, key: Key) -> None:
        record = self._ctx.get(CLAIMS, *key)
        if record is None or record.obj["spec"].get("volumeName"):
            return
        claim = record.obj
        uid = claim["metadata"]["uid"]
        for volume in self._world.server.list("persistentvolumes"):
            if (volume["spec"].get("claimRef") or {}).get("uid") == uid:
                self._bind(claim, volume)
                return
        node = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
        if node and claim["spec"]["storageClassName"] == "made":
            wait_s = self._rng.uniform(0.0, self._making_s_max)
            self._world.clock.after(wait_s, lambda: self._make_if_wanted(key, node))

    def _make_if_wanted(self, key: Key, node: str) -> None:
        """Provision the volume; a claim that was bound or deleted meanwhile is skipped."""
        record = self._ctx.get(CLAIMS, *key)
        if record is None or record.obj["spec"].get("volumeName"):
            return
        name = f"pvc-{record.obj['metadata']['uid']}"
        if self._world.server.get("persistentvolumes", "", name) is not None:
            return
        if (record.obj["metadata"].get("annotations") or {}).get(SELECTED_NODE) == node:
            self._make(record.obj, node)

    def _bind(self, claim: Json, volume: Json) -> None:
        status = {**volume.get("status", {}), "phase": "Bound"}
        self._ctx.put(VOLUMES, {**volume, "status": status})
        metadata = claim["metadata"]
        annotations = {**(metadata.get("annotations") or {}), BIND_COMPLETED: "yes"}
        self._ctx.put(
            CLAIMS,
            {
                **claim,
                "metadata": {**metadata, "annotations": annotations},
                "spec": {**claim["spec"], "volumeName": volume["metadata"]["name"]},
                "status": {**claim.get("status", {}), "phase": "Bound"},
            },
        )

    def _make(self, claim: Json, node: str) -> None:
        metadata = claim["metadata"]
        exists = self._world.server.get("nodes", "", node) is not None
        if not exists or (self._world.active_faults.is_on and self._rng.random() < FAILING):
            rest = {k: v for k, v in metadata["annotations"].items() if k != SELECTED_NODE}
            self._ctx.put(CLAIMS, {**claim, "metadata": {**metadata, "annotations": rest}})
            return
        volume = _volume(f"pvc-{metadata['uid']}", "made", node)
        volume["spec"]["claimRef"] = {
            "kind": "PersistentVolumeClaim",
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
        }
        self._world.server.create("persistentvolumes", volume)


def _volume(name: str, storage_class: str, node: str) -> Json:
    expression = {"key": HOST, "operator": "In", "values": [node]}
    return {
        "metadata": {"name": name},
        "spec": {
            "storageClassName": storage_class,
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "csi.example.com", "volumeHandle": name},
            "nodeAffinity": {
                "required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
            },
        },
    }


def _node_of(volume: Json) -> str:
    terms = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    node: str = terms[0]["matchExpressions"][0]["values"][0]
    return node
