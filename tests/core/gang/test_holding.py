"""Where amounts are held: never more than is free, never less than could be, on few nodes."""

from random import Random
from typing import Any

import numpy as np
import pytest

from asched.core.gang import holding
from asched.core.gang.holding import SHORT_MAX, Room, Shortages, amounts_of, spread, told
from asched.core.model.quantity import INT64_MAX
from tests.builders import a_cluster, a_node, a_pod

SAME = np.zeros(3, dtype=np.int64)


def table(*rows: list[int]) -> np.ndarray:
    return np.array(rows, dtype=np.int64)


def test_the_fewest_nodes_in_proportion_are_taken() -> None:
    free = table([2, 8, 4], [2, 8, 4])
    held, missing = spread(free, np.array([10, 10]), SAME)
    assert held.tolist() == [[0, 8, 2], [0, 8, 2]]
    assert missing.tolist() == [0, 0]


def test_rows_of_a_lower_tier_come_first() -> None:
    free = table([2, 8, 4])
    held, _ = spread(free, np.array([5]), np.array([0, 1, 0]))
    assert held.tolist() == [[1, 0, 4]]


def test_a_cluster_with_cpu_here_and_memory_there_will_do_as_it_does_for_scheduler_plugins() -> (
    None
):
    free = table([4, 0, 0], [0, 0, 4])
    held, missing = spread(free, np.array([4, 4]), SAME)
    assert held.tolist() == free.tolist()
    assert missing.tolist() == [0, 0]


def test_what_is_left_of_rounding_is_held_where_something_is_held_anyway() -> None:
    """Two parts and one of three: of 4 that is 2 and 1, and the fourth does not go elsewhere."""
    held, missing = spread(table([2, 1, 0], [9, 9, 99]), np.array([3, 4]), SAME)
    assert held[0].tolist() == [2, 1, 0]
    assert (int(held[1, 2]), int(held[1].sum()), missing.tolist()) == (0, 4, [0, 0])


def test_as_much_as_there_can_be_is_held() -> None:
    held, missing = spread(table([INT64_MAX]), np.array([INT64_MAX]), SAME[:1])
    assert (held.tolist(), missing.tolist()) == ([[INT64_MAX]], [0])


def test_what_finds_no_room_is_told_and_the_rest_is_held() -> None:
    held, missing = spread(table([1, 1, 1], [9, 9, 9]), np.array([4, 4]), SAME)
    assert missing.tolist() == [1, 0]
    assert held.sum(axis=1).tolist() == [3, 4]


def test_no_node_at_all() -> None:
    _, missing = spread(np.zeros((1, 0), np.int64), np.array([3]), np.zeros(0, np.int64))
    assert missing.tolist() == [3]


@pytest.mark.parametrize("seed", range(200))
def test_it_finds_room_whenever_the_sums_suffice_and_never_takes_more(seed: int) -> None:
    rng = Random(seed)
    rows, resources = rng.randint(1, 12), rng.randint(1, 3)
    largest = rng.choice([5, 1000, 1 << 40, INT64_MAX])
    free = table(*[[rng.randint(0, largest) for _ in range(rows)] for _ in range(resources)])
    wanted = np.array([rng.randint(1, largest) for _ in range(resources)], dtype=np.int64)
    tier = np.array([rng.randint(0, 2) for _ in range(rows)], dtype=np.int64)

    held, missing = spread(free, wanted, tier)

    assert (held >= 0).all()
    assert (held <= free).all()
    for at in range(resources):
        total, asked = sum(free[at].tolist()), int(wanted[at])
        assert sum(held[at].tolist()) == min(total, asked)
        assert int(missing[at]) == max(asked - total, 0)


def test_amounts_are_read_as_the_columns_count_them() -> None:
    read = amounts_of(
        {"cpu": "1500m", "memory": "1Gi", "pods": "3", "nvidia.com/gpu": 2, "x": "-1"}
    )
    assert read == {"cpu": 1500, "memory": 1 << 30, "nvidia.com/gpu": 2}
    assert told(read) == "cpu 1500m, memory 1Gi, nvidia.com/gpu 2"


def test_cordoned_and_full_nodes_have_no_room_to_hold() -> None:
    cluster = a_cluster(
        a_node("cordoned").cordoned(),
        a_node("full").allocatable(pods="1"),
        a_node("free").allocatable(cpu="4"),
        pods=[a_pod().on("full")],
    )
    room = Room.of(cluster, {"cpu": 1, "nvidia.com/gpu": 2})
    assert room.free.tolist() == [[0, 0, 4000]]
    assert room.unknown == {"nvidia.com/gpu": 2}


def test_a_group_short_of_room_hears_only_what_makes_the_sum_suffice() -> None:
    cluster = a_cluster(a_node("n1").allocatable(cpu="4"))
    shortages = Shortages(cluster)
    assert shortages.may_fit("g")
    shortages.note("g", {"cpu": 6000})

    assert not shortages.may_fit("g")
    cluster.nodes.put(a_node("n2").allocatable(cpu="2").build())

    assert shortages.may_fit("g")
    shortages.drop("g")
    assert "g" not in shortages


def test_rows_that_share_it_hold_it_in_proportion() -> None:
    held, missing = spread(table([9, 9], [6, 5]), np.array([10, 10]), SAME[:2])
    assert held.tolist() == [[6, 4], [6, 4]]
    assert missing.tolist() == [0, 0]


def test_what_placed_pods_have_is_not_free_and_an_unknown_amount_is_told_apart() -> None:
    cluster = a_cluster(
        a_node("n1").allocatable(cpu="4", pods="2"), pods=[a_pod().requests(cpu="1").on("n1")]
    )
    room = Room.of(cluster, {"x.com/y": 3, "cpu": 500})
    assert (room.names, room.wanted.tolist(), room.free.tolist()) == (["cpu"], [500], [[3000]])
    assert room.unknown == {"x.com/y": 3}
    both = Room.of(cluster, {"pods": 1, "memory": 1 << 20, "cpu": 1})
    free = {name: both.free[at].tolist() for at, name in enumerate(both.names)}
    assert free["cpu"] == [3000]
    assert free["memory"] != free["cpu"]


def test_a_node_that_has_less_than_its_pods_take_adds_nothing_and_takes_nothing() -> None:
    cluster = a_cluster(
        a_node("n1").allocatable(cpu="1"),
        a_node("n2").allocatable(cpu="2"),
        pods=[a_pod().requests(cpu="5").on("n1")],
    )
    assert Room.of(cluster, {"cpu": 1}).free.tolist() == [[0, 2000]]
    shortages = Shortages(cluster)
    shortages.note("g", {"cpu": 2000})
    assert shortages.may_fit("g")
    shortages.note("g", {"cpu": 1, "x.com/y": 1})
    assert not shortages.may_fit("g"), "all amounts have to be there"


def test_amounts_that_cannot_be_read_are_left_out_and_the_others_are_not() -> None:
    assert amounts_of({"cpu": "many", "memory": "1Mi", "x.com/y": "0"}) == {"memory": 1 << 20}
    assert amounts_of({"x.com/y": "1"}) == {"x.com/y": 1}, "the least there is"


def test_so_many_groups_are_remembered_and_the_one_noted_first_goes() -> None:
    shortages = Shortages(a_cluster(a_node("n1").allocatable(cpu="1")))
    for number in range(SHORT_MAX):
        shortages.note(f"g{number}", {"cpu": 2000})
    shortages.note("g0", {"cpu": 3000})
    assert "g1" in shortages
    shortages.note("new", {"x.com/y": 1})
    assert ("g0" in shortages, "g1" in shortages) == (True, False)
    assert not shortages.may_fit("new"), "no node has any"
    assert shortages.may_fit("g1"), "nobody knows any more"


def test_free_amounts_are_summed_once_for_all_groups_until_a_row_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = a_cluster(a_node("n1").allocatable(cpu="4"))
    shortages, asked, whole = Shortages(cluster), [], holding.free_amounts

    def free_amounts(cluster: Any, places: list[int]) -> Any:
        asked.append(places)
        return whole(cluster, places)

    monkeypatch.setattr(holding, "free_amounts", free_amounts)
    for number in range(9):
        shortages.note(f"g{number}", {"cpu": 6000})
    assert (shortages.that_may_fit(), len(asked)) == ([], 1)
    cluster.nodes.put(a_node("n2").allocatable(cpu="2").build())
    assert (len(shortages.that_may_fit()), len(asked)) == (9, 2)
