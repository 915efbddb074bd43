"""The in-tree plugins as data: what each extends, and which ones a default profile enables.

Rules   configuration knows plugins by this table only, never by their code; a plugin of a user is
        described in the same form (`KnownPlugins`) and merged in by whoever assembles the process;
        the order of DEFAULT_MULTI_POINT is upstream's and decides which reason a node reports.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/apis/config/v1/default_plugins.go, and the plugin
        lists recorded from kube-scheduler 1.36.2
"""

from collections.abc import Mapping
from typing import Final

from asched import names
from asched.core.config.v1 import PLACEMENT_GENERATE, PLACEMENT_SCORE, PluginEntry

#: Plugin name -> the extension points it implements.
KnownPlugins = Mapping[str, frozenset[str]]

IN_TREE_POINTS: Final[KnownPlugins] = {
    name: frozenset(points.split())
    for name, points in {
        names.SCHEDULING_GATES: "preEnqueue",
        names.PRIORITY_SORT: "queueSort",
        names.NODE_UNSCHEDULABLE: "filter",
        names.NODE_NAME: "filter",
        names.TAINT_TOLERATION: "filter preScore score",
        names.NODE_AFFINITY: "preFilter filter preScore score",
        names.NODE_PORTS: "preFilter filter",
        names.NODE_RESOURCES_FIT: f"preFilter filter preScore score {PLACEMENT_SCORE}",
        names.VOLUME_RESTRICTIONS: "preFilter filter",
        names.NODE_VOLUME_LIMITS: "preFilter filter",
        names.VOLUME_BINDING: "preFilter filter preScore score reserve preBind",
        names.VOLUME_ZONE: "preFilter filter",
        names.POD_TOPOLOGY_SPREAD: "preFilter filter preScore score",
        names.INTER_POD_AFFINITY: "preFilter filter preScore score",
        names.DYNAMIC_RESOURCES: "preEnqueue preFilter filter postFilter score reserve preBind",
        names.DEFAULT_PREEMPTION: "preEnqueue postFilter",
        names.NODE_RESOURCES_BALANCED_ALLOCATION: "preScore score",
        names.IMAGE_LOCALITY: "score",
        names.DEFAULT_BINDER: "bind",
        names.NODE_DECLARED_FEATURES: "preFilter filter",
        names.GANG_SCHEDULING: "preEnqueue permit",
        names.TOPOLOGY_PLACEMENT_GENERATOR: PLACEMENT_GENERATE,
        names.POD_GROUP_PODS_COUNT: PLACEMENT_SCORE,
        names.GPU_SHARING: "filter score",
        names.COSCHEDULING: "queueSort preEnqueue preFilter postFilter reserve permit",
    }.items()
}

#: Plugins with one rule in several parts: wherever a user enables them, they run at these points,
#: and of all others at queueSort alone. Upstream's Coscheduling rejects at PreFilter and gives up
#: at PostFilter and Reserve; here nothing of it is left to be done there.
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
    """The default multiPoint list under these gates; a gate that is not mentioned counts as off."""
    return tuple(
        PluginEntry(name, weight)
        for name, weight, gate in DEFAULT_MULTI_POINT
        if gate is None or gates.get(gate, False)
    )
