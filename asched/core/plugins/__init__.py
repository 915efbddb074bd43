"""The plugins, one file each. `IN_TREE` names them all: what to add when a plugin is added.

A factory takes the plugin's arguments (a record of `config/args.py`, or None) and the cluster it
may read. `in_tree` is the table under feature gates that are not the default: a rule meets a gate
as an argument of its own.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from asched import names
from asched.core.framework.points import Plugin
from asched.core.plugins.coscheduling import Coscheduling
from asched.core.plugins.default_binder import DefaultBinder
from asched.core.plugins.default_preemption import DefaultPreemption
from asched.core.plugins.devices.plugin import DynamicResources
from asched.core.plugins.gang_scheduling import GangScheduling
from asched.core.plugins.gpu_sharing import GpuSharing
from asched.core.plugins.image_locality import ImageLocality
from asched.core.plugins.inter_pod_affinity import InterPodAffinity
from asched.core.plugins.node_affinity import NodeAffinity
from asched.core.plugins.node_declared_features import NodeDeclaredFeatures
from asched.core.plugins.node_name import NodeName
from asched.core.plugins.node_ports import NodePorts
from asched.core.plugins.node_unschedulable import NodeUnschedulable
from asched.core.plugins.pod_group_pods_count import PodGroupPodsCount
from asched.core.plugins.pod_topology_spread import PodTopologySpread
from asched.core.plugins.pod_topology_spread.constraints import Switches
from asched.core.plugins.priority_sort import PrioritySort
from asched.core.plugins.resources.balanced_allocation import NodeResourcesBalancedAllocation
from asched.core.plugins.resources.fit import NodeResourcesFit
from asched.core.plugins.scheduling_gates import SchedulingGates
from asched.core.plugins.taint_toleration import TaintToleration
from asched.core.plugins.topology_placement_generator import TopologyPlacementGenerator
from asched.core.plugins.volumes.binding import VolumeBinding
from asched.core.plugins.volumes.limits import NodeVolumeLimits
from asched.core.plugins.volumes.restrictions import VolumeRestrictions
from asched.core.plugins.volumes.zone import VolumeZone
from asched.core.state.cluster import Cluster

Factory = Callable[[Any, Cluster], Plugin]

IN_TREE: Final[dict[str, Factory]] = {
    names.PRIORITY_SORT: lambda _args, _cluster: PrioritySort(),
    names.SCHEDULING_GATES: lambda _args, _cluster: SchedulingGates(),
    names.NODE_UNSCHEDULABLE: lambda _args, _cluster: NodeUnschedulable(),
    names.NODE_NAME: lambda _args, _cluster: NodeName(),
    names.TAINT_TOLERATION: lambda _args, cluster: TaintToleration(cluster),
    names.NODE_AFFINITY: NodeAffinity,
    names.NODE_PORTS: lambda _args, cluster: NodePorts(cluster),
    names.NODE_RESOURCES_FIT: NodeResourcesFit,
    names.NODE_RESOURCES_BALANCED_ALLOCATION: NodeResourcesBalancedAllocation,
    names.IMAGE_LOCALITY: lambda _args, cluster: ImageLocality(cluster),
    names.POD_TOPOLOGY_SPREAD: PodTopologySpread,
    names.INTER_POD_AFFINITY: InterPodAffinity,
    names.DYNAMIC_RESOURCES: DynamicResources,
    names.DEFAULT_PREEMPTION: DefaultPreemption,
    names.NODE_DECLARED_FEATURES: lambda _args, _cluster: NodeDeclaredFeatures(),
    names.DEFAULT_BINDER: lambda _args, _cluster: DefaultBinder(),
    names.VOLUME_RESTRICTIONS: lambda _args, cluster: VolumeRestrictions(cluster),
    names.NODE_VOLUME_LIMITS: lambda _args, cluster: NodeVolumeLimits(cluster),
    names.VOLUME_BINDING: VolumeBinding,
    names.VOLUME_ZONE: lambda _args, cluster: VolumeZone(cluster),
    names.GANG_SCHEDULING: lambda _args, cluster: GangScheduling(cluster),
    names.TOPOLOGY_PLACEMENT_GENERATOR: lambda _args, cluster: TopologyPlacementGenerator(cluster),
    names.POD_GROUP_PODS_COUNT: lambda _args, cluster: PodGroupPodsCount(cluster),
    names.GPU_SHARING: GpuSharing,
    names.COSCHEDULING: Coscheduling,
}


def in_tree(gates: Mapping[str, bool]) -> dict[str, Factory]:
    """IN_TREE with what these gates switch; a gate that is not mentioned keeps its default."""
    compares = gates.get("TaintTolerationComparisonOperators", False)
    label_keys = gates.get("MatchLabelKeysInPodTopologySpread", True)
    scaling = gates.get("VolumeLimitScaling", False)
    prioritized_list = gates.get("DRAPrioritizedList", True)
    switches = Switches(label_keys=label_keys, compares_taints=compares)
    return {
        **IN_TREE,
        names.NODE_UNSCHEDULABLE: lambda _args, _cluster: NodeUnschedulable(compares=compares),
        names.TAINT_TOLERATION: lambda _args, cluster: TaintToleration(cluster, compares=compares),
        names.POD_TOPOLOGY_SPREAD: lambda args, cluster: PodTopologySpread(args, cluster, switches),
        names.NODE_VOLUME_LIMITS: lambda _args, cluster: NodeVolumeLimits(cluster, scaling=scaling),
        names.DYNAMIC_RESOURCES: lambda args, cluster: DynamicResources(
            args, cluster, prioritized_list=prioritized_list
        ),
    }
