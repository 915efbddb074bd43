"""VolumeBinding: place a pod where its volumes are, or can be bound or provisioned.

Rejects   nodes from which a bound volume cannot be reached, or on which a claim that waits for its
          first consumer neither finds a volume nor can have one made; pods with claims that should
          be bound by now. Evicting pods cannot help.
Prefers   with the gate StorageCapacityScoring (its sign is a shape in the arguments): nodes by how
          full their storage would be.
Binds     volumes to claims and claims to nodes before the pod is bound, and waits for both.
Retry     anything about claims, volumes, classes, nodes' labels, drivers or capacities that helps.
Cost      bound claims: a lookup each, nothing per node unless a volume is tied to nodes; claims
          that wait: a search per class of pods and change of the volumes.
Source    kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/volumebinding
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
from asched.core.config.args import VolumeBindingArgs
from asched.core.framework.meter import PluginReports
from asched.core.framework.order_free import OrderFree
from asched.core.framework.per_class import Latest
from asched.core.framework.points import (
    I64,
    IDLE,
    Codes,
    FilterPlugin,
    Late,
    Mask,
    PreBindPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ReservePlugin,
    Scope,
    ScorePlugin,
)
from asched.core.framework.registrations import Registration
from asched.core.framework.status import SKIP, SUCCESS, Reason, Status, failure, unresolvable
from asched.core.model.kinds import (
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    STORAGE_CLASS,
)
from asched.core.model.selector import compile_selector
from asched.core.model.storage import SELECTED_NODE
from asched.core.plugins.resources.scores import curve
from asched.core.plugins.volumes import hints as after
from asched.core.plugins.volumes import reservation as volume_reservation
from asched.core.plugins.volumes.capacity_scoring import storage_scores
from asched.core.plugins.volumes.choice import Reject, choose
from asched.core.plugins.volumes.claims import PodClaims, sort_claims
from asched.core.plugins.volumes.reservation import VolumeReservation

REASONS: Final = {
    Reject.UNREACHABLE: Reason(
        "node(s) didn't match PersistentVolume's node affinity", resolvable=False
    ),
    Reject.UNBINDABLE: Reason(
        "node(s) didn't find available persistent volumes to bind", resolvable=False
    ),
    Reject.NO_ROOM: Reason("node(s) did not have enough free storage", resolvable=False),
    Reject.NO_VOLUME: Reason(
        "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
        resolvable=False,
    ),
}


#: What the search for volumes reads in addition to the claims.
SEARCHED: Final = (PERSISTENT_VOLUME, STORAGE_CLASS, CSI_DRIVER, CSI_STORAGE_CAPACITY)


class VolumeBinding(
    OrderFree,
    PreFilterPlugin,
    FilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    ReservePlugin,
    PreBindPlugin,
):
    name = names.VOLUME_BINDING
    scope = Scope.NAMESPACE
    without_pre_filter = "not found"
    reasons = tuple(REASONS.values())
    depends_on = Aspect.LABELS | Aspect.LIVE

    def __init__(self, args: VolumeBindingArgs | None, cluster: Cluster) -> None:
        args = args or VolumeBindingArgs()
        self._cluster = cluster
        self._timeout_s = args.bind_timeout_s
        self._reports = cluster.singleton(PluginReports)
        self._points = curve(args.shape) if args.shape else None
        self.scores_idle = self._points is not None
        self._claims = Latest(cluster, weakly(self._sort))
        self._reserved: dict[str, VolumeReservation] = {}  # uid -> until bound or unreserved

    # --- what pods share -------------------------------------------------------------------------

    def share_key(self, pod: PodInfo) -> Hashable:
        """Pods without claims share their answer; most other pods have claims of their own."""
        return pod.cls.number if pod.cls.storage.claims else IDLE

    def verdict_key(self, pod: PodInfo) -> Hashable:
        claims = self._claims(pod)
        if isinstance(claims, Status) or claims.delayed:
            return self.share_key(pod)
        return claims.bound

    def stamp(self, pod: PodInfo, data: Any) -> Hashable:
        claims = self._claims(pod)
        if isinstance(claims, Status):
            return claims
        moved = 0
        if any(affinity.plugin for affinity in claims.bound):
            moved = self._cluster.volumes.moved_generation
        if not claims.delayed:
            return claims.bound, moved
        searched = tuple(map(self._cluster.epoch_of, SEARCHED))
        versions = tuple(
            (
                claim.metadata.uid,
                claim.metadata.resource_version,
                (claim.metadata.annotations or {}).get(SELECTED_NODE),
            )
            for claim in claims.delayed
        )
        return claims.bound, moved, versions, searched

    def _sort(self, pod: PodInfo) -> PodClaims | Status:
        return sort_claims(self._cluster, pod) if pod.cls.storage.claims else _NO_CLAIMS

    # --- filter ----------------------------------------------------------------------------------

    def is_blind_for(self, pod: PodInfo) -> bool:
        """Bound volumes stay where they are; for other claims, volumes that a victim gives back may
        be chosen.
        """
        claims = self._claims(pod)
        return isinstance(claims, Status) or not claims.delayed

    def pre_filter(self, pod: PodInfo) -> PreFilterResult:
        if not pod.cls.storage.claims:
            return PreFilterResult(SKIP)
        claims = self._claims(pod)
        if isinstance(claims, Status):
            return PreFilterResult(claims)
        for claim in claims.delayed:
            try:
                compile_selector(claim.spec.selector)
            except ValueError as error:
                self._reports.observer.volumes_failed("predicate")
                text = f"error creating internal label selector for claim: {claim.metadata.key}"
                return PreFilterResult(failure(f"{text}: {error}"))
        return PreFilterResult(data=claims)

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:
        return choose(self._cluster, data, nodes).codes

    def explain(self, pod: PodInfo, code: int) -> Status:
        return unresolvable(*(reason.text for bit, reason in REASONS.items() if code & bit))

    # --- score -----------------------------------------------------------------------------------

    def pre_score(self, pod: PodInfo, nodes: NodeView, feasible: Mask) -> PreFilterResult:
        return PreFilterResult(SKIP if self._points is None else SUCCESS)

    def score(self, pod: PodInfo, nodes: NodeView, data: Any) -> I64:
        claims = self._claims(pod)  # PreScore may not be enabled
        if self._points is None or isinstance(claims, Status) or not claims.delayed:
            return np.zeros(nodes.size, dtype=np.int64)
        return storage_scores(choose(self._cluster, claims, nodes), self._points)

    # --- reserve and bind ------------------------------------------------------------------------

    def reserve(self, pod: PodInfo, node: str, data: Any) -> Status:
        claims = self._claims(pod)
        row = self._cluster.nodes.row_of.get(node)
        if isinstance(claims, Status) or not claims.delayed or row is None:
            return SUCCESS
        view = NodeView(self._cluster.nodes, np.array((row,), dtype=np.int32))
        choice = choose(self._cluster, claims, view)
        if not choice.codes[0]:
            chosen = volume_reservation.reserve(self._cluster, choice, node)
            self._reserved[pod.pod.uid] = chosen
        return SUCCESS

    def is_order_free(self, pod: PodInfo) -> bool:
        claims = self._claims(pod)
        return isinstance(claims, Status) or not claims.delayed

    def unreserve(self, pod: PodInfo, node: str) -> None:
        chosen = self._reserved.pop(pod.pod.uid, None)
        if chosen is not None:
            volume_reservation.take_back(self._cluster, chosen.writes)

    def pre_bind_pre_flight(self, pod: PodInfo, node: str) -> Status:
        return SUCCESS if pod.pod.uid in self._reserved else SKIP

    def pre_bind(self, pod: PodInfo, node: str) -> Late:
        chosen = self._reserved.get(pod.pod.uid)
        if chosen is None:
            return SUCCESS
        status = yield from volume_reservation.bind(self._cluster, pod, chosen, self._timeout_s)
        if status.is_success:
            self._reserved.pop(pod.pod.uid, None)
        else:
            self._reports.observer.volumes_failed("bind")
        return status

    def registrations(self) -> Sequence[Registration]:
        both = Action.ADD | Action.UPDATE
        return (
            Registration(Trigger(STORAGE_CLASS.resource, both), after.after_class_changed),
            Registration(
                Trigger(PERSISTENT_VOLUME_CLAIM.resource, both),
                after.after_claim_changed,
                after.OF_OWN_CLAIMS,
            ),
            Registration(Trigger(PERSISTENT_VOLUME.resource, both)),
            Registration(Trigger(NODE.resource, Action.ADD | Action.UPDATE_NODE_LABEL)),
            Registration(Trigger(CSI_NODE.resource, both), after.after_csi_node_changed),
            Registration(
                Trigger(CSI_DRIVER.resource, Action.UPDATE), after.after_csi_driver_changed
            ),
            Registration(
                Trigger(CSI_STORAGE_CAPACITY.resource, both), after.after_capacity_changed
            ),
        )

    def extra_events(self) -> Sequence[Registration]:
        gone = Action.UPDATE | Action.DELETE
        return (
            Registration(Trigger(STORAGE_CLASS.resource, gone)),
            Registration(Trigger(CSI_NODE.resource, gone)),
            Registration(Trigger(CSI_DRIVER.resource, gone)),
            Registration(
                Trigger(POD.resource, Action.DELETE),
                after.volumes_are_free,
                after.OF_CLAIMS,
            ),
        )


_NO_CLAIMS: Final = PodClaims()
