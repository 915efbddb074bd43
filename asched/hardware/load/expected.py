"""Expected use of recently placed pods, which measurements do not cover yet.

A measurement is a mean over a window: a pod that was scheduled less than WINDOW_S before its end,
or after it, is covered in part or not at all. Such pods are counted with their expected use.

Bounds  one entry a pod that is on a node.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from asched.core.model.pod import Pod
from asched.core.model.timestamp import microseconds
from asched.hardware.load.usage import F64, NodeUsage
from asched.plugin import Aspect, ByRow, Cluster, PodClass

#: As in upstream's plugins, whatever the provider's own interval.
WINDOW_S: Final = 60.0


class ExpectedUse(ByRow[None]):
    """`predict(cls)` is the expected use of a pod of a class, one number."""

    def __init__(
        self, cluster: Cluster, usage: NodeUsage, predict: Callable[[PodClass], int]
    ) -> None:
        super().__init__(cluster.nodes, int(Aspect.PODS | Aspect.LIVE), usage.moved)
        self._cluster = cluster
        self._usage = usage
        self._predict = predict
        self._since_s: list[dict[str, float]] = []  # row -> uid -> when it was scheduled
        self._expected: F64 = np.zeros(0)

    def by_row(self) -> F64:
        """float64[N]; `usage` is up to date."""
        self.update(None)
        return self._expected

    def _make_all(self, _: None) -> None:
        height, since = self._nodes.height, self._since_s
        self._since_s = (since + [{} for _ in range(height - len(since))])[:height]
        self._expected = np.zeros(height)
        self._make_rows(None, tuple(range(height)))

    def _make_rows(self, _: None, rows: tuple[int, ...]) -> bool:
        for row in rows:
            self._note(row)
            self._sum(row)
        return True

    def _note(self, row: int) -> None:
        """Record the pods of a row, and when they were scheduled."""
        pods, known = self._cluster.pods_on(row), self._since_s[row]
        for uid in known.keys() - pods.keys():
            del known[uid]
        for uid, info in pods.items():
            if uid not in known:
                known[uid] = scheduled_s(info.pod, self._cluster.wall_clock_s)

    def _sum(self, row: int) -> None:
        known = self._since_s[row]
        if not known:
            self._expected[row] = 0.0
            return
        after_s = self._usage.end_s[row] - WINDOW_S
        pods = self._cluster.pods_on(row)
        late = (pods[uid] for uid, since_s in known.items() if since_s > after_s)
        self._expected[row] = sum(self._predict(info.cls) for info in late)


def scheduled_s(pod: Pod, now_s: float) -> float:
    """Since 1970; now for a pod without a binding time from the API."""
    for condition in pod.status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "True":
            try:
                return microseconds(condition.last_transition_time or "") / 1e6
            except ValueError:
                break
    return now_s
