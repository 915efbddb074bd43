"""Choosing among placements: weights, ties, and what plugins get wrong."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from asched.core.framework.placements import (
    EVERYWHERE,
    Assignments,
    Divisions,
    Placement,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    PlacementScorer,
    RepeatedPlacements,
    choose,
    generate,
    is_within,
    narrowed,
)
from asched.core.framework.status import Code, Status, failure, unschedulable
from asched.core.plugins.pod_group_pods_count import PodGroupPodsCount
from asched.core.state.cluster import Cluster
from tests.builders import a_pod


class Table(PlacementScorePlugin):
    """Scores by the placement's name."""

    name = "Table"

    def __init__(self, final: Any = None, **scores: Any) -> None:
        self._scores, self._final = scores, final

    def score_placement(self, group: str, assignments: Assignments) -> int | Status:
        assert group == "default/crew"
        score: int | Status = self._scores[assignments.placement.name]
        return score

    def normalize_placements(self, scores: Sequence[int]) -> Sequence[int] | Status:
        found: Sequence[int] | Status = scores if self._final is None else self._final
        return found


class Fixed(PlacementGeneratePlugin):
    name = "Fixed"

    def __init__(self, answer: Sequence[Placement] | Status) -> None:
        self._answer = answer

    def generate_placements(self, group: str, parent: Placement) -> Sequence[Placement] | Status:
        assert (group, parent) == ("default/crew", EVERYWHERE)
        return self._answer


A, B = (Assignments(Placement(name), ()) for name in ("a", "b"))


def chosen(*scorers: PlacementScorer, seed: int = 0) -> int | Status:
    return choose(scorers, "default/crew", (A, B), seed)


def test_weights_decide() -> None:
    light = PlacementScorer(Table(a=90, b=10), 1)
    assert chosen(light) == 0
    assert chosen(light, PlacementScorer(Table(a=10, b=50), 3)) == 1  # 120 against 160
    assert chosen(light, PlacementScorer(Table(a=10, b=60), 2)) == 1  # 110 against 130


def test_placements_that_take_the_same_pods_are_scored_as_if_each_had_been_tried() -> None:
    cluster = Cluster()
    pods = ((cluster.classes.info_of(a_pod("p").build()), ""),)
    alike = RepeatedPlacements([one.placement for one in (A, B)], pods)
    assert list(alike) == [Assignments(one.placement, pods) for one in (A, B)]
    assert (len(alike), list(alike[1:])) == (2, [alike[1]])
    table = PlacementScorer(Table(a=10, b=90), 1)
    count = PlacementScorer(PodGroupPodsCount(cluster), 1)
    assert choose((table, count), "default/crew", alike, 0) == 1
    told = count.plugin.score_placements("default/crew", alike)
    assert told == count.plugin.score_placements("default/crew", list(alike)) == [1, 1]


def test_normalized_scores_are_what_counts() -> None:
    assert chosen(PlacementScorer(Table(a=900, b=300, final=[0, 100]), 1)) == 1


def test_the_seed_decides_between_equals() -> None:
    both = {chosen(PlacementScorer(Table(a=5, b=5), 1), seed=seed) for seed in range(20)}
    assert both == {0, 1}


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            Table(a=1, b=failure("no")),
            'running PlacementScore plugins: plugin "Table" failed with: no',
        ),
        (
            Table(a=1, b=1, final=failure("no")),
            (
                "running NormalizePlacementScore on PlacementScore plugins:"
                ' plugin "Table" failed with: no'
            ),
        ),
        (
            Table(a=1, b=1, final=[1]),
            (
                "running PlacementScore plugins:"
                ' plugin "Table" failed with: 1 scores for 2 placements'
            ),
        ),
        (
            Table(a=1, b=101),
            (
                'applying score defaultWeights on PlacementScore plugins: plugin "Table" returns'
                " an invalid score 101, it should in the range of [0, 100] after normalizing"
            ),
        ),
        (
            Table(a=0, b=-1),
            (
                'applying score defaultWeights on PlacementScore plugins: plugin "Table" returns'
                " an invalid score -1, it should in the range of [0, 100] after normalizing"
            ),
        ),
    ],
)
def test_what_a_plugin_gets_wrong_is_an_error(table: Table, said: str) -> None:
    status = chosen(PlacementScorer(table, 1))

    assert isinstance(status, Status)
    assert (status.code, status.message) == (Code.ERROR, said)


def test_without_a_plugin_there_is_one_placement_of_all_nodes() -> None:
    assert generate((), "default/crew") == (EVERYWHERE,)


def test_a_plugin_that_offers_nothing_rejects_the_group() -> None:
    status = generate((Fixed(()),), "default/crew")

    assert isinstance(status, Status)
    assert (status.code, status.message) == (
        Code.UNSCHEDULABLE,
        "no feasible placements found",
    )
    assert status.plugin == "Fixed"


def test_what_a_plugin_says_is_passed_on() -> None:
    status = generate((Fixed(unschedulable("full")),), "default/crew")

    assert isinstance(status, Status)
    assert status.message == "full"
    one = Placement("a", np.ones(2, dtype=np.bool_))
    assert generate((Fixed((one,)),), "default/crew") == (one,)


@pytest.mark.parametrize(
    ("masks", "sums"),
    [
        ([[1, 0, 1, 0], [0, 1, 0, 0]], [[5, 2], [50, 20]]),
        ([[0, 1, 0, 1], [1, 0, 0, 0]], [[6, 1], [60, 10]]),
        ([[1, 1, 0, 0], [0, 1, 0, 0]], None),  # a node of both
        ([[1, 1, 0, 0], [0, 0, 0, 0]], None),  # nobody's
    ],
)
def test_amounts_are_summed_over_each_part_in_one_pass(
    masks: list[list[int]], sums: list[list[int]] | None
) -> None:
    placements = [Placement(str(at), np.array(m, dtype=np.bool_)) for at, m in enumerate(masks)]
    divisions = Divisions(Cluster())
    parts = divisions.of(placements)
    assert divisions.of(placements) is parts
    by_row = np.array([[1, 2, 4, 4], [10, 20, 40, 40]], dtype=np.int64)
    assert (None if parts is None else parts.sums(by_row).tolist()) == sums
    if parts is not None and sums is not None:
        assert parts.sums(by_row[0]).tolist() == sums[0]
        assert parts.sums(by_row[None]).tolist() == [sums]
    assert divisions.of([EVERYWHERE]) is None


def test_each_row_has_its_part_or_none() -> None:
    masks = [np.arange(7) == 4, np.arange(7) % 3 == 2, np.arange(7) == 0]
    parts = Divisions(Cluster()).of([Placement("", mask) for mask in masks])
    assert parts is not None
    assert parts.owner(8).tolist() == [2, -1, 1, -1, 0, 1, -1, -1]


class Counted(list[Placement]):
    """Counts how often somebody goes through them."""

    looks = 0

    def __iter__(self) -> Iterator[Placement]:
        self.looks += 1
        return super().__iter__()


def test_who_asks_about_the_same_placements_again_has_nobody_go_through_them() -> None:
    """Those asked about last and those before them, in turns; another one takes an old one's
    place.
    """
    one, two, three = (Counted([Placement("", np.arange(8) == at)]) for at in range(3))
    divisions = Divisions(Cluster())
    for asked in (one, two, one, two, one):
        assert divisions.of(asked) is not None
    assert (one.looks, two.looks) == (1, 1)
    for asked in (three, two, one):
        divisions.of(asked)
    assert (three.looks, two.looks, one.looks) == (1, 1, 2)


def test_placements_that_begin_or_end_alike_are_not_taken_for_one_another() -> None:
    a, b, c = (np.arange(8) == at for at in range(3))
    divisions = Divisions(Cluster())
    found = [
        divisions.of([Placement("", mask) for mask in masks])
        for masks in ((a, b), (a,), (a, c), (b, c), (a, b, c))
    ]
    orders = [None if one is None else one.order.tolist() for one in found]
    assert orders == [[0, 1], [0], [0, 2], [1, 2], [0, 1, 2]]


@pytest.mark.parametrize(
    ("within", "left"),
    [
        (None, [True, False, True]),
        ([False, True, True], [False, False, True]),
        ([True], [True, False, False]),
        ([True, True, True, True], [True, False, True]),
        ([], [False, False, False]),
    ],
)
def test_rows_are_narrowed_whatever_came_or_went_since_they_were_chosen(
    within: list[bool] | None, left: list[bool]
) -> None:
    mask = np.array([True, False, True])
    rows = None if within is None else np.array(within, dtype=np.bool_)
    found = narrowed(mask, rows)
    assert found.tolist() == left
    assert [is_within(row, rows) and bool(mask[row]) for row in range(3)] == left
    found[:] = False
    assert mask.tolist() == [True, False, True], "what is narrowed is a copy"
