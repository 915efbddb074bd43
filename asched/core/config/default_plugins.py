"""The default plugins of a profile, and the description of plugins for the configuration.

Rules   configuration does not import plugins; in-tree plugins and those of users are described in
        one form (`KnownPlugins`) by the code that assembles the process;
        the order of DEFAULT_MULTI_POINT is upstream's and decides which reason a node reports.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/apis/config/v1/default_plugins.go, and the
        plugin lists recorded from kube-scheduler 1.36.2
"""

from collections.abc import Mapping
from typing import Final

from asched import names
from asched.core.config.v1 import PluginEntry

#: Plugin name -> the extension points it implements.
KnownPlugins = Mapping[str, frozenset[str]]

#: Plugins with one rule in several parts: wherever a user enables them, they run at these points,
#: and beyond these only at queueSort. Upstream's Coscheduling rejects at PreFilter and gives up at
#: PostFilter and Reserve, and up to v1beta3 marks groups at PostBind; asched needs none of these.
WHOLE: Final[Mapping[str, frozenset[str]]] = {
    names.COSCHEDULING: frozenset({"preEnqueue", "permit"}),
}

#: (plugin, weight, gate that must be on or None), in the order of the default multiPoint list.
DEFAULT_MULTI_POINT: Final[tuple[tuple[str, int, str | None], ...]] = (
    (names.SCHEDULING_GATES, 0, None),
    (names.PRIORITY_SORT, 0, None),
    (names.NODE_UNSCHEDULABLE, 0, None),
    (names.NODE_NAME, 0, None),
    (names.TAINT_TOLERATION, 3, None),
    (names.NODE_AFFINITY, 2, None),
    (names.NODE_PORTS, 0, None),
    (names.NODE_RESOURCES_FIT, 1, None),
    (names.VOLUME_RESTRICTIONS, 0, None),
    (names.NODE_VOLUME_LIMITS, 0, None),
    (names.VOLUME_BINDING, 0, None),
    (names.VOLUME_ZONE, 0, None),
    (names.POD_TOPOLOGY_SPREAD, 2, None),
    (names.INTER_POD_AFFINITY, 2, None),
    (names.DYNAMIC_RESOURCES, 2, "DynamicResourceAllocation"),
    (names.DEFAULT_PREEMPTION, 0, None),
    (names.NODE_RESOURCES_BALANCED_ALLOCATION, 1, None),
    (names.IMAGE_LOCALITY, 1, None),
    (names.DEFAULT_BINDER, 0, None),
    (names.NODE_DECLARED_FEATURES, 0, "NodeDeclaredFeatures"),
    (names.GANG_SCHEDULING, 0, "GangScheduling"),
    (names.TOPOLOGY_PLACEMENT_GENERATOR, 0, "TopologyAwareWorkloadScheduling"),
    (names.POD_GROUP_PODS_COUNT, 1, "TopologyAwareWorkloadScheduling"),
)


def default_multi_point(gates: Mapping[str, bool]) -> tuple[PluginEntry, ...]:
    """The default multiPoint list under these gates; a gate that is not listed counts as off."""
    return tuple(
        PluginEntry(name, weight)
        for name, weight, gate in DEFAULT_MULTI_POINT
        if gate is None or gates.get(gate, False)
    )
