"""The extension points and rights of the plugins that asched brings, without importing them.

A configuration is read with these where NumPy is not installed. A test compares both tables with
the classes, which declare the same.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from asched.core.config.default_plugins import KnownPlugins
from asched.ops.doctor.permissions import Right

_PATCH_PODS: Final = Right("patch", "", "pods")
_READ_METRICS: Final = (Right("list", "metrics.k8s.io", "nodes"),)


def _read(group: str, resource: str) -> tuple[Right, ...]:
    return tuple(Right(verb, group, resource) for verb in ("list", "watch"))


#: Plugin name -> the extension points it implements.
SHIPPED_POINTS: Final[KnownPlugins] = {
    name: frozenset(points.split())
    for name, points in {
        "PrioritySort": "queueSort",
        "SchedulingGates": "preEnqueue",
        "NodeUnschedulable": "filter",
        "NodeName": "filter",
        "TaintToleration": "filter preScore score",
        "NodeAffinity": "preFilter filter preScore score",
        "NodePorts": "preFilter filter",
        "NodeResourcesFit": "preFilter filter preScore score placementScore",
        "NodeResourcesBalancedAllocation": "preScore score",
        "ImageLocality": "score",
        "PodTopologySpread": "preFilter filter preScore score",
        "InterPodAffinity": "preFilter filter preScore score",
        "DynamicResources": "preEnqueue preFilter filter postFilter score reserve preBind",
        "DefaultPreemption": "preEnqueue postFilter podGroupPostFilter",
        "NodeDeclaredFeatures": "preFilter filter",
        "DefaultBinder": "bind",
        "VolumeRestrictions": "preFilter filter",
        "NodeVolumeLimits": "preFilter filter",
        "VolumeBinding": "preFilter filter preScore score reserve preBind",
        "VolumeZone": "preFilter filter",
        "Backfill": "filter",
        "CapacityScheduling": "preFilter postFilter reserve",
        "CheckAndHold": "preEnqueue",
        "GroupScaleUp": "postFilter",
        "Rebalance": "postFilter",
        "GangScheduling": "preEnqueue permit",
        "TopologyPlacementGenerator": "placementGenerate",
        "PodGroupPodsCount": "placementScore",
        "Coscheduling": "queueSort preEnqueue preFilter postFilter reserve permit postBind",
        "GangSparingPreemption": "preEnqueue postFilter podGroupPostFilter",
        "GpuFractions": "filter",
        "GpuShare": "preFilter filter score reserve preBind",
        "GpuSharing": "filter score",
        "HamiVGPU": "preFilter filter score reserve preBind",
        "LoadAwareScheduling": "filter score",
        "LoadVariationRiskBalancing": "score",
        "LowRiskOverCommitment": "score",
        "NetworkTopology": "score placementGenerate placementScore",
        "NodeResourceTopologyMatch": "filter score reserve postBind",
        "TargetLoadPacking": "score",
        "VolcanoVGPU": "preFilter filter score reserve preBind",
    }.items()
}
#: Plugin name -> the rights that it declares.
SHIPPED_RIGHTS: Final[Mapping[str, Sequence[Right]]] = {
    "GpuShare": (_PATCH_PODS,),
    "HamiVGPU": (_PATCH_PODS, Right("patch", "", "nodes")),
    "LoadAwareScheduling": _read("slo.koordinator.sh", "nodemetrics"),
    "LoadVariationRiskBalancing": _READ_METRICS,
    "LowRiskOverCommitment": _READ_METRICS,
    "NetworkTopology": (
        *_read("kueue.x-k8s.io", "topologies"),
        *_read("kai.scheduler", "topologies"),
        *_read("topology.volcano.sh", "hypernodes"),
    ),
    "NodeResourceTopologyMatch": _read("topology.node.k8s.io", "noderesourcetopologies"),
    "TargetLoadPacking": _READ_METRICS,
    "VolcanoVGPU": (_PATCH_PODS,),
}
