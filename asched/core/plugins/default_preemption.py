"""DefaultPreemption: a pod that fits nowhere evicts pods of lower priority.

Makes room on a node that fits once pods of lower priority are gone, at the least cost; the pod
          then waits for its victims to go, nominated to that node.
Refuses   a pod with preemptionPolicy Never, a pod whose victims are still terminating, and a pod
          of a group that is tried in several placements, or preempts as a group.
Groups    preempt as a unit, anywhere in the cluster, if their gate is on (`preemption/sparing.py`).
Spares    for a minute a node on which a scheduler of `otherSchedulers` took the freed room
          (`preemption/taken_nodes.py`).
Waits     while the victims are being evicted (PreEnqueue).
Retry     nothing by itself: deleted pods wake the pods that filters rejected.
Cost      one pass over the nodes per kind of preemptor, then the rows that changed since.
Source    kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/defaultpreemption
"""

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from msgspec.structs import replace

from asched import names
from asched.core.cluster.changes import Action, Trigger
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Answer
from asched.core.cluster.gang import object_of
from asched.core.cluster.pod_groups import group_key
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.pools import Pools
from asched.core.cluster.view import SupposedView
from asched.core.config.args import DefaultPreemptionArgs
from asched.core.config.gates import DEFAULT_GATES
from asched.core.framework.effects import Effect
from asched.core.framework.expecting import Expecting
from asched.core.framework.group_post_filter import GroupPostFilterPlugin, GroupTrial, RoomMade
from asched.core.framework.order_free import POD_PLACE
from asched.core.framework.points import (
    Nomination,
    PostFilterPlugin,
    PostFilterResult,
    PreEnqueuePlugin,
    Scope,
)
from asched.core.framework.preemption_trial import Candidate, Trial
from asched.core.framework.registrations import Hint, Registration
from asched.core.framework.rejection import Rejection, fit_error
from asched.core.framework.results.draw import draw
from asched.core.framework.results.nominated_amounts import wanted_by
from asched.core.framework.runner import ExtenderChain
from asched.core.framework.status import (
    MISTAKES,
    SUCCESS,
    Code,
    PointError,
    Status,
    failure,
    raise_plugin_error,
    unresolvable,
    unschedulable,
)
from asched.core.model.kinds import (
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    DEVICE_CLASS,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_GROUP,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    STORAGE_CLASS,
)
from asched.core.model.meta import Record
from asched.core.model.pod import Pod
from asched.core.model.workload import PodGroup
from asched.core.plugins.resources.fit import NodeResourcesFit
from asched.core.preemption import eviction, sparing
from asched.core.preemption.budgets import Budgets
from asched.core.preemption.cost import best_of
from asched.core.preemption.no_eviction import NEVER, VICTIMS_LEAVING, prefixed
from asched.core.preemption.search import NOT_HELPFUL, Findings, Limit, VictimSearch
from asched.core.preemption.taken_nodes import TakenNodes
from asched.core.preemption.under_way import Preemptor, UnderWay
from asched.core.preemption.victims import NO_VICTIMS, NominatedRequests

UNKNOWN_GROUP: Final = "pod group for pod not found"
IN_PLACEMENTS: Final = "not eligible due to placement-based pod group scheduling limitation"
CONSTRAINED: Final = (
    "workload aware preemption is not supported for pod groups with scheduling constraints"
)
FOR_GROUP: Final = "pod group preemption: "
GROUP_FOUND: Final = "found a placement for podgroup, preempting"
AS_GROUP: Final = "not eligible due to workload aware preemption enabled"
WAITING: Final = "waiting for the preemption for this pod to be finished"
GROUP_WAITING: Final = "waiting for the preemption for this pod group to be finished"
ROOM_LOST: Final = "node(s) on which another scheduler took the freed room a moment ago"
FOUND: Final = "found a potential placement for pod on node"
#: Ours, where several replicas share the pools.
KEPT: Final = "node(s) with pods of another pool's namespace that a disruption budget keeps"
#: Nodes with such pods that an attempt looks at.
KEPT_TRIES: Final = 16
WASTED: Final = "an extender refused the node on which room was made for this pod"
NO_CANDIDATE: Final = "no candidate node for preemption"

#: Steps of the budget to prepare the eviction of one of many victims, and how many are prepared
#: between two checks of the budget.
VICTIM_STEPS, VICTIMS_AT_ONCE = 0.1, 500

#: Kinds whose changes may open another node to a pod that waits for its victims. Changes of pods
#: reach it anyway.
ELSEWHERE: Final = (
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    CSI_NODE,
    CSI_DRIVER,
    CSI_STORAGE_CAPACITY,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    DEVICE_CLASS,
    NAMESPACE,
)


#: Steps that call extenders.
Asking = Generator[Effect, Answer, PostFilterResult]


class _Fit(NamedTuple):
    plugin: NodeResourcesFit
    data: None = None


class DefaultPreemption(PostFilterPlugin, PreEnqueuePlugin, GroupPostFilterPlugin):
    name = names.DEFAULT_PREEMPTION
    scope = Scope.POOL
    preempts = True
    treats_equals_alike = True
    evicts_only_lower = True
    #: The key that orders pods by importance; the least important is evicted first.
    budgets: type[Budgets] = Budgets

    def __init__(
        self,
        args: DefaultPreemptionArgs | None,
        cluster: Cluster,
        gates: Mapping[str, bool] = DEFAULT_GATES,
    ) -> None:
        self._reports_success = gates["preemption-reports-success"]
        self._reports_groups = gates["preemption-for-groups-reports-itself"]
        self._serves_constrained = gates["groups-with-constraints-preempt"]
        self._evicts_groups = gates["pods-evict-whole-groups"] and gates["WorkloadAwarePreemption"]
        self._offers_empty = gates["extenders-find-the-victims"]
        args = args or DefaultPreemptionArgs()
        limit = Limit(args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute)
        is_restricted = limit.percentage < 100
        self._budgets = cluster.singleton(self.budgets)
        self._budgets.follow(gates)
        self._search = VictimSearch(cluster, limit, self._budgets, is_restricted=is_restricted)
        self._other_schedulers = frozenset(args.other_schedulers)
        self._cluster = cluster
        self._under_way = cluster.singleton(UnderWay)
        self._taken_nodes = cluster.singleton(TakenNodes)

    def registrations(self) -> Sequence[Registration]:
        return (Registration(Trigger(POD.resource, Action.DELETE), _pod_gone),)

    def extra_events(self) -> Sequence[Registration]:
        """Room on other nodes, once the pod is only waiting to be tried again."""
        return tuple(
            Registration(Trigger(kind.resource, Action.ALL), self._is_free) for kind in ELSEWHERE
        )

    def _is_free(self, pod: Pod, _old: Record | None, _new: Record | None) -> Hint:
        return Hint.QUEUE if self.pre_enqueue(pod).is_success else Hint.SKIP

    def pre_enqueue(self, pod: Pod) -> Status:
        under_way = self._under_way
        if not (under_way.busy or under_way.waiting):
            return SUCCESS
        if under_way.holds_group_back(pod):
            return unresolvable(GROUP_WAITING)
        return unresolvable(WAITING) if under_way.holds_back(pod) else SUCCESS

    def holding(self) -> Collection[str]:
        return self._under_way.holding()

    def expecting(self, departed: Pod) -> Expecting:
        return self._under_way.expecting(departed)

    def post_filter(
        self, pod: PodInfo, rejection: Rejection, trial: Trial
    ) -> PostFilterResult | Asking:
        now = self._cluster.pods_seen.get(pod.pod.key)
        if now is None:
            return prefixed(failure(f'pod "{pod.pod.metadata.name}" not found'))
        obstacle = self._obstacle(now, rejection, trial)
        if obstacle is not None:
            return prefixed(unschedulable(obstacle))
        if self._other_schedulers:
            self._taken_nodes.check(now, self._other_schedulers)
        if self._is_least(pod):  # the usual case; no node has to be checked
            return _cannot_help(rejection, {NO_VICTIMS.text: len(rejection.candidates)})
        findings = self._find(pod, rejection, trial)
        if not len(findings.open):
            return self._nothing(pod, findings, rejection, trial)
        extenders = trial.extenders
        if extenders is not None and extenders.has_preempt and extenders.is_interested(pod):
            wasted = extenders.wasted_rows(pod, findings.open)
            rows = np.setdiff1d(findings.open, wasted)
            if not len(rows):
                return prefixed(unschedulable(WASTED), Nomination(""))
            findings = findings._replace(open=rows)
            some = self._search.some(pod, findings, trial)
            otherwise = Nomination("" if len(wasted) else None)
            return self._ask(now, pod, some, extenders, trial.seed, trial, otherwise)
        for _ in range(KEPT_TRIES):
            candidate = self._search.best(pod, findings, trial)
            if not self._is_kept(candidate):
                return self._make_room(now, candidate, trial)
            self._under_way.kept_by_budget(now.uid, candidate.node)
            findings = findings._replace(open=findings.open[findings.open != candidate.row])
            if not len(findings.open):
                break
        reasons = {KEPT: len(self._under_way.kept_rows(now))}
        return _cannot_help(rejection, reasons, comes_back=True)

    def _is_kept(self, candidate: Candidate) -> bool:
        """Whether the API server would refuse an eviction: a budget that is used up protects a pod
        whose namespace belongs to another pool.
        """
        pools = Pools.of_cluster(self._cluster) if candidate.violations else None
        if pools is None:
            return False
        over = zip(candidate.victims, self._budgets.violations(candidate.victims), strict=True)
        return any(is_over and pools.is_visitor(info) for info, is_over in over)

    def group_post_filter(self, trial: GroupTrial) -> Generator[Effect, Answer, RoomMade]:
        room = yield from self._room_for_group(trial)
        status = room.status
        if not self._reports_groups:
            return room
        text = f"{GROUP_FOUND} {len(room.victims)} victims" if status.is_success else status.message
        return replace(room, status=replace(status, reasons=(FOR_GROUP + text,)))

    def _room_for_group(self, trial: GroupTrial) -> Generator[Effect, Answer, RoomMade]:
        if trial.group.topology_key and not self._serves_constrained:
            return RoomMade(unschedulable(CONSTRAINED))
        if any(info.pod.spec.preemption_policy == "Never" for info in trial.pods):
            return RoomMade(unschedulable(NEVER))
        probe, group_victims = yield from sparing.victims_for(trial, self._budgets)
        if not probe.status.is_success:
            return RoomMade(probe.status)
        victims = group_victims.pods
        keys: list[str] = []
        for start in range(0, len(victims), VICTIMS_AT_ONCE):
            yield from trial.charge(VICTIM_STEPS * VICTIMS_AT_ONCE, is_alone=True)
            keys += [info.pod.key for info in victims[start : start + VICTIMS_AT_ONCE]]
        preemptor = Preemptor.of_group(trial.group, [info.pod for info in trial.pods])
        leaving = eviction.Eviction(self.name, preemptor, victims, trial, self._under_way)
        counts = group_victims.violations, group_victims.disruptions
        return RoomMade(SUCCESS, probe.places, leaving.begin(), tuple(keys), *counts)

    def make_room_for_resize(
        self,
        pod: PodInfo,
        fit: NodeResourcesFit,
        site: eviction.Site,
        extenders: ExtenderChain | None,
    ) -> tuple[Status, PostFilterResult | Asking] | None:
        """Make room on the node of a placed pod whose resize is deferred: why it does not fit, and
        the evictions, or why there are none; steps if extenders are called. None if it fits.
        """
        nodes, priority = self._cluster.nodes, pod.pod.priority
        amounts = np.zeros((nodes.columns.size_of("R"), 1), dtype=np.int64)
        nominated = [
            self._cluster.classes.info_of(other)
            for other in site.nominator.on(pod.node_name).values()
            if other.priority >= priority
        ]
        for at, amount in wanted_by(nominated, nodes).items():
            amounts[at] += amount
        try:
            for at, amount in fit.takes(pod).items():  # the node counts the pod already
                if at != POD_PLACE:
                    amounts[at] -= amount
            more = NominatedRequests(amounts, np.array((len(nominated) - 1,)))
            view = SupposedView(nodes, np.array((pod.row,), dtype=np.int32), *more)
            code = int(fit.filter(pod, view, None)[0])
            if code == 0:
                return None
            short = fit.explain(pod, code)
        except MISTAKES as raised:
            raise_plugin_error(fit.name, "filter", raised)
        is_never = pod.pod.spec.preemption_policy == "Never"
        obstacle = NEVER if is_never else self._leaving(pod.row, pod.pod)
        if obstacle is not None:
            return short, prefixed(unschedulable(obstacle))
        run = self._search.on_row(pod, _Fit(fit), more)
        if run.status is not None:
            reasons = dict.fromkeys(run.status.reasons, 1)
            return short, prefixed(unschedulable(fit_error(1, "", reasons, "")))
        candidate = Candidate(pod.node_name, pod.row, run.victims, run.violations)
        if extenders is not None and extenders.has_preempt and extenders.is_interested(pod):
            asking = self._ask(pod.pod, pod, {pod.node_name: candidate}, extenders, 0, site)
            return short, asking
        return short, self._make_room(pod.pod, candidate, site)

    def _leaving(self, row: int, pod: Pod) -> str | None:
        """Why no further pod is evicted: a less important pod on the row where room was made
        terminates because a scheduler evicted it.
        """
        is_leaving = any(
            info.pod.priority < pod.priority and eviction.is_preempted(info.pod)
            for info in self._cluster.pods_on(row).values()
        )
        return VICTIMS_LEAVING if is_leaving else None

    def may_make_room(self, pod: PodInfo, why: Callable[[], Rejection], trial: Trial) -> bool:
        if pod.pod.spec.preemption_policy == "Never" or not self.may_evict(pod, trial):
            return False
        return bool(len(self._find(pod, why(), trial).open))

    def may_evict(self, pod: PodInfo, trial: Trial) -> bool:
        return not self._is_least(pod) and not self._search.is_hopeless(pod, trial)

    def _is_least(self, pod: PodInfo) -> bool:
        """Whether no placed pod is less important."""
        return not self._cluster.priorities.are_below(pod.pod.priority)

    def candidates(self, pod: PodInfo, rejection: Rejection, trial: Trial) -> dict[str, Candidate]:
        """Every node on which preemption would work, by name: for explanations (`what if`)."""
        if self._obstacle(pod.pod, rejection, trial) is not None:
            return {}
        return self._search.all(pod, self._find(pod, rejection, trial), trial)

    def _find(self, pod: PodInfo, rejection: Rejection, trial: Trial) -> Findings:
        extenders = trial.extenders
        with_empty = self._offers_empty and extenders is not None and extenders.finds_victims(pod)
        spared = self._taken_nodes.rows(pod.pod.priority, self._other_schedulers)
        kept = self._under_way.kept_rows(pod.pod)
        spared = np.concatenate((spared, kept)) if len(kept) else spared
        return self._search.find(pod, rejection, trial, spared, with_empty=with_empty)

    def _obstacle(self, pod: Pod, rejection: Rejection, trial: Trial) -> str | None:
        """Why the pod may not preempt, or None. A nomination counts before it is written."""
        if trial.in_placements:
            group: PodGroup | None = self._cluster.get(POD_GROUP, group_key(pod))
            if group is None:
                return UNKNOWN_GROUP
            if group.spec.scheduling_constraints is not None:
                return IN_PLACEMENTS
        if trial.is_of_group:
            return AS_GROUP
        if pod.spec.preemption_policy == "Never":
            return NEVER
        nominated = trial.nominator.node_of(pod.uid) or pod.status.nominated_node_name
        row = self._cluster.nodes.row_of.get(nominated) if nominated else None
        status = rejection.status_at(row) if row is not None else None
        if status is None or status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return None  # its nominated node, if any, is of no use any more
        return None if row is None else self._leaving(row, pod)

    def _nothing(
        self, pod: PodInfo, findings: Findings, rejection: Rejection, trial: Trial
    ) -> PostFilterResult:
        errors = list(dict.fromkeys(self._search.errors(pod, findings, trial)))
        nodes = self._search.without_victims(pod, findings, trial)
        if not self._offers_empty:
            errors += [f'expected at least one victim pod on node "{name}"' for name in nodes]
        if errors:  # a nomination is of no use any more
            text = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
            return prefixed(failure(text), Nomination(""))
        reasons = self._search.reasons(pod, findings, trial)
        if nodes:
            none = NO_VICTIMS.text
            reasons[none] = reasons.get(none, 0) + len(nodes)
        spared = len(rejection.candidates) - len(findings.tried)
        kept = len(np.intersect1d(self._under_way.kept_rows(pod.pod), rejection.candidates))
        for reason, count in ((KEPT, kept), (ROOM_LOST, spared - kept)):
            if count:
                reasons[reason] = count
        return _cannot_help(rejection, reasons, comes_back=bool(spared))

    def _ask(
        self,
        now: Pod,
        pod: PodInfo,
        candidates: Mapping[str, Candidate],
        extenders: ExtenderChain,
        seed: int,
        site: eviction.Site,
        otherwise: Nomination = Nomination(),  # noqa: B008
    ) -> Asking:
        """Extenders may drop candidates or change their victims. `otherwise`: without one left."""
        try:
            accepted = yield from extenders.preempt(pod, candidates)
        except PointError as error:
            return prefixed(failure(str(error)))
        if not accepted:
            return prefixed(unschedulable(NO_CANDIDATE), otherwise)
        tied = best_of(list(accepted.values()))
        return self._make_room(now, tied[draw(seed, len(tied))], site)

    def _make_room(self, now: Pod, candidate: Candidate, site: eviction.Site) -> PostFilterResult:
        preemptor = Preemptor.of_pod(now, candidate.node)
        victims, disruptions = self._with_groups(now, candidate.victims)
        leaving = eviction.Eviction(self.name, preemptor, victims, site, self._under_way)
        if self._other_schedulers:
            self._taken_nodes.note_eviction(now.uid, candidate.node)
        status = SUCCESS
        if self._reports_success:
            count = len(victims)
            text = f"{FOUND} {candidate.node}, preempting {count} victims"
            status = Status(Code.SUCCESS, (f"preemption: {text}",))
        return PostFilterResult(
            status,
            Nomination(candidate.node),
            leaving.begin(),
            tuple(info.pod.key for info in victims),
            leaving.withdraw,
            violations=candidate.violations,
            disruptions=disruptions,
        )

    def _with_groups(self, now: Pod, victims: Sequence[PodInfo]) -> tuple[Sequence[PodInfo], int]:
        """The victims with all pods of groups that are evicted as a whole (since 1.37), and how
        many of them, each a whole group or a pod, belong to groups.
        """
        groups = self._cluster.pod_groups
        units: dict[str, None] = {}
        uids = dict.fromkeys([info.pod.uid for info in victims])
        for info in victims:
            if info.pod.spec.scheduling_group is None:
                continue
            whole = groups.evicted_with(group_key(info.pod))
            group: PodGroup | None = object_of(self._cluster, whole)
            is_whole = group is not None and group.goes_whole and group.priority < now.priority
            unit = whole if is_whole and self._evicts_groups else info.pod.uid
            if unit == whole and unit not in units:
                leaves = groups.leaves_below(whole)
                uids |= dict.fromkeys([uid for leaf in leaves for uid in groups.get(leaf).placed])
            units[unit] = None
        if len(uids) > len(victims):
            victims = [info for uid in uids if (info := self._cluster.placed[uid]).row >= 0]
        return victims, len(units)


def _cannot_help(
    rejection: Rejection, reasons: dict[str, int], *, comes_back: bool = False
) -> PostFilterResult:
    """`reasons`: of the nodes on which evictions could have helped, with their counts."""
    count = rejection.node_count
    unhelpful = count - len(rejection.candidates)
    if unhelpful:
        reasons = {**reasons, NOT_HELPFUL: reasons.get(NOT_HELPFUL, 0) + unhelpful}
    result = prefixed(unschedulable(fit_error(count, "", reasons, "")), Nomination(""))
    return replace(result, comes_back=comes_back)


def _pod_gone(_pod: Pod, _old: Pod | None, _new: Pod | None) -> Hint:
    """The filters that rejected the pod register for deleted pods themselves."""
    return Hint.SKIP
