"""Which plugins a default profile enables under which gates."""

from asched.core.config.default_plugins import DEFAULT_MULTI_POINT, default_multi_point

GATED = {
    "DynamicResources": "DynamicResourceAllocation",
    "NodeDeclaredFeatures": "NodeDeclaredFeatures",
    "GangScheduling": "GangScheduling",
    "TopologyPlacementGenerator": "TopologyAwareWorkloadScheduling",
    "PodGroupPodsCount": "TopologyAwareWorkloadScheduling",
}


def names(**gates: bool) -> list[str]:
    return [entry.name for entry in default_multi_point(gates)]


def test_a_gate_that_is_off_or_unknown_leaves_its_plugin_out() -> None:
    assert not set(names()) & set(GATED)
    assert not set(names(GangScheduling=False)) & set(GATED)
    assert set(names(GangScheduling=True)) - set(names()) == {"GangScheduling"}


def test_with_all_gates_on_the_order_is_upstream_s() -> None:
    everybody = names(**dict.fromkeys(GATED.values(), True))
    assert everybody == [name for name, _, _ in DEFAULT_MULTI_POINT]
    assert everybody[:4] == ["SchedulingGates", "PrioritySort", "NodeUnschedulable", "NodeName"]
    weights = {entry.name: entry.weight for entry in default_multi_point({})}
    assert (weights["TaintToleration"], weights["NodeAffinity"], weights["ImageLocality"]) == (
        3,
        2,
        1,
    )
