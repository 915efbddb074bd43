"""Which resources are compared, and where their amounts come from."""

import numpy as np

from asched.core.config.args import CPU_AND_MEMORY, ResourceSpec
from asched.core.plugins.scoring.amounts import default_amounts, node_amounts, scored
from asched.core.state.view import NodeView
from tests.builders import a_cluster, a_node, a_pod, all_rows

GPU = "example.com/gpu"
Amounts = np.ndarray


def no_devices(name: str, nodes: NodeView) -> tuple[Amounts, Amounts]:
    return np.zeros(nodes.size, dtype=np.int64), np.zeros(nodes.size, dtype=np.int64)


def test_fixed_resources_always_count_and_others_if_requested() -> None:
    specs = [ResourceSpec(n, w) for n, w in ((GPU, 2), ("cpu", 3), ("x.io/y", 1), ("colour", 1))]

    wanted = scored(specs, {GPU: 4, "x.io/y": 0, "colour": 5})

    assert wanted.names == (GPU, "cpu")
    assert wanted.amounts.tolist() == [[4], [0]]
    assert wanted.weights.tolist() == [2, 3]
    assert not wanted.is_default


def test_one_of_a_resource_is_enough_to_count() -> None:
    assert scored([ResourceSpec(GPU)], {GPU: 1}).names == (GPU,)
    assert scored([ResourceSpec(GPU)], {}).names == ()
    assert scored([ResourceSpec("cpu")], {}).plain == (0,)


def test_fixed_resources_are_never_served_by_devices_and_storage_has_no_defaults() -> None:
    held = a_pod().requests(ephemeral_storage="1Gi").on("n1")
    offered = a_node("n1").offering_only(ephemeral_storage="4Gi", memory="1Gi", pods="9")
    cluster = a_cluster(offered, pods=[held])

    def devices(name: str, nodes: NodeView) -> tuple[Amounts, Amounts]:
        raise AssertionError(name)

    names = ("cpu", "memory", "ephemeral-storage")
    for nonzero, requested in ((True, [100, 200 << 20, 1 << 30]), (False, [0, 0, 1 << 30])):
        amounts = node_amounts(all_rows(cluster), names, devices, nonzero=nonzero)
        assert [array[:, 0].tolist() for array in amounts] == [requested, [0, 1 << 30, 4 << 30]]


def test_cpu_and_memory_take_the_short_way_with_the_same_amounts() -> None:
    held = a_pod().requests(cpu="1").on("n2")
    cluster = a_cluster(a_node("n1").allocatable(cpu="2"), a_node("n2"), pods=[held])
    view = all_rows(cluster)
    assert scored(CPU_AND_MEMORY, {}).is_default

    for nonzero in (False, True):
        short = default_amounts(view, nonzero=nonzero)
        long = node_amounts(view, ("cpu", "memory"), no_devices, nonzero=nonzero)
        assert [array.tolist() for array in short] == [array.tolist() for array in long]


def test_devices_fill_in_only_where_the_node_offers_none() -> None:
    cluster = a_cluster(a_node("n1").allocatable({GPU: "2"}), a_node("n2"))

    def devices(name: str, nodes: NodeView) -> tuple[Amounts, Amounts]:
        return np.full(nodes.size, 7), np.full(nodes.size, 3)

    requested, allocatable = node_amounts(all_rows(cluster), (GPU,), devices, nonzero=True)

    assert allocatable.tolist() == [[2, 7]]
    assert requested.tolist() == [[0, 3]]
