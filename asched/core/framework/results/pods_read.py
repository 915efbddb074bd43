"""What the filters of a class read of the pods on a node: nothing, their amounts, or more."""

from functools import lru_cache

from asched.core.cluster.nodes import Aspect
from asched.core.cluster.pods import PodInfo
from asched.core.framework.points import CachedPlugin, FilterPlugin
from asched.core.framework.results.class_state import ClassState
from asched.core.framework.results.prepared import PLUGINS_MAX
from asched.core.framework.status import MISTAKES, raise_plugin_error


def ignores_pods(plugin: FilterPlugin) -> bool:
    """Whether a filter's result is independent of the pods on nodes."""
    return _ignores_pods(type(plugin))


@lru_cache(PLUGINS_MAX)
def _ignores_pods(plugin: type[FilterPlugin]) -> bool:
    return (
        plugin.depends_on is not None
        and not plugin.depends_on & Aspect.PODS
        and plugin.stamp is CachedPlugin.stamp
    )


def is_plain(pod: PodInfo, state: ClassState) -> bool:
    """Whether the class's filters read at most the amounts of pods."""
    outcome = state.outcome
    if outcome.seeing is None:
        outcome.seeing = [
            verdict.plugin
            for verdict in outcome.active
            if not (verdict.plugin.reads_only_amounts or ignores_pods(verdict.plugin))
        ]
    try:
        for plugin in outcome.seeing:
            if not plugin.is_blind_for(pod):
                return False
    except MISTAKES as raised:
        raise_plugin_error(plugin.name, "filter", raised)
    return True


def is_blind(plugin: FilterPlugin, pod: PodInfo) -> bool:
    """Whether its cached result for this pod is valid for any pods on the nodes."""
    try:
        return ignores_pods(plugin) or plugin.is_blind_for(pod)
    except MISTAKES as raised:
        raise_plugin_error(plugin.name, "filter", raised)
