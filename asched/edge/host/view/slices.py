"""Long looks in short slices: the deciding loop has its turn after each.

What is gone through is copied first (100,000 references take a millisecond); what it refers to may
move meanwhile, so a figure may be as old as the look took.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final, TypeVar

from asched.core.cycle.history import Histories

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


async def linked(histories: Histories) -> Histories:
    """The same, to be read at once: else the first reader links all lines that are kept."""
    while histories.link():  # noqa: ASYNC110 - the others' turn: there is no event to wait for
        await asyncio.sleep(0)
    return histories
