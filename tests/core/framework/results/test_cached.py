"""Codes and raw scores by row: asked about what moved, one by one or together; uniform or not."""

from typing import Any

import numpy as np
import pytest

from asched.core.framework.points import IDLE
from asched.core.framework.results.cached import CachedScores, CachedVerdict
from asched.core.framework.results.prepared import OperationCounts, PreparedScores
from asched.core.framework.status import PluginError
from asched.core.model.kinds import NODE
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Seen
from tests.builders import a_node, a_pod, pending
from tests.core.framework.results.kernels import Cpus, CpuScore, cluster_of, prepared


def verdict(cluster: Cluster, plugin: Any) -> CachedVerdict:
    return CachedVerdict(cluster.nodes, prepared(plugin, cluster), OperationCounts())


def scores(cluster: Cluster, plugin: Any) -> CachedScores:
    half = PreparedScores(plugin, None, cluster, OperationCounts())
    return CachedScores(cluster.nodes, half, OperationCounts())


def offer(cluster: Cluster, **cpus: int) -> None:
    for name, cpu in cpus.items():
        cluster.apply(Seen(NODE, a_node(name).allocatable(cpu=str(cpu)).build()))


def refreshed(cluster: Cluster, result: Any) -> list[int]:
    result.refresh(pending(cluster, a_pod()))
    found: list[int] = result.values.tolist()
    return found


def test_all_rows_are_asked_about_once_then_those_that_moved() -> None:
    cluster, plugin = cluster_of(8, 2, 8), Cpus()
    kept = verdict(cluster, plugin)
    assert refreshed(cluster, kept) == [0, 1, 0]
    offer(cluster, n1=5)
    assert refreshed(cluster, kept) == [0, 0, 0]
    assert refreshed(cluster, kept) == [0, 0, 0]
    assert plugin.asked == [3, 1]
    cluster.apply(Seen(NODE, a_node("n1").allocatable(cpu="5").labels(a="b").build()))
    refreshed(cluster, kept)
    assert plugin.asked == [3, 1], "it does not read labels"


def test_a_rule_for_one_row_spares_the_view_until_it_gives_up() -> None:
    class One(Cpus):
        def filter_one(self, pod: Any, row: int, data: Any) -> int | None:
            return None if row == 2 else 7

    cluster, plugin = cluster_of(8, 8, 8), One()
    kept = verdict(cluster, plugin)
    refreshed(cluster, kept)
    offer(cluster, n0=2, n1=2)
    assert refreshed(cluster, kept) == [7, 7, 0]
    assert plugin.asked == [3]
    offer(cluster, n2=2)
    assert refreshed(cluster, kept) == [7, 7, 1]
    assert plugin.asked == [3, 1]


def test_a_plugin_says_up_to_how_many_rows_one_by_one_is_quicker() -> None:
    class Few(Cpus):
        rows_few = 2

        def filter_one(self, pod: Any, row: int, data: Any) -> int | None:
            return 7

    cluster, plugin = cluster_of(8, 8, 8), Few()
    kept = verdict(cluster, plugin)
    refreshed(cluster, kept)
    offer(cluster, n0=2, n1=2)
    assert refreshed(cluster, kept) == [7, 7, 0]
    offer(cluster, n0=1, n1=1, n2=1)
    assert refreshed(cluster, kept) == [1, 1, 1]
    assert plugin.asked == [3, 3]


def test_a_rule_for_some_rows_is_asked_once_about_them_until_it_gives_up() -> None:
    class Few(Cpus):
        def filter_few(self, pod: Any, rows: Any, data: Any) -> list[int] | None:
            asked.append(sorted(rows))
            return None if 2 in rows else [10 + row for row in rows]

        def filter_one(self, pod: Any, row: int, data: Any) -> int | None:
            raise AssertionError

    asked: list[list[int]] = []
    cluster, plugin = cluster_of(8, 8, 8), Few()
    kept = verdict(cluster, plugin)
    refreshed(cluster, kept)
    offer(cluster, n0=2, n1=2)
    assert refreshed(cluster, kept) == [10, 11, 0]
    assert not kept.is_clear
    offer(cluster, n2=2)
    assert refreshed(cluster, kept) == [10, 11, 1]
    assert (asked, plugin.asked) == ([[0, 1], [2]], [3, 1])


def test_uniform_codes_are_those_of_which_none_rejects() -> None:
    cluster, plugin = cluster_of(8, 8), Cpus()
    kept = verdict(cluster, plugin)
    refreshed(cluster, kept)
    assert kept.is_clear
    offer(cluster, n0=2)
    refreshed(cluster, kept)
    assert not kept.is_clear
    bad = verdict(cluster, Cpus())
    refreshed(cluster, bad)
    assert not bad.is_clear


def test_one_row_that_differs_by_its_own_rule_ends_uniformity() -> None:
    class One(Cpus):
        def filter_one(self, pod: Any, row: int, data: Any) -> int | None:
            return 3 if row == 1 else 0

    cluster = cluster_of(8, 8)
    kept = verdict(cluster, One())
    refreshed(cluster, kept)
    offer(cluster, n0=9)
    refreshed(cluster, kept)
    assert kept.is_clear
    offer(cluster, n1=9)
    refreshed(cluster, kept)
    assert not kept.is_clear


def test_some_rows_may_be_all_that_is_asked_about() -> None:
    cluster, plugin = cluster_of(2, 2, 8), Cpus()
    kept = verdict(cluster, plugin)
    before = kept.full_version
    kept.ask_left(pending(cluster, a_pod()), np.array([True, False, True]))
    assert kept.codes.tolist() == [1, 0, 0]
    assert (plugin.asked, kept.full_version) == ([2], before + 1)
    assert not kept.is_clear
    kept.ask_left(pending(cluster, a_pod()), np.array([False, False, False]))
    assert (kept.codes.tolist(), kept.is_clear, plugin.asked) == ([0, 0, 0], True, [2])


@pytest.mark.parametrize("answer", [None, [0, 0], np.zeros(3, np.int32), np.zeros(2), 0])
def test_an_answer_that_is_no_integer_for_each_row_is_an_error(answer: Any) -> None:
    class Odd(Cpus):
        def filter(self, pod: Any, nodes: Any, data: Any) -> Any:
            return answer

    cluster = cluster_of(8, 8)
    with pytest.raises(PluginError, match="an array of 2 integers is expected") as error:
        refreshed(cluster, verdict(cluster, Odd()))
    assert (error.value.plugin, error.value.point) == ("Cpus", "filter")


def test_an_answer_that_cannot_be_written_to_is_copied() -> None:
    class Frozen(Cpus):
        def filter(self, pod: Any, nodes: Any, data: Any) -> Any:
            codes = super().filter(pod, nodes, data)
            codes.flags.writeable = False
            return codes

    cluster = cluster_of(8, 8)
    kept = verdict(cluster, Frozen())
    refreshed(cluster, kept)
    offer(cluster, n0=1)
    assert refreshed(cluster, kept) == [1, 0]


def test_scores_are_uniform_where_all_live_rows_have_the_same() -> None:
    cluster = cluster_of(3, 5, 5)
    cluster.nodes.remove("n0")
    kept = scores(cluster, CpuScore())
    assert refreshed(cluster, kept)[1:] == [5, 5]
    assert (kept.is_uniform, kept.alike, kept.first_live) == (True, 5, 1)
    offer(cluster, n2=6)
    assert refreshed(cluster, kept)[1:] == [5, 6]
    assert not kept.is_uniform
    mixed = scores(cluster_of(1, 2), CpuScore())
    refreshed(cluster_of(1, 2), mixed)
    assert not mixed.is_uniform


def test_what_uniform_scores_are_normalised_to_follows_them() -> None:
    class Tenfold(CpuScore):
        normalizes = True

        def normalize(self, raw: Any, data: Any) -> Any:
            return raw * 10

    cluster = cluster_of(5, 5)
    kept = scores(cluster, Tenfold())
    refreshed(cluster, kept)
    assert kept.normal_of_all() == 50
    offer(cluster, n0=7, n1=7)
    kept.update(pending(cluster, a_pod()), "another version")
    assert kept.normal_of_all() == 70
    assert repr(IDLE) == "IDLE"


def test_scores_are_the_framework_s_own() -> None:
    own = np.array([5, 5])

    class Lent(CpuScore):
        def score(self, pod: Any, nodes: Any, data: Any) -> Any:
            return own[: nodes.size]

    cluster = cluster_of(5, 5)
    kept = scores(cluster, Lent())
    refreshed(cluster, kept)
    own[0] = 9
    assert kept.raw.tolist() == [5, 5]
    assert kept.raw.dtype == np.int64
