"""The args of LoadAwareScheduling, and the thresholds that a node may override."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from asched.core.model.meta import Record
from asched.core.model.node import Node
from asched.hardware.koordinator.node_metric import CPU, MEMORY, duration_s
from asched.hardware.rows import UpstreamArgs, decoded_json

PERCENTILES: Final = ("avg", "p50", "p90", "p95", "p99")
#: The annotation of a node.
THRESHOLDS: Final = "scheduling.koordinator.sh/usage-thresholds"
DEFAULT_ESTIMATOR: Final = "defaultEstimator"


class Aggregated(NamedTuple):
    """A percentile over a time; 0 s: over the longest reported time."""

    type: str
    duration_s: float


class CustomAggregated(Record, frozen=True, gc=False):
    usage_thresholds: dict[str, int] | None = None
    usage_aggregation_type: str = ""
    usage_aggregated_duration: str | None = None


class CustomThresholds(Record, frozen=True, gc=False):
    usage_thresholds: dict[str, int] | None = None
    prod_usage_thresholds: dict[str, int] | None = None
    aggregated_usage: CustomAggregated | None = None


class LoadProfile(NamedTuple):
    """Thresholds in percent by resource: of usage or a percentile of it, and of koord-prod."""

    usage: Mapping[str, int]
    prod: Mapping[str, int]
    aggregated: Aggregated | None = None

    def of(self, node: Node) -> "LoadProfile":
        """The profile with the node's annotation applied."""
        text = (node.metadata.annotations or {}).get(THRESHOLDS)
        annotated: CustomThresholds | None = decoded_json(text, CustomThresholds)
        if annotated is None:
            return self
        usage, aggregated = self.usage, self.aggregated
        custom = annotated.aggregated_usage
        if custom is not None and custom.usage_thresholds and custom.usage_aggregation_type:
            try:
                long_s = duration_s(custom.usage_aggregated_duration or "")
            except ValueError:
                return self
            usage = custom.usage_thresholds
            aggregated = Aggregated(custom.usage_aggregation_type, long_s)
        elif aggregated is None:
            usage = annotated.usage_thresholds or usage
        return LoadProfile(usage, annotated.prod_usage_thresholds or self.prod, aggregated)


@dataclass(frozen=True, slots=True)
class AggregatedArgs:
    """Percentiles in place of the last usage. Raises ValueError for invalid values.

    usage_thresholds: percent of a node by resource, 0 to 100, above which the percentile of the use
        keeps pods off; 0 is no limit
    usage_aggregation_type: the percentile that is filtered by: avg, p50, p90, p95 or p99
    usage_aggregated_duration: the time that it is of, such as `5m`; the longest reported one
        without
    score_aggregation_type: the percentile that is scored by; the last usage without
    score_aggregated_duration: the time that it is of; the longest reported one without
    """

    usage_thresholds: dict[str, int] = field(default_factory=dict)
    usage_aggregation_type: str = ""
    usage_aggregated_duration: str = ""
    score_aggregation_type: str = ""
    score_aggregated_duration: str = ""

    def __post_init__(self) -> None:
        _check_range("aggregated.usageThresholds", self.usage_thresholds, 0)
        for name, kind, long in (
            ("usage", self.usage_aggregation_type, self.usage_aggregated_duration),
            ("score", self.score_aggregation_type, self.score_aggregated_duration),
        ):
            if kind and kind not in PERCENTILES:
                known = ", ".join(PERCENTILES)
                raise ValueError(f'aggregated.{name}AggregationType "{kind}" is none of {known}')
            try:
                duration_s(long)
            except ValueError as error:
                raise ValueError(f"aggregated.{name}AggregatedDuration: {error}") from error

    @property
    def usage(self) -> Aggregated | None:
        """For the filter; only with thresholds."""
        if not (self.usage_thresholds and self.usage_aggregation_type):
            return None
        return Aggregated(self.usage_aggregation_type, duration_s(self.usage_aggregated_duration))

    @property
    def score(self) -> Aggregated | None:
        if not self.score_aggregation_type:
            return None
        return Aggregated(self.score_aggregation_type, duration_s(self.score_aggregated_duration))


@dataclass(frozen=True, slots=True)
class LoadAwareSchedulingArgs(UpstreamArgs):
    """Koordinator's args, with one different default.

    filter_expired_node_metrics: do not filter by a report that has expired
    node_metric_expiration_seconds: age in seconds, from 1, at which a report has expired
    enable_schedule_when_node_metrics_expired: a node whose report has expired accepts pods;
        Koordinator's default is false. Needs `filterExpiredNodeMetrics`
    resource_weights: weight of each resource in the score, 1 to 100; cpu 1 and memory 1 without
    dominant_resource_weight: weight of the scarcest resource in the score, 0 to 100
    usage_thresholds: percent of a node by resource, 0 to 100, above which its use keeps pods off;
        0 is no limit, and without any cpu has 65, memory 95
    prod_usage_thresholds: the same for pods of koord-prod, compared with the use of these pods
    prod_usage_include_sys: count the use of the system as use of koord-prod
    score_according_prod_usage: score pods of koord-prod by the use of these pods
    estimator: how the use of a pod without a measurement is estimated; there is one
    estimated_scaling_factors: percent of its limit, or request, that a pod is expected to use, 1 to
        100 by resource; cpu has 85, memory 70
    estimated_seconds_after_pod_scheduled: seconds from its scheduling in which a pod's estimate
        counts, whatever was measured
    estimated_seconds_after_initialized: seconds from the end of its init containers in which it
        counts
    allow_customize_estimation: pods may change factors and seconds by annotations
    supported_resources: further resources that annotations of nodes and pods may name
    """

    filter_expired_node_metrics: bool = True
    node_metric_expiration_seconds: int = 180
    enable_schedule_when_node_metrics_expired: bool = True
    resource_weights: dict[str, int] = field(default_factory=dict)
    dominant_resource_weight: int = 0
    usage_thresholds: dict[str, int] = field(default_factory=dict)
    prod_usage_thresholds: dict[str, int] = field(default_factory=dict)
    prod_usage_include_sys: bool = False
    score_according_prod_usage: bool = False
    estimator: str = DEFAULT_ESTIMATOR
    estimated_scaling_factors: dict[str, int] = field(default_factory=dict)
    estimated_seconds_after_pod_scheduled: int | None = None
    estimated_seconds_after_initialized: int | None = None
    allow_customize_estimation: bool = False
    aggregated: AggregatedArgs | None = None
    supported_resources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        UpstreamArgs.__post_init__(self)
        if self.node_metric_expiration_seconds <= 0:
            raise ValueError("nodeMetricExpirationSeconds must be at least 1")
        if self.estimator != DEFAULT_ESTIMATOR:
            raise ValueError(f'estimator "{self.estimator}" is not implemented')
        _check_range("resourceWeights", self.resource_weights, 1)
        _check_range("", {"dominantResourceWeight": self.dominant_resource_weight}, 0)
        _check_range("usageThresholds", self.usage_thresholds, 0)
        _check_range("prodUsageThresholds", self.prod_usage_thresholds, 0)
        _check_range("estimatedScalingFactors", self.estimated_scaling_factors, 1)
        for name in self.resource_weights:
            if name not in self.factors:
                raise ValueError(f"resourceWeights.{name}: estimatedScalingFactors has none")

    @property
    def factors(self) -> dict[str, int]:
        return {CPU: 85, MEMORY: 70, **self.estimated_scaling_factors}

    @property
    def weights(self) -> dict[str, int]:
        if self.resource_weights or self.dominant_resource_weight:
            return self.resource_weights
        return {CPU: 1, MEMORY: 1}

    @property
    def thresholds(self) -> dict[str, int]:
        return self.usage_thresholds or {CPU: 65, MEMORY: 95}

    @property
    def profile(self) -> LoadProfile:
        aggregated = self.aggregated or AggregatedArgs()
        thresholds = aggregated.usage_thresholds if aggregated.usage else self.thresholds
        return LoadProfile(thresholds, self.prod_usage_thresholds, aggregated.usage)

    @property
    def resources(self) -> tuple[str, ...]:
        """Every resource that is named in any field, in order."""
        named = {CPU, MEMORY, *self.weights, *self.thresholds, *self.prod_usage_thresholds}
        named |= {*self.factors, *self.supported_resources}
        if self.aggregated is not None:
            named |= self.aggregated.usage_thresholds.keys()
        return tuple(sorted(named))


def _check_range(where: str, given: Mapping[str, int], least: int) -> None:
    for name, value in given.items():
        if not least <= value <= 100:
            path = f"{where}.{name}" if where else name
            raise ValueError(f"{path} {value} is not in {least}..{100}")
