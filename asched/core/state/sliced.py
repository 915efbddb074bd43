"""Work that comes before anything else, in slices: turns between which nothing is taken in or
decided, so that it ends as if nothing had come between.

    do(steps) ─> all of them, or as many as the budget grants ─> go_on() in the next turn, first

Thousands of classes hear of one pod that goes, and a reload moves everybody who waits: each such
piece of work is a generator that stops after each small part, having noted what that cost.

Nobody counts outside of the machine's turns: tools and tests have it done in one go.
"""

from collections import deque
from collections.abc import Iterator

from asched.core.state.budget import Budget


class Sliced:
    """Pieces of work, one after the other. `budget` is asked after each part."""

    def __init__(self) -> None:
        self.budget = Budget()
        #: what is left; true as the whole is
        self.pieces: deque[Iterator[None]] = deque()

    def __bool__(self) -> bool:
        """Whether something is left to be done."""
        return bool(self.pieces)

    def do(self, steps: Iterator[None]) -> None:
        """Begin with it, once all before it is done."""
        self.pieces.append(steps)
        if len(self.pieces) == 1:
            self.go_on()

    def go_on(self) -> None:
        """As far as the budget goes."""
        budget = self.budget
        while self.pieces and budget.left > 0:
            for _ in self.pieces[0]:
                if budget.left <= 0:
                    return
            self.pieces.popleft()
