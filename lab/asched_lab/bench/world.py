"""A world that workloads run in: a cluster whose objects can be made, changed and removed, with a
scheduler.

There are two. `run_decide.py` stores the objects in process and counts only the time of the engine;
`run_bind.py` uses an API server with the scheduler as a process of its own. Operations (`ops.py`)
use this interface alone, so both modes run the same files in the same way.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from asched_lab.bench.manifests import JsonObject, Names
from asched_lab.bench.metrics import DataItem
from asched_lab.bench.watching import PodWatch

#: A step of background work; False ends it.
Step = Callable[[], Awaitable[bool]]


class CannotRunError(Exception):
    """A workload that this world cannot run, and why; it is listed, not failed."""


class WorkloadFailedError(Exception):
    """A workload that was started and did not complete; one line."""


class World(ABC):
    """One cluster with one scheduler, for one workload."""

    mode: str
    #: Whether times are exact enough to sample throughput more often than once a second.
    has_fine_clock: bool

    def __init__(self) -> None:
        self.pods = PodWatch()
        self.names = Names()
        #: Called from time to time while the scheduler works.
        self.on_progress: Callable[[], None] = lambda: None

    @property
    @abstractmethod
    def now_s(self) -> float:
        """Seconds of the world's clock."""

    @abstractmethod
    async def create(
        self, manifests: Sequence[JsonObject], namespace: str = ""
    ) -> list[JsonObject]:
        """Create objects of one kind; return them as stored. Pods are observed from then on."""

    @abstractmethod
    async def replace(
        self, manifest: JsonObject, namespace: str, subresources: Iterable[str]
    ) -> None:
        """Change an existing object to the manifest; other fields stay."""

    @abstractmethod
    async def patch(
        self, plural: str, namespace: str, name: str, body: JsonObject, subresource: str = ""
    ) -> None:
        """Apply a JSON merge patch."""

    @abstractmethod
    async def delete(self, plural: str, namespace: str, name: str) -> None:
        """Delete an object; one that is gone already is no error."""

    async def many(self, steps: Sequence[Callable[[], Awaitable[Any]]]) -> list[Any]:
        """Run all steps, one after the other unless the world can run several at a time."""
        return [await step() for step in steps]

    @abstractmethod
    async def listed(self, plural: str, namespace: str = "") -> list[JsonObject]:
        """All objects of a kind, in one namespace or in all."""

    @abstractmethod
    async def until(self, reached: Callable[[], bool], timeout_s: float, what: str) -> None:
        """Let the scheduler work until `reached`. Raises WorkloadFailedError at the deadline, or
        when no event is left.
        """

    @abstractmethod
    async def sleep(self, seconds: float) -> None:
        """Let time pass."""

    @abstractmethod
    def every(self, interval_s: float, step: Step) -> None:
        """Run a step repeatedly until it returns False or the workload ends."""

    @abstractmethod
    def latencies(self, run: str) -> list[DataItem]:
        """Latencies of the scheduler since the last `forget_measured`."""

    @abstractmethod
    def forget_measured(self) -> None:
        """Drop all measurements; the next ones count."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Plain figures of the run: attempts, memory, requests."""

    def stages(self) -> list[tuple[str, float, int]]:
        """Time per stage: (stage, seconds, how often), if this world measures it."""
        return []

    @abstractmethod
    async def close(self) -> None:
        """Stop everything that belongs to this world."""
