"""Scale raw scores to 0..100 by the largest score of the feasible rows."""

from collections.abc import Hashable
from typing import Any, ClassVar

import numpy as np

from asched.core.framework.points import ScorePlugin
from asched.core.model.arrays import I64


class ScaledByLargest(ScorePlugin):
    """Scales to 0..100 by the largest score of the feasible rows, optionally reversed."""

    normalizes = True
    reverses: ClassVar[bool] = False

    def bounds(self, raw: I64, data: Any) -> Hashable:  # noqa: ARG002
        return int(raw.max())

    def scaled(self, raw: I64, bounds: Any, data: Any) -> I64:  # noqa: ARG002
        return by_largest(raw, bounds, reverse=self.reverses)


def by_largest(raw: I64, largest: int, *, reverse: bool = False) -> I64:
    """Scale to 0..100, optionally reversed.

    Rounding  integer division before the reversal. Edges  a largest of 0 gives 0, reversed 100.
    Source    kubernetes/kubernetes v1.36 framework/plugins/helper/normalize_score.go
    """
    if not largest:
        return np.full_like(raw, 100 if reverse else 0)
    scaled = raw * 100 // largest
    return 100 - scaled if reverse else scaled


def default_normalize(raw: I64, *, reverse: bool = False) -> I64:
    """`by_largest` for a complete array of scores."""
    return by_largest(raw, int(raw.max()), reverse=reverse)
