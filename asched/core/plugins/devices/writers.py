"""Turns to write a claim that several pods share."""

from collections import deque
from collections.abc import Generator
from typing import Final

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Answer
from asched.core.framework.effects import Effect, WaitFor
from asched.core.model.claim import ResourceClaim
from asched.core.model.pod import Pod

#: A write takes milliseconds. A pod that has been writing for longer, because the server does not
#: answer or other clients write the claim, lets the next pod write, too.
TURN_S_MAX: Final = 5.0
#: Topic of a pod: it is the first of its queue.
TURN: Final = "turns to write a claim"


class WriterQueue:
    """The pods that write one claim or wait for it, first come, first served."""

    __slots__ = ("since_s", "uids")

    def __init__(self) -> None:
        self.uids: deque[str] = deque()
        #: when the first one became the first
        self.since_s = 0.0


class Writers:
    """Serialize writes of a claim that several pods share: each write names the version before it,
    so that all but one of several concurrent writes would be refused. A queue moves on once its
    first pod has written, or after TURN_S_MAX.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._queues: dict[str, WriterQueue] = {}

    def begin(self, claim: ResourceClaim, pod: Pod) -> Generator[Effect, Answer, None]:
        """Wait until the pod is the first of its queue. Call `end` in any case."""
        queue = self._queues.setdefault(claim.uid, WriterQueue())
        queue.uids.append(pod.uid)
        if queue.uids[0] == pod.uid:
            queue.since_s = self._cluster.steady_s
        while queue.uids[0] != pod.uid:
            remaining_s = queue.since_s + TURN_S_MAX - self._cluster.steady_s
            if remaining_s <= 0:
                self._leave(queue, queue.uids[0])
                continue
            yield WaitFor(
                ready=lambda: queue.uids[0] == pod.uid,
                timeout_s=remaining_s,
                on=((TURN, pod.uid),),
                why=lambda: f"other pods write ResourceClaim {claim.metadata.key}",
            )

    def end(self, claim: ResourceClaim, pod: Pod) -> None:
        """The pod has written the claim, or gives up."""
        queue = self._queues.get(claim.uid)
        if queue is not None and pod.uid in queue.uids:
            self._leave(queue, pod.uid)
            if not queue.uids:
                del self._queues[claim.uid]

    def _leave(self, queue: WriterQueue, uid: str) -> None:
        was_first = queue.uids[0] == uid
        queue.uids.remove(uid)
        if was_first and queue.uids:
            queue.since_s = self._cluster.steady_s
            self._cluster.object_log.add(TURN, queue.uids[0])
