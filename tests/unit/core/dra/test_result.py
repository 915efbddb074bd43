"""Allocations as the API has them: where they are good, and which configuration goes along."""

from typing import Any

from asched.core.dra.result import allocation_results
from asched.core.model.claim import AllocationResult, ResourceClaim
from tests.device_builders import World, a_claim, a_class, a_device, a_slice, asks, first_of

ZONE_A = {"key": "zone", "operator": "In", "values": ["a"]}
DISK = {"key": "disk", "operator": "Exists"}


def select(*requirements: dict[str, Any]) -> dict[str, Any]:
    return {"nodeSelectorTerms": [{"matchExpressions": list(requirements)}]}


def allocate(world: World, claim: ResourceClaim, **labels: str) -> AllocationResult:
    solution = world.solve(claim, labels=labels)
    assert solution is not None
    (result,) = allocation_results(world.plans(claim), solution, "n1")
    return result


def test_a_local_device_binds_to_its_node() -> None:
    result = allocate(World(a_slice("a")), a_claim(asks()))
    assert result.node_selector is not None
    (term,) = result.node_selector.node_selector_terms or ()
    (field,) = term.match_fields or ()
    assert (field.key, field.operator, field.values) == ("metadata.name", "In", ("n1",))


def test_a_device_for_all_nodes_binds_to_none() -> None:
    assert allocate(World(a_slice("a", allNodes=True)), a_claim(asks())).node_selector is None


def test_a_device_that_binds_to_the_node_does() -> None:
    device = a_device("a", bindsToNode=True)
    result = allocate(World(a_slice(device, allNodes=True)), a_claim(asks()))
    assert result.node_selector is not None


def test_requirements_of_several_devices_are_merged() -> None:
    world = World(
        a_slice("a", pool="p", nodeSelector=select(ZONE_A)),
        a_slice("b", pool="q", nodeSelector=select(ZONE_A, DISK)),
    )
    result = allocate(world, a_claim(asks(count=2)), zone="a", disk="x")
    assert result.node_selector is not None
    (term,) = result.node_selector.node_selector_terms or ()
    assert [r.key for r in term.match_expressions or ()] == ["zone", "disk"]


def test_configuration_of_the_class_comes_once_and_before_that_of_the_claim() -> None:
    opaque = {"driver": "d", "parameters": {"a": 1}}
    world = World(a_slice("a", "b"), classes=(a_class(config=[{"opaque": opaque}]),))
    claim = a_claim(
        asks(),
        first_of(asks("false"), asks()),
        config=[
            {"opaque": opaque},
            {"requests": ["r1/s1"], "opaque": opaque},
            {"requests": ["r1/s0"], "opaque": opaque},
        ],
    )
    config = allocate(world, claim).devices.config or ()
    told = [(entry.source, entry.requests) for entry in config]
    assert told == [
        ("FromClass", ("r0", "r1/s1")),
        ("FromClaim", None),
        ("FromClaim", ("r1/s1",)),
    ]
    assert config[0].opaque is not None
    assert config[0].opaque.parameters == {"a": 1}


def test_results_carry_tolerations_admin_access_and_conditions() -> None:
    device = a_device("a", bindingConditions=["ok"], bindingFailureConditions=["bad"])
    asked = asks(adminAccess=True, tolerations=[{"key": "k", "operator": "Exists"}])
    (result,) = allocate(World(a_slice(device)), a_claim(asked)).devices.results or ()
    assert result.admin_access is True
    assert result.share_id is None
    assert [t.key for t in result.tolerations or ()] == ["k"]
    assert (result.binding_conditions, result.binding_failure_conditions) == (("ok",), ("bad",))


def term(expressions: Any = None, fields: Any = None) -> dict[str, Any]:
    return {"matchExpressions": expressions or [], "matchFields": fields or []}
