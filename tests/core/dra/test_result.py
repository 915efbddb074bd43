"""Allocations as the API has them: where they are good, and which configuration goes along."""

import uuid
from typing import Any

import pytest

from asched.core.dra.result import allocation_results, left_by
from asched.core.model.claim import AllocationResult, ResourceClaim
from tests.core.dra.worlds import (
    DRIVER,
    World,
    a_claim,
    a_class,
    a_device,
    a_slice,
    asks,
    first_of,
    held,
)

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


def told_apart(world: World, *claims: ResourceClaim, others: int = 0) -> Any:
    """What is left by these claims, of which as many of the last as `others` are shared."""
    solution = world.solve(*claims)
    assert solution is not None
    results = allocation_results(world.plans(*claims), solution, "n1")
    allocations = tuple(zip(claims, results, strict=True))
    return left_by(solution.devices[: len(claims) - others], allocations)


def test_devices_that_look_the_same_leave_the_same() -> None:
    plain, taken, other = World(a_slice("a", "b")), World(a_slice("a", "b")), World(a_slice("a"))
    taken.taken.put("somebody", held("a"))
    one = a_claim(asks())
    assert told_apart(plain, one) == told_apart(taken, one) == told_apart(other, one) != ()
    large = World(a_slice(a_device("a", attributes={"size": "large"})))
    assert told_apart(large, one) != told_apart(plain, one)
    assert told_apart(World(a_slice("a", name="n2", nodeName="n1")), one)
    assert left_by((), ()) == ()


def test_devices_that_others_share_are_told_apart() -> None:
    first, second = World(a_slice("a", "b")), World(a_slice("a", "b"))
    second.taken.put("somebody", held("a"))
    assert told_apart(first, a_claim(asks()), others=1) != told_apart(
        second, a_claim(asks()), others=1
    )
    shared = [a_device(name, allowMultipleAllocations=True) for name in "ab"]
    first, second = World(a_slice(*shared)), World(a_slice(*reversed(shared)))
    assert told_apart(first, a_claim(asks())) != told_apart(second, a_claim(asks()))
    looks = a_claim(asks(adminAccess=True))
    assert told_apart(World(a_slice("a", "b")), looks) != told_apart(
        World(a_slice("b", "a")), looks
    )


def test_what_there_is_nothing_to_say_of_is_left_out() -> None:
    result = allocate(World(a_slice("a")), a_claim(asks()))
    assert result.devices.config is None
    (one,) = result.devices.results or ()
    assert (one.admin_access, one.tolerations, one.share_id, one.consumed_capacity) == (None,) * 4
    assert (one.binding_conditions, one.binding_failure_conditions) == (None, None)
    assert (one.request, one.driver, one.pool, one.device) == ("r0", DRIVER, "n1", "a")


@pytest.mark.parametrize(
    ("named", "times"),
    [
        ((), 1),
        (("r0",), 1),
        (("r1",), 1),  # whatever alternative of it was chosen
        (("r1/s1",), 1),
        (("r1/s0",), 0),
        (("s1",), 0),
        (("r0", "r1"), 2),
        (("r1", "r1/s1"), 1),
        (("r7",), 0),
    ],
)
def test_configuration_of_the_claim_comes_once_for_each_request_that_it_names(
    named: tuple[str, ...], times: int
) -> None:
    opaque = {"driver": "d", "parameters": {"a": 1}}
    config = [{"requests": list(named), "opaque": opaque}]
    claim = a_claim(asks(), first_of(asks("false"), asks()), config=config)
    told = allocate(World(a_slice("a", "b")), claim).devices.config or ()
    assert [(entry.source, entry.requests or ()) for entry in told] == [
        ("FromClaim", named)
    ] * times


def shares(world: World, claim: ResourceClaim) -> list[str]:
    results = allocate(world, claim).devices.results or ()
    return [one.share_id or "" for one in results]


def test_shares_have_uuids_of_their_own_that_are_the_same_each_time() -> None:
    device = a_device("a", allowMultipleAllocations=True, capacity={"memory": {"value": "9"}})
    world, one = World(a_slice(device)), {"capacity": {"requests": {"memory": "1"}}}
    found = []
    for name in "xyz":
        claim = a_claim(asks(**one), asks(**one), asks(**one), name=name)
        found += shares(world, claim)
        assert shares(world, claim) == found[-3:]
    assert len(set(found)) == 9
    for share in found:
        told = uuid.UUID(share)
        assert (str(told), told.version, told.variant) == (share, 8, uuid.RFC_4122)


RACK = {"key": "rack", "operator": "In", "values": ["1", "2"]}
NAME = {"key": "metadata.name", "operator": "In", "values": ["n1"]}


def term(expressions: Any = None, fields: Any = None) -> dict[str, Any]:
    return {"matchExpressions": expressions or [], "matchFields": fields or []}


@pytest.mark.parametrize(
    ("first", "second", "expressions", "fields"),
    [
        (term([ZONE_A]), term([ZONE_A]), ["zone In a"], []),
        (term([DISK]), term([{"key": "disk", "operator": "Exists"}]), ["disk Exists "], []),
        (
            term([{"key": "rack", "operator": "NotIn", "values": ["1"]}]),
            term([{"key": "rack", "operator": "Gt", "values": ["1"]}]),
            ["rack NotIn 1", "rack Gt 1"],
            [],
        ),
        (term([ZONE_A]), term([DISK, RACK]), ["zone In a", "disk Exists ", "rack In 1,2"], []),
        (term([RACK]), term([{**RACK, "values": ["2", "1"]}]), ["rack In 1,2"], []),
        (
            term([RACK]),
            term([{**RACK, "values": ["2"]}]),
            ["rack In 1,2", "rack In 2"],
            [],
        ),
        (
            term([RACK]),
            term([{**RACK, "key": "zone", "values": ["a", "2"]}]),
            ["rack In 1,2", "zone In a,2"],
            [],
        ),
        (
            term([DISK]),
            term([{**DISK, "key": "rack"}]),
            ["disk Exists ", "rack Exists "],
            [],
        ),
        (
            term([RACK]),
            term([{"key": "rack", "operator": "Exists"}]),
            ["rack In 1,2", "rack Exists "],
            [],
        ),
        (term([], [NAME]), term([], [NAME]), [], ["metadata.name In n1"]),
        (
            term([DISK], [NAME]),
            term([ZONE_A]),
            ["disk Exists ", "zone In a"],
            ["metadata.name In n1"],
        ),
    ],
)
def test_an_allocation_is_good_where_all_its_devices_are(
    first: Any, second: Any, expressions: list[str], fields: list[str]
) -> None:
    """The requirements of both in order, each once; equal in key, operator and set of values."""
    world = World(
        *(
            a_slice(name, pool=name, nodeSelector={"nodeSelectorTerms": [one]})
            for name, one in zip("pq", (first, second), strict=True)
        )
    )
    result = allocate(world, a_claim(asks(count=2)), zone="a", disk="x", rack="2")
    assert result.node_selector is not None
    (told,) = result.node_selector.node_selector_terms or ()

    def words(requirements: Any) -> list[str]:
        return [f"{r.key} {r.operator} {','.join(r.values or ())}" for r in requirements or ()]

    assert words(told.match_expressions) == expressions
    assert words(told.match_fields) == fields
    # What is empty is left out.
    assert told.match_expressions != ()
    assert told.match_fields != ()


def test_shares_of_different_size_leave_something_else() -> None:
    device = a_device("a", allowMultipleAllocations=True, capacity={"memory": {"value": "9"}})
    world = World(a_slice(device))
    one, two = (a_claim(asks(capacity={"requests": {"memory": n}})) for n in "12")
    assert told_apart(world, one) != told_apart(world, two)
    assert told_apart(world, one) == told_apart(world, one)
    assert left_by((), [(one, AllocationResult())]) == ()
