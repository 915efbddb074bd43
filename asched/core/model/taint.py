"""Taints, tolerations, and when one tolerates the other.

Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/api/core/v1/toleration.go
"""

import re
from typing import Final

from asched.core.model.meta import Record

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
COMPARISONS: Final = frozenset({"Lt", "Gt"})
INTEGER: Final = re.compile(r"(?:0|-?[1-9][0-9]*)\Z")
INT64_MAX: Final = 2**63 - 1


class Taint(Record, frozen=True, gc=False):
    key: str = ""
    value: str = ""
    effect: str = ""

    @property
    def is_hard(self) -> bool:
        """Whether it keeps pods away (NoSchedule, NoExecute), rather than making them reluctant."""
        return self.effect in (NO_SCHEDULE, NO_EXECUTE)


class Toleration(Record, frozen=True, gc=False):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """An empty effect or key stands for all of them; `Lt` and `Gt` ask whether the taint's
        value is a smaller or a larger integer. They count behind a gate: `without_comparisons`.
        """
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator in ("", "Equal"):
            return self.value == taint.value
        if self.operator in COMPARISONS:
            return _compared(self.operator, taint.value, self.value)
        return self.operator == "Exists"


def _compared(operator: str, value: str, bound: str) -> bool:
    """Integers as a human writes them, of 64 bits; anything else compares to nothing."""
    if not (INTEGER.match(value) and INTEGER.match(bound)):
        return False
    number, limit = int(value), int(bound)
    if not all(-INT64_MAX - 1 <= one <= INT64_MAX for one in (number, limit)):
        return False
    return number < limit if operator == "Lt" else number > limit


def without_comparisons(tolerations: tuple[Toleration, ...]) -> tuple[Toleration, ...]:
    """What is left of tolerations while the gate TaintTolerationComparisonOperators is off."""
    if any(toleration.operator in COMPARISONS for toleration in tolerations):
        return tuple(one for one in tolerations if one.operator not in COMPARISONS)
    return tolerations


def tolerated(taint: Taint, tolerations: tuple[Toleration, ...]) -> bool:
    """Whether any of the tolerations tolerates the taint."""
    return any(toleration.tolerates(taint) for toleration in tolerations)
