"""The limit of a turn by numbers, so that a recorded turn can be repeated."""

from asched.core.cycle.turn_limit import TurnLimit


class CountedLimit(TurnLimit):
    """Goes on `granted` times a turn and resumes a paused attempt if `resumed`."""

    def __init__(self, granted: int = 0, *, resumed: bool = False) -> None:
        super().__init__(lambda: 0.0)
        self.granted = granted
        self.resumed = resumed

    def begin(self) -> None:
        self.went_on = 0

    def is_over(self) -> bool:
        if self.went_on >= self.granted:
            return True
        self.went_on += 1
        return False

    def may_resume(self) -> bool:
        return self.resumed
