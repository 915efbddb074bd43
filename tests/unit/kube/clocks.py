"""Clocks that move only when a test moves them."""


class StillClock:
    now_s = 0.0

    def __call__(self):
        return self.now_s
