"""Make room for resizes in place that a kubelet has deferred.

    a pod is deferred ─> due ─> it fits by now            nothing: the kubelet tries it again
                             ├─> victims on its node      evictions
                             └─> none, or not permitted   an event says why
    due again   a pod leaves the node or is resized there; the node offers more, or permits
                preemption again; evictions failed

The pod does not enter the queue: it has a node, which counts all that it requests, and nothing is
to be bound. Of its profile, only NodeResourcesFit, DefaultPreemption and extenders with a
preemptVerb matter; these may change the victims, or refuse.

Bounds  AT_ONCE pods a turn, the most important first; a pod backs off between two tries, and while
        extenders are called for it.
Source  KEP-5836; kubernetes/kubernetes PR 140000
"""

from collections.abc import Generator, Iterator
from heapq import nsmallest
from typing import Final, NamedTuple

import msgspec

from asched import names
from asched.core.cluster.changes import Action, node_actions
from asched.core.cluster.cluster import Cluster, ObservedChange
from asched.core.cluster.nominated import Nominator
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.extension import Extension, Steps, Work
from asched.core.cycle.post_filter import Background
from asched.core.framework.effects import Effect, EmitEvent
from asched.core.framework.per_node import late
from asched.core.framework.points import Late, PostFilterResult
from asched.core.framework.rejection import fit_error
from asched.core.framework.status import MISTAKES, raise_plugin_error
from asched.core.framework.waiting import WaitingPods
from asched.core.model.kinds import NODE, POD
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.requests import is_scaled_down, pending_resize
from asched.core.plugins.default_preemption import Asking, DefaultPreemption
from asched.core.plugins.resources.fit import NodeResourcesFit

AT_ONCE: Final = 4
#: Pause of a pod that is due again while extenders are called for it.
ASKING_S: Final = 1.0
NOT_PERMITTED: Final = "node had resize preemption disabled"


class Deferred(msgspec.Struct):
    """A pod with a deferred resize. `is_asking`: while extenders are called."""

    pod: Pod
    is_asking: bool = False
    failures: int = 0
    not_before_s: float = 0.0
    note: str = ""


class ResizeSite(NamedTuple):
    """Where an eviction takes place (`preemption.eviction.Site`)."""

    cluster: Cluster
    nominator: Nominator
    waiting: WaitingPods


class DeferredResizes(Extension):
    """The deferred resizes of pods that name a profile."""

    name = "resizes"

    def __init__(self, context: SchedulerContext) -> None:
        super().__init__(context)
        self._deferred: dict[str, Deferred] = {}  # by uid
        self._due: dict[str, float] = {}  # uid of a pod to try -> not before

    def is_used(self) -> bool:
        return self.context.gangs.rules["InPlacePodVerticalScalingSchedulerPreemption"]

    def saw(self, change: ObservedChange) -> None:
        if change.kind is POD:
            pod: Pod = change.old if change.new is None else change.new
            node = pod.spec.node_name
            if node:
                self._follow(pod, change)
            if self._deferred and node and _moves_amounts(change):
                self._wake(node)
        elif change.kind is NODE and self._deferred and _permits_more(change.old, change.new):
            self._wake(change.new.name)

    def begin_turn(self) -> Iterator[Effect | Work]:
        now_s = self.context.now_s
        ready = [self._deferred[uid] for uid, at_s in self._due.items() if at_s <= now_s]
        for known in nsmallest(AT_ONCE, ready, key=lambda known: -known.pod.priority):
            pools = self.context.pools
            is_ours = pools is None or pools.may_use_node(known.pod.spec.node_name)
            if known.is_asking or not is_ours:
                self._due[known.pod.uid] = now_s + ASKING_S
            else:
                del self._due[known.pod.uid]
                yield from self._try(known)

    def next_deadline_s(self) -> float | None:
        return min(self._due.values(), default=None)

    def _follow(self, pod: Pod, change: ObservedChange) -> None:
        known = self._deferred.get(pod.uid)
        is_deferred = (
            change.new is not None
            and pending_resize(pod) == "Deferred"
            and not pod.is_terminating
            and self.context.owns(pod)
        )
        if not is_deferred:
            self._deferred.pop(pod.uid, None)
            self._due.pop(pod.uid, None)
        elif known is None or known.pod.spec != pod.spec:
            self._deferred[pod.uid] = Deferred(pod)
            self._due[pod.uid] = 0.0
        else:
            known.pod = pod

    def _wake(self, node: str) -> None:
        cluster = self.context.cluster
        row = cluster.nodes.row_of.get(node)
        for uid in cluster.pods_on(row) if row is not None else ():
            if uid in self._deferred:
                self._due.setdefault(uid, self._deferred[uid].not_before_s)

    def _try(self, known: Deferred) -> Iterator[Effect | Work]:
        context, pod = self.context, known.pod
        info = context.cluster.placed.get(pod.uid)
        runner = context.runner_of(pod)
        node = context.cluster.node_of(pod.spec.node_name)
        if info is None or runner is None or node is None:
            return
        plugins = runner.profile.plugins.values()
        fit = next((plugin for plugin in plugins if isinstance(plugin, NodeResourcesFit)), None)
        by = runner.profile.post_filters
        evictor = next((plugin for plugin in by if isinstance(plugin, DefaultPreemption)), None)
        if fit is None or evictor is None:
            return
        try:
            if not evictor.pre_enqueue(pod).is_success:
                return
            if not node.spec.permits_resize_preemption:
                reasons, result = {NOT_PERMITTED: 1}, None
            else:
                site = ResizeSite(context.cluster, context.nominator, context.waiting)
                found = evictor.make_room_for_resize(info, fit, site, runner.extenders)
                if found is None:
                    known.failures, known.note = 0, ""
                    return
                short, result = found
                reasons = dict.fromkeys(short.reasons, 1)
        except MISTAKES as raised:
            raise_plugin_error(evictor.name, "postFilter", raised)
        known.failures += 1
        pause_s = context.queue.backoff_rule.duration_s(known.failures)
        known.not_before_s = context.now_s + pause_s
        if isinstance(result, Generator):
            known.is_asking = True
            asking = late.checked_effects(result, evictor.name, "postFilter")
            yield Work(self._ask(known, reasons, asking), decides=False)
            return
        yield from self._report(known, reasons, result)
        if result is not None and result.background is not None:
            yield Work(self._evict(known, result.background), decides=False)

    def _report(
        self, known: Deferred, reasons: dict[str, int], result: PostFilterResult | None
    ) -> Iterator[Effect]:
        note = fit_error(1, "", reasons, "" if result is None else result.status.message)
        if note != known.note:
            known.note = note
            yield EmitEvent(
                regarding=POD.reference(known.pod.metadata),
                type="Warning",
                reason=names.EVENT_FAILED_SCHEDULING,
                action="Scheduling",
                note=note,
                reporting_controller=known.pod.spec.scheduler_name,
            )

    def _ask(self, known: Deferred, reasons: dict[str, int], asking: Asking) -> Steps:
        """Call extenders, then evict. Nothing is evicted if the resize was changed or accepted
        meanwhile.
        """
        try:
            result = yield from asking
        finally:
            known.is_asking = False
        if self._deferred.get(known.pod.uid) is not known:
            result.drop()
            return
        yield from self._report(known, reasons, result)
        if result.background is not None:
            yield from self._evict(known, result.background)

    def _evict(self, known: Deferred, steps: Late) -> Steps:
        """Evict. The departure of the victims makes the pod due; failures do here."""
        status, _ = yield from Background(self.context, known.pod, steps).run()
        if not status.is_success and self._deferred.get(known.pod.uid) is known:
            self._due.setdefault(known.pod.uid, known.not_before_s)


def _moves_amounts(change: ObservedChange) -> bool:
    """Whether a pod left its node, or other amounts count there."""
    old, new = change.old, change.new
    if old is None or new is None:
        return new is None
    return is_scaled_down(old, new) or is_scaled_down(new, old)


def _permits_more(old: Node | None, new: Node | None) -> bool:
    """Whether a node came, offers other amounts, or permits preemption for resizes again."""
    if old is None or new is None:
        return new is not None
    if new.spec.permits_resize_preemption and not old.spec.permits_resize_preemption:
        return True
    return Action.UPDATE_NODE_ALLOCATABLE in node_actions(old, new)
