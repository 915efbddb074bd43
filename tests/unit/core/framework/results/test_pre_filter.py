"""PreFilter as a whole: who skips, who narrows, who rejects, and who is asked all the same."""

from typing import Any

import pytest

from asched.core.cluster.cluster import Cluster
from asched.core.framework.points import PreFilterResult
from asched.core.framework.results.cached import CachedVerdict
from asched.core.framework.results.operation_counts import OperationCounts
from asched.core.framework.results.pre_filter import PreFilterOutcome, pre_filter
from asched.core.framework.status import (
    SKIP,
    PointError,
    Status,
    failure,
    unresolvable,
    unschedulable,
)
from tests.builders import a_pod, pending
from tests.unit.core.framework.results.kernels import Cpus, Half, cluster_of, prepared


class HalfAndFilter(Half, Cpus):
    def __init__(self, name: str, result: PreFilterResult) -> None:
        Cpus.__init__(self)
        Half.__init__(self, name, result)
        self.asked = 0  # type: ignore[assignment]


def said(name: str, status: Status | None = None, nodes: Any = None) -> HalfAndFilter:
    result = PreFilterResult() if status is None else PreFilterResult(status)
    if nodes is not None:
        result = result._replace(node_names=frozenset(nodes))
    return HalfAndFilter(name, result)


def outcome(*plugins: HalfAndFilter, cluster: Cluster | None = None) -> PreFilterOutcome:
    cluster = cluster or cluster_of(1, 1, 1)
    halves = {plugin.name: prepared(plugin, cluster) for plugin in plugins}
    others = Cpus()
    verdicts = [CachedVerdict(cluster.nodes, half, OperationCounts()) for half in halves.values()]
    verdicts.append(CachedVerdict(cluster.nodes, prepared(others, cluster), OperationCounts()))
    return pre_filter(pending(cluster, a_pod()), cluster, plugins, halves, verdicts)


def active(found: PreFilterOutcome) -> list[str]:
    return [verdict.plugin.name for verdict in found.active]


def test_a_filter_whose_half_skips_is_left_out() -> None:
    found = outcome(said("A"), said("B", SKIP))
    assert active(found) == ["A", "Cpus"]
    assert found.asked == ("A",)
    assert (found.rejection, found.rows, found.absent) == (None, None, None)


def test_names_of_several_plugins_are_those_that_all_have() -> None:
    found = outcome(said("B", nodes=["n0", "n1"]), said("A", nodes=["n1", "n2", "gone"]))
    assert found.rows == {1}
    assert found.plugins == {"A", "B"}
    assert found.absent == unresolvable("node(s) didn't satisfy plugin(s) [A B]")
    assert found.rejection is None


def test_names_that_nothing_has_in_common_reject() -> None:
    found = outcome(said("B", nodes=["n0"]), said("A", nodes=["n1"]), late := said("C"))
    assert found.rejection == unresolvable("node(s) didn't satisfy plugin(s) [A B] simultaneously")
    assert (found.plugins, found.stopped_by, late.asked) == ({"A", "B"}, "A", 0)


def test_no_name_at_all_rejects() -> None:
    found = outcome(said("A", nodes=[]))
    assert found.rejection == unresolvable("node(s) didn't satisfy plugin A")
    assert found.plugins == {"A"}


def test_an_unresolvable_rejection_ends_the_step() -> None:
    found = outcome(said("A", unresolvable("no claim")), late := said("B"))
    assert found.rejection == unresolvable("no claim").by("A")
    assert (found.plugins, found.stopped_by, late.asked) == ({"A"}, "A", 0)
    assert found.asked == ("A",)


def test_after_a_resolvable_one_the_others_still_prepare() -> None:
    found = outcome(said("A", unschedulable("in use")), late := said("B", nodes=["n0"]))
    assert found.rejection == unschedulable("in use").by("A")
    assert (found.plugins, found.stopped_by, late.asked) == ({"A"}, "", 1)
    assert active(found) == ["B", "Cpus"]
    assert found.rows is None


def test_an_unresolvable_one_after_a_resolvable_one_is_what_counts() -> None:
    found = outcome(said("A", unschedulable("in use")), said("B", unresolvable("gone")))
    assert found.rejection == unresolvable("gone").by("B")
    assert found.stopped_by == "B"


def test_an_error_ends_the_attempt() -> None:
    with pytest.raises(PointError, match='running PreFilter plugin "A": disk on fire'):
        outcome(said("A", failure("disk on fire")))
