"""The in-tree plugins, one file each; some of them are in `batch`, with their features. To add a
plugin, add its line to `PLUGINS`.

A plugin class declares its name, its extension points (its base classes), what it reads and what it
registers for. Its constructor gets the parameters that it names: `args` (a record of
`config/args.py`, or None), `cluster` (read-only), `gates` (feature gates and their state), `pools`
(of the configuration, or None).

A file is imported when a configuration first names its plugin: no configuration uses all of them.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib import import_module
from types import FunctionType
from typing import Any, Final

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pools import Pools
from asched.core.config.default_plugins import KnownPlugins
from asched.core.config.gates import DEFAULT_GATES
from asched.core.framework.points import Plugin
from asched.core.framework.profile import points_of

Factory = Callable[[Any, Cluster], Plugin]

#: Name (the same as the `name` of the class) -> module, in this package or by its full name.
PLUGINS: Final[dict[str, str]] = {
    "PrioritySort": "priority_sort",
    "SchedulingGates": "scheduling_gates",
    "NodeUnschedulable": "node_unschedulable",
    "NodeName": "node_name",
    "TaintToleration": "taint_toleration",
    "NodeAffinity": "node_affinity",
    "NodePorts": "node_ports",
    "NodeResourcesFit": "resources.fit",
    "NodeResourcesBalancedAllocation": "resources.balanced_allocation",
    "ImageLocality": "image_locality",
    "PodTopologySpread": "pod_topology_spread",
    "InterPodAffinity": "inter_pod_affinity",
    "DynamicResources": "devices.plugin",
    "DefaultPreemption": "default_preemption",
    "NodeDeclaredFeatures": "node_declared_features",
    "DefaultBinder": "default_binder",
    "VolumeRestrictions": "volumes.restrictions",
    "NodeVolumeLimits": "volumes.limits",
    "VolumeBinding": "volumes.binding",
    "VolumeZone": "volumes.zone",
    "Backfill": "asched.batch.backfill.plugin",
    "CapacityScheduling": "capacity.plugin",
    "CheckAndHold": "asched.batch.provisioning.plugin",
    "GroupScaleUp": "asched.batch.scale_up.plugin",
    "Rebalance": "asched.batch.rebalance.plugin",
    "GangScheduling": "gang_scheduling",
    "TopologyPlacementGenerator": "topology_placement_generator",
    "PodGroupPodsCount": "pod_group_pods_count",
    "Coscheduling": "coscheduling",
    "GangSparingPreemption": "gang_sparing_preemption",
}


@cache
def class_of(name: str) -> type[Plugin]:
    """The class of an in-tree plugin."""
    module = PLUGINS[name]
    path = module if module.startswith("asched.") else f"{__name__}.{module}"
    found: type[Plugin] = getattr(import_module(path), name)
    assert found.name == name
    return found


class _PointsByName(Mapping[str, frozenset[str]]):
    """Name -> extension points, as the configuration asks for them."""

    def __getitem__(self, name: str) -> frozenset[str]:
        return points_of(class_of(name))

    def __contains__(self, name: object) -> bool:
        return name in PLUGINS

    def __iter__(self) -> Iterator[str]:
        return iter(PLUGINS)

    def __len__(self) -> int:
        return len(PLUGINS)


IN_TREE_POINTS: Final[KnownPlugins] = _PointsByName()


def in_tree(gates: Mapping[str, bool], pools: Pools | None = None) -> dict[str, Factory]:
    """Name -> factory under these gates; a gate that is not listed has its default."""
    state = {**DEFAULT_GATES, **gates}
    return {name: partial(_make, name, state, pools) for name in PLUGINS}


def _make(
    name: str, gates: Mapping[str, bool], pools: Pools | None, args: Any, cluster: Cluster
) -> Plugin:
    cls = class_of(name)
    offered: dict[str, Any] = {"args": args, "cluster": cluster, "gates": gates, "pools": pools}
    begin: Any = cls.__init__
    # `object.__init__` takes no parameters; `inspect` takes milliseconds to find that out.
    code = begin.__code__ if isinstance(begin, FunctionType) else None
    parameters = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount] if code else ()
    return cls(**{word: offered[word] for word in parameters})


IN_TREE: Final = in_tree(DEFAULT_GATES)
