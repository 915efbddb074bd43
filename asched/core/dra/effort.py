"""How much a search has done, and when it should let others have their turn."""

from collections.abc import Generator
from typing import Final, TypeVar

#: Devices looked at between two stops of a search, or as much other work.
CHUNK_STEPS: Final = 512


R = TypeVar("R")
#: Yields where it may be put off.
Steps = Generator[None, None, R]


class Effort:
    """How many devices a search has looked at. A selector that has to be run counts for several."""

    __slots__ = ("_told", "steps")

    def __init__(self) -> None:
        self.steps = self._told = 0

    @property
    def is_due(self) -> bool:
        """Whether there is so much untold that the search should stop."""
        return self.steps - self._told >= CHUNK_STEPS

    def tell(self) -> int:
        """The steps that were not told yet."""
        told, self._told = self._told, self.steps
        return self.steps - told
