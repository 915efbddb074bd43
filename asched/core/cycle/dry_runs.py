"""Dry runs: find out whether an attempt at a waiting pod would fail now.

A dry run is the filter half of an attempt on cached results, and asks the PostFilter plugins
whether they might make room. It scores, measures, reports and writes nothing, and an attempt that
follows finds the cached results.

When a pod has left a node, most waiting pods need no dry run: the plugins that rejected them read
other pods by their amounts only, so no other node has changed for them, and this node has no room
for them even without all pods of lower priority. `decide-departures` takes 70 ms for each pod that
leaves; with a dry run of each class it takes 1,300 ms.

Bounds  results are cached while nothing changes that a filter reads; the requirements of a class on
        a node are stored with one of its pods while only pods and nodes change.
"""

from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Final, NamedTuple

from asched.core.cluster.nodes import NodeTable
from asched.core.cluster.pods import PodInfo
from asched.core.cycle.context import SchedulerContext
from asched.core.framework.order_free import POD_PLACE, OrderFree, takes_of
from asched.core.framework.points import PostFilterPlugin
from asched.core.framework.rejection import Rejection
from asched.core.framework.results.class_state import ClassState
from asched.core.framework.results.nominated import HELD_OFF
from asched.core.framework.results.pods_read import ignores_pods, is_blind
from asched.core.framework.runner import Runner
from asched.core.framework.status import MISTAKES
from asched.core.model.pod import Pod
from asched.core.queue.due_filter import DryRunVerdict
from asched.core.queue.queued import NO_NAMES, QueuedPod

#: Budget steps to compute the requirements of a class, with the answers of its filters.
NEEDS_STEPS: Final = 12


class DryRuns:
    """The dry runs of a `SchedulingQueue`. `of` sets the context, which is made later."""

    def __init__(self) -> None:
        self._context: SchedulerContext
        self._rejectors_of: dict[Hashable, frozenset[str] | None] = {}
        self._version: Hashable = None
        self._needs_of: Hashable = None
        #: changes as soon as stored requirements are outdated
        self._needs_epoch = 0
        self._of_row: dict[str, frozenset[str]] = {}
        self._runners: Mapping[str, Runner] | None = None
        self._evicting: dict[Hashable, bool] = {}
        self._evicting_of: Hashable = None

    def of(self, context: SchedulerContext) -> None:
        self._context = context

    def __call__(self, queued: QueuedPod) -> DryRunVerdict | None:
        """Try the filters. None if the pod fits, if room might be made for it, or if only an
        attempt can find out.
        """
        context = self._context
        if queued.pending_on or not context.cluster.nodes.count:
            return None
        runner = context.runners.get(queued.profile)
        if runner is None:
            return None
        version = context.version, context.cluster.counts
        if version != self._version:
            self._version = version
            self._rejectors_of.clear()
        try:
            with runner.cache.unmeasured():
                if queued.gang:
                    lacks_places = context.extensions.lacks_places
                    if lacks_places is None or not lacks_places(runner, queued, version):
                        return None
                    return DryRunVerdict(queued.rejected_by, is_of_class=True)
                return self._dry_run(runner, context.cluster.classes.info_of(queued.pod))
        except MISTAKES:  # the attempt will raise and report it
            return None

    def rejectors(self, queued: QueuedPod) -> frozenset[str] | None:
        """The plugins that reject a pod, with nominated pods; None if it fits, or a plugin
        raises.
        """
        context = self._context
        runner = context.runners.get(queued.profile)
        if runner is None:
            return None
        if not context.cluster.nodes.count:
            return NO_NAMES
        try:
            with runner.cache.unmeasured():
                rejection = _rejection(runner, context.cluster.classes.info_of(queued.pod))
                return None if rejection is None else rejection.unschedulable_plugins
        except MISTAKES:  # the attempt will raise and report it
            return None

    def may_start(self, queued: QueuedPod) -> bool:
        """Whether the group of a pod has places by counting."""
        context = self._context
        runner = context.runners.get(queued.profile)
        may_start = context.extensions.may_start
        if runner is None or may_start is None:
            return False
        try:
            with runner.cache.unmeasured():
                return may_start(runner, queued, (context.version, context.cluster.counts))
        except MISTAKES:  # the attempt after its backoff will raise and report it
            return False

    def may_help(self, queued: QueuedPod, freed_node: str) -> bool:
        """Whether a waiting pod, or an equal pod, may fit since a pod left `freed_node`."""
        context = self._context
        if queued.gang or queued.pending_on:
            return True
        runner = context.runners.get(queued.profile)
        if runner is None:
            return True
        cluster, pod = context.cluster, queued.pod
        row = cluster.nodes.row_of.get(freed_node)
        if row is None or pod.status.nominated_node_name or context.nominator.node_of(pod.uid):
            return True
        try:
            needs = self._needs_of_class(runner, queued, queued.rejected_by)
            if not needs.is_of_row or _has_room(context, needs.takes, pod.priority, row):
                return True
            if not needs.may_evict_elsewhere or not cluster.priorities.are_below(pod.priority):
                return False
            return self._may_evict(runner, pod, needs)
        except MISTAKES:  # the attempt will raise and report it
            return True

    def room_test(self, freed_node: str) -> Callable[[QueuedPod], bool]:
        """Return a test whether a pod for which victims are being evicted elsewhere may fit on the
        node that a pod left. Valid for one change.
        """
        return _RoomTest(self._context, freed_node, self._needs_of_class)

    def _needs_of_class(
        self, runner: Runner, queued: QueuedPod, rejectors: frozenset[str]
    ) -> "_ClassNeeds":
        context = self._context
        cluster, runners = context.cluster, context.runners
        moved = cluster.epoch, cluster.topology.terms_generation, cluster.nodes.resources.end
        if moved != self._needs_of or runners is not self._runners:
            self._needs_of, self._runners = moved, runners
            self._needs_epoch += 1
            self._evicting_of = None
            self._of_row = {name: _of_row(runner) for name, runner in runners.items()}
        name = runner.profile.scheduler_name
        if not rejectors <= self._of_row[name]:  # for example plugins that wait for volumes or pods
            return NO_NEEDS
        version = self._needs_epoch, name, queued.class_key, rejectors
        if queued.needs is not None and queued.class_key is not None and queued.needs[0] == version:
            needs: _ClassNeeds = queued.needs[1]
            return needs
        context.queue.sliced_work.budget.note(NEEDS_STEPS)
        needs = _class_needs(context, runner, queued, rejectors)
        queued.needs = version, needs
        return needs

    def _may_evict(self, runner: Runner, pod: Pod, needs: "_ClassNeeds") -> bool:
        context = self._context
        version = context.version, context.cluster.counts
        if version != self._evicting_of:
            self._evicting_of = version
            self._evicting.clear()
        key = runner.profile.scheduler_name, needs.takes, pod.priority, pod.spec.preemption_policy
        if key not in self._evicting:
            info = context.cluster.classes.info_of(pod)
            state = runner.cache.state_of(info)
            trial = runner.trial(state, context.waiting, context.seed, context.now_s)
            post_filters = _post_filters(runner, state)
            self._evicting[key] = any(plugin.may_evict(info, trial) for plugin in post_filters)
        return self._evicting[key]

    def _dry_run(self, runner: Runner, pod: PodInfo) -> DryRunVerdict | None:
        active_plugins = runner.cache.state_of(pod).active_plugins
        if runner.nominated_node(pod) or runner.consults(pod) or not active_plugins.keeps_all:
            return None
        is_of_class = runner.treats_equals_alike(active_plugins)
        if is_of_class:
            # Pods of different classes may share the result, such as pods with a claim each.
            verdict_keys = tuple([plugin.verdict_key(pod) for plugin in active_plugins.deciding])
            key = runner.profile.scheduler_name, active_plugins.idle, verdict_keys, pod.pod.priority
            if key not in self._rejectors_of:
                self._rejectors_of[key] = _rejectors(runner, pod)
            rejectors = self._rejectors_of[key]
        else:
            rejectors = _rejectors(runner, pod)
        if rejectors is None or _may_make_room(self._context, runner, pod):
            return None
        extensions, priority = self._context.extensions, pod.pod.priority
        if extensions.yields_to(priority) and extensions.yields_places(pod, _why(runner, pod)):
            return None
        return DryRunVerdict(rejectors, is_of_class)


def _rejectors(runner: Runner, pod: PodInfo) -> frozenset[str] | None:
    rejection = _rejection(runner, pod)
    if rejection is None or rejection.pending_plugins:
        return None
    if HELD_OFF in rejection.overrides.values():
        return None  # cached results do not expire with time
    return rejection.unschedulable_plugins


def _rejection(runner: Runner, pod: PodInfo) -> Rejection | None:
    dry_run = runner.dry_run(pod)
    if dry_run.rejection is None and dry_run.count:
        return None
    return runner.rejection(pod, dry_run.state, dry_run.refused.by_trial)


def _may_make_room(context: SchedulerContext, runner: Runner, pod: PodInfo) -> bool:
    """Whether a PostFilter plugin may make room for a pod that fits on no node."""
    state = runner.cache.state_of(pod)
    post_filters = _post_filters(runner, state)
    if not post_filters:
        return False
    trial = runner.trial(state, context.waiting, context.seed, context.now_s)
    return any(p.may_make_room(pod, partial(_why, runner, pod), trial) for p in post_filters)


def _why(runner: Runner, pod: PodInfo) -> Rejection:
    rejection = _rejection(runner, pod)
    assert rejection is not None
    return rejection


class _RoomTest:
    """Tests whether amounts fit on a node with the pods there and the nominated pods."""

    def __init__(
        self,
        context: SchedulerContext,
        freed_node: str,
        needs_of_class: Callable[[Runner, QueuedPod, frozenset[str]], "_ClassNeeds"],
    ) -> None:
        nodes = context.cluster.nodes
        row = nodes.row_of.get(freed_node)
        self._context = context
        self._freed_node = freed_node
        self._needs_of_class = needs_of_class
        # Amounts there exceed 64 bits, or held places may be free as well.
        is_unknown = row in nodes.pod_amounts.rows_beyond or row in context.cluster.holds.by_row
        self._row = None if is_unknown else row
        self._free: dict[tuple[int, int], int] = {}  # by priority and place

    def __call__(self, queued: QueuedPod) -> bool:
        context, pod, row = self._context, queued.pod, self._row
        if row is None or queued.gang or queued.pending_on:
            return True
        runner = context.runners.get(queued.profile)
        if runner is None or context.nominator.node_of(pod.metadata.uid) == self._freed_node:
            return True
        try:
            # A gated pod waits until its last victim is gone, even if it fits now.
            rejectors = queued.rejected_by - {queued.gated_by}
            needs = self._needs_of_class(runner, queued, rejectors)
            if not needs.is_of_row or not needs.amounts_rejected:
                return True
            for at, amount in needs.takes:
                free = self._free.get((pod.priority, at))
                if free is None:
                    layer = runner.nominated_pods.nominated_amounts.layer(pod.priority)
                    promised = layer.count if at == POD_PLACE else layer.amounts[at]
                    free = _free(context.cluster.nodes, at, row) - promised.item(row)
                    self._free[pod.priority, at] = free
                if free < amount:
                    return False
        except MISTAKES:  # the dry run or the attempt will raise and report it
            pass
        return True


class _ClassNeeds(NamedTuple):
    """What a class requires of a node that a pod left.

    `takes`: (index on axis R or POD_PLACE, amount) that it needs there at least. `is_of_row`: no
    other node can have changed for it, unless pods are evicted there: its rejectors reject all
    nodes and read other pods by their amounts at most. `may_evict_elsewhere`: other filters read
    pods as well, and may accept a node without the pods that it may evict.
    `amounts_rejected`: the plugins that define `takes` are among its rejectors.
    """

    takes: tuple[tuple[int, int], ...]
    is_of_row: bool
    may_evict_elsewhere: bool
    amounts_rejected: bool


NO_NEEDS: Final = _ClassNeeds((), is_of_row=False, may_evict_elsewhere=True, amounts_rejected=False)


def _of_row(runner: Runner) -> frozenset[str]:
    """The filters that read no pods, or only the amounts of pods on the row."""
    plugins = [filterer.plugin for filterer in runner.profile.filters]
    return frozenset(p.name for p in plugins if p.reads_only_amounts or ignores_pods(p))


def _class_needs(
    context: SchedulerContext, runner: Runner, queued: QueuedPod, rejectors: frozenset[str]
) -> _ClassNeeds:
    pod = context.cluster.classes.info_of(queued.pod)
    state = runner.cache.state_of(pod)
    filters = [filterer.plugin for filterer in state.active_plugins.filters]
    others = [p for p in filters if not (p.reads_only_amounts or is_blind(p, pod))]
    post_filters = _post_filters(runner, state)
    asking = {p.name for p in filters if isinstance(p, OrderFree) and p.takes(pod)}
    return _ClassNeeds(
        takes=tuple(takes_of(filters, pod).items()),
        is_of_row=bool(rejectors)
        and not runner.consults(pod)
        and not pod.pod.spec.resource_claims
        and all(plugin.evicts_only_lower for plugin in post_filters),
        may_evict_elsewhere=bool(others and post_filters),
        amounts_rejected=asking <= rejectors,
    )


def _post_filters(runner: Runner, state: ClassState) -> list[PostFilterPlugin]:
    idle = state.active_plugins.idle
    return [plugin for plugin in runner.profile.post_filters if plugin.name not in idle]


def _has_room(
    context: SchedulerContext, takes: tuple[tuple[int, int], ...], priority: int, row: int
) -> bool:
    """Whether these amounts may fit on a row without its pods of lower priority. Nominated pods are
    not counted, so only False is certain.
    """
    cluster, nodes = context.cluster, context.cluster.nodes
    if row in nodes.pod_amounts.rows_beyond:  # amounts exceed 64 bits
        return True
    if row in cluster.holds.by_row and context.extensions.yields_to(priority):
        return True
    lower: list[PodInfo] | None = None
    for at, amount in takes:
        free = _free(nodes, at, row)
        if free >= amount:
            continue
        if lower is None:
            lower = []
            if cluster.priorities.are_below(priority):
                lower = [i for i in cluster.pods_on(row).values() if i.pod.priority < priority]
        if at == POD_PLACE:
            free += len(lower)
        else:
            name = nodes.resources.values[at + 1]
            free += sum(info.cls.accounted.get(name, 0) for info in lower)
        if free < amount:
            return False
    return True


def _free(nodes: NodeTable, at: int, row: int) -> int:
    """The free amount of a resource, or of pods, on a row."""
    read = nodes.columns.read
    if at == POD_PLACE:
        free: int = read("allowed_pods").item(row) - read("pod_count").item(row)
    else:
        free = read("allocatable").item(at, row) - read("requested").item(at, row)
    return free
