"""What all scorers of measured use have in common."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from asched.hardware.load.node_metrics import NODE_METRICS
from asched.hardware.load.usage import NodeUsage
from asched.hardware.rows import (
    F64,
    right_to_watch,
)
from asched.plugin import (
    Cluster,
    PodInfo,
    Registration,
    ScorePlugin,
)


class LoadScorer(ScorePlugin):
    """A scorer of measured use. It rejects no pod."""

    kinds = (NODE_METRICS,)
    rbac_rules: ClassVar[Sequence[Mapping[str, Any]]] = [right_to_watch(NODE_METRICS)]

    def __init__(self, cluster: Cluster) -> None:
        self._usage = cluster.singleton(NodeUsage)

    def registrations(self) -> Sequence[Registration]:
        return ()

    def stamp(self, pod: PodInfo, data: Any) -> int:
        self._usage.refresh()
        return self._usage.version


def rounded(values: F64) -> F64:
    """To whole numbers, halves away from zero; for values from 0 on."""
    whole: F64 = np.floor(values)
    return whole + (values - whole >= 0.5)
