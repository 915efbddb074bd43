"""Columns grow together, keep what they hold, and are written by their owner alone."""

import numpy as np
import pytest

from asched.core.state.columns import ROWS_MIN, Column, Columns

DECLARED = (
    Column("live", np.bool_, (), "-", "tests"),
    Column("amount", np.int64, ("R",), "-", "tests"),
)


def filled() -> Columns:
    columns = Columns(DECLARED, R=2)
    columns.write["live"][5] = True
    columns.write["amount"][:, 5] = [7, 8]
    return columns


def test_they_begin_as_zeroes_of_their_shapes() -> None:
    columns = Columns(DECLARED, R=2)
    assert columns.read("live").shape == (ROWS_MIN,)
    assert columns.read("amount").shape == (2, ROWS_MIN)
    assert (columns.read("live").dtype, columns.read("amount").dtype) == (np.bool_, np.int64)
    assert not columns.read("amount").any()
    assert columns.size_of("R") == 2


def test_readers_see_what_is_written_and_cannot_write() -> None:
    columns = filled()
    assert columns.read("amount")[:, 5].tolist() == [7, 8]
    with pytest.raises(ValueError):
        columns.read("amount")[0, 0] = 1


def test_room_doubles_until_there_is_enough() -> None:
    columns = filled()
    assert not columns.reserve(ROWS_MIN)
    assert columns.reserve(ROWS_MIN + 1)
    assert columns.capacity == 2 * ROWS_MIN
    assert columns.reserve(5 * ROWS_MIN)
    assert columns.capacity == 8 * ROWS_MIN
    assert columns.read("live").shape == (8 * ROWS_MIN,)
    assert columns.read("amount")[:, 5].tolist() == [7, 8]
    assert columns.read("live").nonzero()[0].tolist() == [5]


def test_room_is_cut_to_what_is_kept() -> None:
    columns = filled()
    columns.reserve(8 * ROWS_MIN)
    assert not columns.cut(4 * ROWS_MIN + 1)
    assert columns.cut(4 * ROWS_MIN)
    assert columns.capacity == 4 * ROWS_MIN
    assert columns.cut(0)
    assert columns.capacity == ROWS_MIN
    assert columns.read("amount").shape == (2, ROWS_MIN)
    assert columns.read("amount")[:, 5].tolist() == [7, 8]
    assert not columns.cut(0)


def test_an_axis_grows_where_it_is_used_and_only_then() -> None:
    columns = filled()
    live = columns.write["live"]
    assert not columns.widen("R", 2)
    assert columns.widen("R", 3)
    assert columns.read("amount").shape == (3, ROWS_MIN)
    assert columns.read("amount")[:, 5].tolist() == [7, 8, 0]
    assert columns.write["live"] is live
    assert columns.size_of("R") == 3
    columns.reserve(ROWS_MIN + 1)
    assert columns.read("amount").shape == (3, 2 * ROWS_MIN)


def test_an_axis_may_get_room_to_spare() -> None:
    columns = filled()
    assert columns.widen("R", 3, spare=2)
    assert not columns.widen("R", 5)
    assert columns.widen("R", 6)


def test_a_freed_row_is_zeroed_in_all_columns_and_no_other_row_is() -> None:
    columns = filled()
    columns.write["live"][6] = True
    columns.clear(5)
    assert columns.read("live").nonzero()[0].tolist() == [6]
    assert not columns.read("amount").any()
