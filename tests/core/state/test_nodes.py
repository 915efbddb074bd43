"""The node table row by row: what is written, what is logged, what is forgotten with its node."""

from typing import Any

import numpy as np
import pytest

from asched.core.model.kinds import NODE
from asched.core.model.quantity import INT64_MAX
from asched.core.state.columns import ROWS_MIN
from asched.core.state.facts import Seen
from asched.core.state.nodes import Aspect, NodeTable
from tests.builders import NodeBuilder, a_cluster, a_node, a_pod

GPU = "nvidia.com/gpu"


def a_table(*nodes: NodeBuilder) -> NodeTable:
    table = NodeTable()
    for node in nodes:
        table.put(node.build())
    return table


def moved(table: NodeTable, node: NodeBuilder) -> list[tuple[int, Aspect]]:
    """What the log says of one more version."""
    cursor = table.log.end
    table.put(node.build())
    return [(row, Aspect(aspects)) for row, aspects in table.log.since(cursor) or ()]


def test_rows_are_taken_in_order_and_the_first_free_one_again() -> None:
    table = a_table(a_node("a"), a_node("b"), a_node("c"))
    assert table.row_of == {"a": 0, "b": 1, "c": 2}
    assert table.put(a_node("b").build()) == (1, False)
    assert table.remove("b") == 1
    assert table.remove("a") == 0
    assert (table.count, table.height) == (1, 3)
    assert table.put(a_node("d").build()) == (0, True)
    assert table.put(a_node("e").build()) == (1, True)
    assert table.put(a_node("f").build()) == (3, True)
    assert (table.count, table.height) == (4, 4)
    assert [(row, node.name) for row, node in table.nodes()] == [
        (0, "d"),
        (1, "e"),
        (2, "c"),
        (3, "f"),
    ]
    assert table.remove("unknown") is None


def test_a_row_holds_what_its_node_offers() -> None:
    table = a_table(
        a_node("a").offering_only(cpu="1500m", memory="1Ki", pods="7"),
        a_node("b").offering_only(cpu="1", pods="1").allocatable({GPU: "4"}).cordoned(),
    )
    read = table.columns.read
    assert read("allocatable")[:, :2].tolist() == [[1500, 1000], [1024, 0], [0, 0], [0, 4]]
    assert read("allowed_pods")[:2].tolist() == [7, 1]
    assert read("unschedulable")[:2].tolist() == [False, True]
    assert read("live")[:3].tolist() == [True, True, False]
    assert (table.find_resource("cpu"), table.find_resource(GPU)) == (0, 3)
    assert table.find_resource("other.com/x") is None


def test_an_amount_beyond_64_bits_is_the_largest() -> None:
    table = a_table(a_node("a").allocatable({GPU: "1e30"}))
    assert table.columns.read("allocatable")[3, 0] == INT64_MAX


@pytest.mark.parametrize(
    ("old", "new", "aspects"),
    [
        (a_node("a"), a_node("a").metadata(resourceVersion="2"), None),
        (a_node("a"), a_node("a").cordoned(), Aspect.TAINTS),
        (a_node("a").cordoned(), a_node("a"), Aspect.TAINTS),
        (a_node("a"), a_node("a").taints("x=y:NoSchedule"), Aspect.TAINTS),
        (a_node("a"), a_node("a").labels(x="y"), Aspect.LABELS),
        (a_node("a"), a_node("a").allocatable(cpu="1"), Aspect.ALLOCATABLE),
        (a_node("a"), a_node("a").status(capacity={"cpu": "9"}), Aspect.ALLOCATABLE),
        (a_node("a"), a_node("a").image("nginx", mib=1), Aspect.IMAGES),
        (a_node("a"), a_node("a").features("X"), Aspect.FEATURES),
        (a_node("a"), a_node("a").metadata(annotations={"x": "y"}), Aspect.ANNOTATIONS),
    ],
)
def test_what_changed_of_a_node_is_logged_by_its_aspect(
    old: NodeBuilder, new: NodeBuilder, aspects: Aspect | None
) -> None:
    table = a_table(a_node("first"), old)
    before = table.generation
    assert moved(table, new) == ([] if aspects is None else [(1, aspects)])
    assert table.generation == before + (aspects is not None)


def test_a_node_that_comes_or_goes_changes_everything() -> None:
    table = a_table()
    assert moved(table, a_node("a")) == [(0, Aspect.ALL)]
    cursor, before = table.log.end, table.generation
    table.remove("a")
    assert list(table.log.since(cursor) or ()) == [(0, Aspect.ALL)]
    assert table.generation == before + 1
    assert not any(column[..., 0].any() for column in table.columns.write.values())


def test_label_columns_say_which_value_each_row_has() -> None:
    table = a_table(a_node("a").labels(zone="x"), a_node("b"), a_node("c").labels(zone="x"))

    def values(key: str = "zone") -> list[str]:
        column = table.label_column(key)
        return [column.values.values[id_] for id_ in column.ids[: table.height]]

    assert values() == ["x", "", "x"]
    table.put(a_node("b").labels(zone="y").build())
    table.put(a_node("a").build())
    assert values() == ["", "y", "x"]
    before = table.label_column("zone").stamp
    table.put(a_node("d").labels(zone="z").build())
    assert values() == ["", "y", "x", "z"]
    assert table.label_column("zone").stamp != before
    assert values("other") == ["", "", "", ""]


def test_a_column_goes_with_the_last_node_that_carries_its_label() -> None:
    table = a_table(a_node("a").labels(zone="x"), a_node("b").labels(zone="y"))
    assert not table.has_column("zone")
    assert table.has_column("other"), "nobody carries it: nothing is to be made"
    column = table.label_column("zone")
    assert table.has_column("zone")
    assert table.label_column("zone") is column
    table.remove("a")
    assert table.is_carried("zone")
    table.put(a_node("b").build())
    assert not table.is_carried("zone")
    table.put(a_node("b").labels(zone="y").build())
    again = table.label_column("zone")
    assert again is not column
    assert again.stamp != column.stamp
    table.put(a_node("b").build())
    table.put(a_node("b").labels(zone="z").build())
    assert table.label_column("zone").stamp not in (again.stamp, column.stamp)


def test_labels_moved_tells_of_labels_alone() -> None:
    table = a_table(a_node("a"))
    before = table.labels_moved
    table.put(a_node("a").cordoned().build())
    assert table.labels_moved == before
    table.put(a_node("a").cordoned().labels(x="y").build())
    assert table.labels_moved == before + 1


def test_a_resource_has_its_place_while_a_node_names_it() -> None:
    table = a_table(a_node("a").allocatable({GPU: "4"}), a_node("b").allocatable({GPU: "2"}))
    assert table.find_resource(GPU) == 3
    table.put(a_node("a").build())
    assert table.columns.read("allocatable")[3, :2].tolist() == [0, 2]
    assert table.find_resource(GPU) == 3
    table.remove("b")
    assert table.find_resource(GPU) is None
    assert not table.columns.read("allocatable")[3].any()
    table.put(a_node("a").allocatable({"other.com/x": "9"}).build())
    assert table.find_resource("other.com/x") == 3


def test_pods_ask_for_what_a_node_begins_to_name_and_ceases_to() -> None:
    cluster = a_cluster(a_node("a"), pods=[a_pod("x").requests({GPU: "2"}).on("a")])
    table = cluster.nodes
    assert table.find_resource(GPU) is None
    cluster.apply(Seen(NODE, a_node("a").allocatable({GPU: "4"}).build()))
    at = table.find_resource(GPU)
    assert at is not None
    assert table.columns.read("requested")[at, 0] == 2
    cluster.apply(Seen(NODE, a_node("a").build()))
    assert not table.columns.read("requested")[at].any()
    assert not table.columns.read("allocatable")[at].any()


def test_images_are_known_by_their_rows_and_the_first_size_that_was_told() -> None:
    table = a_table(a_node("a").image("nginx", "nginx:1", mib=1), a_node("b").image("nginx", mib=2))
    assert table.images["nginx"] == (1 << 20, {0, 1})
    assert table.images["nginx:1"] == (1 << 20, {0})
    table.put(a_node("a").build())
    assert table.images == {"nginx": (1 << 20, {1})}
    table.remove("b")
    assert table.images == {}


def test_an_image_that_is_listed_twice_goes_once() -> None:
    table = a_table(a_node("a").image("nginx", mib=1).image("nginx", mib=2))
    table.remove("a")
    assert table.images == {}


def test_taints_and_features_go_with_the_last_row_that_shows_them() -> None:
    shown = a_node("a").taints("x=y:NoSchedule").features("F")
    table = a_table(shown, a_node("b").taints("x=y:NoSchedule"))
    read = table.columns.read
    assert read("taint_set")[0] == read("taint_set")[1] != 0
    table.remove("a")
    assert (len(table.taint_sets.ids), len(table.feature_sets.ids)) == (1, 0)
    table.put(a_node("b").build())
    assert len(table.taint_sets.ids) == 0
    assert read("taint_set")[1] == 0


def many(count: int) -> NodeTable:
    return a_table(*(a_node(f"n{number}").labels(zone=str(number)) for number in range(count)))


def test_columns_grow_with_the_rows_labels_too() -> None:
    table = a_table(a_node("n0").labels(zone="a"))
    table.label_column("zone")
    for number in range(1, ROWS_MIN + 1):
        table.put(a_node(f"n{number}").build())
    assert table.columns.capacity == 2 * ROWS_MIN
    assert len(table.label_column("zone").ids) == 2 * ROWS_MIN
    assert table.label_column("zone").ids[0] != 0
    assert len(table.label_column("other").ids) == 2 * ROWS_MIN


def test_rows_at_the_end_are_given_back_once_they_are_half_of_all() -> None:
    count = 4 * ROWS_MIN
    table = many(count)
    table.label_column("zone")
    cursor = table.log.end
    for number in range(count // 2 + 1, count):
        table.remove(f"n{number}")
    assert not table.cut(), "one more than half is in use"
    table.remove(f"n{count // 2}")
    table.remove("n3")
    before = table.generation
    assert table.cut()
    assert (table.height, len(table.node_at)) == (count // 2, count // 2)
    assert table.columns.capacity == count // 2
    assert len(table.label_column("zone").ids) == count // 2
    assert table.log.since(cursor) is None, "whoever keeps anything by row starts afresh"
    assert table.generation > before
    assert table.put(a_node("new").build()) == (3, True)
    assert table.put(a_node("newer").build()) == (count // 2, True)
    assert not table.cut()


def test_a_small_table_is_not_cut() -> None:
    table = many(ROWS_MIN)
    for number in range(ROWS_MIN):
        table.remove(f"n{number}")
    assert not table.cut()
    assert table.put(a_node("n0").build())[0] == 0


def test_arrays_of_labels_stay_in_line_with_their_rows() -> None:
    """A row that was freed and given to another node shows that one's values."""
    table: Any = a_table(a_node("a").labels(zone="x"), a_node("b").labels(zone="y"))
    column = table.label_column("zone")
    table.remove("a")
    assert column.ids[0] == 0
    table.put(a_node("c").labels(zone="y").build())
    assert np.array_equal(column.ids[:2] != 0, [True, True])
    assert column.ids[0] == column.ids[1]
