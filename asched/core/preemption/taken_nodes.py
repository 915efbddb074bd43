"""Nodes whose freed amounts another scheduler took: no pod is evicted there for a moment.

Another scheduler neither sees nor honours that pods are evicted for a pod of ours. Where its pods
take what they free each time, evicting there would never end. A preemptor that still waits although
its victims are gone, while such a pod is on the node that they left, shows it.

Only schedulers that an administrator names count (`otherSchedulers` of DefaultPreemption), and only
pods whose node comes from a client that may bind pods, not from their creator. Pods less important
than the preemptor take nothing: they are evicted in turn.

Rules   a node is left out for PAUSE_S, for each scheduler that took amounts there, and for
        preemptors that are not more important than the pod that took them. All other nodes remain.
Bounds  PREEMPTORS_MAX and PAUSES_MAX; the oldest are forgotten first.
"""

from collections.abc import Collection
from typing import Final, NamedTuple

import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.model.arrays import I64
from asched.core.model.lru import Lru
from asched.core.model.pod import Pod

#: A guess: the other scheduler has placed the pods that it had in mind for the node.
PAUSE_S: Final = 60.0
PREEMPTORS_MAX: Final = 4_096
PAUSES_MAX: Final = 4_096


class _Eviction(NamedTuple):
    """`before`: uids of pods that other schedulers had bound to the node."""

    node: str
    before: frozenset[str]


class _Pause(NamedTuple):
    """Until when (steady time), and for preemptors up to which priority."""

    until_s: float
    priority: int


class TakenNodes:
    """Evictions by the uid of the preemptor, and pauses by node. For `Cluster.singleton`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._evictions: Lru[str, _Eviction] = Lru(PREEMPTORS_MAX)
        #: (node, scheduler name) -> its pause
        self._pauses: Lru[tuple[str, str], _Pause] = Lru(PAUSES_MAX)

    def note_eviction(self, uid: str, node: str) -> None:
        """Record that pods are evicted from this node for a preemptor."""
        row = self._cluster.nodes.row_of.get(node)
        if row is not None:
            self._evictions.put(uid, _Eviction(node, frozenset(self._foreign(row))))

    def check(self, preemptor: Pod, others: Collection[str]) -> None:
        """Leave the node out where pods were evicted for a preemptor that still fits nowhere, if a
        pod of one of these schedulers is there instead.
        """
        eviction = self._evictions.get(preemptor.uid)
        row = None if eviction is None else self._cluster.nodes.row_of.get(eviction.node)
        if eviction is None or row is None:
            return
        for uid, pod in self._foreign(row).items():
            rival, is_new = pod.spec.scheduler_name, uid not in eviction.before
            if is_new and rival in others and pod.priority >= preemptor.priority:
                self._evictions.pop(preemptor.uid)
                until_s = self._cluster.steady_s + PAUSE_S
                self._pauses.put((eviction.node, rival), _Pause(until_s, pod.priority))
                return

    def _foreign(self, row: int) -> dict[str, Pod]:
        """Uid -> pod that another scheduler bound on a row."""
        pods = self._cluster.pods_on(row).items()
        return {uid: i.pod for uid, i in pods if i.was_bound and not i.is_chosen}

    def rows(self, priority: int, others: Collection[str]) -> I64:
        """The rows on which no pod may be evicted now for a preemptor of this priority, because
        one of these schedulers took what was freed.
        """
        row_of, now_s = self._cluster.nodes.row_of, self._cluster.steady_s
        rows = set()
        for key in self._pauses:
            pause = self._pauses.get(key)
            if pause is None or pause.until_s <= now_s:
                self._pauses.pop(key)
            elif priority <= pause.priority and key[1] in others and key[0] in row_of:
                rows.add(row_of[key[0]])
        return np.array(sorted(rows), dtype=np.int64)
