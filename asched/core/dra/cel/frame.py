"""The state of an evaluation: bound names, and the remaining cost."""

from collections.abc import Callable
from typing import Any, Final

from asched.core.dra.cel.cost import SHARE, weight
from asched.core.dra.cel.values import CelRuntimeError

#: Cost limit of one evaluation: some 40 ms, since it cannot be interrupted. The API's own limit
#: (CELSelectorExpressionMaxCost) is twenty times as much; selectors cost ten to a hundred.
COST_MAX: Final = 50_000


class Frame:
    __slots__ = ("_max", "_remaining", "variables")

    def __init__(self, variables: dict[str, Any], cost_max: int = COST_MAX) -> None:
        self.variables = variables
        self._remaining = self._max = cost_max

    def spend(self, cost: int) -> None:
        """Raises CelRuntimeError once the limit is passed."""
        self._remaining -= cost
        if self._remaining < 0:
            raise CelRuntimeError("operation cancelled: actual cost limit exceeded")

    def spend_on(self, values: list[Any], extra: Callable[..., int] | None) -> None:
        """Charge one for the call, plus the size of its operands, plus its extra work
        (`EXTRA`, which raises TypeError for wrong operands).
        """
        limit = SHARE * self._remaining
        self.spend(1 + sum(weight(value, limit) // SHARE for value in values))
        if extra is not None:
            self.spend(extra(*values))

    @property
    def spent(self) -> int:
        return self._max - self._remaining

    @property
    def is_exhausted(self) -> bool:
        return self._remaining < 0


Evaluate = Callable[[Frame], Any]
