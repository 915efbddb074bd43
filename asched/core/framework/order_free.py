"""Filters whose results do not depend on the order in which pods are placed.

Whether a set of pods fits together then depends only on their final nodes, and a row that rejected
a pod does not accept it after one more pod. Most rules are of this kind; required affinity (one pod
must be first) and spread (other pods raise the minimum) are not.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.framework.points import I64, FilterPlugin
from asched.core.framework.results.pods_read import ignores_pods
from asched.core.framework.status import MISTAKES, raise_plugin_error

#: In `OrderFree.takes`: the place of the pod count of a row.
POD_PLACE: Final = -1


class OrderFree:
    """A mixin for filters: the result for pods placed one after the other depends only on their
    final nodes, and one more pod never turns a rejection into acceptance. Node names do not matter.
    """

    def is_order_free(self, pod: PodInfo) -> bool:  # noqa: ARG002
        """Whether the order does not matter for this pod, after any other pods."""
        return True

    def takes(self, pod: PodInfo) -> Mapping[int, int]:  # noqa: ARG002
        """The minimum that the pod needs and uses on a row: place on axis R -> amount."""
        return {}


def is_order_free(plugin: FilterPlugin, pod: PodInfo) -> bool:
    if isinstance(plugin, OrderFree):
        try:
            return plugin.is_order_free(pod)
        except MISTAKES as raised:
            raise_plugin_error(plugin.name, "filter", raised)
    return ignores_pods(plugin)


def takes_of(plugins: Iterable[FilterPlugin], pod: PodInfo) -> dict[int, int]:
    """The minimum of a row's amounts that all these plugins require for a pod."""
    found: dict[int, int] = {}
    try:
        for plugin in plugins:
            if isinstance(plugin, OrderFree):
                for at, amount in plugin.takes(pod).items():
                    found[at] = max(found.get(at, 0), amount)
    except MISTAKES as raised:
        raise_plugin_error(plugin.name, "filter", raised)
    return found


def left_of(nodes: NodeView, places: Sequence[int]) -> I64:
    """int64[len(places), M]: free amounts on the rows, negative where more is requested."""
    rows = [
        nodes.allowed_pods - nodes.pod_count
        if at == POD_PLACE
        else nodes.allocatable(at) - nodes.requested(at)
        for at in places
    ]
    return np.array(rows, dtype=np.int64).reshape(len(rows), nodes.size)


def slots_of(most: I64, needs: Iterable[int], free: Iterable[I64]) -> I64:
    """int64[N]: how many pods that need these amounts each row takes by amounts, `most` at most;
    that is modified. Negative where less than nothing is free.
    """
    for need, amounts in zip(needs, free, strict=True):
        if need:
            np.minimum(most, amounts // need, out=most)
    return most
