"""First halves of plugins: asked again once what they read moved, and told on if it matters."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from asched.core.framework.points import PreFilterResult, PreScorePlugin
from asched.core.framework.results.moves import ALWAYS, COUNTS, OBJECTS
from asched.core.framework.results.prepared import (
    OperationCounts,
    Prepared,
    PreparedFilter,
    PreparedScores,
    bits_of,
)
from asched.core.framework.status import SKIP, PointError, unschedulable
from asched.core.model.decode import decode
from asched.core.model.kinds import PERSISTENT_VOLUME_CLAIM, SERVICE
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Seen
from asched.core.state.nodes import POD_LABELS, Aspect
from tests.builders import a_cluster, a_pod, pending
from tests.core.framework.results.kernels import CpuScore, Half, cluster_of


class Reading(Half):
    """Reads services; its stamps are what it is told."""

    kinds = (SERVICE,)
    stamped: Any = 0
    data_stamped: Any = None

    def stamp(self, pod: Any, data: Any) -> Any:
        return self.stamped

    def data_stamp(self, pod: Any) -> Any:
        return self.data_stamped


def see(cluster: Cluster, kind: Any, name: str) -> None:
    metadata = {"name": name, "namespace": "default", "uid": name}
    cluster.apply(Seen(kind, decode(kind.record, {"metadata": metadata})))


class Asked:
    def __init__(self, plugin: Half) -> None:
        self.cluster = a_cluster()
        self.plugin = plugin
        self.prepared = PreparedFilter(plugin, self.cluster, OperationCounts())
        self.pod = pending(self.cluster, a_pod())

    def update(self) -> tuple[int, int]:
        """(how often the half was asked, the version)."""
        self.prepared.update(self.pod)
        return self.plugin.asked, self.prepared.version


def test_a_half_is_asked_once_while_nothing_moves() -> None:
    one = Asked(Reading())
    assert one.update() == (1, 1)
    assert one.update() == (1, 1)


def test_an_object_of_its_kinds_has_it_asked_again_and_no_other_has() -> None:
    one = Asked(Reading())
    one.update()
    see(one.cluster, PERSISTENT_VOLUME_CLAIM, "data")
    assert one.update() == (1, 1)
    see(one.cluster, SERVICE, "web")
    assert one.update() == (2, 2)


def test_a_stamp_that_moved_has_it_asked_again() -> None:
    one = Asked(Reading())
    one.update()
    one.plugin.stamped = 1
    assert one.update() == (2, 2)


def test_what_it_prepared_may_still_hold_though_its_rows_do_not() -> None:
    one = Asked(Reading())
    one.plugin.data_stamped = "same"
    one.update()
    one.plugin.stamped = 1
    assert one.update() == (1, 2)
    one.plugin.stamped, one.plugin.data_stamped = 2, "other"
    assert one.update() == (2, 3)


@pytest.mark.parametrize(
    "now",
    [
        PreFilterResult(data="other"),
        PreFilterResult(unschedulable("no")),
        PreFilterResult(node_names=frozenset({"n1"})),
    ],
)
def test_a_half_that_says_something_else_moves_the_version(now: PreFilterResult) -> None:
    one = Asked(Reading())
    one.update()
    one.plugin.result = PreFilterResult()
    one.prepared.update(one.pod, extra=1)
    assert (one.plugin.asked, one.prepared.version) == (2, 1), "it said the very same"
    one.plugin.result = now
    one.prepared.update(one.pod, extra=2)
    assert (one.plugin.asked, one.prepared.version) == (3, 2)


def test_a_half_that_depends_on_nothing_known_is_asked_every_time() -> None:
    class Always(Reading):
        depends_on = None

    one = Asked(Always())
    assert one.update() == (1, 1)
    assert one.update() == (2, 2)


def test_a_half_that_fails_is_asked_again() -> None:
    class Failing(Reading):
        fails = False

        def pre_filter(self, pod: Any) -> PreFilterResult:
            if self.fails:
                raise ValueError
            return super().pre_filter(pod)

    plugin = Failing()
    one = Asked(plugin)
    one.update()
    plugin.stamped, plugin.fails = 1, True
    with pytest.raises(ValueError):
        one.update()
    plugin.fails = False
    assert one.update() == (2, 2)
    assert one.update() == (2, 2)


def test_it_says_whether_it_skips() -> None:
    one = Asked(Half("Half", PreFilterResult(SKIP)))
    assert not one.prepared.is_skipped
    one.update()
    assert one.prepared.is_skipped


def test_after_which_moves_a_half_is_looked_at() -> None:
    class Counting(Half):
        reads_counts = True

    class Unbounded(Half):
        depends_on = None

    class OfLabels(Half):
        depends_on = Aspect.POD_LABELS | Aspect.POD_AMOUNTS

    assert bits_of(Half) & OBJECTS
    assert not bits_of(Half) & (COUNTS | ALWAYS | POD_LABELS)
    assert bits_of(Counting) & COUNTS
    assert bits_of(Unbounded) & ALWAYS
    assert bits_of(OfLabels) & POD_LABELS
    assert not bits_of(OfLabels) & int(Aspect.POD_AMOUNTS)


def test_a_stamp_that_is_equal_to_no_other_is_looked_at_always() -> None:
    one = Asked(Reading())
    one.update()
    assert not one.prepared.reads & ALWAYS
    one.plugin.stamped = object()
    one.update()
    assert one.prepared.reads & ALWAYS


def test_a_plugin_without_a_half_says_nothing() -> None:
    cluster = a_cluster()
    prepared = Prepared(CpuScore(), cluster, OperationCounts())
    assert prepared.update(pending(cluster, a_pod())) == PreFilterResult()


class Scoring(CpuScore, PreScorePlugin):
    reads_feasible = True

    def __init__(self, result: PreFilterResult | None = None) -> None:
        super().__init__()
        self.result = result or PreFilterResult()
        self.feasible: list[list[bool]] = []

    def pre_score(self, pod: Any, nodes: Any, feasible: Any) -> PreFilterResult:
        assert nodes.size == len(feasible)
        self.feasible.append(feasible.tolist())
        return self.result


def scoring(plugin: Scoring) -> tuple[PreparedScores, Any]:
    cluster = cluster_of(1, 1)
    return PreparedScores(plugin, plugin, cluster, OperationCounts()), pending(cluster, a_pod())


def test_pre_score_is_asked_again_for_other_feasible_rows() -> None:
    plugin = Scoring()
    prepared, pod = scoring(plugin)
    for extra, mask in ((1, [True, True]), (1, [True, True]), (2, [False, True])):
        prepared.update(pod, partial(np.array, mask), extra)
    assert plugin.feasible == [[True, True], [False, True]]
    assert prepared.has_half


def test_a_pre_score_that_does_not_succeed_ends_the_attempt_unless_it_skips() -> None:
    prepared, pod = scoring(Scoring(PreFilterResult(SKIP)))
    prepared.update(pod, partial(np.array, [True, True]))
    assert prepared.is_skipped
    prepared, pod = scoring(Scoring(PreFilterResult(unschedulable("hm"))))
    with pytest.raises(PointError, match='running PreScore plugin "CpuScore": hm'):
        prepared.update(pod, partial(np.array, [True, True]))
