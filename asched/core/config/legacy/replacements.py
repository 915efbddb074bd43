"""Plugins, predicates and priorities of earlier versions, and what replaces them.

Source  release history of Kubernetes 1.18 to 1.32; kubernetes/kubernetes up to v1.22
        pkg/scheduler/framework/plugins/legacy_registry.go
"""

from collections.abc import Mapping
from typing import Final

from asched import names
from asched.core.config.args import LEAST_ALLOCATED, MOST_ALLOCATED

#: A weight times the highest score of a priority of that version must fit int64.
WEIGHT_LIMIT: Final = (2**63 - 1) // 10
_TAINTS: Final = (names.TAINT_TOLERATION,)
#: predicate -> plugins, in the order of evaluation, which the file does not change.
PREDICATES: Final[Mapping[str, tuple[str, ...]]] = {
    "CheckNodeUnschedulable": (names.NODE_UNSCHEDULABLE,),
    "GeneralPredicates": (
        names.NODE_RESOURCES_FIT,
        names.NODE_NAME,
        names.NODE_PORTS,
        names.NODE_AFFINITY,
    ),
    "HostName": (names.NODE_NAME,),
    "PodFitsHost": (names.NODE_NAME,),
    "PodFitsHostPorts": (names.NODE_PORTS,),
    "PodFitsPorts": (names.NODE_PORTS,),
    "MatchNodeSelector": (names.NODE_AFFINITY,),
    "PodSelectorMatches": (names.NODE_AFFINITY,),
    "PodFitsResources": (names.NODE_RESOURCES_FIT,),
    "NoDiskConflict": (names.VOLUME_RESTRICTIONS,),
    "PodToleratesNodeTaints": _TAINTS,
    "PodToleratesNodeNoExecuteTaints": _TAINTS,
    # Conditions of a node are taints now.
    "CheckNodeCondition": _TAINTS,
    "CheckNodeMemoryPressure": _TAINTS,
    "CheckNodeDiskPressure": _TAINTS,
    "CheckNodePIDPressure": _TAINTS,
    "MaxEBSVolumeCount": (names.NODE_VOLUME_LIMITS,),
    "MaxGCEPDVolumeCount": (names.NODE_VOLUME_LIMITS,),
    "MaxCSIVolumeCountPred": (names.NODE_VOLUME_LIMITS,),
    "MaxAzureDiskVolumeCount": (names.NODE_VOLUME_LIMITS,),
    "MaxCinderVolumeCount": (names.NODE_VOLUME_LIMITS,),
    "CheckVolumeBinding": (names.VOLUME_BINDING,),
    "NoVolumeNodeConflict": (names.VOLUME_BINDING,),
    "NoVolumeZoneConflict": (names.VOLUME_ZONE,),
    "EvenPodsSpread": (names.POD_TOPOLOGY_SPREAD,),
    "MatchInterPodAffinity": (names.INTER_POD_AFFINITY,),
}
#: Predicates that need an argument.
CUSTOM_PREDICATE_ARGS: Final = ("CheckServiceAffinity", "CheckNodeLabelPresence")
#: Predicates that always ran.
MANDATORY: Final = ("PodToleratesNodeTaints", "CheckNodeUnschedulable")
DEFAULT_PREDICATES: Final = (
    "NoVolumeZoneConflict",
    "MaxEBSVolumeCount",
    "MaxGCEPDVolumeCount",
    "MaxAzureDiskVolumeCount",
    "MaxCSIVolumeCountPred",
    "MatchInterPodAffinity",
    "NoDiskConflict",
    "GeneralPredicates",
    "PodToleratesNodeTaints",
    "CheckVolumeBinding",
    "CheckNodeUnschedulable",
    "EvenPodsSpread",
)
#: priority -> score plugin.
PRIORITIES: Final[Mapping[str, str]] = {
    "BalancedResourceAllocation": names.NODE_RESOURCES_BALANCED_ALLOCATION,
    "SelectorSpreadPriority": names.POD_TOPOLOGY_SPREAD,
    "ServiceSpreadingPriority": names.POD_TOPOLOGY_SPREAD,
    "EvenPodsSpreadPriority": names.POD_TOPOLOGY_SPREAD,
    "InterPodAffinityPriority": names.INTER_POD_AFFINITY,
    "NodeAffinityPriority": names.NODE_AFFINITY,
    "TaintTolerationPriority": names.TAINT_TOLERATION,
    "ImageLocalityPriority": names.IMAGE_LOCALITY,
}
#: Priorities that became a strategy of NodeResourcesFit.
STRATEGIES: Final = {
    "LeastRequestedPriority": LEAST_ALLOCATED,
    "MostRequestedPriority": MOST_ALLOCATED,
}
UNSUPPORTED_PRIORITIES: Final[Mapping[str, str]] = {
    "EqualPriority": "gave every node the same, so nothing is lost",
    "NodePreferAvoidPodsPriority": "its annotation is read no more; use PreferNoSchedule taints",
    "ResourceLimitsPriority": "gone since 1.20; requests alone are scored",
}
DEFAULT_PRIORITIES: Final[Mapping[str, int]] = {
    "SelectorSpreadPriority": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 1,
    "NodePreferAvoidPodsPriority": 10_000,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 1,
    "ImageLocalityPriority": 1,
    "EvenPodsSpreadPriority": 2,
}
CUSTOM_PRIORITY_ARGS: Final = ("serviceAntiAffinity", "labelPreference")
#: Plugins in addition to the predicates: sorting, gates, claims, preemption, binding.
ALWAYS: Final[Mapping[str, tuple[str, ...]]] = {
    "preEnqueue": (names.SCHEDULING_GATES, names.DYNAMIC_RESOURCES, names.DEFAULT_PREEMPTION),
    "queueSort": (names.PRIORITY_SORT,),
    "preFilter": (names.DYNAMIC_RESOURCES,),
    "filter": (names.DYNAMIC_RESOURCES,),
    "postFilter": (names.DYNAMIC_RESOURCES, names.DEFAULT_PREEMPTION),
    "reserve": (names.DYNAMIC_RESOURCES,),
    "preBind": (names.DYNAMIC_RESOURCES,),
    "bind": (names.DEFAULT_BINDER,),
}
_STRATEGY: Final = f"use the scoringStrategy of {names.NODE_RESOURCES_FIT}"
#: Old plugin -> the plugin that replaces it without changes.
SUCCESSORS: Final[Mapping[str, str]] = {
    "SelectorSpread": names.POD_TOPOLOGY_SPREAD,
    "DefaultPodTopologySpread": names.POD_TOPOLOGY_SPREAD,
    "AzureDiskLimits": names.NODE_VOLUME_LIMITS,
    "CinderLimits": names.NODE_VOLUME_LIMITS,
    "EBSLimits": names.NODE_VOLUME_LIMITS,
    "GCEPDLimits": names.NODE_VOLUME_LIMITS,
}
#: Plugin that asched does not have -> the advice where it is rejected.
ADVICE: Final[Mapping[str, str]] = {
    **{
        old: f"it is gone; {new}, on by default, does its work today"
        for old, new in SUCCESSORS.items()
    },
    "NodeLabel": f"it is gone; use {names.NODE_AFFINITY} with addedAffinity, or pod node affinity",
    "ServiceAffinity": f"it is gone; use pod affinity ({names.INTER_POD_AFFINITY})",
    "NodePreferAvoidPods": f"it is gone; use taints of effect PreferNoSchedule "
    f"({names.TAINT_TOLERATION})",
    "NodeResourcesLeastAllocated": f"it is gone; {_STRATEGY}, type LeastAllocated",
    "NodeResourcesMostAllocated": f"it is gone; {_STRATEGY}, type MostAllocated",
    "RequestedToCapacityRatio": f"it is gone; {_STRATEGY}, type RequestedToCapacityRatio",
    "NodeResourceLimits": f"it is gone; {names.NODE_RESOURCES_FIT} scores requests only",
    # Names of the old Policy, where a plugin is expected.
    **{
        old: f"it is a predicate of the old Policy; enable {' and '.join(new)} instead"
        for old, new in PREDICATES.items()
    },
    **{
        old: f"it is a priority of the old Policy; enable {new} instead"
        for old, new in PRIORITIES.items()
    },
    **{
        old: f"it is a priority of the old Policy; {_STRATEGY}, type {new}"
        for old, new in STRATEGIES.items()
    },
    **{
        old: f"it is a priority of the old Policy: {fate}"
        for old, fate in UNSUPPORTED_PRIORITIES.items()
    },
    "CheckServiceAffinity": f"it is gone; use pod affinity ({names.INTER_POD_AFFINITY})",
    "CheckNodeLabelPresence": f"it is gone; use {names.NODE_AFFINITY} with addedAffinity",
    "DeferredPodScheduling": (
        f"delete the line: Kubernetes 1.37 and newer have it; in asched {names.DEFAULT_PREEMPTION}"
        " does its work"
    ),
}
