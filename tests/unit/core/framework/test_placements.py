"""Choosing among placements: weights, ties, and what plugins get wrong."""

from collections.abc import Sequence
from typing import Any

import pytest

from asched.core.framework.placements import (
    EVERYWHERE,
    Assignments,
    Placement,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    PlacementScorer,
    choose,
    generate,
)
from asched.core.framework.status import Code, Status, failure


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
