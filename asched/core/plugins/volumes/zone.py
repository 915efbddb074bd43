"""VolumeZone: place a pod by the zone and region labels of its volumes.

Rejects   a node with any zone or region label that lacks, or differs from, one a volume carries
          (a value may list several zones, joined by `__`); claims that are not bound and do not
          wait for a node. Evicting pods cannot help.
Retry     a node appears or is relabelled; a claim of the pod appears or changes; a volume appears
          or its zones change; a class that waits for the first consumer appears.
Cost      one lookup per claim; one gather for each distinct (label, zones).
Source    kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/volumezone
"""

from collections.abc import Hashable, Sequence
from typing import Any, Final

import numpy as np

from asched import names
from asched.core.cluster.changes import Action, Trigger
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import Aspect
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.cluster.weakly import weakly
from asched.core.framework.order_free import OrderFree
from asched.core.framework.per_class import Latest
from asched.core.framework.points import (
    IDLE,
    Codes,
    FilterPlugin,
    Mask,
    PreFilterPlugin,
    PreFilterResult,
    Scope,
)
from asched.core.framework.registrations import Hint, Registration
from asched.core.framework.status import SKIP, Reason, Status, unresolvable
from asched.core.model.kinds import NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS
from asched.core.model.meta import ObjectMeta
from asched.core.model.pod import Pod
from asched.core.model.storage import WAIT_FOR_FIRST_CONSUMER, claim_class
from asched.core.model.volume import PersistentVolume, PersistentVolumeClaim, StorageClass
from asched.core.plugins.volumes.hints import OF_OWN_CLAIMS, after_named_claim_changed

WRONG_ZONE: Final = Reason("node(s) had no available volume zone", resolvable=False)

#: The labels that count, and the newer name under which a node may have a beta one.
LABELS: Final[dict[str, str]] = {
    names.LABEL_BETA_ZONE: names.LABEL_ZONE,
    names.LABEL_BETA_REGION: names.LABEL_REGION,
    names.LABEL_ZONE: names.LABEL_ZONE,
    names.LABEL_REGION: names.LABEL_REGION,
}
_PROBLEM: Final = 2
ZONE_DELIMITER: Final = "__"

#: (label, allowed values), without duplicates
Zones = tuple[tuple[str, frozenset[str]], ...]


class VolumeZone(OrderFree, PreFilterPlugin, FilterPlugin):
    name = names.VOLUME_ZONE
    scope = Scope.NODE
    reasons = (WRONG_ZONE,)
    depends_on = Aspect.LABELS | Aspect.LIVE

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._wanted = Latest(cluster, weakly(self._collect))

    def share_key(self, pod: PodInfo) -> Hashable:
        """Pods without claims share their answer; most other pods have claims of their own."""
        return pod.cls.number if pod.cls.storage.claims else IDLE

    def verdict_key(self, pod: PodInfo) -> Hashable:
        return self._wanted(pod)

    def stamp(self, pod: PodInfo, data: Any) -> Hashable:
        return self._wanted(pod)

    def is_blind_for(self, pod: PodInfo) -> bool:
        return True

    def pre_filter(self, pod: PodInfo) -> PreFilterResult:
        wanted = self._wanted(pod)
        if isinstance(wanted, Status):
            return PreFilterResult(wanted)
        return PreFilterResult(data=wanted) if wanted else PreFilterResult(SKIP)

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:
        if data is None:  # PreFilter is not enabled
            data = self._wanted(pod)
            if isinstance(data, Status):
                return np.full(nodes.size, _PROBLEM, dtype=np.int32)
        wrong: Mask = np.zeros(nodes.size, dtype=np.bool_)
        for label, values in data:
            wrong |= ~_matching_rows(nodes, label, values)
        labelled: Mask = np.zeros(nodes.size, dtype=np.bool_)
        for label in LABELS:
            labelled |= nodes.label(label)[0] > 0
        return (wrong & labelled).astype(np.int32)

    def explain(self, pod: PodInfo, code: int) -> Status:
        wanted = self._wanted(pod)
        if code == _PROBLEM and isinstance(wanted, Status):
            return wanted
        return WRONG_ZONE.status

    def _collect(self, pod: PodInfo) -> Zones | Status:
        """The zones of the bound direct claims, or why the pod cannot be placed at all."""
        zones: dict[tuple[str, frozenset[str]], None] = {}
        for use in pod.cls.storage.claims:
            if use.owner:
                continue
            if not use.name:
                return unresolvable("PersistentVolumeClaim had no name")
            claim = self._cluster.stored(PERSISTENT_VOLUME_CLAIM, use.key)
            if claim is None:
                return unresolvable(f'persistentvolumeclaim "{use.name}" not found')
            name = claim.spec.volume_name
            if not name:
                problem = self._problem(claim)
                if problem:
                    return unresolvable(problem)
                continue
            volume = self._cluster.stored(PERSISTENT_VOLUME, name)
            if volume is None:
                return unresolvable(f'persistentvolume "{name}" not found')
            zones.update(dict.fromkeys(zones_of(volume.metadata)))
        return tuple(zones)

    def _problem(self, claim: PersistentVolumeClaim) -> str:
        """Why a claim without a volume stops the pod; "" if it only waits for its node to be
        selected.
        """
        name = claim_class(claim)
        if not name:
            return "PersistentVolumeClaim had no pv name and storageClass name"
        found: StorageClass | None = self._cluster.stored(STORAGE_CLASS, name)
        if found is None:
            return f'storageclass.storage.k8s.io "{name}" not found'
        if found.volume_binding_mode is None:
            return f'VolumeBindingMode not set for StorageClass "{name}"'
        waits = found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
        return "" if waits else "PersistentVolume had no name"

    def registrations(self) -> Sequence[Registration]:
        both = Action.ADD | Action.UPDATE
        return (
            Registration(Trigger(STORAGE_CLASS.resource, Action.ADD), after_class_added),
            Registration(Trigger(NODE.resource, Action.ADD | Action.UPDATE_NODE_LABEL)),
            Registration(
                Trigger(PERSISTENT_VOLUME_CLAIM.resource, both),
                after_named_claim_changed,
                OF_OWN_CLAIMS,
            ),
            Registration(Trigger(PERSISTENT_VOLUME.resource, both), after_volume_changed),
        )


def zones_of(metadata: ObjectMeta) -> Zones:
    """(label, allowed values) of a volume; a label that lists an empty zone does not count."""
    labels = metadata.labels
    if not labels:
        return ()
    zones = []
    for label in LABELS:
        text = labels.get(label)
        if text is None:
            continue
        values = frozenset(part.strip() for part in text.split(ZONE_DELIMITER))
        if "" not in values:
            zones.append((label, values))
    return tuple(zones)


def _matching_rows(nodes: NodeView, label: str, values: frozenset[str]) -> Mask:
    """bool[M]: rows whose label, or its newer name if they lack it, has one of the values."""
    ids, column = nodes.label(label)
    fits = np.isin(ids, [i for i in map(column.values.find, values) if i])
    newer = LABELS[label]
    if newer != label:
        newer_ids, newer_column = nodes.label(newer)
        allowed = [i for i in map(newer_column.values.find, values) if i]
        fits |= (ids == 0) & np.isin(newer_ids, allowed)
    return fits


def after_class_added(pod: Pod, old: None, new: StorageClass) -> Hint:  # noqa: ARG001
    waits = new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    return Hint.QUEUE if waits else Hint.SKIP


def after_volume_changed(pod: Pod, old: PersistentVolume | None, new: PersistentVolume) -> Hint:  # noqa: ARG001
    changed = old is None or zones_of(old.metadata) != zones_of(new.metadata)
    return Hint.QUEUE if changed else Hint.SKIP
