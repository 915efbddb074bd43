"""What the machine makes is in no cycle once it is of no use: reference counts free all of it.

The collector of garbage relies on it: what long turns make is not looked through.
"""

from collections import Counter

import pytest

from asched_lab.measure import worst_crowds
from asched_lab.measure.worst import CASES, turns_of
from tests.support import uncollected

NODES, PODS, KILOBYTES = 20, 60, 3
#: One case of each feature that keeps objects of its own.
SOME = (
    "a long list",
    "a namespace changes",
    "all nodes again",
    "another configuration",
    "claims of volumes",
    "disruption budgets",
    "gates",
    "hard spread",
    "preferred affinity",
    "room for a gang",
    "search for devices",
    "thousands wait, a node comes",
)


def left_by(case: str) -> Counter[str]:
    play, facts, _ = CASES[case](NODES, PODS, KILOBYTES)
    with uncollected() as left:
        assert turns_of(play, facts)
        del facts
    return left


@pytest.mark.parametrize("case", SOME)
def test_nothing_is_left_to_the_collector(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reload among them: what its plugins knew, and they themselves."""
    monkeypatch.setattr(worst_crowds, "WAITING", 100)
    assert left_by(case) == {}
