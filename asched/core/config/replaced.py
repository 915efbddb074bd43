"""Plugins of earlier versions and their replacements.

Source  release history of Kubernetes 1.18 to 1.32
"""

from collections.abc import Mapping
from typing import Final

from asched import names
from asched.core.config.policy_table import (
    PREDICATES,
    PRIORITIES,
    STRATEGIES,
    UNSUPPORTED_PRIORITIES,
)

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

#: Old plugin -> the advice where it is rejected.
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
}
