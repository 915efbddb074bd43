"""However long a process lives, it holds what it held after the first days, counted by objects.

Garbage is collected as in production: what is old is not looked at.
"""

from collections import Counter

import pytest

from asched_lab.measure.retained import growth, make_small
from asched_lab.measure.year import Year
from tests.support import uncollected

#: Once all that ages has been full once, and as often again.
DAYS = 40
#: What a moment holds: of each kind below one a day.
WOBBLE = DAYS // 2
MORE_WOBBLE = {
    # lines of events, which are longer and shorter
    "entries of tuple": 10 * DAYS,
    "entries of list": 3 * DAYS,
    "entries of dict": 60,
    "int": 60,
    "float": 40,
    # columns, by how many their rows are a multiple of
    "bytes": 400,
}
#: Within these, everything that breaks or ages has been at its least.
LOOKED_AT = 6


def test_a_year_of_names_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch.setattr)
    with Year() as year:
        year.run(12)
        before, names = _least(year), year.names

        with uncollected() as left:
            year.run(DAYS)
            more = growth(before, _least(year))

        assert year.names > names + 20 * DAYS
        assert year.world.ledger.bound_count > 5 * DAYS
        assert year.world.acting.auditor.report.found == 0
    assert [name for name in left if name.startswith("asched.")] == []
    # A user's plugin is a class, and another adapts it: each is in a circle of its own. Each base
    # keeps a weak reference, with a callback, to every class that was ever asked about.
    of_bases = left["weakref.ReferenceType"] + left["builtins.builtin_function_or_method"]
    assert left.total() - of_bases < 20 * DAYS
    text = more.pop("bytes of text", 0)
    assert {name: n for name, n in more.items() if n > MORE_WOBBLE.get(name, WOBBLE)} == {}
    assert text < 3000


def _least(year: Year) -> Counter[str]:
    """What each of several days holds: without what is there for a moment only."""
    least = year.held()
    for _ in range(LOOKED_AT - 1):
        year.run(1)
        least &= year.held()
    return least
