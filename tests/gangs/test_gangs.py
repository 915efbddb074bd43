"""Gangs whose pods find no place one after the other: they are placed, refuted, or left alone."""

from itertools import permutations
from typing import Any

import pytest

from tests.gangs.__main__ import decided
from tests.gangs.claims import ANY_DEVICE, DRIVER, a_class, exactly
from tests.gangs.controllers import complete
from tests.gangs.instances import HOST, ZONE, Instance, Json, a_group, a_node, a_pod, small
from tests.gangs.planted import planted
from tests.gangs.playing import play

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def gang_of(nodes: list[Json], pods: list[Json], needed: int | None = None) -> Instance:
    for pod in pods:
        pod["spec"]["schedulingGroup"] = {"podGroupName": "gang"}
    return Instance("by hand", nodes, pods, a_group(needed or len(pods)))


def near(key: str, **labels: str) -> Json:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": labels}}
    return {"podAffinity": {REQUIRED: [term]}}


def size(cpu: str, labels: dict[str, str] | None = None, **spec: Any) -> Any:
    return lambda name: a_pod(name, {"cpu": cpu}, labels or {}, **spec)


def room(name: str, cpu: str, **labels: str) -> Json:
    return a_node(name, {"cpu": cpu, "memory": "8Gi", "pods": "10"}, **labels)


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_small_gangs_are_placed_where_brute_force_can(first: int) -> None:
    for seed in range(first, first + 40):
        instance = decided(seed)
        played = play(instance)
        assert not played.is_wrong, played
        assert (played.result == "placed") == (instance.expected == "feasible"), played
        plain = play(instance, search=False)
        if plain.places:
            assert plain.places == played.places


@pytest.mark.parametrize(
    "seed",
    [
        640,  # two pods want a claim for one pod
        660,  # a volume is chosen for a claim and made for another pod elsewhere
        744,  # what was prepared for a pod before its mate was placed
    ],
)
def test_gangs_whose_claims_have_no_place_are_not_placed(seed: int) -> None:
    """`decided` proves that there is none, for 640 in 16 s."""
    instance = small(seed)
    complete(instance)

    played = play(instance)

    assert not played.places
    assert not played.is_wrong, played


@pytest.mark.parametrize("seed", [301, 1681])
def test_a_gang_that_no_plan_places_is_placed_in_another_order_of_its_pods(seed: int) -> None:
    instance = decided(seed)
    assert not play(instance, search=False).places

    played = play(instance)

    assert (played.result, played.broken) == ("placed", "")


def test_pods_of_a_gang_share_a_claim_and_have_claims_of_their_own() -> None:
    """Three on one node, by the device they share; each has one of its own beside it."""
    nodes = [room("n1", "4"), room("n2", "4")]
    objects: list[Json] = [a_class("any", ANY_DEVICE)]
    for node, count in (("n1", 4), ("n2", 3)):
        devices = [{"name": f"d{n}", "attributes": {"size": {"int": 1}}} for n in range(count)]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
        objects.append({"kind": "ResourceSlice", "metadata": {"name": node}, "spec": spec})
    one = {"devices": {"requests": [exactly("one", "any", 1)]}}
    named = {"name": "shared", "namespace": "default", "uid": "uid-shared", "resourceVersion": "1"}
    objects.append({"kind": "ResourceClaim", "metadata": named, "spec": one})
    own = {"name": "own", "namespace": "default"}
    objects.append({"kind": "ResourceClaimTemplate", "metadata": own, "spec": {"spec": one}})
    claims = [
        {"name": "shared", "resourceClaimName": "shared"},
        {"name": "own", "resourceClaimTemplateName": "own"},
    ]
    pods = [size("1", resourceClaims=claims)(name) for name in "abc"]
    instance = gang_of(nodes, pods)
    instance.objects = objects

    played = play(instance)

    assert (set(played.places.values()), played.broken) == ({"n1"}, "")


@pytest.mark.parametrize("seed", range(2))
def test_a_planted_placement_is_found_and_its_twin_refuted(seed: int) -> None:
    found = play(planted(seed, 120))
    assert (found.result, found.broken) == ("placed", "")
    twin = play(planted(seed, 120, satisfiable=False))
    assert twin.result in ("infeasible", "unknown")


def test_pods_that_are_spread_by_score_are_packed_where_a_larger_one_needs_the_room() -> None:
    small, large = size("1"), size("4")
    pods = [small("a"), small("b"), large("c")]
    pods[2]["spec"]["priority"] = -1
    instance = gang_of([room("n1", "4"), room("n2", "4")], pods)

    assert not play(instance, search=False).places
    played = play(instance)

    assert played.places["a"] == played.places["b"] != played.places["c"]


def test_a_gang_is_put_into_the_zone_that_holds_all_of_it() -> None:
    """One after the other, the first would go to the roomiest node, whose zone is too small."""
    member = size("2", {"app": "a"}, affinity=near(ZONE, app="a"))
    nodes = [
        room("roomy", "5", topology_kubernetes_io__zone="x"),
        room("y1", "2"),
        room("y2", "2"),
        room("y3", "2"),
    ]
    nodes[0]["metadata"]["labels"] = {HOST: "roomy", ZONE: "x"}
    for node in nodes[1:]:
        node["metadata"]["labels"][ZONE] = "y"
    instance = gang_of(nodes, [member("a"), member("b"), member("c")])

    assert not play(instance, search=False).places
    played = play(instance)

    assert (set(played.places.values()), played.broken) == ({"y1", "y2", "y3"}, "")


def test_what_cannot_be_is_refuted_with_the_count_that_proves_it() -> None:
    member = size("3")
    instance = gang_of([room("n1", "4"), room("n2", "4")], [member("a"), member("b"), member("c")])

    played = play(instance)

    assert played.said.endswith(
        "there is no place for it: the nodes have places for 2 of 3 pods like a"
    )


def test_a_matching_refutes_what_each_class_alone_would_fit() -> None:
    """Two pods want the same one node; a third could go anywhere."""
    nodes = [room("n1", "1"), room("n2", "1"), room("n3", "1")]
    only = {"nodeSelector": {HOST: "n1"}}
    pods = [size("1", {"k": "x"}, **only)("a"), size("1", {"k": "y"}, **only)("b"), size("1")("c")]

    played = play(gang_of(nodes, pods))

    assert played.result == "infeasible"
    assert "at most 2 of its pods have places at a time, and 3 have to" in played.said


def test_every_order_of_nodes_and_pods_comes_to_the_same_end() -> None:
    for order in permutations(range(3)):
        nodes = [room(f"n{i}", c) for i, c in zip(order, ("2", "3", "5"), strict=True)]
        pods = [size(c)(f"p{i}") for i, c in zip(order, ("5", "3", "2"), strict=True)]
        assert play(gang_of(nodes, pods)).result == "placed"
