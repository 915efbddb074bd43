"""However long a process lives, it holds what it held after the first days, counted by objects."""

import pytest

from tests.small_bounds import make_small
from tests.weigh import growth
from tests.year import Year

DAYS = 16
#: Logs, idle terms and a part of a list that is on its way are a little more or less full: not by
#: one a day.
WOBBLE = DAYS // 2
MORE_WOBBLE = {
    "entries of tuple": 120,
    "entries of list": 120,
    "entries of dict": 60,
    "int": 60,
    # of each kind's stream once it broke
    "frame": 20,
    "float": 40,
}


def test_a_year_of_names_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch.setattr)
    with Year() as year:
        year.live(8)
        before, names = year.held(), year.names

        year.live(DAYS)

        assert year.names > names + 20 * DAYS
        more = growth(before, year.held())
        assert year.world.ledger.bound_count > 5 * DAYS
        assert year.world.acting.auditor.report.found == 0
    text = more.pop("bytes of text", 0)
    assert {name: n for name, n in more.items() if n > MORE_WOBBLE.get(name, WOBBLE)} == {}
    assert text < 3000
