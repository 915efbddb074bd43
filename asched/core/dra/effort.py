"""Work done by a search, and when it should pause for other tasks."""

from collections.abc import Generator
from typing import Final, TypeVar

#: Devices visited between two pauses of a search, or as much other work.
CHUNK_STEPS: Final = 512


R = TypeVar("R")
#: Yields where the search may be paused.
Steps = Generator[None, None, R]


class Effort:
    """Number of devices that a search has visited. Evaluating a selector counts for several."""

    __slots__ = ("_charged", "steps")

    def __init__(self) -> None:
        self.steps = self._charged = 0

    @property
    def is_due(self) -> bool:
        """Whether enough uncharged work has accumulated that the search should pause."""
        return self.steps - self._charged >= CHUNK_STEPS

    def tell(self) -> int:
        """Steps since the last call."""
        charged, self._charged = self._charged, self.steps
        return self.steps - charged
