"""Lost rooms: evict no pod on a node, for a moment, where another scheduler took the freed room.

Another scheduler neither sees nor honours the room that we make for a pod. Where its pods take the
room each time, evicting there would never end. A preemptor that still waits although its victims
are gone, while such a pod is on a node that they left, has lost a room.

Only schedulers that an administrator names count (`otherSchedulers` of DefaultPreemption), and only
pods whose node comes from a client that may bind pods, not from their creator. Pods less important
than the preemptor take nothing: they are evicted in turn.

Rules   a node rests for REST_S, for each scheduler that took a room there, and for preemptors that
        are not more important than the pod that took it. All other nodes remain.
Bounds  PREEMPTORS_MAX and RESTS_MAX; the oldest are forgotten first.
"""

from collections.abc import Collection
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from asched.core.cluster.cluster import Cluster
from asched.core.model.lru import Lru
from asched.core.model.pod import Pod

#: A guess: the other scheduler has placed the pods that it had in mind for the room.
REST_S: Final = 60.0
PREEMPTORS_MAX: Final = 4_096
RESTS_MAX: Final = 4_096


class _Room(NamedTuple):
    """Where room is made; `before`: uids of pods that other schedulers had bound there."""

    node: str
    before: frozenset[str]


class _Rest(NamedTuple):
    """Until when (steady time), and for preemptors up to which priority."""

    until_s: float
    priority: int


class LostRooms:
    """Rooms by the uid of the preemptor. For `Cluster.singleton`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._rooms: Lru[str, _Room] = Lru(PREEMPTORS_MAX)
        #: (node, scheduler name) -> its rest
        self._rests: Lru[tuple[str, str], _Rest] = Lru(RESTS_MAX)

    def make_room(self, uid: str, node: str) -> None:
        """Record that pods are evicted from this node for a preemptor."""
        row = self._cluster.nodes.row_of.get(node)
        if row is not None:
            self._rooms.put(uid, _Room(node, frozenset(self._foreign(row))))

    def check_for_loss(self, preemptor: Pod, others: Collection[str]) -> None:
        """Let the node rest where room was made for a preemptor that still fits nowhere, if a pod
        of one of these schedulers has taken it.
        """
        room = self._rooms.get(preemptor.uid)
        row = None if room is None else self._cluster.nodes.row_of.get(room.node)
        if room is None or row is None:
            return
        for uid, pod in self._foreign(row).items():
            rival, is_new = pod.spec.scheduler_name, uid not in room.before
            if is_new and rival in others and pod.priority >= preemptor.priority:
                self._rooms.pop(preemptor.uid)
                until_s = self._cluster.steady_s + REST_S
                self._rests.put((room.node, rival), _Rest(until_s, pod.priority))
                return

    def _foreign(self, row: int) -> dict[str, Pod]:
        """Uid -> pod that another scheduler bound on a row."""
        pods = self._cluster.pods_on(row).items()
        return {uid: i.pod for uid, i in pods if i.was_bound and not i.is_chosen}

    def resting(self, priority: int, others: Collection[str]) -> npt.NDArray[np.int64]:
        """The rows on which no pod may be evicted now for a preemptor of this priority, because
        one of these schedulers took a room.
        """
        row_of, now_s = self._cluster.nodes.row_of, self._cluster.steady_s
        rows = set()
        for key in self._rests:
            rest = self._rests.get(key)
            if rest is None or rest.until_s <= now_s:
                self._rests.pop(key)
            elif priority <= rest.priority and key[1] in others and key[0] in row_of:
                rows.add(row_of[key[0]])
        return np.array(sorted(rows), dtype=np.int64)
