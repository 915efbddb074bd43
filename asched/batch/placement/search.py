"""The search through all orders: which pod goes where next, asked of the rules themselves.

It walks over states: how many pods of each class stand on which rows, and what was chosen for them
there (devices, volumes). A state is entered once, however it was come to, and rows that nobody can
tell apart stand for each other. Where the order
does not matter to any class left (`Board.is_order_free`), one class is placed before the next, and
bounds cut off what cannot come to an end. Where it does, every class may be next. So what was
walked through without success has no place for the gang, in no order.

Bounds  the board says when it is enough (`Board.goes_on`); one remembered state for each step.
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
    """A pod of a class goes to a row. `choice`: None until somebody asked what there is."""

    c: int
    row: int
    choice: Choice | None = FIRST


class Board(Protocol):
    """The cluster, as far as the search may touch it. Classes go by number from 0."""

    #: how many pods of each class there are, and how many of all must get places
    counts: tuple[int, ...]
    needed: int
    #: whether all is tried that could be chosen for a pod, and not what comes first alone
    is_thorough: bool

    def feasible(self, c: int) -> Mask:
        """bool[N]: where the rules let a pod of the class go now."""

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
        """What could be chosen for the next pod of a class on a row. May be asked `patiently`."""

    def put(self, c: int, row: int, choice: Choice) -> bool:
        """Place a pod of a class. False: something refuses to have it there; take it back. May be
        asked `patiently`.
        """

    def take_back(self) -> Generator[Any, Any, None]:
        """Take the pod back that was placed last."""

    def goes_on(self) -> Generator[Any, Any, Unproven | None]:
        """Whether there may be one more step."""

    def patiently(self, ask: Callable[[], T]) -> Generator[Any, Any, T | Unproven]:
        """What is asked of the board, in as many turns as that takes."""


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
    """Places for `needed` pods, left on the board; or all taken back, and why."""
    walk = _Walk(board, list(board.counts))
    alike = yield from board.patiently(board.alike)
    if isinstance(alike, Unproven):
        return alike
    stack: list[_Frame] = []
    is_ahead = True  # where the walk stands, it has not looked what may come next
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
            frame.moves = chain([move._replace(choice=one) for one in choices], frame.moves)
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
    """Whether the walk has not come here before; it has now."""
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
    """What may come next, the most promising first; nothing if it cannot come to an end."""
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
