"""The composition root: build a machine from a configuration.

The only module that knows concrete plugins. Simulation, what-if, conformance and production all use
it, so they run the same code.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Final

import msgspec

from asched import names
from asched.batch.extensions import EXTENSIONS
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.consumers import request_of
from asched.core.cluster.nominated import Nominator
from asched.core.cluster.pools import Pools
from asched.core.config import text
from asched.core.config.construct import in_order_of_use
from asched.core.config.gates import DEFAULT_GATES
from asched.core.config.merge import UnusableProfileError, resolve, with_pools
from asched.core.config.v1 import LATER_POINTS, POD_GROUP_POST_FILTER, SchedulerConfiguration
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.dry_runs import DryRuns
from asched.core.cycle.extension import Extension
from asched.core.cycle.machine import BINDINGS_MAX, Machine
from asched.core.cycle.observer import Observer
from asched.core.cycle.orders import Reconfigured
from asched.core.extender.consult import Chain
from asched.core.framework import profile as framework
from asched.core.framework.meter import PluginReports
from asched.core.framework.points import QueueSortPlugin
from asched.core.framework.pool_profiles import profile_of
from asched.core.framework.profile import CannotBuildError, Factory
from asched.core.framework.registrations import Registration
from asched.core.framework.runner import ExtenderChain, Runner
from asched.core.framework.waiting import WaitingPods
from asched.core.model import pod_limits
from asched.core.model.pod import Pod
from asched.core.plugins import IN_TREE, IN_TREE_POINTS, coscheduling, in_tree
from asched.core.plugins.node_pools import NodePools
from asched.core.queue.backoff import BackoffTimes
from asched.core.queue.gangs import Gangs
from asched.core.queue.profile import Guard, QueueProfile
from asched.core.queue.queue import MAX_IN_UNSCHEDULABLE_S, SchedulingQueue


class Parts(msgspec.Struct, frozen=True):
    """What surrounds the profiles and stays in place when the configuration is reloaded."""

    cluster: Cluster
    nominator: Nominator

    @classmethod
    def fresh(cls) -> "Parts":
        return cls.of(Cluster())

    @classmethod
    def of(cls, cluster: Cluster) -> "Parts":
        return cls(cluster, cluster.nominator)


def build_runners(
    configuration: SchedulerConfiguration,
    parts: Parts,
    *,
    factories: Mapping[str, Factory] = IN_TREE,
    known: Mapping[str, frozenset[str]] = IN_TREE_POINTS,
    extenders: ExtenderChain | None = None,
) -> dict[str, Runner]:
    """A runner per profile, with the configured extenders if none are given.

    Raises UnusableProfileError or CannotBuildError with one clear line.
    """
    if extenders is None and configuration.extenders:
        extenders = Chain(in_order_of_use(configuration.extenders), parts.cluster)
    pools = Pools.of(configuration.pools, parts.cluster)
    switched = in_tree(configuration.gates, pools)
    factories = {
        name: switched[name] if IN_TREE.get(name) is factory else factory
        for name, factory in factories.items()
    }
    if pools is not None:
        factories[names.NODE_POOLS] = lambda _args, _cluster: NodePools(pools)
    has_point = configuration.gates.get(LATER_POINTS[POD_GROUP_POST_FILTER])
    group_point = POD_GROUP_POST_FILTER if has_point else "postFilter"
    runners = {}
    for index, profile in enumerate(configuration.profiles):
        resolved = resolve(profile, known, index)
        if pools is not None:
            resolved = with_pools(resolved)
        percentage = configuration.percentage_of_nodes_to_score
        built = framework.build(resolved, factories, parts.cluster, percentage, group_point, pools)
        of_pools = built.plugins.get(names.NODE_POOLS)
        if isinstance(of_pools, NodePools):
            of_pools.restrict(built.plugins.values(), extenders)
        runners[built.scheduler_name] = Runner(built, parts.cluster, parts.nominator, extenders)
    return runners


def build_machine(
    configuration: SchedulerConfiguration,
    parts: Parts,
    runners: Mapping[str, Runner],
    *,
    monotonic_s: Callable[[], float],
    observer: Observer | None = None,
    max_in_unschedulable_s: float = MAX_IN_UNSCHEDULABLE_S,
    seed: int = 0,
    bindings_max: int = BINDINGS_MAX,
    extensions: Iterable[type[Extension]] = EXTENSIONS,
) -> Machine:
    """The machine around the runners. `monotonic_s` only measures durations."""
    observer = observer or Observer()
    parts.cluster.singleton(PluginReports).observer = observer
    parts.cluster.classes.sums_resizes = configuration.gates.get(
        "resizes-count-their-largest-sum", False
    )
    dry_runner = DryRuns()
    gangs = group_rules(configuration, runners)
    if gangs.forms_trees:
        parts.cluster.pod_groups.form_trees()
    deque(parts.cluster.pod_groups.serve(runners), maxlen=0)
    queue = SchedulingQueue(
        queue_profiles(runners, observer),
        parts.nominator,
        backoff=BackoffTimes(configuration.pod_initial_backoff_s, configuration.pod_max_backoff_s),
        max_in_unschedulable_s=max_in_unschedulable_s,
        observer=observer,
        monotonic_s=monotonic_s,
        class_key_of=lambda pod: waiting_key(parts.cluster, pod),
        gangs=gangs,
        dry_runner=dry_runner,
        gated_pods_hold_room=configuration.gates.get("gated-pods-hold-room", False),
    )
    context = SchedulerContext(
        cluster=parts.cluster,
        queue=queue,
        nominator=parts.nominator,
        runners=runners,
        observer=observer,
        monotonic_s=monotonic_s,
        seed=seed,
        waiting=parts.cluster.singleton(WaitingPods.of),
        announces_places=configuration.gates.get("NominatedNodeNameForExpectation", True),
    )
    dry_runner.of(context)
    return Machine(context, extensions, bindings_max=bindings_max)


def reconfigured(
    configuration: SchedulerConfiguration,
    runners: Mapping[str, Runner],
    edition: Iterable[tuple[str, str, str]],
    observer: Observer,
) -> Reconfigured:
    """The message by which a running machine takes over a new configuration."""
    return Reconfigured(
        runners,
        queue_profiles(runners, observer),
        BackoffTimes(configuration.pod_initial_backoff_s, configuration.pod_max_backoff_s),
        group_rules(configuration, runners),
        text.deciding(configuration),
        tuple(sorted(edition)),
    )


def group_rules(configuration: SchedulerConfiguration, runners: Mapping[str, Runner]) -> Gangs:
    """Pods of a group are scheduled as one if the feature gate is on, or if a profile has a plugin
    for gangs; by placements if their gate is on, or if a profile has a plugin for placements.
    Groups named by a label need a profile with Coscheduling. Preemption for whole groups needs its
    gate.
    """
    # A recording of an earlier release lacks the gates and rules that have come since.
    gates, gangs = {**DEFAULT_GATES, **configuration.gates}, names.GANG_SCHEDULING
    profiles = [runner.profile for runner in runners.values()]
    tries_groups = gates.get("GenericWorkload", False)
    tries_groups |= any(gangs in profile.plugins for profile in profiles)
    tries_placements = gates.get("TopologyAwareWorkloadScheduling", False)
    tries_placements |= any(profile.placement_generators for profile in profiles)
    coscheduled = {
        profile.scheduler_name: plugin.args
        for profile in profiles
        if (plugin := profile.plugins.get(names.COSCHEDULING)) is not None
        and isinstance(plugin, coscheduling.Coscheduling)
    }
    makes_room = gates.get("WorkloadAwarePreemption", False)
    forms_trees = gates["CompositePodGroup"] and gates["composite-groups-form-trees"]
    return Gangs(
        tries_groups,
        tries_placements,
        coscheduled,
        makes_room,
        forms_trees,
        gates,
        profile_of(runners),
    )


def waiting_key(cluster: Cluster, pod: Pod) -> Hashable:
    """Equal for waiting pods that no queueing hint distinguishes.

    Claims made from templates are in the pod's status, so pods of one class have different claims.
    Pods that consume a ProvisioningRequest have reserved slots of their own. A pod beyond the limit
    of bytes shares nothing, and its long key is not stored.
    """
    key = cluster.classes.key_of(pod)
    if len(key) > pod_limits.BYTES_MAX:
        return None
    request = request_of(pod) if pod.metadata.annotations else ""
    group = pod.spec.scheduling_group
    own = pod.uid if pod.spec.resource_claims else ""
    if not (request or own or group):
        return key
    return key, request, own, group.pod_group_name if group is not None else None


def queue_profiles(
    runners: Mapping[str, Runner], observer: Observer | None = None
) -> dict[str, QueueProfile]:
    """What the queue needs of the profiles, as data."""
    return {
        name: QueueProfile(
            sort_key=sort_key_of(runner.profile.queue_sort, observer or Observer()),
            registrations=_with_extenders(runner),
            pre_enqueue=runner.profile.pre_enqueue,
            extra_events=runner.profile.extra_events,
            sorted_by=runner.profile.queue_sort.name,
        )
        for name, runner in runners.items()
    }


def _with_extenders(runner: Runner) -> Mapping[str, tuple[Registration, ...]]:
    """Register for what extenders use; every change may help a pod that an extender rejected."""
    registrations = runner.profile.registrations
    if not runner.has_extenders:
        return registrations
    return {**registrations, names.EXTENDER: framework.EVERYTHING}


def sort_key_of(plugin: QueueSortPlugin, observer: Observer) -> Callable[[Pod, float], Any]:
    """The sort key; a user's plugin is guarded, the in-tree one is called unguarded per pod."""
    if plugin.name in IN_TREE:
        return plugin.sort_key
    return Guard(plugin.name, plugin.sort_key, observer)


#: Errors of building profiles; each has one clear line.
BUILD_ERRORS: Final[tuple[type[Exception], ...]] = (UnusableProfileError, CannotBuildError)
