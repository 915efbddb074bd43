"""Evaluate thousands of selectors at once for a set of labels.

One by one, the terms of one pod times the label sets of a cluster would take hours. Here each
existing label is evaluated for all selectors that name its key:

    lacking[i]   the number of keys selector i still needs: `In` and `Exists` need one each
    every label  subtracts one where it is accepted, and bars the selectors that exclude it

A selector matches if it lacks nothing and nothing bars it. The cost is a few additions of arrays,
for any selectors.

Bounds  as many entries as the selectors have requirements and values.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from asched.core.model.selector import Requirement, together

I32 = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

#: Beyond every number of needed keys, and small enough not to overflow for many barring labels.
BARRED: Final = 1 << 24
NO_NUMBERS: Final[I32] = np.zeros(0, dtype=np.int32)


class _Key:
    """The selectors' requirements for one label key, by selector number."""

    __slots__ = ("_arrays", "accepting", "barring", "barring_any", "needing")

    def __init__(self) -> None:
        self.accepting: dict[str, list[int]] = {}  # In: by value
        self.barring: dict[str, list[int]] = {}  # NotIn: by value
        self.needing: list[int] = []  # Exists
        self.barring_any: list[int] = []  # DoesNotExist
        self._arrays: dict[tuple[str, str], I32] = {}

    def add(self, number: int, requirement: Requirement) -> int:
        """The number of further keys that the selector needs for this requirement."""
        match requirement.operator:
            case "In":
                for value in requirement.values:
                    self.accepting.setdefault(value, []).append(number)
                return 1
            case "NotIn":
                for value in requirement.values:
                    self.barring.setdefault(value, []).append(number)
                return 0
            case "Exists":
                self.needing.append(number)
                return 1
            case _:
                self.barring_any.append(number)
                return 0

    def settle(self, value: str, lacking: I32) -> None:
        """Apply an existing label with this key."""
        lacking[self._array("Exists", "", self.needing)] -= 1
        lacking[self._array("In", value, self.accepting.get(value))] -= 1
        lacking[self._array("DoesNotExist", "", self.barring_any)] |= BARRED
        lacking[self._array("NotIn", value, self.barring.get(value))] |= BARRED

    def _array(self, operator: str, value: str, numbers: Sequence[int] | None) -> I32:
        if not numbers:
            return NO_NUMBERS
        found = self._arrays.get((operator, value))
        if found is None:
            found = self._arrays[operator, value] = np.array(numbers, dtype=np.int32)
        return found


class ManySelectors:
    """`add` all selectors, then call `matching`."""

    __slots__ = ("_by_key", "_lacking", "_lacks")

    def __init__(self) -> None:
        self._by_key: dict[str, _Key] = {}
        self._lacks: list[int] = []
        self._lacking: I32 | None = None

    def add(self, requirements: Sequence[Requirement]) -> None:
        """Add the next selector by its requirements, all of which must match."""
        number, lacks = len(self._lacks), 0
        for requirement in requirements if len(requirements) == 1 else together(requirements):
            key = self._by_key.get(requirement.key)
            if key is None:
                key = self._by_key[requirement.key] = _Key()
            lacks += key.add(number, requirement)
        self._lacks.append(lacks)
        self._lacking = None

    def matching(self, labels: Mapping[str, str]) -> Mask:
        """bool[S] in the order of addition."""
        if self._lacking is None:
            self._lacking = np.array(self._lacks, dtype=np.int32)
        lacking, by_key = self._lacking.copy(), self._by_key
        if len(labels) <= len(by_key):
            for name, value in labels.items():
                if name in by_key:
                    by_key[name].settle(value, lacking)
        else:
            for name, key in by_key.items():
                if name in labels:
                    key.settle(labels[name], lacking)
        holds: Mask = lacking == 0
        return holds
