"""Tallies: sums per domain keep up with rows, labels and growth."""

from random import Random

import numpy as np
import pytest

from asched.core.state.nodes import NodeTable
from asched.core.state.tally import AMOUNTS, Tally, TallyLedger
from tests.topology_world import ZONE, a_node


def a_tally(*zones: str) -> tuple[NodeTable, Tally]:
    nodes = NodeTable()
    for number, zone in enumerate(zones):
        nodes.put(a_node(f"n{number}", f"zone={zone}" if zone else ""))
    return nodes, Tally(TallyLedger(nodes))


def by_zone(nodes: NodeTable, tally: Tally) -> dict[str, int]:
    values = nodes.label_column(ZONE).values
    counts = tally.domain(ZONE)
    assert len(counts) == len(values)
    return {value: int(counts[values.find(value)]) for value in values.holders()}


def test_a_domain_asked_for_early_equals_one_asked_for_late() -> None:
    nodes, early = a_tally("a", "b", "a", "")
    late = Tally(TallyLedger(nodes))
    early.domain(ZONE)
    for tally in (early, late):
        for row, amount in ((0, 2), (2, 1), (1, 1), (3, 5), (2, -1)):
            tally.move(row, amount)

    assert by_zone(nodes, early) == by_zone(nodes, late) == {"a": 2, "b": 1}
    assert early.rows().tolist() == late.rows().tolist() == [2, 1, 0, 5]
    assert early.total == 8


def test_rows_without_the_label_are_in_no_domain() -> None:
    nodes, tally = a_tally("", "a")
    tally.domain(ZONE)
    tally.move(0, 3)

    assert tally.domain(ZONE)[0] == 0
    assert by_zone(nodes, tally) == {"a": 0}


def test_new_nodes_and_new_values_find_room() -> None:
    nodes, tally = a_tally("a")
    tally.domain(ZONE)
    tally.rows()
    for number in range(1, 200):
        row, _ = nodes.put(a_node(f"n{number}", f"zone=z{number}"))
        tally.move(row, number)

    assert tally.rows()[199] == 199
    assert by_zone(nodes, tally)["z199"] == 199
    assert len(tally.domain(ZONE)) == len(nodes.label_column(ZONE).values)


def test_a_relabelled_row_takes_its_count_along() -> None:
    nodes, tally = a_tally("a", "b")
    tally.move(0, 4)
    tally.domain(ZONE)
    before = tally.version

    nodes.put(a_node("n0", "zone=b"))
    tally.relabel(0, ZONE)

    assert by_zone(nodes, tally) == {"b": 4}
    assert tally.version != before


def test_relabelling_an_empty_row_changes_nothing() -> None:
    nodes, tally = a_tally("a", "b")
    tally.move(0, 4)
    tally.domain(ZONE)
    before = tally.version

    nodes.put(a_node("n1", "zone=a"))
    tally.relabel(1, ZONE)
    tally.move(1, 1)
    tally.move(1, -1)

    assert by_zone(nodes, tally) == {"a": 4}
    assert tally.version != before  # the moves, not the label


def test_versions_of_all_tallies_are_distinct() -> None:
    nodes = NodeTable()
    nodes.put(a_node("n0"))
    ledger = TallyLedger(nodes)
    first, second = Tally(ledger), Tally(ledger)
    versions = [first.version, second.version]
    for tally in (first, second, first):
        tally.move(0, 1)
        versions.append(tally.version)

    assert len(set(versions)) == len(versions)


def test_whoever_follows_the_log_misses_no_row_and_hears_when_all_may_be_others() -> None:
    _, tally = a_tally("a", "b", "")
    tally.domain(ZONE)
    for step in (
        lambda: tally.move(1, 2),
        lambda: tally.move(1, -1),
        lambda: tally.move(2, 1),
        lambda: tally.relabel(1, ZONE),
        lambda: (tally.domain(ZONE), tally.forget(ZONE)),
    ):
        before, version, rows = tally.log.end, tally.version, tally.rows().copy()
        step()
        assert tally.version > version
        told = tally.log.rows(before, AMOUNTS)
        moved = set(np.flatnonzero(tally.rows() != rows).tolist())
        assert told is None or (moved and moved <= set(told))
        assert (told is None) is (not moved), "domains were summed anew"


@pytest.mark.parametrize("seed", range(10))
def test_random_moves_add_up(seed: int) -> None:
    """Beside a plain list of counts."""
    draw = Random(seed)
    nodes, tally = a_tally("a")
    zones, counts = ["a"], [0]
    for _ in range(120):
        what = draw.random()
        if what < 0.2:
            zones.append(draw.choice(["", "a", "b", f"z{len(zones)}"]))
            counts.append(0)
            nodes.put(a_node(f"n{len(zones) - 1}", f"zone={zones[-1]}" if zones[-1] else ""))
        elif what < 0.8:
            row, amount = draw.randrange(len(zones)), draw.choice([1, 2, -1])
            counts[row] += amount
            tally.move(row, amount)
        elif what < 0.9:
            assert tally.rows().tolist() == counts
        else:
            sums = {zone: 0 for zone in zones if zone}
            for zone, number in zip(zones, counts, strict=True):
                if zone:
                    sums[zone] += number
            assert by_zone(nodes, tally) == sums
        assert tally.total == sum(counts)
        assert [tally.at(row) for row in range(len(counts))] == counts
