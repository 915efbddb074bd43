"""What the machine makes is in no cycle once it is of no use: reference counts free all of it.

The collector of garbage relies on it: what long turns make is not looked through.
"""

import gc
from collections import Counter

import pytest

from tests.bench import worst_crowds
from tests.bench.worst import CASES, turns_of

NODES, PODS, KILOBYTES = 20, 60, 3
#: Its plugins and those they hand themselves to are left.
RELOAD = "another configuration"


def left_by(case: str) -> Counter[str]:
    play, facts, _ = CASES[case](NODES, PODS, KILOBYTES)
    gc.collect()
    gc.disable()
    try:
        assert turns_of(play, facts)
        del facts
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        return Counter(type(found).__name__ for found in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("case", sorted({*CASES} - {RELOAD}))
def test_nothing_is_left_to_the_collector(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worst_crowds, "WAITING", 100)
    assert left_by(case) == {}


def test_a_reload_leaves_nothing_of_those_who_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was cached for a class has some 60 containers, and arrays of all nodes; what plugins
    derived from it has one or two.
    """
    monkeypatch.setattr(worst_crowds, "WAITING", 5)
    few = left_by(RELOAD).total()
    monkeypatch.setattr(worst_crowds, "WAITING", 100)
    assert left_by(RELOAD).total() < few + 4 * 100
