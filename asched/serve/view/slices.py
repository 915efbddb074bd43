"""Long computations in short slices: the scheduling loop runs between two of them.

The collection is copied first (100,000 references take a millisecond); its objects may change
meanwhile, so a figure may be as old as the computation took.

Bounds  SLICES_MAX of the budget's slices for work on one pod, as for an attempt.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from typing import Any, Final, TypeVar

from asched.core.cluster.budget import SLICES_MAX, TOO_MUCH, Budget, OutOfTurn
from asched.core.cluster.cluster import Cluster
from asched.core.cycle.history import Histories

T = TypeVar("T")

#: Elements of two microseconds each: a millisecond.
SLICE: Final = 500


async def in_slices(copied: Sequence[T], size: int = 0) -> AsyncIterator[Sequence[T]]:
    """The parts (of SLICE unless a size is given), one after the other; other tasks run between
    two of them.
    """
    size = size or SLICE
    for start in range(0, len(copied), size):
        if start:
            await asyncio.sleep(0)
        yield copied[start : start + size]


async def as_it_is(cluster: Cluster) -> None:
    """Wait until no tentative removal of pods is in place: some tenths of a second at most."""
    while cluster.is_supposed:  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0)


async def linked(histories: Histories) -> Histories:
    """The histories, prepared for one read: else the first reader would link all lines at once."""
    while histories.link():  # noqa: ASYNC110 - lets other tasks run
        await asyncio.sleep(0)
    return histories


async def in_steps(cluster: Cluster, steps: Generator[Any, Any, T]) -> T:
    """The result of steps that yield once they have used up a slice of the budget, and go on."""
    while True:
        cluster.budget.open()
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            cluster.budget.close()
        await asyncio.sleep(0)
        await as_it_is(cluster)


async def in_turns(budget: Budget, work: Callable[[], T]) -> T:
    """The result of work that checks the budget: restarted slice after slice until it completes, as
    an attempt is. Raises OutOfTurn if it never does.
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
