"""The args of NodeResourceTopologyMatch."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from asched.hardware.numa.scores import LEAST_ALLOCATED, LEAST_NUMA_NODES, ZONE_SCORES
from asched.hardware.rows import UpstreamArgs


class Mode(Enum):
    PASS_THROUGH = "pass-through"  # noqa: S105
    DISCARD = "discard"
    OVER_RESERVE = "over-reserve"


ALL: Final = "All"
NONE: Final = "None"
ONLY_EXCLUSIVE: Final = "OnlyExclusiveResources"
AUTODETECT: Final = "Autodetect"
ONLY_RESOURCES: Final = "OnlyResources"


STRATEGIES: Final = (*ZONE_SCORES, LEAST_NUMA_NODES)


@dataclass(frozen=True, slots=True)
class ResourceWeight:
    name: str
    weight: int = 1


@dataclass(frozen=True, slots=True)
class NumaScoringStrategy:
    """How zones are scored for guaranteed pods.

    type: LeastAllocated, MostAllocated, BalancedAllocation or LeastNUMANodes
    resources: resources with weights; others have weight 1
    """

    type: str = LEAST_ALLOCATED
    resources: tuple[ResourceWeight, ...] = (ResourceWeight("cpu"), ResourceWeight("memory"))


@dataclass(frozen=True, slots=True)
class CacheArgs:
    """Args of the over-reserve cache.

    foreign_pods_detect: All, None, or OnlyExclusiveResources: which of the pods that this profile
        did not place leave their node out until its agent's next report
    resync_method: Autodetect, All, or OnlyExclusiveResources: which pods the agent's fingerprint
        covers; Autodetect takes it from the report
    resync_scope: All, or OnlyResources: whether a changed policy of the kubelet's topology manager
        makes a report count at once
    informer_mode: refused: there is one watch of pods
    """

    foreign_pods_detect: str = ALL
    resync_method: str = AUTODETECT
    resync_scope: str = ALL
    informer_mode: str = ""

    def __post_init__(self) -> None:
        if self.informer_mode:
            raise ValueError(
                "cache.informerMode has no meaning here: there is one watch of pods; leave it out"
            )
        for name, value, known in (
            ("foreignPodsDetect", self.foreign_pods_detect, (ALL, NONE, ONLY_EXCLUSIVE)),
            ("resyncMethod", self.resync_method, (AUTODETECT, ALL, ONLY_EXCLUSIVE)),
            ("resyncScope", self.resync_scope, (ALL, ONLY_RESOURCES)),
        ):
            if value not in known:
                raise ValueError(f'cache.{name} "{value}" is none of {", ".join(known)}')


@dataclass(frozen=True, slots=True)
class NodeResourceTopologyMatchArgs(UpstreamArgs):
    """The score, and how pods count that no report has yet.

    cache_resync_period_seconds: above 0, new pods are subtracted from every zone until the agent
        reports them; reports that do not name all pods are compared again after so many seconds
    discard_reserved_nodes: leave a node out while pods are being bound to it; takes precedence over
        the cache
    preemption_mode: only this one
    """

    scoring_strategy: NumaScoringStrategy = field(default_factory=NumaScoringStrategy)
    cache_resync_period_seconds: int = 0
    discard_reserved_nodes: bool = False
    cache: CacheArgs = field(default_factory=CacheArgs)
    preemption_mode: str = "Disabled"

    def __post_init__(self) -> None:
        UpstreamArgs.__post_init__(self)
        if self.scoring_strategy.type not in STRATEGIES:
            given, known = self.scoring_strategy.type, ", ".join(STRATEGIES)
            raise ValueError(f'scoringStrategy.type "{given}" is none of {known}')
        if self.cache_resync_period_seconds < 0:
            raise ValueError("cacheResyncPeriodSeconds must not be negative")
        if self.preemption_mode != "Disabled":
            raise ValueError(
                f'preemptionMode "{self.preemption_mode}" is not implemented: there is Disabled'
            )

    @property
    def mode(self) -> Mode:
        if self.discard_reserved_nodes:
            return Mode.DISCARD
        return Mode.OVER_RESERVE if self.cache_resync_period_seconds else Mode.PASS_THROUGH
