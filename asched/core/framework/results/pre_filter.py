"""PreFilter: the results of all plugins folded into one.

A plugin may skip itself, restrict the nodes by name, or reject. An unresolvable rejection ends the
step; a resolvable one is stored while the other plugins still run, because preemption needs their
data.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/runtime/framework.go
(RunPreFilterPlugins)
"""

from collections.abc import Iterable, Mapping

from asched import names
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pods import PodInfo
from asched.core.framework.points import FilterPlugin, PreFilterPlugin
from asched.core.framework.results.cached import CachedVerdict
from asched.core.framework.results.pods_read import ignores_pods
from asched.core.framework.results.prepared import Prepared, PreparedFilter
from asched.core.framework.status import (
    MISTAKES,
    Code,
    PointError,
    Status,
    raise_plugin_error,
    unresolvable,
)
from asched.core.model.derived import derived


class PreFilterOutcome:
    """The result of PreFilter."""

    def __init__(self) -> None:
        self.rejection: Status | None = None
        #: the only rows left, None for all
        self.rows: set[int] | None = None
        #: why the other rows are excluded
        self.absent: Status | None = None
        #: the plugin whose rejection ended the step early
        self.stopped_by = ""
        #: plugins that restricted or rejected
        self.plugins: frozenset[str] = frozenset()
        #: plugins whose PreFilter did not skip itself
        self.asked: tuple[str, ...] = ()
        #: active filters
        self.active: list[CachedVerdict] = []

    @derived
    def pod_readers(self) -> list[FilterPlugin]:
        """Active filters that may read more of pods than their amounts."""
        plugins = [verdict.plugin for verdict in self.active]
        return [p for p in plugins if not (p.reads_only_amounts or ignores_pods(p))]

    def is_plain(self, pod: PodInfo) -> bool:
        """Whether the active filters read at most the amounts of pods, for this pod."""
        try:
            for plugin in self.pod_readers:
                if not plugin.is_blind_for(pod):
                    return False
        except MISTAKES as raised:
            raise_plugin_error(plugin.name, "filter", raised)
        return True


def pre_filter(
    pod: PodInfo,
    cluster: Cluster,
    plugins: Iterable[PreFilterPlugin],
    prepared: Mapping[str, Prepared],
    verdicts: Iterable[CachedVerdict],
) -> PreFilterOutcome:
    """Run every PreFilter with changed inputs. `prepared` by plugin name, `verdicts` in profile
    order.

    Raises PointError for an invalid result of a plugin.
    """
    outcome = PreFilterOutcome()
    narrowing: dict[str, frozenset[str]] = {}
    left_out: set[str] = set()
    try:
        for plugin in plugins:
            name = plugin.name
            result = prepared[name].update(pod)
            status = result.status
            if status.code is not Code.SKIP:
                outcome.asked += (name,)
            if status.is_success:
                if result.node_names is not None:
                    narrowing[name] = result.node_names
                    clash = _clash(narrowing)
                    if clash is not None:
                        outcome.stopped_by = name
                        return _rejected(outcome, clash, frozenset(narrowing))
                continue
            left_out.add(name)
            if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                outcome.stopped_by = name
                return _rejected(outcome, status.by(name), frozenset((name,)))
            if status.code is Code.UNSCHEDULABLE:
                _rejected(outcome, status.by(name), frozenset((name,)))
            elif status.code is not Code.SKIP:
                raise PointError(f'running PreFilter plugin "{name}": {status.message}')
    except MISTAKES as raised:
        raise_plugin_error(name, "preFilter", raised)
    for verdict in verdicts:
        name = verdict.plugin.name
        if name not in left_out:
            if not isinstance(verdict.prepared, PreparedFilter):
                verdict.prepared.update(pod)
            outcome.active.append(verdict)
    if narrowing and outcome.rejection is None:
        _narrow(outcome, cluster, narrowing)
    return outcome


def refused(refusal: str) -> PreFilterOutcome:
    """The outcome for pods that exceed a limit: no plugin is asked."""
    return _rejected(PreFilterOutcome(), unresolvable(refusal), frozenset((names.POD_LIMITS,)))


def _rejected(outcome: PreFilterOutcome, status: Status, by: frozenset[str]) -> PreFilterOutcome:
    outcome.rejection = status
    outcome.plugins = by
    return outcome


def _narrow(
    outcome: PreFilterOutcome, cluster: Cluster, narrowing: Mapping[str, frozenset[str]]
) -> None:
    names = frozenset.intersection(*narrowing.values())
    row_of = cluster.nodes.row_of
    outcome.rows = {row_of[name] for name in names if name in row_of}
    outcome.absent = not_satisfying(narrowing)
    outcome.plugins = frozenset(narrowing)


def not_satisfying(plugins: Iterable[str]) -> Status:
    """Why a node was not checked."""
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}]")


def _clash(narrowing: Mapping[str, frozenset[str]]) -> Status | None:
    """The rejection if the name sets are disjoint."""
    if frozenset.intersection(*narrowing.values()):
        return None
    if len(narrowing) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {next(iter(narrowing))}")
    listed = " ".join(sorted(narrowing))
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{listed}] simultaneously")
