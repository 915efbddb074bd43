"""However long a cluster lives, the deciding half holds what lives in it."""

import pytest

from asched.core.cycle import decided, history
from asched.core.framework.results import class_cache, nominated_amounts
from asched.core.plugins import per_pod
from asched.core.preemption import search
from asched.core.state import change_log, pod_classes, topology
from tests.churn import NODES, Churn
from tests.weigh import growth

ROUNDS = 10 * NODES
#: Logs, idle terms and the like are a little more or less full each time: not by one a round.
WOBBLE = ROUNDS // 2
#: ... of these, several make an entry.
MORE_WOBBLE = {"entries of tuple": 180, "entries of list": 200, "bytes": 512, "bytes of text": 900}
IDLE_TERMS = 8


@pytest.fixture
def small_memories(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is bounded by its size is full at once."""
    monkeypatch.setattr(change_log, "LOG_ENTRIES_MAX", 32)
    monkeypatch.setattr(history, "LINES_MAX", 40)
    monkeypatch.setattr(decided, "PATTERNS_MAX", 4)
    monkeypatch.setattr(topology, "COUNTERS_MIN", 8)
    monkeypatch.setattr(topology, "CELLS_MAX", 0)
    monkeypatch.setattr(topology, "IDLE_MAX", IDLE_TERMS)
    monkeypatch.setattr(pod_classes, "RECENT_BYTES_MAX", 0)
    monkeypatch.setattr(per_pod, "PODS_MIN", 4)
    for module in (class_cache, nominated_amounts, search):
        monkeypatch.setattr(module, "BYTES_MAX", 0)


@pytest.mark.usefixtures("small_memories")
def test_names_that_come_and_go_leave_nothing() -> None:
    churn = Churn()
    churn.turn(3 * NODES)
    before, names = churn.weigh(), churn.names

    churn.turn(ROUNDS)

    assert churn.names > names + ROUNDS * 40
    more = growth(before, churn.weigh())
    assert {name: n for name, n in more.items() if n > MORE_WOBBLE.get(name, WOBBLE)} == {}
