"""From counts that moved to rows: which are named, and when nobody knows."""

import numpy as np
import pytest

from asched.core.framework.results.feasible import TURNED_MAX
from asched.core.plugins.moved_rows import CountsSeen, MovedRows, difference
from asched.core.state.cluster import Cluster
from asched.core.state.nodes import ALL_ASPECTS, LabelColumn
from asched.core.state.tally import LOGGED_MAX, Tally, TallyLedger
from tests.builders import a_cluster, a_node


def zones(cluster: Cluster) -> LabelColumn:
    return cluster.nodes.label_column("zone")


@pytest.fixture
def cluster() -> Cluster:
    """Three nodes in zone a, one in b, one without a zone."""
    nodes = [a_node(f"n{at}").labels(zone=zone) for at, zone in enumerate("aaab")]
    return a_cluster(*nodes, a_node("bare"))


def test_rows_are_those_of_moves_since_the_last_look(cluster: Cluster) -> None:
    ledger = TallyLedger(cluster.nodes)
    one, other = Tally(ledger), Tally(ledger)
    seen = CountsSeen()
    assert seen.rows((one, other)) is None
    one.move(3, 1)
    other.move(4, 2)
    other.move(3, 1)
    assert set(seen.rows((one, other)) or ()) == {3, 4}
    assert not seen.rows((one, other))
    assert seen.rows((one,)) is None
    assert seen.rows((one, Tally(ledger))) is None


def test_a_tally_that_moved_too_often_is_not_followed(cluster: Cluster) -> None:
    tally, seen = Tally(TallyLedger(cluster.nodes)), CountsSeen()
    seen.rows((tally,))
    for _ in range(LOGGED_MAX + 1):
        tally.move(0, 1)
    assert seen.rows((tally,)) is None
    tally.move(1, 1)
    assert list(seen.rows((tally,)) or ()) == [1]


def test_what_a_trial_moved_and_moved_back_is_named_if_somebody_looked_in_between(
    cluster: Cluster,
) -> None:
    tally, seen = Tally(TallyLedger(cluster.nodes)), CountsSeen()
    seen.rows((tally,))
    version = tally.version
    tally.move(2, 1)
    assert list(seen.rows((tally,)) or ()) == [2]
    tally.move(2, -1)
    tally.version = version  # as the end of a trial has it
    assert list(seen.rows((tally,)) or ()) == [2]
    assert not seen.rows((tally,))


def test_all_rows_of_a_domain_are_named(cluster: Cluster) -> None:
    moved = MovedRows(cluster.nodes)
    a, b = (zones(cluster).values.ids[value] for value in "ab")
    cursor = moved.log.end
    moved.turn(zones(cluster), (a,))
    assert set(moved.log.rows(cursor, ALL_ASPECTS) or ()) == {0, 1, 2}
    cursor = moved.log.end
    moved.turn_row(3, zones(cluster), b)
    assert moved.log.rows(cursor, ALL_ASPECTS) == (3,)
    moved.turn_row(0, zones(cluster), a)
    assert set(moved.log.rows(cursor, ALL_ASPECTS) or ()) == {0, 1, 2, 3}
    cursor = moved.log.end
    moved.turn_alone(4)
    assert moved.log.rows(cursor, ALL_ASPECTS) == (4,)


def test_nobody_names_the_rows_without_a_label_or_those_of_a_large_domain() -> None:
    nodes = [a_node(f"n{at}").labels(zone="a") for at in range(TURNED_MAX + 1)]
    cluster = a_cluster(*nodes)
    moved = MovedRows(cluster.nodes)
    for id_ in (zones(cluster).values.ids["a"], 0):
        cursor = moved.log.end
        moved.turn_row(0, zones(cluster), id_)
        assert moved.log.rows(cursor, ALL_ASPECTS) is None


def test_arrays_differ_where_they_are_not_alike_and_where_one_has_more() -> None:
    before, after = np.array([0, 1, 2, 0]), np.array([0, 3, 2, 0, 0, 7])
    assert difference(before, after).tolist() == [1, 5]
    assert difference(after, before).tolist() == [1, 5]
    assert difference(before, before).tolist() == []
