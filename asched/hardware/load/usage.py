"""Use of nodes, by row: the last samples of each, and derived values.

NodeMetrics ──> samples [SAMPLES, 2, N] ──> latest, mean, deviation [2, N]

A sample older than STALE_S is ignored: such a row counts as not measured, and so does a row without
metrics. Measurements of an earlier node of the same name are dropped.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, NamedTuple, Self

import numpy as np
from msgspec.structs import replace

from asched.core.model.kinds import Kind
from asched.core.model.meta import ApiObject, Record
from asched.core.model.pod import Pod, ResourceList
from asched.core.model.quantity import Quantity, check, milli, parse, whole
from asched.core.model.timestamp import seconds
from asched.hardware.rows import (
    F64,
    ByNode,
    ExpiringReports,
    UpstreamArgs,
    right_to_watch,
    scheduled_s,
)
from asched.plugin import (
    I64,
    Aspect,
    Cluster,
    PerClass,
    PodClass,
    PodInfo,
    Registration,
    RowLog,
    Rows,
    ScorePlugin,
)

# Use of nodes from metrics.k8s.io, with earlier samples.
#
# The API has no watch, no resourceVersion and no history, so it is listed regularly, and each
# object gets the samples of the objects before it. metrics-server scrapes the kubelets every 15 s
# by default.
#
# Source  k8s.io/metrics v1beta1 NodeMetrics: the usage is that of the `window` before `timestamp`
# Bounds  SAMPLES a node

POLL_S: Final = 15.0
SAMPLES: Final = 16


class Sample(Record, frozen=True, gc=False):
    """`end_s` in seconds since 1970; milli-CPU and bytes."""

    end_s: float
    cpu: float
    memory: float


class NodeMetrics(ApiObject, frozen=True, gc=False):
    """`usage` of cpu and memory (the working set), a mean over a window up to `timestamp`;
    `samples` newest first, including this one.
    """

    timestamp: str = ""
    usage: ResourceList | None = None
    samples: tuple[Sample, ...] = ()

    def __post_init__(self) -> None:
        if self.usage is not None:
            check(self.usage.values())

    def following(self, earlier: Self | None) -> Self:
        """Return the object with its own sample, and those of the object listed before. An object
        without a time, without both resources, or not newer has no sample of its own.
        """
        before = earlier.samples if earlier is not None else ()
        usage, end_s = self.usage or {}, seconds(self.timestamp, -np.inf)
        is_newer = end_s > (before[0].end_s if before else -np.inf)
        if not is_newer or "cpu" not in usage or "memory" not in usage:
            return replace(self, samples=before)
        sample = Sample(end_s, float(parse(usage["cpu"]) * 1000), float(parse(usage["memory"])))
        return replace(self, samples=(sample, *before[: SAMPLES - 1]))


#: Its plural is that of nodes themselves: kinds are distinguished by `resource`.
NODE_METRICS: Final = Kind.of(
    NodeMetrics, "metrics.k8s.io/v1beta1", plural="nodes", namespaced=False, poll_s=POLL_S
)


STALE_S: Final = 180.0
ASPECTS: Final = Aspect.LIVE | Aspect.ALLOCATABLE
#: Places on the axis of resources.
CPU: Final = 0  # milli-CPU
MEMORY: Final = 1  # bytes


class NodeUsage(ExpiringReports):
    """One for all plugins and profiles: `cluster.singleton(NodeUsage)`. A row is made when the
    window of its last sample ended.
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster, ASPECTS, NODE_METRICS, STALE_S)
        self._samples: F64 = np.full((SAMPLES, 2, 0), np.nan)
        #: float64[N]: milli-CPU of the whole machine, reserved parts included.
        self.capacity: F64 = np.zeros(0)
        #: Log of changed rows, for derived values.
        self.moved = RowLog()

    @property
    def latest(self) -> F64:
        """float64[2, N]: milli-CPU and bytes; NaN where nothing was measured."""
        found: F64 = self._samples[0]
        return found

    def mean(self) -> F64:
        """float64[2, N] over the available samples; NaN where there is none."""
        with np.errstate(invalid="ignore", divide="ignore"):
            found: F64 = np.nansum(self._samples, axis=0) / self._counts()
        return found

    def deviation(self) -> F64:
        """float64[2, N]: the standard deviation of the available samples; 0 for a single one."""
        with np.errstate(invalid="ignore", divide="ignore"):
            apart = np.nansum((self._samples - self.mean()) ** 2, axis=0)
            found: F64 = np.sqrt(apart / self._counts())
        return found

    def _counts(self) -> I64:
        found: I64 = np.count_nonzero(~np.isnan(self._samples), axis=0)
        return found

    def _reset(self, height: int) -> None:
        self._samples = np.full((SAMPLES, 2, height), np.nan)
        self.capacity = np.zeros(height)

    def _make_all(self, _: None) -> None:
        super()._make_all(None)
        self.moved.forget()

    def _make_rows(self, _: None, rows: Rows) -> bool:
        super()._make_rows(None, rows)
        for row in rows:
            self.moved.add(row, 1)
        return True

    def _read(self, row: int) -> None:
        node = self._cluster.nodes.node_at[row]
        self._samples[:, :, row] = np.nan
        self.made_s[row], self.capacity[row] = -np.inf, 0.0
        if node is None:
            return
        capacity = node.status.capacity
        self.capacity[row] = milli(capacity.cpu or 0) if capacity is not None else 0
        metrics: NodeMetrics | None = self._cluster.get(NODE_METRICS, node.name)
        made_s = seconds(node.metadata.creation_timestamp, 0.0)
        samples = [s for s in (metrics.samples if metrics is not None else ()) if s.end_s > made_s]
        for at, sample in enumerate(samples[:SAMPLES]):
            self._samples[at, :, row] = sample.cpu, sample.memory
        if samples:
            self.made_s[row] = samples[0].end_s


# Requests and limits of pods, CPU and memory, as the load plugins add them up.
#
# Containers together, or the largest init container alone, and overhead. Sidecars count as init
# containers.
#
# Source  kubernetes-sigs/scheduler-plugins pkg/trimaran/resourcestats.go (GetEffectiveResource,
#         SetMaxLimits)

Pair = tuple[int, int]


class Amounts(NamedTuple):
    """Each (milli-CPU, bytes); a limit is never below the request."""

    requests: Pair
    limits: Pair


def _effective(pod: Pod, *, limits: bool) -> Pair:
    spec = pod.spec
    each, first = (
        [_pair(c.resources.limits if limits else c.resources.requests) for c in containers or ()]
        for containers in (spec.containers, spec.init_containers)
    )
    overhead = _pair(spec.overhead)
    cpu, memory = (
        max(sum(pair[at] for pair in each), max((pair[at] for pair in first), default=0))
        + overhead[at]
        for at in range(2)
    )
    return cpu, memory


def _pair(amounts: Mapping[str, Quantity] | None) -> Pair:
    amounts = amounts or {}
    return milli(amounts.get("cpu", 0)), whole(amounts.get("memory", 0))


class PlacedAmounts(ByNode):
    """Sums over the pods on each row."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster, Aspect.POD_AMOUNTS | Aspect.LIVE)
        self._sums: I64 = np.zeros((4, 0), dtype=np.int64)
        self.of = PerClass(amounts_of_class, Amounts((0, 0), (0, 0)))

    def by_row(self) -> I64:
        """int64[4, N]: requests of CPU and memory, then limits."""
        self.update(None)
        return self._sums

    def _reset(self, height: int) -> None:
        self._sums = np.zeros((4, height), dtype=np.int64)

    def _read(self, row: int) -> None:
        placed = [self.of(info.cls) for info in self._cluster.pods_on(row).values()]
        held = [(*amounts.requests, *amounts.limits) for amounts in placed]
        self._sums[:, row] = np.array(held, dtype=np.int64).reshape(-1, 4).sum(axis=0)


def amounts_of_class(cls: PodClass) -> Amounts:
    """Amounts of the spec alone."""
    requests, limits = _effective(cls.example, limits=False), _effective(cls.example, limits=True)
    return Amounts(requests, (max(requests[0], limits[0]), max(requests[1], limits[1])))


# Expected use of recently placed pods, which measurements do not cover yet.
#
# A measurement is a mean over a window: a pod that was scheduled less than WINDOW_S before its end,
# or after it, is covered in part or not at all. Such pods are counted with their expected use.
#
# Bounds  one entry a pod that is on a node.

#: As in upstream's plugins, whatever the provider's own interval.
WINDOW_S: Final = 60.0


class ExpectedUse(ByNode):
    """`predict(cls)` is the expected use of a pod of a class, one number."""

    def __init__(
        self, cluster: Cluster, usage: NodeUsage, predict: Callable[[PodClass], int]
    ) -> None:
        super().__init__(cluster, Aspect.PODS | Aspect.LIVE, usage.moved)
        self._usage = usage
        self._predict = predict
        self._since_s: list[dict[str, float]] = []  # row -> uid -> when it was scheduled
        self._expected: F64 = np.zeros(0)

    def by_row(self) -> F64:
        """float64[N]; `usage` is up to date."""
        self.update(None)
        return self._expected

    def _reset(self, height: int) -> None:
        since = self._since_s
        self._since_s = (since + [{} for _ in range(height - len(since))])[:height]
        self._expected = np.zeros(height)

    def _read(self, row: int) -> None:
        pods, known = self._cluster.pods_on(row), self._since_s[row]
        for uid in known.keys() - pods.keys():
            del known[uid]
        for uid, info in pods.items():
            if uid not in known:
                known[uid] = scheduled_s(info.pod, self._cluster.wall_clock_s)
        after_s = self._usage.made_s[row] - WINDOW_S
        late = (pods[uid] for uid, since_s in known.items() if since_s > after_s)
        self._expected[row] = sum(self._predict(info.cls) for info in late)


# The source of measured use, in the args of the load plugins.
#
# Rules   `metricProvider.type` KubernetesMetricsServer, through the API server, is the only one: it
#         is read with asched's own credentials and needs no address or token. Others are rejected
#         by name.

METRICS_SERVER: Final = "KubernetesMetricsServer"


@dataclass(frozen=True, slots=True)
class MetricProvider:
    """Raises ValueError for anything but the metrics server."""

    type: str = METRICS_SERVER
    address: str = ""
    token: str = ""
    insecure_skip_verify: bool = True

    def __post_init__(self) -> None:
        if self.type != METRICS_SERVER:
            raise ValueError(
                f'metricProvider.type "{self.type}" is not implemented: there is {METRICS_SERVER},'
                " which every provider of metrics.k8s.io serves (prometheus-adapter is one)"
            )
        if self.address or self.token:
            raise ValueError(
                f"metricProvider.address and .token have no meaning with {METRICS_SERVER}:"
                " it is read through the API server"
            )
        if not self.insecure_skip_verify:
            raise ValueError(
                "metricProvider.insecureSkipVerify: false has no meaning with"
                f" {METRICS_SERVER}: it is read through the API server, whose certificate is"
                " verified as the kubeconfig says"
            )


@dataclass(frozen=True, slots=True)
class LoadArgs(UpstreamArgs):
    """Common part of the args of all load plugins. Raises ValueError for fields that have no
    effect; apiVersion and kind are optional.
    """

    metric_provider: MetricProvider = field(default_factory=MetricProvider)
    watcher_address: str = ""

    def __post_init__(self) -> None:
        UpstreamArgs.__post_init__(self)
        if self.watcher_address:
            raise ValueError(
                "watcherAddress is not implemented: the metrics server is asked through the API"
                " server"
            )


class LoadScorer(ScorePlugin):
    """A scorer of measured use. It rejects no pod."""

    kinds = (NODE_METRICS,)
    rbac_rules: ClassVar[Sequence[Mapping[str, Any]]] = [right_to_watch(NODE_METRICS)]

    def __init__(self, cluster: Cluster) -> None:
        self._usage = cluster.singleton(NodeUsage)

    def registrations(self) -> Sequence[Registration]:
        return ()

    def stamp(self, pod: PodInfo, data: Any) -> int:
        self._usage.refresh()
        return self._usage.version


def rounded(values: F64) -> F64:
    """To whole numbers, halves away from zero; for values from 0 on."""
    whole: F64 = np.floor(values)
    return whole + (values - whole >= 0.5)
