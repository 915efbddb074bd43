"""Whose turn it is to be bound to a node: device plugins hand devices to one pod at a time.

    lock   an annotation of the node that names time and pod; we set it, the plugin takes it away.
           It is in the way of others while it is younger than GIVEN_UP_S and its pod is there.
    phase  the plugin serves the pod that was marked first, then the next one is marked. Only
           pods that ask for such devices are waited for, once each, from when they were bound (or
           first seen so) until GIVEN_UP_S later: what their owners write afterwards counts for
           nothing.

Pods of ours stand in a line for each node. A lock is set with the version of the node that we know,
so that two never have it.

Source  Project-HAMi/HAMi pkg/util/nodelock/nodelock.go; volcano.py
Rules   times that lie as far ahead as GIVEN_UP_S are nobody's: whoever owns a pod may write any.
Bounds  a turn is awaited for TURN_S_MAX; ATTEMPTS_MAX writes, NEWS_S_MAX until a look without news.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator
from functools import partial
from math import inf
from typing import Final

from asched.core.model.kinds import NODE, POD
from asched.core.model.pod import Pod
from asched.core.model.timestamp import microseconds, rfc3339
from asched.hardware.sharing.convention import GIVEN_UP_S, annotations_of, number
from asched.hardware.sharing.devices import SharingRequest
from asched.plugin import (
    SUCCESS,
    Cluster,
    Done,
    Effect,
    Late,
    Patch,
    PerClass,
    PodInfo,
    Refused,
    Status,
    WaitFor,
    failure,
)

TURN_S_MAX: Final = 2 * GIVEN_UP_S
NEWS_S_MAX: Final = 5.0
ATTEMPTS_MAX: Final = 10
CONFLICT: Final = 409
POD_SCHEDULED: Final = "PodScheduled"
#: Began so long ago that it is over.
SERVED: Final = -inf
#: Of a node: somebody has left it, and it is another one's turn.
LINE: Final = "lines"


class ServingTurns(ABC):
    """`take` lets a pod through when nobody else is being served on the node."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lines: dict[str, deque[str]] = {}

    def take(self, pod: Pod, node: str) -> Late:
        line = self._lines.setdefault(node, deque())
        line.append(pod.uid)
        try:
            return (yield from self._stand(pod, node, line))
        finally:
            line.remove(pod.uid)
            if not line:
                self._lines.pop(node, None)
            self._cluster.object_log.add(LINE, node)

    def _stand(self, pod: Pod, node: str, line: deque[str]) -> Late:
        until_s = self._steady_s + TURN_S_MAX
        for _ in range(ATTEMPTS_MAX):
            while why := self._obstacle(pod, node, line):
                left_s = until_s - self._steady_s
                if left_s <= 0:
                    return failure(f"node {node} was not free to serve {pod.key}: {why}")
                yield WaitFor(
                    ready=partial(self._has_moved, pod, node, line, why),
                    timeout_s=min(left_s, NEWS_S_MAX),
                    on=((LINE, node), *self._topics(node)),
                )
            status = yield from self._enter(pod, node)
            if status is not None:
                return status
        return failure(
            f"the lock of node {node} could not be taken: it changed {ATTEMPTS_MAX} times"
        )

    @property
    def _steady_s(self) -> float:
        """Whatever somebody sets the clock to."""
        return self._cluster.wall_clock_s - self._cluster.wall_ahead_s

    def _obstacle(self, pod: Pod, node: str, line: deque[str]) -> str:
        return self._in_the_way(pod, node) if line[0] == pod.uid else "others wait before it"

    def _has_moved(self, pod: Pod, node: str, line: deque[str], before: str) -> bool:
        """Whether it is something else now that the pod waits for, or nothing."""
        return self._obstacle(pod, node, line) != before

    @abstractmethod
    def _in_the_way(self, pod: Pod, node: str) -> str:
        """Who is served there at the moment; empty if nobody is."""

    @abstractmethod
    def _topics(self, node: str) -> tuple[tuple[str, str], ...]:
        """What moves when that changes."""

    @abstractmethod
    def _enter(self, pod: Pod, node: str) -> Generator[Effect, object, Status | None]:
        """Nobody is in the way: begin. None: somebody was quicker."""

    def leave(self, pod: Pod, node: str) -> Late:  # noqa: ARG002
        """The pod is not bound there after all."""
        yield from ()
        return SUCCESS


class Locks(ServingTurns):
    """One annotation of the node for all device plugins of a kind."""

    def __init__(self, cluster: Cluster, annotation: str) -> None:
        super().__init__(cluster)
        self._annotation = annotation

    def _told(self, node: str) -> str:
        known = self._cluster.node_of(node)
        return (known.metadata.annotations or {}).get(self._annotation, "") if known else ""

    def _in_the_way(self, pod: Pod, node: str) -> str:
        told = self._told(node)
        if not told or _names(told, pod) or is_over(told, self._cluster.wall_clock_s):
            return ""
        _, *key = told.split(",")
        if len(key) == 2 and "/".join(key) not in self._cluster.pods_seen:
            return ""  # nobody is left who would be served
        return f"{self._annotation} is set"  # it names a pod of any namespace

    def _topics(self, node: str) -> tuple[tuple[str, str], ...]:
        return ((NODE.resource, node),)

    def _enter(self, pod: Pod, node: str) -> Generator[Effect, object, Status | None]:
        if _names(self._told(node), pod):
            return SUCCESS
        known = self._cluster.node_of(node)
        if known is None:
            return failure(f"node {node} is gone")
        version = known.metadata.resource_version
        now = rfc3339(self._cluster.wall_clock_s)
        lock = f"{now},{pod.metadata.namespace},{pod.metadata.name}"
        answer = yield self._patch(node, version, lock)
        if isinstance(answer, Done):
            return SUCCESS
        if isinstance(answer, Refused) and answer.code != CONFLICT:
            return failure(f"lock node {node}: {answer.message}")
        yield self._news(node, version)
        return None

    def leave(self, pod: Pod, node: str) -> Late:
        """Its lock goes, if it is ours still; the plugin may have taken it away."""
        for _ in range(ATTEMPTS_MAX):
            told = self._told(node)
            if told and not _names(told, pod):
                break
            # Ours, or not seen yet: the version decides.
            version = self._version(node)
            answer = yield self._patch(node, version, None)
            if not isinstance(answer, Refused) or answer.code != CONFLICT:
                break
            yield self._news(node, version)
        return SUCCESS

    def _news(self, node: str, version: str) -> WaitFor:
        return WaitFor(
            ready=lambda: self._version(node) != version,
            timeout_s=NEWS_S_MAX,
            on=self._topics(node),
        )

    def _version(self, node: str) -> str:
        known = self._cluster.node_of(node)
        return known.metadata.resource_version if known is not None else ""

    def _patch(self, node: str, version: str, lock: str | None) -> Patch:
        metadata = {"resourceVersion": version, "annotations": {self._annotation: lock}}
        return Patch(kind=NODE, namespace="", name=node, body={"metadata": metadata})


class Phases(ServingTurns):
    """Each pod tells of itself whether it has been served."""

    def __init__(
        self,
        cluster: Cluster,
        keys: tuple[str, str, str],
        allocating: str,
        wish: Callable[[Pod], SharingRequest | None],
    ) -> None:
        """`keys`: the annotations for phase and beginning on pods, and of the lock on nodes;
        `wish`: what of these devices a pod asks for.
        """
        super().__init__(cluster)
        self._phase, self._since, self._lock = keys
        self._allocating = allocating
        self._asks = PerClass(lambda cls: wish(cls.example) is not None)
        #: uid -> when it was let through, or its turn began; SERVED once that is over
        self._began: dict[str, float] = {}

    def _in_the_way(self, pod: Pod, node: str) -> str:
        row, known = self._cluster.nodes.row_of.get(node), self._cluster.node_of(node)
        if row is None or known is None:
            return ""
        now_s = self._cluster.wall_clock_s
        told = (known.metadata.annotations or {}).get(self._lock, "")
        if told and not is_over(told, now_s):
            return f"{self._lock} is set"
        for uid, info in self._cluster.pods_on(row).items():
            if uid != pod.uid and self._is_being_served(info, now_s):
                is_own = info.pod.metadata.namespace == pod.metadata.namespace
                return f"{info.pod.key if is_own else 'another pod'} is being served"
        return ""

    def _is_being_served(self, info: PodInfo, now_s: float) -> bool:
        uid = info.pod.uid
        if not self._asks(info.cls):
            return False
        seen = self._cluster.pods_seen.get(info.pod.key)
        told = annotations_of(seen) if seen is not None else {}
        phase = told.get(self._phase, "")
        if phase and phase != self._allocating:
            self._began[uid] = SERVED
        elif phase and seen is not None and uid not in self._began:
            at_s = float(number(told.get(self._since, "")) or 0)
            is_likely = abs(now_s - at_s) < GIVEN_UP_S
            self._began[uid] = min(at_s, now_s, _bound_s(seen, now_s)) if is_likely else SERVED
        return now_s - self._began.get(uid, SERVED) < GIVEN_UP_S

    def _topics(self, node: str) -> tuple[tuple[str, str], ...]:
        row = self._cluster.nodes.row_of.get(node)
        there = self._cluster.pods_on(row).values() if row is not None else ()
        now_s = self._cluster.wall_clock_s
        pods = (info.pod.key for info in there if self._is_being_served(info, now_s))
        return ((NODE.resource, node), *((POD.resource, key) for key in pods))

    def _enter(self, pod: Pod, node: str) -> Generator[Effect, object, Status | None]:  # noqa: ARG002
        placed = self._cluster.placed
        self._began = {uid: at_s for uid, at_s in self._began.items() if uid in placed}
        self._began[pod.uid] = self._cluster.wall_clock_s
        yield from ()
        return SUCCESS

    def leave(self, pod: Pod, node: str) -> Late:  # noqa: ARG002
        self._began.pop(pod.uid, None)
        yield from ()
        return SUCCESS


class NoTurns(ServingTurns):
    """Any number of pods at a time."""

    def take(self, pod: Pod, node: str) -> Late:  # noqa: ARG002
        yield from ()
        return SUCCESS

    def _in_the_way(self, pod: Pod, node: str) -> str:  # noqa: ARG002
        return ""

    def _topics(self, node: str) -> tuple[tuple[str, str], ...]:  # noqa: ARG002
        return ()

    def _enter(self, pod: Pod, node: str) -> Generator[Effect, object, Status | None]:  # noqa: ARG002
        yield from ()
        return SUCCESS


def _bound_s(pod: Pod, now_s: float) -> float:
    """When a pod was bound, as the API server says; `now_s` if it does not."""
    condition = pod.condition(POD_SCHEDULED)
    if condition is None or condition.status != "True":
        return now_s
    try:
        return microseconds(condition.last_transition_time or "") / 1e6
    except ValueError:
        return now_s


def _names(told: str, pod: Pod) -> bool:
    return told.endswith(f",{pod.metadata.namespace},{pod.metadata.name}")


def is_over(told: str, now_s: float) -> bool:
    """Whether a lock is too old to be heeded, or of a time to come; what tells of none is."""
    try:
        return abs(now_s - microseconds(told.split(",", 1)[0]) / 1e6) > GIVEN_UP_S
    except ValueError:
        return False
