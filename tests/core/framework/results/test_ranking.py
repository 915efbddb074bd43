"""A ranking over some of the rows is what it would be were these all there are."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from asched.core.config.defaults import default_configuration
from asched.core.framework.points import FilterPlugin, PreFilterResult, PreScorePlugin
from asched.core.framework.profile import Scorer
from asched.core.framework.results import peaks
from asched.core.framework.results.cached import CachedScores, CachedVerdict
from asched.core.framework.results.feasible import Feasible
from asched.core.framework.results.peaks import NOT_FEASIBLE
from asched.core.framework.results.prepared import Prepared, PreparedScores, Work
from asched.core.framework.results.ranking import Ranking
from asched.core.framework.results.weighted import WeightedPoints, paired
from asched.core.framework.status import SKIP, Status, unschedulable
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, POD
from asched.core.model.pod import Pod
from asched.core.state.change_log import RowLog
from asched.core.state.facts import Gone, Seen
from asched.core.state.nodes import ALL_ASPECTS, Aspect
from asched_lab.bench.run_decide import DecideWorld
from tests.bench.crowds import node, pod
from tests.builders import a_node, a_pod, pending
from tests.core.framework.results.kernels import Between, CpuScore, Scaled, cluster_of

NODES = 60
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
IN_ZONE_0 = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-0"]}
NEAR = {"weight": 5, "preference": {"matchExpressions": [IN_ZONE_0]}}


def tainted(index: int) -> dict[str, Any]:
    made = node(index)
    if index % 7 == 0:
        made["spec"]["taints"] = [{"key": "old", "effect": "PreferNoSchedule"}]
    return made


@pytest.mark.parametrize(
    ("is_tainted", "spec", "is_by_row"),
    [
        (False, {}, True),
        (True, {}, False),  # points for taints are shares of the most that any of the rows has
        (False, {"affinity": {"nodeAffinity": {PREFERRED: [NEAR]}}}, False),
    ],
    ids=["plain", "taints", "wishes"],
)
async def test_a_ranking_over_some_rows_does_not_know_the_others(
    monkeypatch: pytest.MonkeyPatch, is_tainted: bool, spec: dict[str, Any], is_by_row: bool
) -> None:
    world = DecideWorld(default_configuration())
    maker = tainted if is_tainted else node
    await world.create([maker(index) for index in range(NODES)])
    await world.create([pod(f"p-{at}", **spec) for at in range(40)], "default")
    await world.until(lambda: world.pods.scheduled_count == 40, 60.0, "pods")
    (runner,) = world.runners.values()
    one = {**pod("one", **spec), "metadata": {"name": "one", "namespace": "default", "uid": "one"}}
    info = runner.cluster.classes.info_of(decode(Pod, one))
    state = runner.cache.state_of(info)
    state.update(info)
    rng = np.random.default_rng(0)
    for _ in range(20):
        some = state.feasible & (rng.random(NODES) < 0.5)
        quick = state.rank(info, some)
        assert state.ranking._is_by_row() is is_by_row
        assert not state.ranking.is_whole
        with monkeypatch.context() as patched:
            patched.setattr(Ranking, "_is_by_row", lambda _: False)
            assert state.rank(info, some).tolist() == quick.tolist()
    assert state.rank(info).tolist() == state.ranking.totals.tolist()
    assert state.ranking.is_whole
    await world.close()


@pytest.mark.parametrize("is_tainted", [False, True], ids=["stable", "made anew"])
async def test_the_points_of_a_row_are_the_same_however_often_they_are_read(
    is_tainted: bool,
) -> None:
    """At first those of one row are read at once, then by what is alike for all rows: both come to
    what the ranking has summed up, for every row.
    """
    world = DecideWorld(default_configuration())
    maker = tainted if is_tainted else node
    await world.create([maker(index) for index in range(NODES)])
    await world.create([pod(f"p-{at}") for at in range(40)], "default")
    await world.until(lambda: world.pods.scheduled_count == 40, 60.0, "pods")
    (runner,) = world.runners.values()
    one = {**pod("one"), "metadata": {"name": "one", "namespace": "default", "uid": "one"}}
    info = runner.cluster.classes.info_of(decode(Pod, one))
    state = runner.cache.state_of(info)
    state.update(info)
    totals, ranking = state.rank(info), state.ranking
    for row in np.flatnonzero(totals != NOT_FEASIBLE).tolist():
        ranking.reading, ranking._was_read = None, False
        first, second = ranking.numbers_of(row), ranking.numbers_of(row)
        points = paired(*first)
        assert points == paired(*second)
        assert sum(points[1::2]) == totals[row]
        assert len(second[1]) < len(first[1])
    await world.close()


class Taken(FilterPlugin):
    """Code 1 where a pod runs already."""

    name = "Taken"
    depends_on = Aspect.PODS

    def filter(self, pod: Any, nodes: Any, data: Any) -> Any:
        return (nodes.pod_count > 0).astype(np.int32)

    def explain(self, pod: Any, code: int) -> Status:
        return unschedulable("taken")


class Seven(CpuScore):
    name = "Seven"
    depends_on = Aspect.LABELS

    def score(self, pod: Any, nodes: Any, data: Any) -> Any:
        return np.full(nodes.size, 7)


class Moody(CpuScore):
    """Points that are others whenever it likes, once `is_restless`."""

    name = "Moody"
    factor = 1
    is_restless = False

    def stamp(self, pod: Any, data: Any) -> Any:
        return object() if self.is_restless else 0

    def score(self, pod: Any, nodes: Any, data: Any) -> Any:
        return super().score(pod, nodes, data) * self.factor


class Told(PreScorePlugin, CpuScore):
    """As many points more as it is told for a row, which it logs."""

    name = "Told"
    reads_counts = True

    def __init__(self) -> None:
        super().__init__()
        self.more, self.moved = [0, 0], RowLog()

    def pre_score(self, pod: Any, nodes: Any, feasible: Any) -> PreFilterResult:
        return PreFilterResult(moved=self.moved)

    def score(self, pod: Any, nodes: Any, data: Any) -> Any:
        return super().score(pod, nodes, data) + np.array(self.more)[nodes.row_numbers()]


class Crowd(PreScorePlugin, CpuScore):
    """As many points as CPUs for each row beside it; takes no part where there is none."""

    name = "Crowd"
    reads_feasible = True

    def pre_score(self, pod: Any, nodes: Any, feasible: Any) -> PreFilterResult:
        beside = int(np.count_nonzero(feasible)) - 1
        return PreFilterResult(data=beside) if beside else PreFilterResult(SKIP)

    def score(self, pod: Any, nodes: Any, data: Any) -> Any:
        return super().score(pod, nodes, data) * data


class Scene:
    """A node n0, n1, ... for each number of CPUs. Pods pass where none runs."""

    def __init__(self, *scorers: Any, cpus: Sequence[int], floor: int = 0) -> None:
        self.cluster, work = cluster_of(*cpus), Work()
        nodes = self.cluster.nodes
        self.filter = CachedVerdict(nodes, Prepared(Taken(), self.cluster, work), work)
        self.feasible = Feasible(nodes)
        self.feasible.fold([self.filter], None)
        points = []
        for weight, plugin in enumerate(scorers, 1):
            half = plugin if isinstance(plugin, PreScorePlugin) else None
            scores = CachedScores(nodes, PreparedScores(plugin, half, self.cluster, work), work)
            scorer = Scorer(plugin, weight, half)
            points.append(WeightedPoints(nodes, scores, scorer, self.feasible))
        self.ranking = Ranking(
            self.cluster, self.feasible, points, noughts=("Nought",), floor=floor
        )
        self.pod = pending(self.cluster, a_pod())

    def judged(self) -> Ranking:
        self.filter.refresh(self.pod)
        self.feasible.refresh()
        return self.ranking

    def ranked(self) -> list[int]:
        return self.judged().of(self.pod).tolist()

    def once(self, *rows: int) -> list[int]:
        among = np.zeros(self.cluster.nodes.height, dtype=np.bool_)
        among[list(rows)] = True
        return self.judged().once(self.pod, among)[list(rows)].tolist()

    def best_of(self, *rows: int) -> tuple[int, int]:
        return self.judged().choose_few(self.pod, 0, np.array(rows))

    def take(self, *names: str) -> None:
        for name in names:
            self.cluster.apply(Seen(POD, a_pod(f"on-{name}").on(name).build()))

    def leave(self, name: str) -> None:
        self.cluster.apply(Gone(POD, a_pod(f"on-{name}").on(name).build()))

    def offer(self, **cpus: int) -> None:
        for name, cpu in cpus.items():
            node = a_node(name).allocatable(cpu=str(cpu)).build()
            self.cluster.apply(Seen(NODE, node))

    def points_of(self, row: int) -> dict[str, tuple[int, ...]]:
        """By scorer: its weight, raw and weighted points."""
        shares, points = self.ranking.points_of(row)
        pairs = zip(points[::2], points[1::2], strict=True)
        return {name: (weight, *pair) for (name, weight), pair in zip(shares, pairs, strict=True)}


def test_when_pods_alone_close_a_row_the_points_of_others_are_shares_of_the_best_left() -> None:
    scene = Scene(Scaled(), cpus=(2, 4, 8))
    assert scene.ranked() == [25, 50, 100]
    scene.take("n2")
    assert scene.ranked() == [50, 100, NOT_FEASIBLE]
    scene.take("n1")
    assert scene.ranked() == [100, NOT_FEASIBLE, NOT_FEASIBLE]
    scene.leave("n2")
    assert scene.ranked() == [25, NOT_FEASIBLE, 100]


def test_a_few_rows_and_many_are_summed_as_all_are() -> None:
    cpus, taken = list(range(1, 41)), []
    scene = Scene(CpuScore(), Scaled(), Seven(), cpus=cpus)
    scene.ranked()
    for rows, closed in ((range(3), 0), (range(26, 37), 39)):  # of 40: few, and less than a third
        for row in rows:
            cpus[row] += 3
        scene.offer(**{f"n{row}": cpus[row] for row in rows})
        scene.take(f"n{closed}")
        taken.append(closed)
        expected = [cpu + 2 * (cpu * 100 // 40) + 3 * 7 for cpu in cpus]
        for row in taken:
            expected[row] = NOT_FEASIBLE
        assert scene.ranked() == expected
        best = expected.index(max(expected))
        assert scene.ranking.choose(scene.pod, 0) == (best, expected[best])


def test_who_has_no_scorer_gives_every_row_one_point() -> None:
    scene = Scene(cpus=(1, 2), floor=1)
    assert scene.ranked() == [1, 1]
    scene.take("n0")
    assert scene.ranked() == [NOT_FEASIBLE, 1]
    assert scene.once(1) == [1]


@pytest.mark.parametrize(("plugin", "total"), [(CpuScore, 4), (Scaled, 100)])
def test_the_best_of_few_rows_is_theirs_alone(plugin: Any, total: int) -> None:
    scene = Scene(plugin(), cpus=(2, 4, 4, 8))
    assert scene.best_of(0, 1) == (1, total)
    assert not scene.ranking.is_whole
    assert sum(scene.points_of(1)[plugin.name][2:]) == total
    assert scene.best_of(0, 2) == (2, total)


def test_few_rows_that_are_alike_are_drawn_as_among_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peaks, "BLOCK_ROWS", 4)  # so that a few rows lie in blocks of blocks
    monkeypatch.setattr(peaks, "_starts", peaks._starts.__wrapped__)
    scene = Scene(CpuScore(), cpus=[4] * 40)
    rows = np.arange(0, 40, 7)
    among = np.isin(np.arange(40), rows)
    found = [scene.judged().choose_few(scene.pod, seed, rows) for seed in range(40)]
    assert found == [scene.ranking.choose(scene.pod, seed, among) for seed in range(40)]
    assert {row for row, _ in found} == set(rows.tolist())


@pytest.mark.parametrize("is_few", [False, True])
def test_scores_that_cease_to_be_alike_are_shares_of_the_best_of_those_rows(is_few: bool) -> None:
    scene = Scene(Scaled(), cpus=(4, 4, 4))

    def best() -> int:
        return scene.best_of(0, 1)[1] if is_few else max(scene.once(0, 1))

    scene.ranked()
    assert best() == 100
    scene.offer(n2=8)
    assert best() == 100
    scene.offer(n2=4)
    assert best() == 100


def test_who_takes_part_is_told_of_the_last_ranking() -> None:
    """Of one over some rows by these alone, and of the next one over all as if it had not been."""
    scene = Scene(CpuScore(), Crowd(), cpus=(1, 2, 3))
    every = (("Crowd",), ("CpuScore", "Crowd", "Nought"))
    for _ in range(2):
        assert scene.ranked() == [1 + 2 * 1 * 2, 2 + 2 * 2 * 2, 3 + 2 * 3 * 2]
        assert scene.ranking.asked == every
        assert scene.points_of(1) == {"CpuScore": (1, 2, 2), "Crowd": (2, 4, 8)}
        assert scene.once(1, 2) == [2 + 2 * 2, 3 + 2 * 3]
        assert scene.ranking.asked == every
        assert scene.points_of(1) == {"CpuScore": (1, 2, 2), "Crowd": (2, 2, 4)}
        assert scene.once(1) == [2]
        assert scene.ranking.asked == ((), ("CpuScore", "Nought"))
        assert scene.points_of(1) == {"CpuScore": (1, 2, 2)}
    scene.ranked()
    assert scene.ranking.asked == every
    scene.take("n0", "n1")
    assert scene.ranked() == [NOT_FEASIBLE, NOT_FEASIBLE, 3]
    assert scene.ranking.asked == ((), ("CpuScore", "Nought"))
    assert scene.points_of(2) == {"CpuScore": (1, 3, 3)}


def test_points_over_some_rows_are_read_back_though_nobody_read_the_others() -> None:
    scene = Scene(Scaled(), cpus=(2, 4, 8))
    scene.ranked()
    assert scene.once(0, 1) == [50, 100]
    assert scene.points_of(1) == {"Scaled": (1, 4, 100)}
    scene.ranked()
    assert scene.points_of(1) == {"Scaled": (1, 4, 50)}


def test_raw_points_that_are_others_are_read_anew_though_the_sum_stays() -> None:
    """Rows that score alike are worth the same, whatever they score."""
    scene = Scene(Between(), cpus=(4, 4))
    total = scene.ranked()[0]
    for cpu in (4, 5, 6):
        scene.offer(n0=cpu, n1=cpu)
        assert scene.ranked() == [total, total]
        for _ in range(2):  # as one that may be made anew, and as one that stays
            assert scene.points_of(1) == {"Between": (1, cpu, total)}


def test_who_becomes_restless_is_asked_every_time_from_then_on() -> None:
    moody = Moody()
    scene = Scene(moody, cpus=(2, 4))
    assert scene.ranked() == [2, 4]
    scene.take("n0")
    assert scene.ranked() == [NOT_FEASIBLE, 4]
    moody.is_restless = True
    scene.offer(n1=5)
    assert scene.ranked() == [NOT_FEASIBLE, 5]
    moody.factor = 3
    scene.leave("n0")
    assert scene.ranked() == [6, 15]
    moody.factor = 4
    assert scene.ranked() == [8, 20]


def test_a_row_that_a_scorer_logs_is_summed_anew_though_nothing_of_it_changed() -> None:
    told = Told()
    scene = Scene(told, cpus=(2, 4))
    assert scene.ranked() == [2, 4]
    told.more[1] = 5
    told.moved.add(1, ALL_ASPECTS)
    scene.cluster.note_counts()
    assert scene.ranked() == [2, 9]
