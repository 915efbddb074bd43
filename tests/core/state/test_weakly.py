"""A method held by whom its owner holds: it works while the owner lives, and does not keep it."""

import gc
from weakref import ref

import pytest

from asched.core.state.weakly import weakly


class Owner:
    def __init__(self, factor: int) -> None:
        self.factor = factor
        self.held = weakly(self.times)

    def times(self, number: int, *, more: int = 0) -> int:
        return self.factor * number + more


def test_it_is_called_as_the_method_is() -> None:
    owner = Owner(3)
    assert owner.held(2) == 6
    assert owner.held(2, more=1) == 7


def test_the_owner_goes_with_its_last_user() -> None:
    gc.disable()
    try:
        owner = Owner(3)
        held, seen = owner.held, ref(owner)
        del owner
        assert seen() is None
    finally:
        gc.enable()
    with pytest.raises(ReferenceError, match=r"the owner of Owner\.times is gone"):
        held(2)
