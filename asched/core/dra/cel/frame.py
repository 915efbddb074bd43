"""What an evaluation carries along: bound names, and how much it may still cost."""

from collections.abc import Callable
from typing import Any, Final

from asched.core.dra.cel.costs import SHARE, weight
from asched.core.dra.cel.errors import CelRuntimeError

#: What one evaluation may cost: some 40 ms, since it cannot be put off. The API's own limit
#: (CELSelectorExpressionMaxCost) is twenty times as much; selectors cost ten to a hundred.
COST_MAX: Final = 50_000


class Frame:
    __slots__ = ("_left", "_max", "variables")

    def __init__(self, variables: dict[str, Any], cost_max: int = COST_MAX) -> None:
        self.variables = variables
        self._left = self._max = cost_max

    def spend(self, cost: int) -> None:
        """Raises CelRuntimeError once the limit is passed."""
        self._left -= cost
        if self._left < 0:
            raise CelRuntimeError("operation cancelled: actual cost limit exceeded")

    def spend_on(self, values: list[Any], extra: Callable[..., int] | None) -> None:
        """One for the call, what its operands hold, and what its work costs beyond (`costs.EXTRA`,
        which tells of a wrong number of operands by a TypeError).
        """
        limit = SHARE * self._left
        self.spend(1 + sum(weight(value, limit) // SHARE for value in values))
        if extra is not None:
            self.spend(extra(*values))

    @property
    def spent(self) -> int:
        return self._max - self._left

    @property
    def is_exhausted(self) -> bool:
        return self._left < 0


Evaluate = Callable[[Frame], Any]
