"""The plugin itself: the constraints of a class of pods, the extension points, and the changes that
may make a rejected pod schedulable.

Retry   of pods: one that is placed (or nominated) in the pod's namespace and comes or goes with
        labels that a hard constraint counts, or whose labels change from counted to not counted or
        back; the pod itself, when its tolerations change and a constraint honours taints.
        Of nodes: one that has all topology keys comes or goes; an update that gains or loses them,
        moves the node to another domain, or changes its taints.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any, Final

import msgspec

from asched import names
from asched.core.cluster.changes import Action, Trigger
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pods import PodClass, PodInfo
from asched.core.cluster.pools import Pools
from asched.core.cluster.view import NodeView
from asched.core.config.args import SYSTEM_DEFAULTING, PodTopologySpreadArgs
from asched.core.config.gates import DEFAULT_GATES
from asched.core.framework.order_free import OrderFree
from asched.core.framework.per_class import PerKey, PerPod
from asched.core.framework.points import (
    I64,
    IDLE,
    Codes,
    FilterPlugin,
    Mask,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Scope,
    ScorePlugin,
)
from asched.core.framework.registrations import Concerns, Hint, Registration
from asched.core.framework.status import SKIP, SUCCESS, failure
from asched.core.model.kinds import NODE, POD
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.plugins.label_keys import offered_labels, sought_labels
from asched.core.plugins.pod_topology_spread import sides
from asched.core.plugins.pod_topology_spread.constraints import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    Constraints,
    default_constraints,
    defaults_of,
    own_constraints,
)
from asched.core.plugins.pod_topology_spread.default_selectors import SOURCES, DefaultSelectors
from asched.core.plugins.pod_topology_spread.domains import LAYOUT, DomainsMemory
from asched.core.plugins.pod_topology_spread.sides import NO_LABEL, SKEWED, HardSide

POD_ACTIONS: Final = (
    Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION
)
NODE_ACTIONS: Final = (
    Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
)
_encoder: Final = msgspec.msgpack.Encoder(order="deterministic")


class _SpreadClass:
    """The two sides of pods with the same constraints. Also their share key. A text in place of a
    side is the error that prevents it.
    """

    def __init__(self, cls: PodClass) -> None:
        self.has_defaults = not cls.example.spec.topology_spread_constraints
        self.hard: HardSide | str | None = None
        self.soft: sides.SoftSide | str | None = None
        #: a new number whenever a side is replaced; never reused, since a class may go and come
        #: back
        self.number = 0
        self.epoch = self.cluster_epoch = -1


class PodTopologySpread(OrderFree, PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    name = names.POD_TOPOLOGY_SPREAD
    scope = Scope.NAMESPACE
    without_pre_filter = 'reading "PreFilterPodTopologySpread" from cycleState: not found'
    without_pre_score = 'error reading "PreScorePodTopologySpread" from cycleState: not found'
    reasons = (NO_LABEL, SKEWED)
    depends_on = LAYOUT
    reads_counts = True
    reads_feasible = True
    normalizes = True
    rows_few = 2  # a row alone takes 2.5 µs, gathered ones 6

    def __init__(
        self,
        args: PodTopologySpreadArgs | None,
        cluster: Cluster,
        gates: Mapping[str, bool] = DEFAULT_GATES,
        pools: Pools | None = None,
    ) -> None:
        args = args or PodTopologySpreadArgs()
        self._gates, self._pools = gates, pools
        self._cluster = cluster
        self._defaults = defaults_of(args)
        self._defaults_are_systems = args.defaulting_type == SYSTEM_DEFAULTING
        self._selectors = DefaultSelectors(cluster)
        self._memory = DomainsMemory(cluster, pools)
        self._spreads = PerKey(_what_matters, _SpreadClass)
        self._numbers = 0
        self._own = PerPod(cluster, lambda pod: own_constraints(pod, DO_NOT_SCHEDULE, gates))

    # --- the scheduling cycle --------------------------------------------------------------------

    def share_key(self, pod: PodInfo) -> Hashable:
        """Pods without own or default constraints share their answer."""
        example = pod.cls.example
        if not example.spec.topology_spread_constraints and not (
            self._defaults and self._selectors.may_select(example)
        ):
            return IDLE
        spread = self._spread_of(pod.cls)
        return IDLE if spread.hard is None and spread.soft is None else spread

    def stamp(self, pod: PodInfo, data: Any) -> Hashable:
        spread = self._spread_of(pod.cls)
        side = data.side if isinstance(data, sides.Weighted) else data
        return (spread.number, None if side is None else side.stamp())

    def pre_filter(self, pod: PodInfo) -> PreFilterResult:
        side = self._spread_of(pod.cls).hard
        if side is None:
            return PreFilterResult(SKIP)
        if isinstance(side, str):
            return PreFilterResult(failure(side))
        side.keep()
        return PreFilterResult(SUCCESS, None, side, side.moved)

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:
        side: HardSide = data
        return side.codes(nodes)

    def filter_few(self, pod: PodInfo, rows: Sequence[int], data: Any) -> list[int]:
        side: HardSide = data
        return [side.code_of(row) for row in rows]

    def pre_score(self, pod: PodInfo, nodes: NodeView, feasible: Mask) -> PreFilterResult:
        side = self._spread_of(pod.cls).soft
        if side is None:
            return PreFilterResult(SKIP)
        if isinstance(side, str):
            return PreFilterResult(failure(side))
        side.keep()
        return PreFilterResult(SUCCESS, None, side.weigh(nodes, feasible), side.moved)

    def reads_feasible_of(self, pod: PodInfo) -> bool:
        return self._spread_of(pod.cls).soft is not None

    def score(self, pod: PodInfo, nodes: NodeView, data: Any) -> I64:
        weighted: sides.Weighted = data
        return weighted.side.raw(nodes, weighted.weights)

    def score_few(self, pod: PodInfo, rows: Sequence[int], data: Any) -> list[int]:
        weighted: sides.Weighted = data
        return [weighted.side.raw_of(row, weighted.weights) for row in rows]

    def bounds(self, raw: I64, data: Any) -> Hashable:
        return sides.extremes(raw)

    def scaled(self, raw: I64, bounds: Any, data: Any) -> I64:
        return sides.scaled(raw, *bounds)

    def is_order_free(self, pod: PodInfo) -> bool:
        return self._spread_of(pod.cls).hard is None

    # --- waiting ---------------------------------------------------------------------------------

    def registrations(self) -> Sequence[Registration]:
        of_pods = Concerns(self._sought, _offered)
        return (
            Registration(Trigger(POD.resource, POD_ACTIONS), self._pod_changed, of_pods),
            Registration(Trigger(NODE.resource, NODE_ACTIONS), self._node_changed),
        )

    def _pod_changed(self, pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
        constraints = self._hard_constraints(pod)
        if any(other is not None and not _is_involved(other, pod) for other in (old, new)):
            return Hint.SKIP
        if old is None or new is None:
            changed = old or new
            counts = changed is not None and any(c.matches(changed.labels) for c in constraints)
            return Hint.QUEUE if counts else Hint.SKIP
        tolerates_anew = (old.spec.tolerations or ()) != (new.spec.tolerations or ())
        if new.uid == pod.uid and tolerates_anew and any(c.honors_taints for c in constraints):
            return Hint.QUEUE
        flips = any(c.matches(old.labels) != c.matches(new.labels) for c in constraints)
        return Hint.QUEUE if flips else Hint.SKIP

    def _node_changed(self, pod: Pod, old: Node | None, new: Node | None) -> Hint:
        keys = [constraint.topology_key for constraint in self._hard_constraints(pod)]
        had = old is not None and all(key in old.labels for key in keys)
        has = new is not None and all(key in new.labels for key in keys)
        if old is None or new is None:
            return Hint.QUEUE if had or has else Hint.SKIP
        if had != has:
            return Hint.QUEUE
        moved = any(old.labels.get(key) != new.labels.get(key) for key in keys)
        changed = moved or (old.spec.taints or ()) != (new.spec.taints or ())
        return Hint.QUEUE if has and changed else Hint.SKIP

    def extra_events(self) -> Sequence[Registration]:
        of_pods = Concerns(self._sought, _offered)
        registrations = [
            Registration(Trigger(POD.resource, Action.UPDATE), self._pod_may_help, of_pods),
            Registration(Trigger(NODE.resource, Action.UPDATE_NODE_LABEL), self._node_may_help),
        ]
        if any(default.when_unsatisfiable == DO_NOT_SCHEDULE for default in self._defaults):
            registrations += [
                Registration(Trigger(kind.resource, Action.ALL), self._source_may_help)
                for kind in SOURCES
            ]
        return registrations

    def _pod_may_help(self, pod: Pod, old: Pod, new: Pod) -> Hint:
        """The hint overlooks a counted pod that starts to terminate, and so no longer counts.
        Without the labels that services selected, the waiting pod has no constraints any more.
        """
        constraints = self._hard_constraints(pod)
        if new.uid == pod.uid:
            return Hint.SKIP if constraints else Hint.QUEUE
        if not _is_involved(new, pod) or old.is_terminating or not new.is_terminating:
            return Hint.SKIP
        return Hint.QUEUE if any(c.matches(old.labels) for c in constraints) else Hint.SKIP

    def _node_may_help(self, pod: Pod, old: Node, new: Node) -> Hint:
        """The hint overlooks a node with all keys that the pod's own node affinity starts or stops
        selecting, or that changes its pool.
        """
        constraints = self._hard_constraints(pod)
        if self._pools is None and not any(
            constraint.honors_affinity for constraint in constraints
        ):
            return Hint.SKIP
        keys = [constraint.topology_key for constraint in constraints]
        has_all = any(all(key in node.labels for key in keys) for node in (old, new))
        return Hint.QUEUE if has_all else Hint.SKIP

    def _source_may_help(self, pod: Pod, old: Any, new: Any) -> Hint:
        """A service or owner, from which default constraints take their selector, has changed."""
        has_own = bool(pod.spec.topology_spread_constraints)
        near = (new or old).metadata.namespace == pod.metadata.namespace
        return Hint.QUEUE if near and not has_own else Hint.SKIP

    def _sought(self, pod: Pod) -> Collection[Hashable] | None:
        """Keys of the pod changes that concern a waiting pod: labels that a hard constraint counts.
        Default constraints depend on the namespace alone.
        """
        near = (pod.metadata.namespace,)
        if not pod.spec.topology_spread_constraints:
            return near
        keys: list[Hashable] = []
        for constraint in self._own(pod):
            sought = sought_labels(near, constraint.selector)
            if sought is None:
                return near
            keys += sought
        return keys

    def _hard_constraints(self, pod: Pod) -> Constraints:
        if pod.spec.topology_spread_constraints:
            return self._own(pod)
        return self._default_constraints(pod, DO_NOT_SCHEDULE)

    # --- constraints -----------------------------------------------------------------------------

    def _default_constraints(self, pod: Pod, action: str) -> Constraints:
        """Default constraints, for a pod without its own."""
        defaults = [d for d in self._defaults if d.when_unsatisfiable == action]
        selector = self._selectors.selector_of(pod) if defaults else None
        if selector is None:
            return ()
        return default_constraints(defaults, selector, action, self._gates)

    def _spread_of(self, cls: PodClass) -> _SpreadClass:
        """The sides of a class; those of default constraints follow services and owners."""
        spread = self._spreads(cls)
        if spread.cluster_epoch == self._cluster.epoch or (
            spread.number and not spread.has_defaults
        ):
            return spread
        epoch = self._selectors.epoch()
        if epoch != spread.epoch:
            self._renew(spread, cls)
            spread.epoch = epoch
        spread.cluster_epoch = self._cluster.epoch
        return spread

    def _renew(self, spread: _SpreadClass, cls: PodClass) -> None:
        hard = self._hard_side(cls, spread)
        soft = self._soft_side(cls, spread)
        if not spread.number or hard is not spread.hard or soft is not spread.soft:
            spread.hard, spread.soft = hard, soft
            self._numbers += 1
            spread.number = self._numbers

    def _compiled(self, cls: PodClass, spread: _SpreadClass, action: str) -> Constraints | str:
        """Constraints that the pods of a class write, else the default ones; or the error of an
        invalid selector.
        """
        try:
            if spread.has_defaults:
                return self._default_constraints(cls.example, action)
            return own_constraints(cls.example, action, self._gates)
        except ValueError as problem:
            return f"topology spread constraints: {problem}"

    def _hard_side(self, cls: PodClass, spread: _SpreadClass) -> HardSide | str | None:
        old, constraints = spread.hard, self._compiled(cls, spread, DO_NOT_SCHEDULE)
        if isinstance(constraints, str):
            return f"obtaining pod's hard {constraints}"
        if isinstance(old, HardSide) and old.constraints == constraints:
            return old
        return HardSide(self._cluster, self._memory, cls, constraints) if constraints else None

    def _soft_side(self, cls: PodClass, spread: _SpreadClass) -> sides.SoftSide | str | None:
        old, constraints = spread.soft, self._compiled(cls, spread, SCHEDULE_ANYWAY)
        if isinstance(constraints, str):
            return f"calculating preScoreState: obtaining pod's soft {constraints}"
        if isinstance(old, sides.SoftSide) and old.constraints == constraints:
            return old
        if not constraints:
            return None
        is_strict = not (spread.has_defaults and self._defaults_are_systems)
        return sides.SoftSide(self._cluster, self._memory, cls, constraints, is_strict=is_strict)


def _what_matters(cls: PodClass) -> Hashable:
    """What constraints are made of, and which nodes they count. Default constraints depend on
    services and owners of the pod, too: then each class has its own key.
    """
    spec = cls.example.spec
    if not spec.topology_spread_constraints:
        return cls.number
    near = spec.affinity.node_affinity if spec.affinity is not None else None
    written = (spec.topology_spread_constraints, spec.node_selector, near, spec.tolerations)
    return cls.label_set, _encoder.encode(written)


def _is_involved(other: Pod, pod: Pod) -> bool:
    if other.uid == pod.uid:
        return True
    return _has_place(other) and other.metadata.namespace == pod.metadata.namespace


def _has_place(pod: Pod) -> bool:
    return bool(pod.spec.node_name or pod.status.nominated_node_name)


def _offered(old: Pod | None, new: Pod | None) -> Collection[Hashable]:
    """Keys that a new, deleted or changed pod offers to waiting pods: none for a new pod without a
    node.
    """
    if old is None and new is not None and not _has_place(new):
        return ()
    keys: list[Hashable] = []
    for other in (old, new):
        if other is not None:
            keys.append(other.metadata.namespace)
            if other.metadata.labels:
                keys += offered_labels(other)
    return keys
