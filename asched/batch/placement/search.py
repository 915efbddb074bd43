"""The search through all orders of placing a gang's pods, checked by the rules themselves.

A state is the number of pods of each class on each row, and the devices and volumes chosen for
them. Each state is entered once, and of equal rows only one is tried. If the order does not matter
to any remaining class (`Board.is_order_free`), one class is placed before the next, and bounds cut
off states that cannot succeed. Otherwise every class may be next. So a complete search without
success proves that the gang has no places in any order.

Bounds  the board ends the search (`Board.goes_on`); one stored state for each step.
"""

from collections.abc import Callable, Generator, Hashable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np

from asched.batch.placement.problem import I64, Infeasible, Mask, Plan, Unproven

SPENT: Final = Unproven("the budget of work for the gang is used up")
MOVED: Final = Unproven("the cluster changed during the search")

T = TypeVar("T")

#: A pod of this class goes without a place, in a `_Move`.
NOWHERE: Final = -1
#: Which of several things is chosen for a pod, by what is to be chosen, counted from 0.
Choice = tuple[int, ...]
FIRST: Final[Choice] = ()


class _Move(NamedTuple):
    """Place a pod of a class on a row. `choice`: None until the choices are read."""

    c: int
    row: int
    choice: Choice | None = FIRST


class Board(Protocol):
    """The part of the cluster that the search may change. Classes are numbered from 0."""

    #: how many pods of each class there are, and how many of all must get places
    counts: tuple[int, ...]
    needed: int
    #: whether all is tried that could be chosen for a pod, and not what comes first alone
    is_thorough: bool

    def feasible(self, c: int) -> Mask:
        """bool[N]: rows that the rules allow for a pod of the class now."""

    def slots(self, c: int) -> I64:
        """int64[N]: more of them than this have no room on a row as it is now."""

    def is_order_free(self, c: int) -> bool: ...

    def alike(self) -> tuple[int, ...]:
        """Rows with equal numbers could change places, as things were at the beginning."""

    def chooses(self, c: int) -> bool:
        """Whether more than the row is chosen for a pod of the class as it is put there."""

    def chosen(self) -> Hashable:
        """All that was chosen for pods on the board beside their rows."""

    def choices(self, c: int, row: int) -> Iterable[Choice]:
        """The choices for the next pod of a class on a row. May be called by `patiently`."""

    def put(self, c: int, row: int, choice: Choice) -> bool:
        """Place a pod of a class. False: a plugin rejects it, and it has to be taken back. May be
        called by `patiently`.
        """

    def take_back(self) -> Generator[Any, Any, None]:
        """Take back the pod that was placed last."""

    def goes_on(self) -> Generator[Any, Any, Unproven | None]:
        """Whether there may be one more step."""

    def patiently(self, ask: Callable[[], T]) -> Generator[Any, Any, T | Unproven]:
        """Call a function of the board, again after pauses if it raises OutOfTurn."""


class _Frame(msgspec.Struct):
    """`moves` that are left to be tried from a state."""

    moves: Iterator[_Move]
    #: what led on from here last
    made: _Move | None = None


class _Walk(msgspec.Struct):
    board: Board
    left: list[int]
    placed: list[tuple[int, int]] = msgspec.field(default_factory=list)
    #: row -> how many of each class stand there
    held: dict[int, list[int]] = msgspec.field(default_factory=dict)
    seen: set[Any] = msgspec.field(default_factory=set)
    #: proofs hold only if nothing else was refused than what the rules refuse
    refused: bool = False


def search(board: Board) -> Generator[Any, Any, Plan | Infeasible | Unproven]:
    """Find places for `needed` pods, which stay on the board; or a reason, with all taken back."""
    walk = _Walk(board, list(board.counts))
    alike = yield from board.patiently(board.alike)
    if isinstance(alike, Unproven):
        return alike
    stack: list[_Frame] = []
    is_ahead = True  # whether the moves of the present state are still to be listed
    while (stack or is_ahead) and len(walk.placed) < board.needed:
        stop = yield from board.goes_on()
        if stop is None and is_ahead:
            moves = yield from board.patiently(lambda: _moves(walk, alike))
            stop = moves if isinstance(moves, Unproven) else None
            stack.append(_Frame(iter(() if isinstance(moves, Unproven) else moves)))
            is_ahead = False
        if stop is not None:
            yield from _take_all_back(walk)
            return stop
        frame = stack[-1]
        if frame.made is not None:
            yield from _back(walk, frame.made)
            frame.made = None
        move = next(frame.moves, None)
        if move is None:
            stack.pop()
            continue
        if move.choice is None:
            choices = yield from board.patiently(partial(board.choices, move.c, move.row))
            if isinstance(choices, Unproven):
                yield from _take_all_back(walk)
                return choices
            frame.moves = chain([move._replace(choice=choice) for choice in choices], frame.moves)
            continue
        is_made = yield from _make(walk, move, alike)
        if isinstance(is_made, Unproven):
            yield from _take_all_back(walk)
            return is_made
        if is_made:
            frame.made = move
            is_ahead = True
    if len(walk.placed) >= board.needed:
        return [(c, row, 1) for c, row in walk.placed]
    if walk.refused:
        return Unproven("a plugin that promises resources refused some of the places")
    return Infeasible(f"all {len(walk.seen) + 1} ways to place its pods were tried")


def _take_all_back(walk: _Walk) -> Generator[Any, Any, None]:
    while walk.placed:
        walk.placed.pop()
        yield from walk.board.take_back()


def _make(walk: _Walk, move: _Move, alike: tuple[int, ...]) -> Generator[Any, Any, bool | Unproven]:
    c, row, choice = move
    walk.left[c] -= 1
    if row != NOWHERE:
        walk.held.setdefault(row, [0] * len(walk.left))[c] += 1
    if row == NOWHERE:
        if _is_new(walk, alike):
            return True
    elif (chooses := walk.board.chooses(c)) or _is_new(walk, alike):
        is_taken = yield from walk.board.patiently(lambda: walk.board.put(c, row, choice or FIRST))
        if isinstance(is_taken, Unproven):
            return is_taken
        if is_taken and (not chooses or _is_new(walk, alike)):
            walk.placed.append((c, row))
            return True
        walk.refused |= not is_taken
        yield from walk.board.take_back()
    _unmake(walk, move)
    return False


def _is_new(walk: _Walk, alike: tuple[int, ...]) -> bool:
    """Whether the state is new; it is stored."""
    rows = sorted((alike[row], tuple(held)) for row, held in walk.held.items())
    state = tuple(walk.left), tuple(rows), walk.board.chosen()
    if state in walk.seen:
        return False
    walk.seen.add(state)
    return True


def _unmake(walk: _Walk, move: _Move) -> None:
    c, row, _ = move
    walk.left[c] += 1
    if row != NOWHERE:
        walk.held[row][c] -= 1
        if not any(walk.held[row]):
            del walk.held[row]


def _back(walk: _Walk, move: _Move) -> Generator[Any, Any, None]:
    if move.row != NOWHERE:
        walk.placed.pop()
        yield from walk.board.take_back()
    _unmake(walk, move)


def _moves(walk: _Walk, alike: tuple[int, ...]) -> list[_Move]:
    """The next moves, the most promising first; empty if the state cannot succeed."""
    board = walk.board
    need = board.needed - len(walk.placed)
    left = [c for c, count in enumerate(walk.left) if count]
    free = [board.is_order_free(c) for c in left]
    feasible = {c: board.feasible(c) for c in left}
    most, slack = 0, {}
    for c, is_free in zip(left, free, strict=True):
        room = int(np.where(feasible[c], board.slots(c), 0).sum())
        slack[c] = room - walk.left[c]
        most += min(room, walk.left[c]) if is_free else walk.left[c]
    if most < need:
        return []
    order = sorted(left, key=lambda c: (slack[c], c))
    if all(free):
        c = order[0]
        moves = [_Move(c, row) for row in _rows(walk, feasible[c], c, alike)]
        return [*moves, _Move(c, NOWHERE)] if sum(walk.left) > need else moves
    first = {c: None if board.is_thorough and board.chooses(c) else FIRST for c in order}
    rows = {c: _rows(walk, feasible[c], c, alike) for c in order}
    return [_Move(c, row, first[c]) for c in order for row in rows[c]]


def _rows(walk: _Walk, feasible: Mask, c: int, alike: tuple[int, ...]) -> list[int]:
    """Rows for a class, one of each kind, those with the least room to spare first."""
    rows = np.flatnonzero(feasible)
    rows = rows[np.argsort(walk.board.slots(c)[rows], kind="stable")]
    kinds: dict[Any, int] = {}
    for row in rows.tolist():
        kinds.setdefault((alike[row], tuple(walk.held.get(row, ()))), row)
    return list(kinds.values())
