"""Serialize binding of pods to a node: device plugins assign devices to one pod at a time.

    lock   an annotation of the node with time and pod; asched sets it, the plugin removes it.
           It blocks other pods while it is younger than GIVEN_UP_S and its pod exists.
    phase  the plugin serves the pod that was marked first, then the next one is marked. Only
           pods that request such devices are waited for, once each, from their binding (or
           when they were first seen so) until GIVEN_UP_S later: what their owners write
           afterwards is ignored.

Pods of ours wait in a queue for each node. A lock is set with the known version of the node, so
that only one client gets it.

Source  Project-HAMi/HAMi pkg/util/nodelock/nodelock.go; `hami.py`, `volcano.py`
Rules   times GIVEN_UP_S ahead are ignored: the owner of a pod can write any.
Bounds  a queue that does not move is awaited for TURN_S_MAX; ATTEMPTS_MAX writes, UNSEEN_S_MAX
        until a check without events.
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
from asched.hardware.rows import scheduled_s
from asched.hardware.sharing.conventions import GIVEN_UP_S, annotations_of, number
from asched.hardware.sharing.devices import SharingRequest
from asched.hardware.sharing.hami import HAMI_LOCK
from asched.hardware.sharing.virtual_gpus import ALLOCATING
from asched.hardware.sharing.volcano import VOLCANO_KEYS, VOLCANO_LOCK
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
UNSEEN_S_MAX: Final = 5.0
ATTEMPTS_MAX: Final = 10
CONFLICT: Final = 409
#: The turn began so long ago that it is over.
SERVED: Final = -inf
#: Topic of a node: a pod has left its queue, and the next has its turn.
QUEUE: Final = "queue"


class ServingTurns(ABC):
    """Lets a pod through when no other pod is being served on the node."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._queues: dict[str, deque[str]] = {}

    def take(self, pod: Pod, node: str) -> Late:
        """Let the pod through once its turn has come."""
        queue = self._queues.setdefault(node, deque())
        queue.append(pod.uid)
        first, until_s = queue[0], self._cluster.steady_s + TURN_S_MAX
        try:
            for _ in range(ATTEMPTS_MAX):
                while why := self._obstacle(pod, node, queue):
                    if queue[0] != first:  # the queue moves on
                        first, until_s = queue[0], self._cluster.steady_s + TURN_S_MAX
                    remaining_s = until_s - self._cluster.steady_s
                    if remaining_s <= 0:
                        return failure(f"node {node} was not free to serve {pod.key}: {why}")
                    yield WaitFor(
                        ready=partial(self._has_moved, pod, node, queue, why),
                        timeout_s=min(remaining_s, UNSEEN_S_MAX),
                        on=((QUEUE, node), *self._topics(node)),
                        why=partial(str, why),
                    )
                status = yield from self._enter(pod, node)
                if status is not None:
                    return status
        finally:
            queue.remove(pod.uid)
            if not queue:
                self._queues.pop(node, None)
            self._cluster.object_log.add(QUEUE, node)
        return failure(
            f"the lock of node {node} could not be taken: it changed {ATTEMPTS_MAX} times"
        )

    def _obstacle(self, pod: Pod, node: str, queue: deque[str]) -> str:
        return self._in_the_way(pod, node) if queue[0] == pod.uid else "other pods wait before it"

    def _has_moved(self, pod: Pod, node: str, queue: deque[str], before: str) -> bool:
        """Whether the obstacle has changed or is gone."""
        return self._obstacle(pod, node, queue) != before

    @abstractmethod
    def leave(self, pod: Pod, node: str) -> Late:
        """The pod is not bound on the node."""

    @abstractmethod
    def _in_the_way(self, pod: Pod, node: str) -> str:
        """The pod or lock in the way; empty if there is none."""

    @abstractmethod
    def _topics(self, node: str) -> tuple[tuple[str, str], ...]:
        """Topics of changes that may remove the obstacle."""

    @abstractmethod
    def _enter(self, pod: Pod, node: str) -> Generator[Effect, object, Status | None]:
        """Begin; there is no obstacle. None: another client was faster."""


class Locks(ServingTurns):
    """One annotation of the node for all device plugins of HAMi's kind."""

    def _lock_of(self, node: str) -> str:
        known = self._cluster.node_of(node)
        return (known.metadata.annotations or {}).get(HAMI_LOCK, "") if known else ""

    def _in_the_way(self, pod: Pod, node: str) -> str:
        lock = self._lock_of(node)
        if not lock or _names(lock, pod) or is_over(lock, self._cluster.wall_clock_s):
            return ""
        _, *key = lock.split(",")
        if len(key) == 2 and "/".join(key) not in self._cluster.pods_seen:
            return ""  # the pod of the lock does not exist any more
        return f"{HAMI_LOCK} is set"  # it names a pod of any namespace

    def _topics(self, node: str) -> tuple[tuple[str, str], ...]:
        return ((NODE.resource, node),)

    def _enter(self, pod: Pod, node: str) -> Generator[Effect, object, Status | None]:
        if _names(self._lock_of(node), pod):
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
        yield self._wait_for_change(node, version)
        return None

    def leave(self, pod: Pod, node: str) -> Late:
        """Remove its lock, if it is still ours; the plugin may have removed it."""
        for _ in range(ATTEMPTS_MAX):
            lock = self._lock_of(node)
            if lock and not _names(lock, pod):
                break
            # Ours, or not seen yet: the version in the patch decides.
            version = self._version(node)
            answer = yield self._patch(node, version, None)
            if not isinstance(answer, Refused) or answer.code != CONFLICT:
                break
            yield self._wait_for_change(node, version)
        return SUCCESS

    def _wait_for_change(self, node: str, version: str) -> WaitFor:
        return WaitFor(
            ready=lambda: self._version(node) != version,
            timeout_s=UNSEEN_S_MAX,
            on=self._topics(node),
        )

    def _version(self, node: str) -> str:
        known = self._cluster.node_of(node)
        return known.metadata.resource_version if known is not None else ""

    def _patch(self, node: str, version: str, lock: str | None) -> Patch:
        metadata = {"resourceVersion": version, "annotations": {HAMI_LOCK: lock}}
        return Patch(kind=NODE, namespace="", name=node, body={"metadata": metadata})


class Phases(ServingTurns):
    """Each pod has an annotation of whether it has been served by Volcano's device plugin."""

    def __init__(
        self, cluster: Cluster, request_of: Callable[[Pod], SharingRequest | None]
    ) -> None:
        """`request_of`: the request of a pod for these devices."""
        super().__init__(cluster)
        self._asks = PerClass(lambda cls: request_of(cls.example) is not None, False)
        #: uid -> when it was let through, or its turn began; SERVED once that is over
        self._began: dict[str, float] = {}

    def _in_the_way(self, pod: Pod, node: str) -> str:
        row, known = self._cluster.nodes.row_of.get(node), self._cluster.node_of(node)
        if row is None or known is None:
            return ""
        now_s = self._cluster.wall_clock_s
        lock = (known.metadata.annotations or {}).get(VOLCANO_LOCK, "")
        if lock and not is_over(lock, now_s):
            return f"{VOLCANO_LOCK} is set"
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
        annotations = annotations_of(seen) if seen is not None else {}
        phase = annotations.get(VOLCANO_KEYS.phase, "")
        if phase and phase != ALLOCATING:
            self._began[uid] = SERVED
        elif phase and seen is not None and uid not in self._began:
            at_s = float(number(annotations.get(VOLCANO_KEYS.bind_time, "")) or 0)
            is_likely = abs(now_s - at_s) < GIVEN_UP_S
            self._began[uid] = min(at_s, now_s, scheduled_s(seen, now_s)) if is_likely else SERVED
        return now_s - self._began.get(uid, SERVED) < GIVEN_UP_S

    def _topics(self, node: str) -> tuple[tuple[str, str], ...]:
        row = self._cluster.nodes.row_of.get(node)
        placed = self._cluster.pods_on(row).values() if row is not None else ()
        now_s = self._cluster.wall_clock_s
        pods = (info.pod.key for info in placed if self._is_being_served(info, now_s))
        return ((NODE.resource, node), *((POD.resource, key) for key in pods))

    def _enter(self, pod: Pod, node: str) -> Generator[Effect, object, Status | None]:
        placed = self._cluster.placed
        self._began = {uid: at_s for uid, at_s in self._began.items() if uid in placed}
        self._began[pod.uid] = self._cluster.wall_clock_s
        yield from ()
        return SUCCESS

    def leave(self, pod: Pod, node: str) -> Late:
        self._began.pop(pod.uid, None)
        yield from ()
        return SUCCESS


def _names(lock: str, pod: Pod) -> bool:
    return lock.endswith(f",{pod.metadata.namespace},{pod.metadata.name}")


def is_over(lock: str, now_s: float) -> bool:
    """Whether a lock is too old, or has a time in the future; a lock without a valid time
    is over.
    """
    try:
        return abs(now_s - microseconds(lock.split(",", 1)[0]) / 1e6) > GIVEN_UP_S
    except ValueError:
        return False
