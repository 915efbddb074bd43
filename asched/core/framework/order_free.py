"""Filters for which the order does not matter in which pods come to their nodes.

Whether a set of pods fits beside each other is then a question of where they end up alone, and a
row that turned a pod away does not take it because of one pod more. Most rules are of this kind;
required affinity (somebody must come first) and spread (others raise the minimum) are not.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from asched.core.framework.points import FilterPlugin
from asched.core.framework.results.nominated_filter import ignores_pods
from asched.core.state.pods import PodInfo

#: In `OrderFree.takes`: the place of the pod among the pods of a row.
POD_PLACE: Final = -1


class OrderFree:
    """Mixed into a filter: what it says of pods that come one after the other depends on where all
    of them are in the end, and one pod more never makes it agree. Names of nodes mean nothing to
    it.
    """

    def is_order_free(self, pod: PodInfo) -> bool:  # noqa: ARG002
        """Whether the first holds for this pod, whoever comes before it."""
        return True

    def takes(self, pod: PodInfo) -> Mapping[int, int]:  # noqa: ARG002
        """What the pod surely needs of a row, and holds there: place on axis R to amount."""
        return {}


def is_order_free(plugin: FilterPlugin, pod: PodInfo) -> bool:
    if isinstance(plugin, OrderFree):
        return plugin.is_order_free(pod)
    return ignores_pods(plugin)


def takes_of(plugins: Iterable[FilterPlugin], pod: PodInfo) -> dict[int, int]:
    """What these say together that a pod needs of a row at least: place on axis R to amount."""
    found: dict[int, int] = {}
    for plugin in plugins:
        if isinstance(plugin, OrderFree):
            for at, amount in plugin.takes(pod).items():
                found[at] = max(found.get(at, 0), amount)
    return found
