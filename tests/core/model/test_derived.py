"""What is derived once."""

import pytest

from asched.core.model.derived import derived


class Thing:
    def __init__(self) -> None:
        self.asked = 0

    @derived
    def double(self) -> int:
        """Twice as much."""
        self.asked += 1
        if self.asked == 1:
            raise ValueError("not yet")
        return 2 * self.asked


def test_it_is_derived_when_somebody_asks_and_then_it_stays() -> None:
    thing = Thing()
    assert thing.__dict__ == {"asked": 0}
    with pytest.raises(ValueError, match="not yet"):
        assert thing.double
    assert (thing.double, thing.double, thing.asked) == (4, 4, 2)
    assert thing.__dict__["double"] == 4


def test_the_class_tells_of_it() -> None:
    assert isinstance(Thing.double, derived)
    assert Thing.double.__doc__ == "Twice as much."
