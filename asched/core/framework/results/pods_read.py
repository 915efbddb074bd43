"""Whether a filter reads the pods on a node."""

from asched.core.cluster.nodes import Aspect
from asched.core.cluster.pods import PodInfo
from asched.core.framework.points import CachedPlugin, FilterPlugin
from asched.core.framework.status import MISTAKES, raise_plugin_error


def ignores_pods(plugin: FilterPlugin) -> bool:
    """Whether a filter's result is independent of the pods on nodes."""
    return (
        plugin.depends_on is not None
        and not plugin.depends_on & Aspect.PODS
        and type(plugin).stamp is CachedPlugin.stamp
    )


def is_blind(plugin: FilterPlugin, pod: PodInfo) -> bool:
    """Whether its cached result for this pod is valid for any pods on the nodes."""
    try:
        return ignores_pods(plugin) or plugin.is_blind_for(pod)
    except MISTAKES as raised:
        raise_plugin_error(plugin.name, "filter", raised)
