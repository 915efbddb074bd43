"""What a world observes of pods while a workload runs: when each was created, tried and scheduled.

A pod counts as scheduled when it is first seen with a node after it was seen without, once. Times
are seconds of the world's clock.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from asched_lab.bench.manifests import matches


@dataclass(slots=True)
class Sighting:
    """One pod. `attempted` is also true for a pod that is scheduled."""

    namespace: str
    labels: Mapping[str, str] | None
    created_s: float
    scheduled_s: float | None = None
    attempted: bool = False


@dataclass(slots=True)
class PodWatch:
    """All pods of a run by key, and counts per namespace for operations that wait."""

    pods: dict[str, Sighting] = field(default_factory=dict)
    scheduled_by_namespace: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    scheduled_count: int = 0
    attempt_count: int = 0
    #: Raised with every pod that is scheduled, tried for the first time, or deleted.
    progress: int = 0
    collections: list["Collection"] = field(default_factory=list)

    def created(self, key: str, labels: Mapping[str, str] | None, now_s: float) -> None:
        """A pod was created; its key is `namespace/name`."""
        self.pods[key] = Sighting(key.partition("/")[0], labels, now_s)

    def scheduled(self, key: str, now_s: float) -> None:
        """A pod was seen with a node."""
        pod = self.pods.get(key)
        if pod is None or pod.scheduled_s is not None:
            return
        pod.scheduled_s = now_s
        pod.attempted = True
        self.scheduled_count += 1
        self.progress += 1
        self.scheduled_by_namespace[pod.namespace] += 1
        for collection in self.collections:
            collection.see(pod)

    def attempted(self, key: str) -> None:
        """A pod was seen with a condition that says it was tried."""
        pod = self.pods.get(key)
        if pod is not None and not pod.attempted:
            pod.attempted = True
            self.progress += 1

    def deleted(self, key: str) -> None:
        """A pod is deleted; its counts stay."""
        if self.pods.pop(key, None) is not None:
            self.progress += 1

    def names(self, namespace: str, selector: Mapping[str, str] | None) -> list[str]:
        """Names of the existing pods, in order of creation."""
        return [
            key.partition("/")[2]
            for key, pod in self.pods.items()
            if pod.namespace == namespace and matches(selector, pod.labels)
        ]

    def waiting(
        self,
        namespaces: Iterable[str],
        selector: Mapping[str, str] | None = None,
        *,
        attempted_is_enough: bool = False,
    ) -> int:
        """Number of selected pods that have not reached the stage; no namespaces means all."""
        wanted = frozenset(namespaces)
        return sum(
            1
            for pod in self.pods.values()
            if pod.scheduled_s is None
            and not (attempted_is_enough and pod.attempted)
            and (not wanted or pod.namespace in wanted)
            and matches(selector, pod.labels)
        )


@dataclass(slots=True)
class Collection:
    """The pods that a throughput is measured on: pods of some namespaces and labels."""

    name: str
    namespaces: frozenset[str]
    selector: Mapping[str, str] | None
    started_s: float
    stopped_s: float | None = None
    scheduled_at_s: list[float] = field(default_factory=list)
    waited_s: list[float] = field(default_factory=list)

    def see(self, pod: Sighting) -> None:
        """A pod was scheduled."""
        if self.stopped_s is None and pod.namespace in self.namespaces:
            if not matches(self.selector, pod.labels) or pod.scheduled_s is None:
                return
            self.scheduled_at_s.append(pod.scheduled_s)
            self.waited_s.append(pod.scheduled_s - pod.created_s)
