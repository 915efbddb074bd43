"""Call extenders for a pod, and apply their answers.

    filter       one after the other, each with the nodes that the previous one left
    prioritize   all at the same time; points are added, failures only noted
    preempt      one after the other, each with the candidates that the previous one left
    binder       the first that binds takes the place of the bind plugins

A failure of an extender that is not ignorable ends the attempt (PointError, with kube-scheduler's
message). An answer counts only for nodes and pods that were sent. Unlike kube-scheduler, no pod is
bound to a node that the extender invented, no pod is evicted that may not be evicted, and no pods
are evicted from a node on which the extenders say that the pod can never run, nor from one node
after another for a pod that they reject anyway (DECISIONS.md).

Bounds  WASTED_MAX pods whose freed nodes were rejected are remembered, at most WASTED_NODES_MAX
        nodes of each, each node for WASTED_S.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/extender.go, schedule_one.go,
        framework/preemption/preemption.go (callExtenders)
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec
import numpy as np

from asched import names
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Answer, Refused, Replied, Returned, Unknown
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.spared_nodes import SparedNodes
from asched.core.config.v1 import Extender
from asched.core.extender import wire
from asched.core.extender.binder import ExtenderBinder
from asched.core.extender.wire import WireError
from asched.core.framework.effects import AskExtender, Effect, Together
from asched.core.framework.points import BindPlugin
from asched.core.framework.preemption_trial import Candidate
from asched.core.framework.status import PointError, Status, unresolvable, unschedulable
from asched.core.model.arrays import I64, Mask
from asched.core.model.kinds import NODE, POD, Kind
from asched.core.model.pod import Pod
from asched.core.model.quantity import wrapped

T = TypeVar("T")

#: MaxNodeScore / MaxExtenderPriority: extenders give 0 to 10, nodes have 0 to 100.
PRIORITY_FACTOR: Final = 10
#: Limit for an extender's error text, which appears in conditions, events and logs.
ERROR_CHARS_MAX: Final = 4_096
#: A guess: one extender that rejects nodes does not affect more pods at once.
WASTED_MAX: Final = 10_000
#: How long no pod is evicted for a pod from a node that was freed for it without effect. Short,
#: since pods that took the room meanwhile may have been the reason (`taken_nodes.PAUSE_S`).
WASTED_S: Final = 60.0
#: With so many nodes freed without effect, no pod is evicted for the pod anywhere.
WASTED_NODES_MAX: Final = 3


class Consulted(msgspec.Struct, frozen=True):
    """One extender, with the names of the resources that it manages."""

    config: Extender
    managed: frozenset[str]

    def is_interested(self, pod: Pod) -> bool:
        """Whether it manages a resource that some container of the pod requests, or all pods."""
        if not self.managed:
            return True
        spec = pod.spec
        return any(
            not self.managed.isdisjoint(amounts)
            for container in (*(spec.containers or ()), *(spec.init_containers or ()))
            for amounts in (container.resources.requests, container.resources.limits)
            if amounts
        )

    def ask(
        self, verb: str, body: Mapping[str, Any], read: Callable[[Any], T]
    ) -> Generator[Effect, Answer, T]:
        """Ask, and read the answer. Raises PointError if there is none, or an unreadable one."""
        answer = yield AskExtender(extender=self.config, verb=verb, body=body)
        match answer:
            case Replied(value=value):
                try:
                    return read(value)
                except WireError as error:
                    raise PointError(str(error)) from None
            case Refused(message=message) | Unknown(message=message):
                raise PointError(message)
        raise TypeError(f"an extender was answered for with {type(answer).__name__}")


class Chain:
    """The extenders of a configuration in the order of use (`runner.ExtenderChain`)."""

    def __init__(self, extenders: Sequence[Extender], cluster: Cluster) -> None:
        self._cluster = cluster
        self._all = tuple(
            Consulted(config, frozenset(r.name for r in config.managed_resources))
            for config in extenders
        )
        self.has_filter = any(extender.config.filter_verb for extender in self._all)
        self.has_prioritize = any(extender.config.prioritize_verb for extender in self._all)
        self.has_preempt = self.has_filter or any(
            extender.config.preempt_verb for extender in self._all
        )
        #: nodes from which no pods are evicted for a pod for some time
        self._wasted = SparedNodes(cluster, WASTED_MAX, WASTED_S)

    def is_interested(self, pod: PodInfo) -> bool:
        """Whether any of them affects the pod's placement."""
        verbs = ("filter_verb", "prioritize_verb", "preempt_verb")
        return any(self._concerned(pod, verb) for verb in verbs)

    def _concerned(self, pod: PodInfo, verb: str) -> list[Consulted]:
        """The extenders that have a verb, and manage the pod."""
        return [
            extender
            for extender in self._all
            if getattr(extender.config, verb) and extender.is_interested(pod.pod)
        ]

    # --- filter ----------------------------------------------------------------------------------

    def filter(
        self, pod: PodInfo, feasible: Mask
    ) -> Generator[Effect, Answer, tuple[Mask, Mapping[int, Status]]]:
        """(remaining rows, statuses of rows rejected with a reason). Raises PointError."""
        remaining = self._by_name(feasible)
        failed: dict[str, Status] = {}
        for extender in self._concerned(pod, "filter_verb"):
            if not remaining:
                break
            outcome = yield from _tolerated(
                extender, self._filter_by(extender, pod.pod, tuple(remaining))
            )
            if outcome is not None:
                passed, refused = outcome
                remaining = {name: remaining[name] for name in remaining if name in passed}
                failed.update(refused)
        if remaining:
            self._wasted.forget(pod.pod.uid)
        row_of = self._cluster.nodes.row_of
        statuses = {row_of[name]: status for name, status in failed.items() if name in row_of}
        return self._mask(remaining, len(feasible)), statuses

    def _filter_by(
        self, extender: Consulted, pod: Pod, node_names: Sequence[str]
    ) -> Generator[Effect, Answer, tuple[set[str], dict[str, Status]]]:
        """(remaining names, reasons of the other nodes). Raises PointError."""
        config = extender.config
        body = wire.arguments(pod, node_names, names_only=config.node_cache_capable)
        result = yield from extender.ask(config.filter_verb, body, wire.filter_result)
        if result.error:
            raise PointError(result.error[:ERROR_CHARS_MAX])
        passed = result.nodes or ()
        if config.node_cache_capable and result.node_names is not None:
            passed = result.node_names
        known = set(node_names)
        for name in passed:
            if name not in known:
                raise PointError(
                    f'extender "{config.url_prefix}" claims a filtered node "{name}" which is not'
                    " found in the input node list"
                )
        remaining = set(passed)
        refused = {
            name: status(reason).by(names.EXTENDER)
            for status, reasons in (
                (unschedulable, result.failed),
                (unresolvable, result.unresolvable),
            )
            for name, reason in reasons.items()
            if name in known and name not in remaining
        }
        return remaining, refused

    # --- prioritize ------------------------------------------------------------------------------

    def prioritize(self, pod: PodInfo, feasible: Mask) -> Generator[Effect, Answer, I64 | None]:
        """int64[N] to be added to the totals; sums wrap as Go's do. None without any scores."""
        rows = self._by_name(feasible)
        parts = [
            self._scores_by(extender, pod.pod, tuple(rows))
            for extender in self._concerned(pod, "prioritize_verb")
        ]
        if not parts:
            return None
        if len(parts) == 1:
            outcome = [(yield from parts[0])]
        else:
            answer = yield Together(parts=tuple(parts))
            assert isinstance(answer, Returned)
            outcome = answer.value
        if not any(outcome):
            return None
        extra = np.zeros(len(feasible), dtype=np.int64)
        totals: dict[str, int] = {}
        for scores in outcome:
            for name, score in scores:
                totals[name] = totals.get(name, 0) + score
        row_of = self._cluster.nodes.row_of
        for name, total in totals.items():
            if name in rows and name in row_of:
                extra[row_of[name]] = wrapped(total)
        return extra

    def _scores_by(
        self, extender: Consulted, pod: Pod, node_names: Sequence[str]
    ) -> Generator[Effect, Answer, list[tuple[str, int]]]:
        """Weighted points by node name; none if the extender fails, which is not an error."""
        config = extender.config
        body = wire.arguments(pod, node_names, names_only=config.node_cache_capable)
        try:
            priorities = yield from extender.ask(config.prioritize_verb, body, wire.priorities)
        except PointError:
            return []
        return [(host, score * config.weight * PRIORITY_FACTOR) for host, score in priorities]

    # --- preempt ---------------------------------------------------------------------------------

    def note_wasted(self, pod: PodInfo, node: str) -> None:
        """Record that pods were evicted from a node which was rejected all the same."""
        self._wasted.add(pod.pod.uid, node)

    def wasted_rows(self, pod: PodInfo, open_rows: I64) -> I64:
        """The rows from which evictions for the pod would have no effect."""
        uid = pod.pod.uid
        is_over = len(self._wasted.names(uid)) >= WASTED_NODES_MAX
        return open_rows if is_over else self._wasted.rows(uid)

    def finds_victims(self, pod: PodInfo) -> bool:
        """Whether any of them may name victims for the pod."""
        return bool(self._concerned(pod, "preempt_verb"))

    def preempt(
        self, pod: PodInfo, candidates: Mapping[str, Candidate]
    ) -> Generator[Effect, Answer, Mapping[str, Candidate]]:
        """The remaining candidates, by node name; those without victims stay if an extender names
        some. Raises PointError.
        """
        remaining = dict(candidates)
        for extender in self._concerned(pod, "preempt_verb"):
            if not remaining:
                break
            steps = self._preempt_by(extender, pod.pod, remaining)
            if (chosen := (yield from _tolerated(extender, steps))) is not None:
                remaining = chosen
        remaining = {name: c for name, c in remaining.items() if c.victims}
        is_placed = bool(pod.pod.spec.node_name)  # a resized pod runs there
        for extender in () if is_placed else self._concerned(pod, "filter_verb"):
            if not remaining:
                break
            outcome = yield from _tolerated(
                extender, self._filter_by(extender, pod.pod, tuple(remaining))
            )
            refused = outcome[1] if outcome is not None else {}
            never = {n for n, status in refused.items() if status.code is unresolvable().code}
            remaining = {name: c for name, c in remaining.items() if name not in never}
        return remaining

    def _preempt_by(
        self, extender: Consulted, pod: Pod, candidates: Mapping[str, Candidate]
    ) -> Generator[Effect, Answer, dict[str, Candidate]]:
        config = extender.config
        body = wire.preemption_arguments(pod, candidates, names_only=config.node_cache_capable)
        result = yield from extender.ask(config.preempt_verb, body, wire.preemption_result)
        chosen = {
            name: self._candidate(extender, pod, name, victims, candidates)
            for name, victims in result.items()
        }
        for name, candidate in list(chosen.items()):
            if not candidate.victims and candidates[name].victims:
                if not config.ignorable:
                    raise PointError(f'expected at least one victim pod on node "{name}"')
                del chosen[name]
        return chosen

    def _candidate(
        self,
        extender: Consulted,
        pod: Pod,
        name: str,
        meta: "wire.MetaVictims",
        candidates: Mapping[str, Candidate],
    ) -> Candidate:
        """The victims an extender names, as pods. Raises PointError."""
        row = self._cluster.nodes.row_of.get(name)
        if row is None:
            raise PointError(f'nodeinfo not found for node name "{name}"')
        prefix = extender.config.url_prefix
        if name not in candidates:
            raise PointError(
                f"extender: {prefix} claims a candidate node: {name}, which was not proposed to it"
            )
        placed = self._cluster.pods_on(row)
        victims = []
        for uid in meta.uids:
            info = placed.get(uid)
            if info is None:
                raise PointError(
                    f"extender: {prefix} claims to preempt pod (UID: &{{{uid}}}) on node: {name},"
                    " but the pod is not found on that node"
                )
            if info.pod.priority >= pod.priority:
                raise PointError(
                    f"extender: {prefix} claims to preempt pod (UID: &{{{uid}}}) on node: {name},"
                    " but its priority is not lower"
                )
            victims.append(info)
        return Candidate(name, row, tuple(victims), meta.violations)

    # --- bind ------------------------------------------------------------------------------------

    def binder(self, pod: PodInfo) -> BindPlugin | None:
        binders = self._concerned(pod, "bind_verb")
        return ExtenderBinder(binders[0].config, self._cluster) if binders else None

    # --- rows and names --------------------------------------------------------------------------

    def _by_name(self, feasible: Mask) -> dict[str, int]:
        """Node name to row, of the rows that are marked."""
        nodes = self._cluster.nodes.node_at
        rows = np.flatnonzero(feasible).tolist()
        return {node.name: row for row in rows if (node := nodes[row]) is not None}

    def _mask(self, remaining: Mapping[str, int], height: int) -> Mask:
        """The rows of these names, as far as they still have the same node."""
        mask = np.zeros(height, dtype=np.bool_)
        row_of = self._cluster.nodes.row_of
        mask[[row for name, row in remaining.items() if row_of.get(name) == row]] = True
        return mask


def _tolerated(
    extender: Consulted, steps: Generator[Effect, Answer, T]
) -> Generator[Effect, Answer, T | None]:
    """Run steps; None if an ignorable extender fails. Raises PointError if another does."""
    try:
        return (yield from steps)
    except PointError:
        if not extender.config.ignorable:
            raise
        return None


def whole_kinds(extenders: Sequence[Extender]) -> frozenset[Kind]:
    """The kinds of objects that these extenders receive whole: pods always.

    Empty if extenders are only used to bind.
    """
    kinds: set[Kind] = set()
    for config in extenders:
        if config.filter_verb or config.prioritize_verb:
            kinds |= {POD} if config.node_cache_capable else {POD, NODE}
        if config.preempt_verb:
            kinds.add(POD)
    return frozenset(kinds)


def wants_victims(extenders: Sequence[Extender]) -> bool:
    """Whether some extender receives potential victims."""
    return any(c.preempt_verb and not c.node_cache_capable for c in extenders)
