"""What groups lack of their minResources, by the free amounts of all nodes."""

from asched.core.cluster.shortages import SHORT_MAX, Shortages, amounts_of, amounts_text
from tests.builders import a_cluster, a_node, a_pod


def test_amounts_are_read_as_the_columns_count_them() -> None:
    read = amounts_of(
        {"cpu": "1500m", "memory": "1Gi", "pods": "3", "nvidia.com/gpu": 2, "x": "-1", "y": "many"}
    )
    assert read == {"cpu": 1500, "memory": 1 << 30, "nvidia.com/gpu": 2}
    assert amounts_text(read) == "cpu 1500m, memory 1Gi, nvidia.com/gpu 2"


def test_a_message_names_some_of_many_resources() -> None:
    assert amounts_text({f"x.com/r{n}": 1 for n in range(12)}).endswith("x.com/r9 1 and 2 more")


def test_cordoned_full_and_overfull_nodes_have_nothing_left() -> None:
    cluster = a_cluster(
        a_node("cordoned").cordoned(),
        a_node("full").allocatable(pods="1"),
        a_node("overfull").allocatable(cpu="1"),
        a_node("free").allocatable(cpu="4"),
        pods=[a_pod("a").on("full"), a_pod("b").requests(cpu="5").on("overfull")],
    )
    shortages = Shortages(cluster)
    assert shortages.free("cpu") == 4000
    assert shortages.free("nvidia.com/gpu") == 0


def test_a_group_short_of_room_hears_only_what_makes_the_sum_suffice() -> None:
    cluster = a_cluster(a_node("n1").allocatable(cpu="4"))
    shortages = Shortages(cluster)
    assert shortages.may_fit("g")
    shortages.note("g", {"cpu": 6000})
    assert not shortages.may_fit("g")
    cluster.nodes.put(a_node("n2").allocatable(cpu="2").build())
    assert shortages.that_may_fit() == ["g"]
    shortages.note("g", {"cpu": 1, "x.com/y": 1})
    assert not shortages.may_fit("g"), "all amounts have to be there"
    shortages.drop("g")
    assert "g" not in shortages


def test_so_many_groups_are_remembered() -> None:
    shortages = Shortages(a_cluster(a_node("n1")))
    for number in range(SHORT_MAX + 1):
        shortages.note(f"g{number}", {"cpu": 1})
    assert "g0" not in shortages
    assert f"g{SHORT_MAX}" in shortages
