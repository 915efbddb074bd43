"""The one way in which what is kept by row is brought up to date: what is made anew, and when."""

import random

import pytest

from asched.core.framework.results.by_row import ByRow, Rows
from asched.core.state.change_log import RowLog
from asched.core.state.cluster import Cluster
from asched.core.state.nodes import Aspect
from tests.builders import a_cluster, a_node

LABELS, TAINTS = int(Aspect.LABELS), int(Aspect.TAINTS)
NODES = 40


class Kept(ByRow[str]):
    """Notes what is asked of it. `rather_whole` and `fails` as the tests have it."""

    def __init__(self, cluster: Cluster, *logs: RowLog) -> None:
        super().__init__(cluster.nodes, LABELS, *logs)
        self.made: list[tuple[str, set[int] | None]] = []
        self.rather_whole = self.fails = False

    def _make_all(self, asked: str) -> None:
        if self.fails:
            raise RuntimeError
        self.made.append((asked, None))

    def _make_rows(self, asked: str, rows: Rows) -> bool:
        if self.fails:
            raise RuntimeError
        assert len(rows) == len(set(rows)) > 0
        if self.rather_whole:
            return False
        self.made.append((asked, set(rows)))
        return True

    def take(self, version: object = 0) -> list[tuple[str, set[int] | None]]:
        """What one update makes."""
        self.made = []
        self.update("pod", version)
        return self.made


@pytest.fixture
def cluster() -> Cluster:
    return a_cluster(*(a_node(f"n{i}") for i in range(NODES)))


ALL = [("pod", None)]


def test_at_first_everything_is_made_and_then_nothing(cluster: Cluster) -> None:
    kept = Kept(cluster)
    assert kept.take() == ALL
    assert kept.take() == []
    assert kept.full_version == 1


def test_rows_that_changed_in_what_it_reads_are_made_anew(cluster: Cluster) -> None:
    kept = Kept(cluster)
    kept.take()
    cluster.nodes.log.add(3, LABELS)
    assert kept.take() == [("pod", {3})]
    for row, aspects in ((4, TAINTS), (5, LABELS | TAINTS), (6, TAINTS), (5, LABELS), (7, LABELS)):
        cluster.nodes.log.add(row, aspects)
    assert kept.take() == [("pod", {5, 7})]
    cluster.nodes.log.add(8, TAINTS)
    assert kept.take() == []
    assert kept.take() == []
    assert kept.full_version == 1


def test_another_version_makes_everything_anew(cluster: Cluster) -> None:
    kept = Kept(cluster)
    kept.take(version=1)
    cluster.nodes.log.add(3, LABELS)
    assert kept.take(version=2) == ALL
    assert kept.take(version=2) == []
    assert kept.full_version == 2


def test_many_rows_rows_that_came_and_a_log_that_forgot_make_everything_anew(
    cluster: Cluster,
) -> None:
    kept = Kept(cluster)
    kept.take()
    for row in range(NODES // 2):
        cluster.nodes.log.add(row, LABELS)
    assert kept.take() == ALL
    cluster.nodes.put(a_node("late").build())
    assert kept.take() == ALL
    cluster.nodes.log.forget()
    assert kept.take() == ALL
    assert kept.take() == []


def test_rows_of_other_logs_count_as_well(cluster: Cluster) -> None:
    also, more = RowLog(), RowLog()
    kept = Kept(cluster, also, more)
    kept.take()
    also.add(9, 1)
    assert kept.take() == [("pod", {9})]
    more.add(8, 1)
    cluster.nodes.log.add(2, LABELS)
    assert kept.take() == [("pod", {2, 8})]
    also.add(9, 1)
    also.add(7, 1)
    more.add(9, 1)
    assert kept.take() == [("pod", {7, 9})]
    more.forget()
    assert kept.take() == ALL
    assert kept.take() == []


def test_other_logs_take_effect_when_everything_is_made_anew(cluster: Cluster) -> None:
    first, second = RowLog(), RowLog()
    second.add(1, 1)
    kept = Kept(cluster, first)
    kept.take(version=1)
    kept.logs = (second,)
    assert kept.take(version=2) == ALL
    assert kept.take(version=2) == []
    second.add(5, 1)
    first.add(4, 1)
    assert kept.take(version=2) == [("pod", {5})]


def test_a_result_may_rather_be_made_wholly(cluster: Cluster) -> None:
    kept = Kept(cluster)
    kept.take()
    kept.rather_whole = True
    cluster.nodes.log.add(3, LABELS)
    assert kept.take() == ALL
    assert kept.full_version == 2


@pytest.mark.parametrize("wholly", [True, False])
def test_what_failed_is_made_wholly_next_time(cluster: Cluster, wholly: bool) -> None:
    kept = Kept(cluster)
    kept.take()
    kept.fails = True
    cluster.nodes.log.add(3, LABELS)
    with pytest.raises(RuntimeError):
        kept.update("pod", 1 if wholly else 0)
    assert kept.full_version == 1
    kept.fails = False
    assert kept.take(version=1 if wholly else 0) == ALL


@pytest.mark.parametrize("seed", range(10))
def test_after_any_history_nothing_is_old(cluster: Cluster, seed: int) -> None:
    """Each row shows when it was made; whatever the result reads never changed after that."""
    rng = random.Random(seed)
    also = RowLog(8)
    kept = Kept(cluster, also)
    changed, made = dict.fromkeys(range(NODES), 0), dict.fromkeys(range(NODES), -1)
    version = 0
    for now in range(1, 200):
        for _ in range(rng.choice((0, 1, 1, 2, 30))):
            row, log = rng.randrange(NODES), rng.choice((cluster.nodes.log, also))
            aspects = rng.choice((LABELS, TAINTS, LABELS | TAINTS))
            log.add(row, aspects)
            if log is also or aspects & LABELS:
                changed[row] = now
        if rng.random() < 0.05:
            version += 1
            changed = dict.fromkeys(changed, now)
        for _, rows in kept.take(version):
            made.update(dict.fromkeys(range(NODES) if rows is None else rows, now))
        assert all(made[row] >= changed[row] for row in range(NODES))
