"""LoadVariationRiskBalancing: prefer nodes with low and steady use.

Prefers   nodes whose mean use with the pod on them, and the deviation of their use, are small
          shares of what they offer; CPU or memory decides, whichever is worse. A node that was not
          measured gets 0.
Retry     nothing: it rejects no pod.
Cost      a few passes over the rows and their samples at each measurement.
Source    kubernetes-sigs/scheduler-plugins pkg/trimaran/loadvariationriskbalancing. Deliberate
          difference: mean and deviation are those of our own samples (the metrics server has none),
          use is compared with allocatable as it was measured, metrics older than 180 s are ignored.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from asched.hardware.load.args import LoadArgs
from asched.hardware.load.placed_amounts import amounts_of_class
from asched.hardware.load.scorer import LoadScorer, rounded
from asched.hardware.load.usage import CPU, MEMORY
from asched.hardware.rows import F64
from asched.plugin import I64, Aspect, Cluster, NodeView, PerClass, PodInfo


@dataclass(frozen=True, slots=True)
class LoadVariationRiskBalancingArgs(LoadArgs):
    """How much the deviation counts beside the mean.

    safe_variance_margin: factor of the deviation, from 0
    safe_variance_sensitivity: the degree of the root that is taken of the deviation, from 0
    """

    safe_variance_margin: float = 1.0
    safe_variance_sensitivity: float = 1.0

    def __post_init__(self) -> None:
        LoadArgs.__post_init__(self)
        for name in ("margin", "sensitivity"):
            if not getattr(self, f"safe_variance_{name}") >= 0:
                raise ValueError(f"safeVariance{name.capitalize()} must not be negative")


class LoadVariationRiskBalancing(LoadScorer):
    """See the module's documentation."""

    name = "LoadVariationRiskBalancing"
    depends_on = Aspect.ALLOCATABLE | Aspect.LIVE

    def __init__(self, args: LoadVariationRiskBalancingArgs, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._args = args
        self._amounts = PerClass(amounts_of_class)

    def share_key(self, pod: PodInfo) -> Hashable:
        return self._amounts(pod.cls).requests

    def score(self, pod: PodInfo, nodes: NodeView, data: Any) -> I64:
        self._usage.refresh()
        requests = self._amounts(pod.cls).requests
        mean, deviation = self._usage.mean(), self._usage.deviation()
        args, rows = self._args, nodes.row_numbers()
        worst = variation_points(
            mean[:, rows],
            deviation[:, rows],
            np.array([nodes.allocatable(CPU), nodes.allocatable(MEMORY)], dtype=np.float64),
            np.array(requests)[:, np.newaxis],
            args.safe_variance_margin,
            args.safe_variance_sensitivity,
        ).min(axis=0)
        found: I64 = np.zeros(nodes.size, dtype=np.int64)
        known = nodes.gather(self._usage.is_valid)
        found[known] = rounded(worst[known]).astype(np.int64)
        return found


def variation_points(
    mean: F64, deviation: F64, offered: F64, requests: I64, margin: float, sensitivity: float
) -> F64:
    """float64[2, N], 0..100, by resource; 0 where nothing is offered."""
    has_any = offered > 0
    divisor = np.where(has_any, offered, 1.0)
    mu = np.clip((np.clip(mean, 0, offered) + requests) / divisor, 0, 1)
    sigma = np.clip(np.clip(deviation, 0, offered) / divisor, 0, 1)
    # The zeroth root: values below 1 vanish, as in Go's Pow(x, +Inf).
    sigma = sigma ** (1 / sensitivity) if sensitivity else np.where(sigma < 1, 0.0, 1.0)
    risk = (mu + np.clip(sigma * margin, 0, 1)) / 2
    return np.where(has_any, (1 - risk) * 100, 0.0)
