"""Expected use of recently placed pods, which measurements do not cover yet.

A measurement is a mean over a window: a pod that was scheduled less than WINDOW_S before its end,
or after it, is covered in part or not at all. Such pods are counted with their expected use.

Bounds  one entry a pod that is on a node.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from asched.hardware.load.usage import NodeUsage
from asched.hardware.rows import (
    F64,
    ByNode,
    scheduled_s,
)
from asched.plugin import (
    Aspect,
    Cluster,
    PodClass,
)

#: As in upstream's plugins, whatever the provider's own interval.
WINDOW_S: Final = 60.0


class ExpectedUse(ByNode):
    """`predict(cls)` is the expected use of a pod of a class, one number."""

    def __init__(
        self, cluster: Cluster, usage: NodeUsage, predict: Callable[[PodClass], int]
    ) -> None:
        super().__init__(cluster, Aspect.PODS | Aspect.LIVE, usage.moved)
        self._usage = usage
        self._predict = predict
        self._since_s: list[dict[str, float]] = []  # row -> uid -> when it was scheduled
        self._expected: F64 = np.zeros(0)

    def by_row(self) -> F64:
        """float64[N]; `usage` is up to date."""
        self.update(None)
        return self._expected

    def _reset(self, height: int) -> None:
        since = self._since_s
        self._since_s = (since + [{} for _ in range(height - len(since))])[:height]
        self._expected = np.zeros(height)

    def _read(self, row: int) -> None:
        pods, known = self._cluster.pods_on(row), self._since_s[row]
        for uid in known.keys() - pods.keys():
            del known[uid]
        for uid, info in pods.items():
            if uid not in known:
                known[uid] = scheduled_s(info.pod, self._cluster.wall_clock_s)
        after_s = self._usage.made_s[row] - WINDOW_S
        late = (pods[uid] for uid, since_s in known.items() if since_s > after_s)
        self._expected[row] = sum(self._predict(info.cls) for info in late)
