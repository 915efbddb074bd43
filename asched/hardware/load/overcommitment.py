"""LowRiskOverCommitment: prefer nodes with a small risk if all pods use their limits.

Prefers   nodes with a small risk: that limits exceed what the node offers, weighed against that its
          measured use exceeds the requests of its pods (the upper tail of a Beta distribution with
          the mean and deviation that were measured); CPU or memory decides, whichever is worse.
          Pods without requests and limits, and nodes that were not measured, get 0.
Retry     nothing: it rejects no pod.
Cost      two evaluations of the incomplete Beta function a row at each measurement; a placement
          updates its row.
Source    kubernetes-sigs/scheduler-plugins pkg/trimaran/lowriskovercommitment; the function is
          SciPy's. Deliberate difference: see `variation.py` on measurements.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from asched.hardware.load.args import LoadArgs
from asched.hardware.load.placed_amounts import PlacedAmounts
from asched.hardware.load.scorer import LoadScorer, rounded
from asched.hardware.load.usage import CPU, MEMORY
from asched.hardware.rows import F64
from asched.plugin import I64, Aspect, Cluster, NodeView, PodInfo

RESOURCES: Final = ("cpu", "memory")
#: Share of the largest variance that a Beta distribution with this mean can have.
VARIANCE_ALLOWANCE: Final = 0.99


@dataclass(frozen=True, slots=True)
class LowRiskOverCommitmentArgs(LoadArgs):
    """How the risks from limits and from load are weighed.

    smoothing_window_size: number of samples, from 1, over which the provider smooths
    risk_limit_weights: weight of the risk from limits, 0 to 1, for cpu and memory, 0.5 without; the
        rest is the weight of the risk from load
    """

    smoothing_window_size: int = 5
    risk_limit_weights: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        LoadArgs.__post_init__(self)
        if self.smoothing_window_size <= 0:
            raise ValueError("smoothingWindowSize must be at least 1")
        for name, weight in self.risk_limit_weights.items():
            if name not in RESOURCES:
                raise ValueError(f"riskLimitWeights.{name}: there are cpu and memory")
            if not 0 <= weight <= 1:
                raise ValueError(f"riskLimitWeights.{name}: {weight} is not in 0..1")


class LowRiskOverCommitment(LoadScorer):
    """See the module's documentation."""

    name = "LowRiskOverCommitment"
    depends_on = Aspect.POD_AMOUNTS | Aspect.ALLOCATABLE | Aspect.LIVE

    def __init__(self, args: LowRiskOverCommitmentArgs, cluster: Cluster) -> None:
        super().__init__(cluster)
        try:
            from scipy.special import betainc  # type: ignore[import-untyped]
        except ImportError:
            raise ValueError("it needs SciPy: install asched[load]") from None
        self._below = betainc
        self._weights = np.array([[args.risk_limit_weights.get(name, 0.5)] for name in RESOURCES])
        self._smoothing = math.sqrt(args.smoothing_window_size)
        self._placed = cluster.singleton(PlacedAmounts)

    def share_key(self, pod: PodInfo) -> Hashable:
        return self._placed.of(pod.cls)

    def score(self, pod: PodInfo, nodes: NodeView, data: Any) -> I64:
        self._usage.refresh()
        scores: I64 = np.zeros(nodes.size, dtype=np.int64)
        amounts = self._placed.of(pod.cls)
        known = np.flatnonzero(nodes.gather(self._usage.is_valid))
        if not any(amounts.requests + amounts.limits) or not len(known):
            return scores
        rows = nodes.row_numbers()[known]
        mean, deviation = self._usage.mean()[:, rows], self._usage.deviation()[:, rows]
        requests, limits = np.split(self._placed.by_row()[:, rows].astype(np.float64), 2)
        offered = np.array([nodes.allocatable(at)[known] for at in (CPU, MEMORY)], dtype=np.float64)
        requested, allowed = np.array(amounts)[:, :, np.newaxis]
        from_limits = limit_risk(requests + requested, limits + allowed, offered)
        from_load = self._load_risk(mean, deviation, requests, limits, offered)
        risk = self._weights * from_limits + (1 - self._weights) * from_load
        worst = np.clip(risk, 0, 1).max(axis=0)
        scores[known] = rounded((1 - worst) * 100).astype(np.int64)
        return scores

    def _load_risk(self, mean: F64, deviation: F64, request: F64, limit: F64, offered: F64) -> F64:
        """How likely use exceeds the requests of the pods on the node; without the new pod."""
        divisor = np.where(offered > 0, offered, 1.0)
        mu = np.where(offered > 0, np.clip(mean / divisor, 0, 1), 0.0)
        sigma = np.where(offered > 0, np.clip(deviation / divisor, 0, 1), 0.0)
        largest = np.sqrt(mu * (1 - mu) * VARIANCE_ALLOWANCE)
        sigma = np.minimum(sigma * self._smoothing, largest)
        request = np.minimum(request, offered)
        requested = np.where(offered > 0, request / divisor, 0.0)
        within = self._probability(mu, sigma, requested)
        bounded = limit < offered
        allowed = np.where(bounded, limit / divisor, 1.0)
        below_limit = self._probability(mu, sigma, allowed)
        conditional = bounded & (below_limit > 0)
        within = np.where(
            conditional, np.clip(within / np.where(conditional, below_limit, 1.0), 0, 1), within
        )
        return 1 - np.where(bounded & (allowed == 0), 1.0, within)

    def _probability(self, mu: F64, sigma: F64, threshold: F64) -> F64:
        """Probability that use is at most a share of the node, for a Beta distribution with these
        moments.
        """
        found: F64 = ((mu == 0) | (mu <= threshold)).astype(np.float64)  # without any deviation
        shaped = (mu > 0) & (sigma > 0)
        mean, variance = mu[shaped], sigma[shaped] ** 2
        spread = mean * (1 - mean) / variance - 1
        at = np.clip(threshold[shaped], 0, 1)
        found[shaped] = np.nan_to_num(self._below(mean * spread, (1 - mean) * spread, at))
        return found


def limit_risk(request: F64, limit: F64, offered: F64) -> F64:
    """float64[2, N], 0..1: the excess of limits over the node, as a share of what is free."""
    over = limit > offered
    beyond = np.where(over, limit - np.minimum(request, offered), 1.0)
    return np.where(over, (limit - offered) / beyond, 0.0)
