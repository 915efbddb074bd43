"""Codes of whole domains move a version, whenever one of them is another."""

import numpy as np

from asched.core.framework.domain_codes import DomainCodes
from asched.core.state.nodes import LabelColumn


def a_column(*values: str | None) -> LabelColumn:
    column = LabelColumn(1, len(values))
    for row, value in enumerate(values):
        column.write(row, value)
    return column


def test_rows_have_the_code_of_their_domain() -> None:
    told = DomainCodes()
    told.tell(a_column("a", "b", None, "a"), np.array([1, 0, 2], dtype=np.int32))
    assert told.by_row(4).tolist() == [0, 2, 1, 0]
    assert told.by_row(2).tolist() == [0, 2]
    assert [told.of_row(row) for row in range(4)] == [0, 2, 1, 0]


def test_the_same_codes_move_nothing_and_others_do() -> None:
    told, column = DomainCodes(), a_column("a")
    told.tell(column, np.array([1, 0], dtype=np.int32))
    version = told.version
    told.tell(column, np.array([1, 0], dtype=np.int32))
    assert told.version == version
    told.tell(column, np.array([1, 2], dtype=np.int32))
    assert told.version == version + 1
    told.tell(a_column("a"), np.array([1, 2], dtype=np.int32))
    assert told.version == version + 2
