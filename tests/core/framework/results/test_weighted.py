"""Weighted points: normalised over the feasible rows, and told as few numbers as can be."""

from typing import Any

import numpy as np
import pytest

from asched.core.framework.profile import Scorer
from asched.core.framework.results.cached import CachedScores
from asched.core.framework.results.feasible import Feasible
from asched.core.framework.results.moves import EVERYTHING, FEASIBLE
from asched.core.framework.results.prepared import OperationCounts, PreparedScores
from asched.core.framework.results.weighted import Points, WeightedPoints, paired
from asched.core.model.kinds import NODE
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Seen
from tests.builders import a_node, a_pod, pending
from tests.core.framework.results.kernels import Between, CpuScore, Scaled, cluster_of


class Whole(Scaled):
    """The same, whose bounds nobody knows."""

    def bounds(self, raw: Any, data: Any) -> Any:
        return None

    def normalize(self, raw: Any, data: Any) -> Any:
        return raw * 100 // raw.max()


class Rows:
    """Rows of a class, by hand: which are feasible, and which of them turned."""

    def __init__(self, cluster: Cluster, *mask: bool) -> None:
        self.feasible = Feasible(cluster.nodes)
        self.turn(*mask)

    def turn(self, *mask: bool) -> None:
        before = self.feasible.mask
        self.feasible.passing = np.array(mask, dtype=np.bool_)
        self.feasible.count = int(np.count_nonzero(mask))
        for row in range(len(mask)):
            if row >= len(before) or before[row] != mask[row]:
                self.feasible.turned.add(row, 1)


class Scene:
    def __init__(self, plugin: Any, *cpus: int, weight: int = 1) -> None:
        self.cluster = cluster_of(*cpus)
        self.rows = Rows(self.cluster, *[True] * len(cpus))
        nodes, work = self.cluster.nodes, OperationCounts()
        half = PreparedScores(plugin, None, self.cluster, work)
        scores = CachedScores(nodes, half, work)
        self.points = WeightedPoints(
            nodes, scores, Scorer(plugin, weight, None), self.rows.feasible
        )
        self.pod = pending(self.cluster, a_pod())

    def offer(self, **cpus: int) -> None:
        for name, cpu in cpus.items():
            node = a_node(name).allocatable(cpu=str(cpu)).build()
            self.cluster.apply(Seen(NODE, node))

    def by_row(self) -> list[int]:
        self.points.bring_up(self.pod, EVERYTHING)
        return self.kept()

    def kept(self) -> list[int]:
        part = self.points.part
        if isinstance(part, int):
            return [part] * self.cluster.nodes.height
        values, factor = part
        return (values * factor).tolist()


def test_points_that_are_not_normalised_are_raw_ones_times_the_weight() -> None:
    scene = Scene(CpuScore(), 2, 5, weight=3)
    assert scene.by_row() == [6, 15]
    scene.offer(n0=7)
    assert scene.by_row() == [21, 15]
    assert scene.points.is_by_row
    assert not scene.points.reads & FEASIBLE


def test_uniform_points_are_one_number() -> None:
    scene = Scene(CpuScore(), 5, 5, weight=3)
    scene.points.bring_up(scene.pod, EVERYTHING)
    assert scene.points.part == 15
    scaled = Scene(Scaled(), 5, 5, weight=3)
    scaled.points.bring_up(scaled.pod, EVERYTHING)
    assert scaled.points.part == 300
    assert scaled.points.is_by_row


def test_normalised_points_are_shares_of_the_best_feasible_row() -> None:
    scene = Scene(Scaled(), 2, 4, 8, weight=2)
    assert scene.by_row() == [50, 100, 200]
    scene.rows.turn(True, True, False)
    assert scene.by_row()[:2] == [100, 200]
    assert not scene.points.is_by_row
    assert scene.points.reads & FEASIBLE


@pytest.mark.parametrize("plugin", [Scaled, Whole])
def test_a_row_that_changes_within_the_bounds_is_made_alone(plugin: Any) -> None:
    scene = Scene(plugin(), 2, 4, 8)
    assert scene.by_row() == [25, 50, 100]
    version = scene.points.full_version
    scene.offer(n0=6)
    assert scene.by_row() == [75, 50, 100]
    assert (scene.points.full_version == version) == (plugin is Scaled)
    scene.offer(n0=16)
    assert scene.by_row() == [100, 25, 50]
    assert scene.points.full_version > version


def test_who_shows_the_bounds_spares_a_look_at_all_rows() -> None:
    """While others show the least and the largest score, a row that changes between them is judged
    by these alone; all rows are looked at again for others that show them, and for other bounds.
    """
    plugin = Between()
    scene = Scene(plugin, 2, 8, 4, 8, 5)
    assert scene.by_row() == [0, 100, 33, 100, 50]
    version = scene.points.full_version
    for cpu, looked in ((5, 1), (6, 0), (8, 0), (2, 0)):
        before = plugin.looks
        scene.offer(n2=cpu)
        assert scene.by_row() == [0, 100, int(100 * (cpu - 2) / 6), 100, 50]
        assert plugin.looks - before == looked
    scene.offer(n1=3)  # showed the largest
    assert scene.by_row() == [0, 16, 0, 100, 50]
    assert plugin.looks == before + 1
    assert scene.points.full_version == version
    scene.rows.turn(True, True, True, False, True)
    assert scene.by_row()[:3] == [0, 33, 0]  # by another largest one
    scene.offer(n0=1)
    assert scene.by_row()[:3] == [0, 50, 25]
    scene.rows.turn(False, True, True, False, True)
    assert scene.by_row()[1:3] == [33, 0]


def test_feasible_rows_that_score_alike_are_worth_one_number_while_they_do() -> None:
    """Whoever sums it up need not do so again, though each of the scores is another now."""
    scene = Scene(Between(), 4, 4, 9, weight=2)
    scene.rows.turn(True, True, False)
    scene.points.bring_up(scene.pod, EVERYTHING)
    assert scene.points.part == 0
    version = scene.points.version
    scene.offer(n0=6, n1=6, n2=7)
    assert scene.points.bring_up(scene.pod, EVERYTHING) is False
    assert (scene.points.part, scene.points.version) == (0, version)
    assert scene.points.at(1) == (6, 0)
    scene.offer(n1=7)
    scene.points.bring_up(scene.pod, EVERYTHING)
    assert scene.points.version != version
    assert scene.kept()[:2] == [0, 200]
    scene.offer(n0=7)
    scene.points.bring_up(scene.pod, EVERYTHING)
    assert (scene.points.part, scene.points.version) == (0, version)


def test_scores_that_become_uniform_or_cease_to_be_it_are_made_anew() -> None:
    scene = Scene(Scaled(), 4, 4)
    assert scene.by_row() == [100, 100]
    scene.offer(n0=2)
    assert scene.by_row() == [50, 100]
    scene.offer(n0=4)
    assert scene.by_row() == [100, 100]


def test_rows_that_come_and_go_follow() -> None:
    scene = Scene(Whole(), 2, 4)
    scene.rows.turn(False, False)
    scene.by_row()
    scene.rows.turn(True, False)
    assert scene.by_row()[0] == 100


def test_the_version_moves_with_points_of_all_rows() -> None:
    scene = Scene(Scaled(), 2, 4)
    scene.by_row()
    version = scene.points.version
    scene.by_row()
    assert scene.points.version == version
    scene.offer(n1=8)
    scene.by_row()
    assert scene.points.version != version


def test_once_keeps_nothing() -> None:
    scene = Scene(Scaled(), 2, 4, 8, weight=2)
    kept = scene.by_row()
    once = scene.points.once(scene.pod, np.array([True, True, False]))
    assert once is not None
    assert once.raw.tolist() == [2, 4, 8]
    assert isinstance(once.final, np.ndarray)
    assert once.final[:2].tolist() == [100, 200]
    assert scene.kept() == kept
    plain = Scene(CpuScore(), 2, 4, weight=3)
    found = plain.points.once(plain.pod, np.array([True, False]))
    assert found is not None
    assert isinstance(found.final, np.ndarray)
    assert found.final.tolist() == [6, 12]


def read(points: WeightedPoints, row: int, given: Points | None = None) -> tuple[int, ...]:
    share, items = points.reading(given)
    return paired([share], [item(row) for item in items])


def test_what_is_kept_of_a_row_is_read_back_as_raw_and_final_points() -> None:
    plain, scaled = Scene(CpuScore(), 2, 4, weight=3), Scene(Scaled(), 2, 4, weight=3)
    uniform = Scene(Scaled(), 4, 4, weight=3)
    for scene in (plain, scaled, uniform):
        scene.by_row()
    assert read(plain.points, 1) == (4, 12)
    assert read(scaled.points, 0) == (2, 150)
    assert read(uniform.points, 0) == (4, 300)
    assert uniform.points.reading()[1] == []
    given = Points(np.array([7, 8]), np.array([70, 80]))
    assert read(scaled.points, 1, given) == (8, 80)
    assert read(scaled.points, 1, Points(np.array([7, 8]), 9)) == (8, 9)


def test_several_scorers_are_read_in_their_order() -> None:
    shares = [("A", 2, 5, 10, False), ("B", 3, None, None, True), ("C", 1, None, None, False)]
    assert paired(shares, [4, 6, 7]) == (5, 10, 4, 12, 6, 7)
