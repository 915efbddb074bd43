"""What an evaluation carries along: bound names, and how much it may still cost."""

from collections.abc import Callable
from typing import Any, Final

from asched.core.dra.cel.errors import CelRuntimeError

#: resource.k8s.io/v1 CELSelectorExpressionMaxCost.
COST_MAX: Final = 1_000_000


class Frame:
    __slots__ = ("_left", "variables")

    def __init__(self, variables: dict[str, Any], cost_max: int = COST_MAX) -> None:
        self.variables = variables
        self._left = cost_max

    def spend(self, cost: int) -> None:
        """Raises CelRuntimeError once the limit is passed."""
        self._left -= cost
        if self._left < 0:
            raise CelRuntimeError("operation cancelled: actual cost limit exceeded")

    def spend_on(self, values: list[Any]) -> None:
        """One for the call, and a tenth of what has a length."""
        self.spend(1 + sum(len(v) // 10 for v in values if isinstance(v, (str, bytes, list))))

    @property
    def is_exhausted(self) -> bool:
        return self._left < 0


Evaluate = Callable[[Frame], Any]
