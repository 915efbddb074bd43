"""Sampling: fewer than all feasible nodes are scored if `percentageOfNodesToScore` is set.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/schedule_one.go (numFeasibleNodesToFind)
"""

from typing import Final

import numpy as np

from asched.core.model.arrays import Mask

#: At least this number of feasible nodes is scored (upstream's minFeasibleNodesToFind).
FEASIBLE_NODES_MIN: Final = 100


def wanted_count(percentage: int, candidates: int) -> int:
    """How many feasible nodes suffice for a `percentageOfNodesToScore` other than 0."""
    if candidates < FEASIBLE_NODES_MIN or percentage == 0:
        return candidates
    return max(candidates * percentage // 100, FEASIBLE_NODES_MIN)


def adaptive_count(percentage: int, candidates: int) -> int:
    """The same by kube-scheduler's rule, where 0 means a lower share for more nodes."""
    return wanted_count(percentage or max(50 - candidates // 125, 5), candidates)


class Sampler:
    """Round-robin: each sample begins after the end of the previous one."""

    def __init__(self, percentage: int) -> None:
        self._percentage = percentage
        #: whether it can take fewer than all
        self.is_on = percentage not in (0, 100)
        self._start = 0

    def sample(self, feasible: Mask, count: int, node_count: int) -> Mask | None:
        """A sample of the `count` feasible rows (bool[N]) of a cluster with this number of nodes;
        None for all.
        """
        if not self.is_on:
            return None
        wanted = wanted_count(self._percentage, node_count)
        if wanted >= count:
            return None
        rows = np.flatnonzero(feasible)
        at = int(np.searchsorted(rows, self._start % len(feasible)))
        chosen = np.take(rows, range(at, at + wanted), mode="wrap")
        self._start = int(chosen[-1]) + 1
        sample = np.zeros(len(feasible), dtype=np.bool_)
        sample[chosen] = True
        return sample
