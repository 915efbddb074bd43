"""A look at a waiting pod: what would an attempt at it come to by now?

It is the filter half of an attempt, on results that are kept, and the question to the PostFilter
plugins whether they might make room. Nothing is scored, measured, told or written, and an attempt
that follows finds the results as the look left them.

Bounds  what was found is kept while nothing changes that a filter reads.
"""

from collections.abc import Hashable
from functools import partial

from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.group_look import GangLooks
from asched.core.framework.attempt import Rejection
from asched.core.framework.results.nominated_filter import FOR_A_MOMENT
from asched.core.framework.runner import Runner
from asched.core.queue.looking import Verdict
from asched.core.queue.queued import QueuedPod
from asched.core.state.pods import PodInfo


class Looks:
    """For `SchedulingQueue`. `of` the context, once there is one."""

    def __init__(self) -> None:
        self._context: SchedulerContext | None = None
        self._found: dict[Hashable, frozenset[str] | None] = {}
        self._gangs = GangLooks()
        self._version: Hashable = None

    def of(self, context: SchedulerContext) -> None:
        self._context = context

    def __call__(self, queued: QueuedPod) -> Verdict | None:
        """None if the pod fits somewhere, if room might be made for it, or if only an attempt can
        tell.
        """
        context = self._context
        if context is None or queued.pending_on or not context.cluster.nodes.count:
            return None
        runner = context.runners.get(queued.pod.spec.scheduler_name)
        if runner is None:
            return None
        version = _version(context)
        if version != self._version:
            self._version = version
            self._found.clear()
            self._gangs.forget()
        meter, runner.meter = runner.meter, None
        try:
            if queued.gang:
                in_vain = self._gangs.has_no_places(context, runner, queued)
                return Verdict(queued.rejected_by, is_of_class=True) if in_vain else None
            return self._look(context, runner, context.cluster.classes.info_of(queued.pod))
        except Exception:  # noqa: BLE001 - whatever it is, the attempt reports it where it belongs
            return None
        finally:
            runner.meter = meter

    def _look(self, context: SchedulerContext, runner: Runner, pod: PodInfo) -> Verdict | None:
        active_plugins = runner.cache.state_of(pod).active_plugins
        if runner.nominated_node(pod) or runner.consults(pod) or not active_plugins.keeps_all:
            return None
        is_of_class = runner.treats_equals_alike(active_plugins)
        if is_of_class:
            judged = tuple([plugin.verdict_key(pod) for plugin in active_plugins.judges])
            rejectors = self._known(runner, pod, (active_plugins.idle, judged))
        else:
            rejectors = _rejectors(runner, pod)
        if rejectors is None or _may_make_room(context, runner, pod):
            return None
        return Verdict(rejectors, is_of_class)

    def _known(self, runner: Runner, pod: PodInfo, judged: Hashable) -> frozenset[str] | None:
        """Those who are judged alike, each by a class of its own maybe, are looked at once: a
        thousand claims that wait for a place for one.
        """
        key = runner.profile.scheduler_name, judged, pod.pod.priority
        if key not in self._found:
            self._found[key] = _rejectors(runner, pod)
        return self._found[key]


def _version(context: SchedulerContext) -> Hashable:
    """Moves with whatever filters read."""
    cluster, nodes = context.cluster, context.cluster.nodes
    moved = context.nominator.generation
    return cluster.epoch, cluster.counts, nodes.log.end, nodes.generation, moved


def _rejectors(runner: Runner, pod: PodInfo) -> frozenset[str] | None:
    rejection = _rejection(runner, pod)
    if rejection is None or rejection.pending_plugins:
        return None
    if not FOR_A_MOMENT.isdisjoint(rejection.overrides.values()):
        return None  # what is kept does not move with time
    return rejection.unschedulable_plugins


def _rejection(runner: Runner, pod: PodInfo) -> Rejection | None:
    fitting = runner.fitting(pod)
    if fitting.rejection is None and fitting.count:
        return None
    return runner.rejection(pod, fitting.state, fitting.refused.told)


def _may_make_room(context: SchedulerContext, runner: Runner, pod: PodInfo) -> bool:
    """Of a pod that fits nowhere."""
    state = runner.cache.state_of(pod)
    asked = [p for p in runner.profile.post_filters if p.name not in state.active_plugins.idle]
    if not asked:
        return False
    trial = runner.trial(state, context.waiting, context.seed, context.now_s)
    return any(p.may_make_room(pod, partial(_why, runner, pod), trial) for p in asked)


def _why(runner: Runner, pod: PodInfo) -> Rejection:
    rejection = _rejection(runner, pod)
    assert rejection is not None
    return rejection
