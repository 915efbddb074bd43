"""Work that precedes everything else, in slices: no fact is processed and nothing is decided
between its turns, so that its result is as if it ran at once.

    do(steps) ─> all of them, or as many as the budget allows ─> go_on() in the next turn, first

Thousands of classes may be affected by one deleted pod, and a reload moves all waiting pods: such
work is a generator that yields after each small part, having noted its cost.

Outside of the machine's turns there is no limit: tools and tests run to the end.
"""

from collections import deque
from collections.abc import Iterator

from asched.core.state.budget import Budget


class Sliced:
    """Pieces of work, one after the other. `budget` is checked after each part."""

    def __init__(self) -> None:
        self.budget = Budget()
        #: the remaining pieces; truthy like the whole
        self.pieces: deque[Iterator[None]] = deque()

    def __bool__(self) -> bool:
        """Whether work remains."""
        return bool(self.pieces)

    def do(self, steps: Iterator[None]) -> None:
        """Start the work, once all before it is done."""
        self.pieces.append(steps)
        if len(self.pieces) == 1:
            self.go_on()

    def go_on(self) -> None:
        """Continue as far as the budget allows."""
        budget = self.budget
        while self.pieces and budget.left > 0:
            for _ in self.pieces[0]:
                if budget.left <= 0:
                    return
            self.pieces.popleft()
