"""VolumeRestrictions: reject nodes where a pod would share a volume that it may not share.

Rejects   a node where a pod holds the same inline disk, unless both only read (EBS: never shared);
          every node while another pod uses a ReadWriteOncePod claim. Evicting the user may help.
Retry     a pod with the disk or claim is deleted; a claim appears; a node appears.
Cost      one lookup per claim and disk; only rows that hold the disk are touched.
Quirk     on trial, pods of other namespaces with a claim of the same name count as users too.
Source    kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/volumerestrictions
"""

from collections.abc import Collection, Hashable, Sequence
from typing import Any, Final, NamedTuple

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
    PreFilterPlugin,
    PreFilterResult,
    Scope,
)
from asched.core.framework.registrations import Concerns, Hint, Registration
from asched.core.framework.status import SKIP, Reason, unresolvable
from asched.core.model.kinds import NODE, PERSISTENT_VOLUME_CLAIM, POD
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.storage import (
    NO_STORAGE,
    READ_WRITE_ONCE_POD,
    any_conflict,
    has_direct_claims,
    storage_of,
)
from asched.core.plugins.volumes.hints import OF_OWN_CLAIMS, after_named_claim_changed

DISK_TAKEN: Final = Reason("node(s) had no available disk", resolvable=True)
CLAIM_IN_USE: Final = Reason(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode"
    " already in-use by another pod",
    resolvable=True,
)


def _volumes(pod: Pod) -> Collection[Hashable]:
    """Keys of the disks and direct claims of a pod: only pods with a key in common affect each
    other.
    """
    storage = storage_of(pod)
    keys: list[Hashable] = [use.key for use in storage.claims if not use.owner]
    return keys + [identity for disk in storage.disks for identity in disk.identities]


#: The keys of the waiting pod, and those of a deleted pod.
OF_VOLUMES: Final = Concerns(_volumes, lambda old, _: _volumes(old))


class Exclusive(NamedTuple):
    """The direct claims of a pod that only one pod may use."""

    missing: str = ""  # the first claim that does not exist, whatever its modes
    names: frozenset[str] = frozenset()


_NOTHING: Final = Exclusive()


class VolumeRestrictions(OrderFree, PreFilterPlugin, FilterPlugin):
    name = names.VOLUME_RESTRICTIONS
    scope = Scope.NAMESPACE
    without_pre_filter = 'cannot read "PreFilterVolumeRestrictions" from cycleState'
    reasons = (DISK_TAKEN, CLAIM_IN_USE)
    depends_on = Aspect.POD_AMOUNTS | Aspect.LIVE
    reads_counts = True

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._exclusive = Latest(cluster, weakly(self._collect))

    def share_key(self, pod: PodInfo) -> Hashable:
        """Pods without volumes share their answer; most other pods have claims of their own."""
        return pod.cls.number if pod.cls.storage is not NO_STORAGE else IDLE

    def verdict_key(self, pod: PodInfo) -> Hashable:
        storage = pod.cls.storage
        if storage is NO_STORAGE or storage.disks or self._exclusive(pod).missing:
            return self.share_key(pod)
        return self._in_use(pod) > 0

    def stamp(self, pod: PodInfo, data: Any) -> Hashable:
        return self._exclusive(pod).missing or self._in_use(pod)

    def pre_filter(self, pod: PodInfo) -> PreFilterResult:
        missing, _ = self._exclusive(pod)
        if missing:
            return PreFilterResult(unresolvable(f'persistentvolumeclaim "{missing}" not found'))
        in_use = self._in_use(pod)
        if not pod.cls.storage.disks and not in_use:
            return PreFilterResult(SKIP)
        return PreFilterResult(data=in_use)

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:
        """`data`: exclusive claims in use at PreFilter; a trial adds the pods that it moves."""
        in_use = data
        moved = self._cluster.volumes.on_trial
        if moved:
            in_use += sum(moved.get(name, 0) for name in self._exclusive(pod).names)
        codes = np.full(nodes.size, 2 if in_use > 0 else 0, dtype=np.int32)
        taken = self._rows_with_disk(pod)
        if taken:
            codes[nodes.positions(taken)] = 1
        return codes

    def _rows_with_disk(self, pod: PodInfo) -> set[int]:
        rows: set[int] = set()
        disks = self._cluster.volumes.disks
        for disk in pod.cls.storage.disks:
            for identity in disk.identities:
                held = disks.get(identity, {}).items()
                rows.update(row for row, (_, owners) in held if owners or not disk.shares)
        return rows

    def _in_use(self, pod: PodInfo) -> int:
        """How many exclusive claims of the pod some placed pod uses."""
        names = self._exclusive(pod).names
        if not names:
            return 0
        used, namespace = self._cluster.occupancy.claims, pod.pod.metadata.namespace
        return sum(f"{namespace}/{name}" in used for name in names)

    def _collect(self, pod: PodInfo) -> Exclusive:
        exclusive: set[str] = set()
        for use in pod.cls.storage.claims:
            if use.owner:
                continue
            claim = self._cluster.stored(PERSISTENT_VOLUME_CLAIM, use.key)
            if claim is None:
                return Exclusive(missing=use.name)
            if READ_WRITE_ONCE_POD in (claim.spec.access_modes or ()):
                exclusive.add(use.name)
        return Exclusive(names=frozenset(exclusive)) if exclusive else _NOTHING

    def registrations(self) -> Sequence[Registration]:
        return (
            Registration(Trigger(POD.resource, Action.DELETE), after_pod_deleted, OF_VOLUMES),
            Registration(Trigger(NODE.resource, Action.ADD)),
            Registration(
                Trigger(PERSISTENT_VOLUME_CLAIM.resource, Action.ADD),
                after_named_claim_changed,
                OF_OWN_CLAIMS,
            ),
        )

    def extra_events(self) -> Sequence[Registration]:
        return (
            Registration(Trigger(POD.resource, Action.DELETE), disk_is_free, OF_VOLUMES),
            Registration(Trigger(NODE.resource, Action.DELETE), claim_is_free),
        )


def after_pod_deleted(pod: Pod, old: Pod, new: None) -> Hint:  # noqa: ARG001
    """A pod of the same namespace released a disk or a claim."""
    if pod.metadata.namespace != old.metadata.namespace:
        return Hint.SKIP
    freed = storage_of(old)
    if not (freed.disks or freed.claims):
        return Hint.SKIP  # most pods; a waiting pod may name thousands of volumes
    wanted = storage_of(pod)
    helps = any_conflict(wanted.disks, freed.disks)
    helps = helps or not set(wanted.direct).isdisjoint(freed.direct)
    return Hint.QUEUE if helps else Hint.SKIP


def disk_is_free(pod: Pod, old: Pod, new: None) -> Hint:  # noqa: ARG001
    """A pod of any namespace released a disk."""
    freed = storage_of(old).disks
    helps = bool(freed) and any_conflict(storage_of(pod).disks, freed)
    return Hint.QUEUE if helps else Hint.SKIP


def claim_is_free(pod: Pod, old: Node, new: None) -> Hint:  # noqa: ARG001
    """Claims that only pods of a deleted node use count as unused."""
    return Hint.QUEUE if has_direct_claims(pod) else Hint.SKIP
