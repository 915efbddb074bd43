"""What a rule sees of the nodes: all rows or some, in its own order, and as they would be."""

import numpy as np
import pytest

from asched.core.model.quantity import INT64_MAX
from asched.core.state.cluster import Cluster
from asched.core.state.view import NodeView, SupposedView, with_more
from tests.builders import a_cluster, a_node, a_pod


def cluster() -> Cluster:
    """Three nodes, of which the middle one went."""
    made = a_cluster(
        a_node("n0").allocatable(cpu="4", pods="10").labels(zone="a"),
        a_node("n1"),
        a_node("n2").allocatable(cpu="8", pods="20").cordoned().taints("x=y:NoSchedule"),
        pods=[a_pod("a").requests(cpu="1", memory="1Ki").on("n2"), a_pod("b").on("n2")],
    )
    made.nodes.remove("n1")
    return made


def rows(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int32)


def test_all_rows_in_order() -> None:
    view = NodeView(cluster().nodes)
    assert (view.size, view.total) == (3, 2)
    assert view.live.tolist() == [True, False, True]
    assert view.unschedulable.tolist() == [False, False, True]
    assert view.pod_count.tolist() == [0, 0, 2]
    assert view.allowed_pods.tolist() == [10, 0, 20]
    assert view.allocatable(0).tolist() == [4000, 0, 8000]
    assert view.requested(0).tolist() == [0, 0, 1000]
    assert view.requested(slice(0, 2)).tolist() == [[0, 0, 1000], [0, 0, 1024]]
    assert view.row_numbers().tolist() == [0, 1, 2]
    assert [None if node is None else node.name for _, node in view.nodes()] == ["n0", None, "n2"]
    assert view.position_of("n2") == 2
    assert view.position_of("n1") is None
    assert NodeView(view.table, rows(2)).position_of("n1") is None


def test_some_rows_in_their_own_order() -> None:
    view = NodeView(cluster().nodes, rows(2, 0))
    assert (view.size, view.total) == (2, 2)
    assert view.live.tolist() == [True, True]
    assert view.allowed_pods.tolist() == [20, 10]
    assert view.allocatable(0).tolist() == [8000, 4000]
    assert view.unschedulable.tolist() == [True, False]
    assert view.pod_count.tolist() == [2, 0]
    assert view.row_numbers().tolist() == [2, 0]
    assert view.gather(np.array([10, 11, 12])).tolist() == [12, 10]
    assert [row for row, _ in view.nodes()] == [2, 0]
    assert (view.position_of("n2"), view.position_of("n0")) == (0, 1)
    assert NodeView(view.table, rows(0)).position_of("n2") is None


def test_scorers_see_defaults_where_nothing_is_asked_for() -> None:
    view = NodeView(cluster().nodes)
    assert view.nonzero(0).tolist() == [0, 0, 1100]  # 100m for the pod that says nothing
    assert view.nonzero(1).tolist() == [0, 0, 1024 + (200 << 20)]


def test_ids_stand_for_values_of_the_table() -> None:
    made = cluster()
    view = NodeView(made.nodes, rows(2, 0))
    taints = [made.nodes.taint_sets.values[id_] for id_ in view.taint_set]
    assert [[taint.key for taint in one] for one in taints] == [["x"], []]
    ids, column = view.label("zone")
    assert [column.values.values[id_] for id_ in ids] == ["", "a"]
    assert view.feature_set.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("wanted", "among", "found"),
    [
        ({0, 2}, None, [True, False, True]),
        (set(), None, [False] * 3),
        ({0}, (2, 0), [False, True]),
        (set(), (2, 0), [False, False]),
    ],
)
def test_rows_of_a_set_are_marked(
    wanted: set[int], among: tuple[int, ...] | None, found: list[bool]
) -> None:
    view = NodeView(cluster().nodes, None if among is None else rows(*among))
    assert view.positions(wanted).tolist() == found


def test_a_supposed_view_differs_in_what_pods_ask_for_and_their_number() -> None:
    more = np.array([[500, -1000], [1, 2], [0, 0]])
    view = SupposedView(cluster().nodes, rows(0, 2), more, np.array([1, -1]))
    assert view.requested(0).tolist() == [500, 0]
    assert view.requested(slice(0, 2)).tolist() == [[500, 0], [1, 1026]]
    assert view.pod_count.tolist() == [1, 1]
    assert view.allocatable(0).tolist() == [4000, 8000]
    most = SupposedView(view.table, view.rows, more.astype(object) * 10**30, np.array([1, -1]))
    assert most.requested(0).tolist() == [INT64_MAX, -INT64_MAX]
    assert most.requested(0).dtype == np.int64


NEAR = INT64_MAX - 10


@pytest.mark.parametrize(
    ("held", "more", "total"),
    [
        ([1, 2], [3, -2], [4, 0]),
        ([NEAR, 5], [10, 1], [INT64_MAX, 6]),
        ([NEAR, 5], [11, 1], [INT64_MAX, 6]),
        ([NEAR, 5], [INT64_MAX, -7], [INT64_MAX, -2]),
        ([NEAR], [-5], [NEAR - 5]),
        ([INT64_MAX, INT64_MAX], [0, 5], [INT64_MAX, INT64_MAX]),
        ([INT64_MAX, 5], [1, 1], [INT64_MAX, 6]),
        ([], [], []),
    ],
)
def test_a_sum_stays_at_the_largest_amount(
    held: list[int], more: list[int], total: list[int]
) -> None:
    found = with_more(np.array(held, dtype=np.int64), np.array(more, dtype=np.int64))
    assert found.tolist() == total
    assert found.dtype == np.int64


def test_numbers_of_any_size_are_kept_within_64_bits() -> None:
    more = np.array([10**30, -(10**30), 7], dtype=object)
    found = with_more(np.array([1, 1, 1], dtype=np.int64), more)
    assert found.tolist() == [INT64_MAX, -INT64_MAX, 8]
    assert found.dtype == np.int64
    assert with_more(np.array([1], dtype=np.int64), more[2:]).dtype == np.int64
