"""Long looks in short slices: the deciding loop has its turn after each.

What is gone through is copied first (100,000 references take a millisecond); what it refers to may
move meanwhile, so a figure may be as old as the look took.

Bounds  SLICES_MAX of the budget's slices for what one pod costs, as an attempt has them.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final, TypeVar

from asched.core.cycle.history import Histories
from asched.core.state.budget import SLICES_MAX, TOO_MUCH, Budget, OutOfTurn
from asched.core.state.cluster import Cluster

T = TypeVar("T")

#: Of what takes two microseconds each: a millisecond.
SLICE: Final = 500


async def in_slices(copied: Sequence[T], size: int = 0) -> AsyncIterator[Sequence[T]]:
    """The parts (of SLICE unless a size is given), one after the other, with a turn for everybody
    else between two of them.
    """
    size = size or SLICE
    for start in range(0, len(copied), size):
        if start:
            await asyncio.sleep(0)
        yield copied[start : start + size]


async def as_it_is(cluster: Cluster) -> None:
    """Wait until no pods are only supposed to be gone: some tenths of a second at most."""
    while cluster.is_supposed:  # noqa: ASYNC110 - nothing tells when that ends
        await asyncio.sleep(0)


async def linked(histories: Histories) -> Histories:
    """The same, to be read at once: else the first reader links all lines that are kept."""
    while histories.link():  # noqa: ASYNC110 - the others' turn: there is no event to wait for
        await asyncio.sleep(0)
    return histories


async def in_turns(budget: Budget, work: Callable[[], T]) -> T:
    """What comes of work that asks the budget: begun anew in slice after slice until it comes to
    its end, as an attempt is. Raises OutOfTurn if it never does.
    """
    for _ in range(SLICES_MAX):
        budget.open()
        try:
            return work()
        except OutOfTurn:
            pass
        finally:
            budget.close()
        await asyncio.sleep(0)
    raise OutOfTurn(TOO_MUCH)
