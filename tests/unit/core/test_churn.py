"""However long a cluster lives, the deciding half holds what lives in it."""

import pytest

from asched_lab.measure.churn import NODES, Churn
from asched_lab.measure.retained import growth, make_small

ROUNDS = 6 * NODES
#: Logs, idle terms and the like are a little more or less full each time: not by one a round.
WOBBLE = ROUNDS // 2
#: ... of these, several make an entry.
MORE_WOBBLE = {"entries of tuple": 180, "entries of list": 200, "bytes": 512, "bytes of text": 900}


@pytest.fixture
def small_memories(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is bounded by its size is full at once."""
    make_small(monkeypatch.setattr)


@pytest.mark.usefixtures("small_memories")
def test_names_that_come_and_go_leave_nothing() -> None:
    churn = Churn()
    churn.turn(3 * NODES)
    before, names = churn.weigh(), churn.names

    churn.turn(ROUNDS)

    assert churn.names > names + ROUNDS * 40
    more = growth(before, churn.weigh())
    assert {name: n for name, n in more.items() if n > MORE_WOBBLE.get(name, WOBBLE)} == {}
