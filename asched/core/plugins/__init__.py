"""The plugins, one file each. `PLUGINS` names them all: the one line to add when one is added.

A plugin declares itself in its class: its name, its points (the bases it inherits), what it reads,
what it registers for. Its constructor is handed what it names: `args` (a record of
`config/args.py`, or None), `cluster` (which it may read), `gates` (feature gates and their state).
"""

from collections.abc import Callable, Mapping
from functools import cache, partial
from inspect import signature
from typing import Any, Final

from asched.core.config.gates import DEFAULT_GATES
from asched.core.config.in_tree import KnownPlugins
from asched.core.framework.point_table import points_of
from asched.core.framework.points import Plugin
from asched.core.plugins.backfill import Backfill
from asched.core.plugins.capacity.plugin import CapacityScheduling
from asched.core.plugins.check_and_hold import CheckAndHold
from asched.core.plugins.coscheduling import Coscheduling
from asched.core.plugins.default_binder import DefaultBinder
from asched.core.plugins.default_preemption import DefaultPreemption
from asched.core.plugins.devices.plugin import DynamicResources
from asched.core.plugins.gang_scheduling import GangScheduling
from asched.core.plugins.gang_sparing_preemption import GangSparingPreemption
from asched.core.plugins.image_locality import ImageLocality
from asched.core.plugins.inter_pod_affinity import InterPodAffinity
from asched.core.plugins.node_affinity import NodeAffinity
from asched.core.plugins.node_declared_features import NodeDeclaredFeatures
from asched.core.plugins.node_name import NodeName
from asched.core.plugins.node_ports import NodePorts
from asched.core.plugins.node_unschedulable import NodeUnschedulable
from asched.core.plugins.pod_group_pods_count import PodGroupPodsCount
from asched.core.plugins.pod_topology_spread import PodTopologySpread
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

PLUGINS: Final[tuple[type[Plugin], ...]] = (
    PrioritySort,
    SchedulingGates,
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    PodTopologySpread,
    InterPodAffinity,
    DynamicResources,
    DefaultPreemption,
    NodeDeclaredFeatures,
    DefaultBinder,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    Backfill,
    CapacityScheduling,
    CheckAndHold,
    GangScheduling,
    TopologyPlacementGenerator,
    PodGroupPodsCount,
    Coscheduling,
    GangSparingPreemption,
)

#: Name -> extension points, as the configuration asks for them.
IN_TREE_POINTS: Final[KnownPlugins] = {cls.name: points_of(cls) for cls in PLUGINS}


def in_tree(gates: Mapping[str, bool]) -> dict[str, Factory]:
    """Name -> what makes one under these gates; a gate that is not mentioned keeps its default."""
    state = {**DEFAULT_GATES, **gates}
    return {cls.name: partial(_make, cls, state) for cls in PLUGINS}


def _make(cls: type[Plugin], gates: Mapping[str, bool], args: Any, cluster: Cluster) -> Plugin:
    offered: dict[str, Any] = {"args": args, "cluster": cluster, "gates": gates}
    return cls(**{name: offered[name] for name in _asked(cls)})


@cache
def _asked(cls: type[Plugin]) -> tuple[str, ...]:
    """What a plugin of the table takes, by name."""
    return tuple(signature(cls).parameters)


IN_TREE: Final = in_tree(DEFAULT_GATES)
