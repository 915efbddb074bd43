"""NodeVolumeLimits: a node takes no more volumes of a CSI driver than its CSINode allows.

Rejects   a node on which the driver's volumes there and the pod's new ones exceed the limit.
          Evicting pods may help. A claim that does not exist cannot be counted at all.
Retry     a CSINode appears or allows more; a pod with volumes leaves its node; a claim of the pod
          appears; an attachment is deleted.
Cost      per driver of the pod one comparison of columns; volumes in use are counted as they come
          and go (`cluster/volumes.py`).
Quirk     a volume that is attached, but used by no pod there, counts twice if this pod wants it.
Source    kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/nodevolumelimits
"""

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from asched import names
from asched.core.cluster.changes import Action, Trigger
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import Aspect
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.cluster.weakly import weakly
from asched.core.config.gates import DEFAULT_GATES
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
from asched.core.framework.registrations import Hint, Registration
from asched.core.framework.status import SKIP, Reason, Status, failure, unresolvable
from asched.core.model.kinds import (
    CSI_DRIVER,
    CSI_NODE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    STORAGE_CLASS,
    VOLUME_ATTACHMENT,
    Kind,
)
from asched.core.model.migration import CsiVolume
from asched.core.model.pod import Pod
from asched.core.model.storage import has_claims, has_direct_claims, is_owned, storage_of
from asched.core.model.volume import CsiNode, VolumeAttachment
from asched.core.plugins.volumes.hints import OF_OWN_CLAIMS, after_claim_changed

TOO_MANY: Final = Reason("node(s) exceed max volume count", resolvable=True)

_TOO_MANY: Final = 1
_UNKNOWN_CLAIM: Final = 2
#: Codes from here on name a driver of the pod that a node does not have.
_NO_DRIVER: Final = 16
#: An error; a pod names far fewer drivers.
_BROKEN: Final = 1 << 20


class WantedVolumes(NamedTuple):
    """The distinct volumes of a pod by driver, or the error that prevented counting them."""

    volumes: tuple[tuple[str, tuple[CsiVolume, ...]], ...] = ()
    problem: Status | None = None
    is_inline: bool = False  # the problem shows only on nodes with a CSINode

    def drivers(self) -> tuple[str, ...]:
        return tuple(driver for driver, _ in self.volumes)


class NodeVolumeLimits(OrderFree, PreFilterPlugin, FilterPlugin):
    """Under VolumeLimitScaling a driver may require to be installed on the node."""

    name = names.NODE_VOLUME_LIMITS
    scope = Scope.NODE
    reasons = (TOO_MANY,)
    depends_on = Aspect.POD_AMOUNTS | Aspect.LIVE
    errors_from = _BROKEN

    def __init__(self, cluster: Cluster, gates: Mapping[str, bool] = DEFAULT_GATES) -> None:
        self._cluster = cluster
        self._scaling = gates["VolumeLimitScaling"]
        self._wanted = Latest(cluster, weakly(self._collect))
        if self._scaling:
            self.kinds = (CSI_DRIVER, CSI_NODE)  # type: ignore[misc]

    def share_key(self, pod: PodInfo) -> Hashable:
        """Pods without volumes share their answer; most other pods have claims of their own."""
        return pod.cls.number if _counts(pod) else IDLE

    def verdict_key(self, pod: PodInfo) -> Hashable:
        """Unused volumes count by their number alone."""
        if not _counts(pod):
            return IDLE
        wanted, index = self._wanted(pod), self._cluster.volumes
        volumes = [volume for _, group in wanted.volumes for volume in group]
        if wanted.problem is not None or any(map(index.rows_of, volumes)):
            return self.share_key(pod)
        return tuple([(driver, len(group)) for driver, group in wanted.volumes])

    def stamp(self, pod: PodInfo, data: Any) -> Hashable:
        return self._wanted(pod) if _counts(pod) else None

    def is_blind_for(self, pod: PodInfo) -> bool:
        """Nothing is counted where no node states a limit for the pod's drivers."""
        index = self._cluster.volumes
        return all(index.limits(driver) is None for driver in self._wanted(pod).drivers())

    def pre_filter(self, pod: PodInfo) -> PreFilterResult:
        return PreFilterResult() if _counts(pod) else PreFilterResult(SKIP)

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:
        index = self._cluster.volumes
        wanted = self._wanted(pod)
        codes = np.zeros(nodes.size, dtype=np.int32)
        if wanted.problem is not None and not wanted.is_inline:
            codes[:] = _BROKEN if wanted.problem.code.is_rejection is False else _UNKNOWN_CLAIM
            return codes
        for driver, volumes in wanted.volumes:
            limits = index.limits(driver)
            if limits is None:
                continue
            room = nodes.gather(limits) - nodes.gather(index.counts(driver))
            in_use = [rows for rows in map(index.rows_of, volumes) if rows]
            if not in_use:
                codes[len(volumes) > room] = _TOO_MANY
                continue
            new = np.full(nodes.size, len(volumes), dtype=np.int64)
            for rows in in_use:
                new -= nodes.positions(set(rows))
            codes[(new > room) & (new > 0)] = _TOO_MANY
        if self._scaling:
            self._insist(wanted, nodes, codes)
        if wanted.problem is not None:
            codes[nodes.gather(index.has_csi_node())] = _BROKEN
        return codes

    def explain(self, pod: PodInfo, code: int) -> Status:
        if code == _TOO_MANY:
            return TOO_MANY.status
        wanted = self._wanted(pod)
        if _NO_DRIVER <= code < _BROKEN:
            driver = wanted.drivers()[code - _NO_DRIVER]
            text = f"{driver} CSI driver is not installed on the node"
            return Reason(text, resolvable=True).status
        return wanted.problem or failure("the pod's volumes changed meanwhile")

    def _insist(self, wanted: WantedVolumes, nodes: NodeView, codes: Codes) -> None:
        """Reject rows without a driver that requires to be installed."""
        for position, driver in enumerate(wanted.drivers()):
            found = self._cluster.stored(CSI_DRIVER, driver)
            if found is not None and found.spec.prevent_pod_scheduling_if_missing:
                installed = nodes.gather(self._cluster.volumes.has_driver(driver))
                codes[~installed & ((codes == 0) | (codes == _TOO_MANY))] = _NO_DRIVER + position

    def _collect(self, pod: PodInfo) -> WantedVolumes:
        storage = pod.cls.storage
        wanted = dict.fromkeys(storage.migrated)
        problem = failure(storage.broken) if storage.broken else None
        for use in storage.claims:
            claim = self._cluster.stored(PERSISTENT_VOLUME_CLAIM, use.key)
            if claim is None:
                missing = f'persistentvolumeclaim "{use.name}" not found'
                namespace = pod.pod.metadata.namespace
                return WantedVolumes(
                    problem=unresolvable(f"looking up PVC {namespace}/{use.name}: {missing}")
                )
            if use.owner and not is_owned(claim, use.owner):
                text = f"PVC {use.key} was not created for pod {pod.pod.key} (pod is not owner)"
                return WantedVolumes(problem=failure(text))
            volume = self._cluster.volumes.volume_of(use)
            if volume is not None:
                wanted[volume] = None
        by_driver: dict[str, list[CsiVolume]] = {}
        for volume in wanted:
            by_driver.setdefault(volume.driver, []).append(volume)
        volumes = tuple((driver, tuple(group)) for driver, group in sorted(by_driver.items()))
        return WantedVolumes(volumes, problem, is_inline=problem is not None)

    def registrations(self) -> Sequence[Registration]:
        added = Action.ADD
        return (
            Registration(Trigger(CSI_NODE.resource, added)),
            Registration(Trigger(CSI_NODE.resource, Action.UPDATE), after_csi_node_updated),
            Registration(Trigger(POD.resource, Action.DELETE), after_pod_deleted),
            Registration(
                Trigger(PERSISTENT_VOLUME_CLAIM.resource, added), after_claim_changed, OF_OWN_CLAIMS
            ),
            Registration(
                Trigger(VOLUME_ATTACHMENT.resource, Action.DELETE), after_attachment_deleted
            ),
        )

    def extra_events(self) -> Sequence[Registration]:
        gone = Action.UPDATE | Action.DELETE
        registrations = [
            Registration(Trigger(NODE.resource, Action.ADD)),
            Registration(Trigger(CSI_NODE.resource, gone)),
            Registration(Trigger(VOLUME_ATTACHMENT.resource, Action.DELETE), detached),
            *(
                Registration(Trigger(kind.resource, Action.ALL), partial(self._is_named, kind))
                for kind in (PERSISTENT_VOLUME_CLAIM, PERSISTENT_VOLUME, STORAGE_CLASS)
            ),
        ]
        if self._scaling:
            registrations.append(Registration(Trigger(CSI_DRIVER.resource, gone)))
        return registrations

    def _is_named(self, kind: Kind, pod: Pod, old: Any, new: Any) -> Hint:
        """Queue if the object decides how one of the pod's claims is counted, or one of a placed
        pod.
        """
        key = (new or old).metadata.key
        is_own = any(
            (kind.resource, key) in self._cluster.volumes.names_of(use)
            for use in storage_of(pod).claims
        )
        return Hint.QUEUE if is_own or self._cluster.volumes.is_named(kind, key) else Hint.SKIP


def _counts(pod: PodInfo) -> bool:
    storage = pod.cls.storage
    return bool(storage.claims) or storage.has_migratable


def _limits(csi_node: CsiNode) -> dict[str, int]:
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers or ()
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def after_csi_node_updated(pod: Pod, old: CsiNode, new: CsiNode) -> Hint:  # noqa: ARG001
    """A driver allows more volumes; a removed limit reads as 0."""
    before = _limits(old)
    grew = any(limit > before.get(driver, 0) for driver, limit in _limits(new).items())
    return Hint.QUEUE if grew else Hint.SKIP


def after_pod_deleted(pod: Pod, old: Pod, new: None) -> Hint:  # noqa: ARG001
    """The pod was assumed or bound, and its volumes may have been attached."""
    if not old.spec.node_name and not old.status.nominated_node_name:
        return Hint.SKIP
    storage = storage_of(old)
    return Hint.QUEUE if storage.claims or storage.has_migratable else Hint.SKIP


def detached(pod: Pod, old: VolumeAttachment, new: None) -> Hint:  # noqa: ARG001
    """Also for claims generated for the pod."""
    return Hint.QUEUE if has_claims(pod) else Hint.SKIP


def after_attachment_deleted(pod: Pod, old: VolumeAttachment, new: None) -> Hint:  # noqa: ARG001
    """Any direct claim suffices; for an inline disk, only an attachment of its driver."""
    helps = has_direct_claims(pod) or any(
        volume.driver == old.spec.attacher for volume in storage_of(pod).migrated
    )
    return Hint.QUEUE if helps else Hint.SKIP
