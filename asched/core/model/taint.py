"""Taints, tolerations, and which tolerates which.

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
#: The longest text of a 64-bit integer, with its sign.
DIGITS_MAX: Final = 20


class Taint(Record, frozen=True, gc=False):
    key: str = ""
    value: str = ""
    effect: str = ""

    @property
    def is_hard(self) -> bool:
        """Whether it rejects pods (NoSchedule, NoExecute), rather than lowering the score."""
        return self.effect in (NO_SCHEDULE, NO_EXECUTE)


class Toleration(Record, frozen=True, gc=False):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """An empty effect or key matches all of them; `Lt` and `Gt` require that the taint's value
        is a smaller or a larger integer, if their gate is on: `without_comparisons`.
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
    """Compare integers of 64 bits; anything else is False."""
    number, limit = _int64(value), _int64(bound)
    if number is None or limit is None:
        return False
    return number < limit if operator == "Lt" else number > limit


def _int64(text: str) -> int | None:
    if len(text) > DIGITS_MAX or not INTEGER.match(text):
        return None
    number = int(text)
    return number if -INT64_MAX - 1 <= number <= INT64_MAX else None


def without_comparisons(tolerations: tuple[Toleration, ...]) -> tuple[Toleration, ...]:
    """The tolerations that apply while the gate TaintTolerationComparisonOperators is off."""
    if any(toleration.operator in COMPARISONS for toleration in tolerations):
        return tuple(
            toleration for toleration in tolerations if toleration.operator not in COMPARISONS
        )
    return tolerations


class Tolerations:
    """The tolerations of a pod, of which there may be thousands: a taint is compared only with
    candidates.

    Comparable and hashable by content, hashed once.
    """

    __slots__ = ("_by_key", "_equal", "_hash", "_keys", "all")

    def __init__(self, tolerations: tuple[Toleration, ...]) -> None:
        self.all = tolerations
        self._hash = hash(tolerations)
        self._keys = frozenset(toleration.key for toleration in tolerations)
        #: (key, value, effect) of tolerations for an equal value
        self._equal: set[tuple[str, str, str]] = set()
        #: (key, effect) -> the rest; of the comparisons only those with the loosest bounds
        self._by_key: dict[tuple[str, str], dict[Toleration, None]] = {}
        for toleration in tolerations:
            if toleration.operator in ("", "Equal"):
                self._equal.add((toleration.key, toleration.value, toleration.effect))
            else:
                same = self._by_key.setdefault((toleration.key, toleration.effect), {})
                if toleration.operator in COMPARISONS:
                    _keep_the_loosest(same, toleration)
                elif toleration.operator == "Exists":
                    same[Toleration(toleration.key, "Exists", "", toleration.effect)] = None

    def tolerate(self, taint: Taint) -> bool:
        """Whether any of them tolerates the taint."""
        if taint.key not in self._keys and "" not in self._keys:
            return False
        for key in (taint.key, ""):
            for effect in (taint.effect, ""):
                if (key, taint.value, effect) in self._equal:
                    return True
                same = self._by_key.get((key, effect), ())
                if any(toleration.tolerates(taint) for toleration in same):
                    return True
        return False

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tolerations) and (
            self is other or (self._hash == other._hash and self.all == other.all)
        )


def _keep_the_loosest(same: dict[Toleration, None], toleration: Toleration) -> None:
    """Of two with the same operator, the one with the looser bound includes the other."""
    if _int64(toleration.value) is None:
        return
    for other in [known for known in same if known.operator == toleration.operator]:
        if not _compared(toleration.operator, other.value, toleration.value):
            return
        del same[other]
    same[toleration] = None


def tolerated(taint: Taint, tolerations: tuple[Toleration, ...]) -> bool:
    """Whether any of the tolerations tolerates the taint: for a single call."""
    return any(toleration.tolerates(taint) for toleration in tolerations)


def spelt(taint: Taint) -> str:
    """A taint as kubectl writes it."""
    return f"{taint.key}{taint.value and '=' + taint.value}:{taint.effect}"
