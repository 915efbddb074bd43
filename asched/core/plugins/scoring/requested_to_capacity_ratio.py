"""RequestedToCapacityRatio: points by a configured curve over utilization."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from asched.core.config.args import UtilizationShapePoint
from asched.core.plugins.scoring.quotient import quotient

I64 = npt.NDArray[np.int64]

FULL: Final = 100
#: Scores of the configuration reach 10, those of nodes 100.
SCORE_SCALE: Final = 10


def curve(shape: Sequence[UtilizationShapePoint]) -> I64:
    """int64[101]: the points for each per cent of utilization.

    Rounding  between two corners toward zero, also where the curve falls.
    Edges     constant before the first corner and after the last.
    Source    kubernetes/kubernetes v1.36 plugins/helper/shape_score.go
    """
    return np.array([_points_at(shape, percent) for percent in range(FULL + 1)], dtype=np.int64)


def requested_to_capacity_ratio(
    requested: I64, allocatable: I64, weights: I64, points_by_percent: I64
) -> I64:
    """Score nodes by the curve at the utilization each resource would have.

    Shapes    requested and allocatable int64[R, M], weights int64[R], points_by_percent int64[101];
              returns int64[M] in 0..100.
    Rounding  utilization floors to whole per cents; the mean is rounded half up, unlike the other
              strategies'.
    Edges     an overdrawn resource is fully used; one without points leaves the mean, as does one
              that a node does not offer; none left gives 0.
    Source    kubernetes/kubernetes v1.36 plugins/noderesources/requested_to_capacity_ratio.go
    """
    offered = allocatable > 0
    percent = quotient(np.minimum(requested, allocatable) * FULL, np.maximum(allocatable, 1))
    points = points_by_percent.take(percent, mode="clip")
    points *= offered
    divisor = np.maximum(weights @ (points > 0), 1)
    total: I64 = weights @ points
    total *= 2
    total += divisor
    divisor *= 2
    total //= divisor
    return total


def _points_at(shape: Sequence[UtilizationShapePoint], percent: int) -> int:
    for index, corner in enumerate(shape):
        if percent <= corner.utilization:
            if index == 0:
                return corner.score * SCORE_SCALE
            before = shape[index - 1]
            rise = (corner.score - before.score) * SCORE_SCALE * (percent - before.utilization)
            run = corner.utilization - before.utilization
            step = rise // run if rise >= 0 else -(-rise // run)
            return before.score * SCORE_SCALE + step
    return shape[-1].score * SCORE_SCALE
