"""A world that workloads run in: objects can be made, changed and removed there, and a scheduler
lives in it.

Two exist. `run_decide.py` holds the objects in process and counts only the time the engine takes;
`run_bind.py` talks to an API server with the scheduler as a process of its own. Operations
(`ops.py`) know this interface alone, so both modes run the same files in the same way.
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
    """A workload that was begun and did not come to its end; one line."""


class World(ABC):
    """One cluster with one scheduler, for one workload."""

    mode: str
    #: Whether times are exact enough to sample throughput more often than once a second.
    has_fine_clock: bool

    def __init__(self) -> None:
        self.pods = PodWatch()
        self.names = Names()
        #: Called now and then while the scheduler works.
        self.on_progress: Callable[[], None] = lambda: None

    @property
    @abstractmethod
    def now_s(self) -> float:
        """Seconds of the world's clock."""

    @abstractmethod
    async def create(
        self, manifests: Sequence[JsonObject], namespace: str = ""
    ) -> list[JsonObject]:
        """Create objects of one kind; returns them as stored. Pods are followed from here on."""

    @abstractmethod
    async def replace(
        self, manifest: JsonObject, namespace: str, subresources: Iterable[str]
    ) -> None:
        """Change an existing object to what the manifest says, the rest stays."""

    @abstractmethod
    async def patch(
        self, plural: str, namespace: str, name: str, body: JsonObject, subresource: str = ""
    ) -> None:
        """Apply a JSON merge patch."""

    @abstractmethod
    async def delete(self, plural: str, namespace: str, name: str) -> None:
        """Delete an object; one that is gone already is no error."""

    async def many(self, steps: Sequence[Callable[[], Awaitable[Any]]]) -> list[Any]:
        """Do all of them, one after the other unless the world can do several at a time."""
        return [await step() for step in steps]

    @abstractmethod
    async def listed(self, plural: str, namespace: str = "") -> list[JsonObject]:
        """All objects of a kind, in one namespace or in all."""

    @abstractmethod
    async def until(self, reached: Callable[[], bool], timeout_s: float, what: str) -> None:
        """Let the scheduler work until `reached`. Raises WorkloadFailedError at the deadline, or
        when nothing can happen any more.
        """

    @abstractmethod
    async def sleep(self, seconds: float) -> None:
        """Let time pass."""

    @abstractmethod
    def every(self, interval_s: float, step: Step) -> None:
        """Do a step now and again until it says False or the workload ends."""

    @abstractmethod
    def latencies(self, run: str) -> list[DataItem]:
        """What the scheduler took since the last `forget_measured`."""

    @abstractmethod
    def forget_measured(self) -> None:
        """Start afresh: what follows is measured."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Plain figures of the run: attempts, memory, requests."""

    def stages(self) -> list[tuple[str, float, int]]:
        """Where the time went: (stage, seconds, how often), if this world can tell."""
        return []

    @abstractmethod
    async def close(self) -> None:
        """End everything that belongs to this world."""
