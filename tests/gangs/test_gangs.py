"""Gangs whose pods find no place one after the other: they are placed, refuted, or left alone."""

import json
from itertools import permutations
from typing import Any

import pytest

from asched.core.cycle.machine import Machine
from tests.gangs.__main__ import decided, main, report
from tests.gangs.claims import ANY_DEVICE, DRIVER, LARGE, a_claim, a_class, a_volume, exactly
from tests.gangs.instances import HOST, ZONE, Instance, Json, a_group, a_node, a_pod
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


@pytest.mark.parametrize("first", range(0, 240, 40))
def test_small_gangs_are_placed_if_and_only_if_brute_force_can(first: int) -> None:
    for seed in range(first, first + 40):
        instance = decided(seed)
        played = play(instance)
        assert not played.is_wrong, played
        expected = {"feasible": "placed"}.get(instance.expected, "infeasible")
        assert played.result == expected, played
        plain = play(instance, search=False)
        if plain.places:
            assert plain.places == played.places


@pytest.mark.parametrize(
    ("seed", "result"),
    [
        (640, "infeasible"),  # two pods want a claim for one pod: proved without trying all orders
        (660, "infeasible"),  # a volume is chosen for a claim and made for another pod elsewhere
        (744, "infeasible"),  # what was prepared for a pod in another state of the search
        (1282, "placed"),  # the shared claim has to get another device than the first
        (1014977, "placed"),  # likewise
    ],
)
def test_gangs_with_claims_that_were_judged_wrongly_once(seed: int, result: str) -> None:
    played = play(decided(seed))

    assert (played.result, played.broken) == (result, "")


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


def slice_of(where: Json, *kinds: int) -> Json:
    """Devices of these sizes, on nodes as `where` says."""
    devices = [{"name": f"d{n}", "attributes": {"size": {"int": k}}} for n, k in enumerate(kinds)]
    name = where.get("nodeName", "0-shelf")
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, **where, "pool": pool, "devices": devices}
    return {"kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def wishes(**counts: tuple[str, int]) -> list[Json]:
    """Templates by name: so many devices of a class."""
    return [
        {
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"spec": {"devices": {"requests": [exactly("one", *asked)]}}},
        }
        for name, asked in counts.items()
    ]


def test_one_that_takes_any_device_leaves_the_large_one_to_whoever_needs_it() -> None:
    """The one that takes any comes first by its priority, and the large device is listed first.

    It cannot come second: only beside it may the other one be.
    """
    any_one = {"name": "own", "resourceClaimTemplateName": "any-one"}
    large_one = {"name": "own", "resourceClaimTemplateName": "large-one"}
    beside = near(HOST, app="first")
    pods = [
        size("1", {"app": "first"}, resourceClaims=[any_one], priority=5)("a"),
        size("1", {"app": "second"}, resourceClaims=[large_one], affinity=beside)("b"),
    ]
    instance = gang_of([room("n1", "4"), room("n2", "4")], pods)
    instance.objects = [
        a_class("any", ANY_DEVICE),
        a_class("large", ANY_DEVICE, LARGE),
        slice_of({"nodeName": "n1"}, 2, 1),
        slice_of({"nodeName": "n2"}, 1),
        *wishes(**{"any-one": ("any", 1), "large-one": ("large", 1)}),
    ]
    assert not play(instance, search=False).places

    played = play(instance)

    assert (played.places, played.broken) == ({"a": "n1", "b": "n1"}, "")


def test_devices_that_many_nodes_reach_are_left_to_those_who_have_no_other() -> None:
    """Three nodes have a device of their own, and all reach a shelf with three more, which are
    listed first. Pods on nodes without a device need the shelf, and come after the others, near
    whom they have to be.
    """
    nodes = [room(f"n{at}", "1") for at in range(6)]
    for at, node in enumerate(nodes):
        node["metadata"]["labels"] |= {"rack": "r", "own": str(at < 3)}
    own = [{"name": "own", "resourceClaimTemplateName": "any-one"}]
    first = size("1", {"app": "first"}, resourceClaims=own, nodeSelector={"own": "True"})
    beside = near("rack", app="first")
    second = size(
        "1", {"app": "second"}, resourceClaims=own, nodeSelector={"own": "False"}, affinity=beside
    )
    pods = [first(f"a{at}") for at in range(3)] + [second(f"b{at}") for at in range(3)]
    instance = gang_of(nodes, pods)
    instance.objects = [
        a_class("any", ANY_DEVICE),
        slice_of({"allNodes": True}, 1, 1, 1),
        *(slice_of({"nodeName": f"n{at}"}, 1) for at in range(3)),
        *wishes(**{"any-one": ("any", 1)}),
    ]

    played = play(instance)

    assert (played.result, len(set(played.places.values())), played.broken) == ("placed", 6, "")


def test_who_of_several_has_which_of_equal_devices_makes_no_difference() -> None:
    """Three kinds of two pods, one node, five devices: only how many of each kind have places."""
    own = [{"name": "own", "resourceClaimTemplateName": "any-one"}]
    kinds = [size("100m", {"app": app}, resourceClaims=own) for app in "abc"]
    pods = [kind(f"p{number}-{at}") for number, kind in enumerate(kinds) for at in range(2)]
    instance = gang_of([room("n1", "4")], pods)
    devices = slice_of({"nodeName": "n1"}, 1, 1, 1, 1, 1)
    wish = wishes(**{"any-one": ("any", 1)})
    instance.objects = [a_class("any", ANY_DEVICE), devices, *wish]

    played = play(instance)

    assert played.result == "infeasible"
    assert f"all {3**3 - 1} ways" in played.said  # none, one, two of each kind, and never all


def test_a_volume_that_two_zones_reach_is_left_to_the_one_that_has_no_other() -> None:
    """The claim of the first fits a volume everywhere and one of its own zone; the smallest comes
    first, and is the only one that the other claim can have, whose pod has to come second.
    """
    zones = {"n1": "x", "n2": "y"}
    nodes = [room(name, "1") for name in zones]
    for node in nodes:
        node["metadata"]["labels"] |= {ZONE: zones[node["metadata"]["name"]], "rack": "r"}
    claimed = {
        name: [{"name": "v", "persistentVolumeClaim": {"claimName": name}}] for name in ("a", "b")
    }
    pods = [
        size("1", {"app": "first"}, nodeSelector={HOST: "n1"}, volumes=claimed["a"])("a"),
        size("1", volumes=claimed["b"], affinity=near("rack", app="first"))("b"),
    ]
    instance = gang_of(nodes, pods)
    volumes = [
        a_volume("anywhere", "ReadWriteOnce", "1Gi"),
        a_volume("x", "ReadWriteOnce", "2Gi", "x"),
    ]
    for volume in volumes:
        volume["spec"]["storageClassName"] = "late"
    storage = {
        "kind": "StorageClass",
        "metadata": {"name": "late", "uid": "uid-late"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    claims = [a_claim(name, "ReadWriteOnce", "1Gi") for name in ("a", "b")]
    for claim in claims:
        claim["spec"]["storageClassName"] = "late"
    instance.objects = [storage, *volumes, *claims]
    assert not play(instance, search=False).places

    played = play(instance)

    assert (played.places, played.broken) == ({"a": "n1", "b": "n2"}, "")


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


def test_part_of_a_gang_is_enough_if_min_count_says_so() -> None:
    """Of three small ones and a large one, two must start: the large one stays behind."""
    pods = [size("3")("a"), size("2")("b"), size("2")("c")]
    pods[0]["spec"]["priority"] = 5
    instance = gang_of([room("n1", "4")], pods, needed=2)

    assert not play(instance, search=False).places
    assert set(play(instance).places) == {"b", "c"}


def test_every_order_of_nodes_and_pods_comes_to_the_same_end() -> None:
    for order in permutations(range(3)):
        nodes = [room(f"n{i}", c) for i, c in zip(order, ("2", "3", "5"), strict=True)]
        pods = [size(c)(f"p{i}") for i, c in zip(order, ("5", "3", "2"), strict=True)]
        assert play(gang_of(nodes, pods)).result == "placed"


def test_files_are_read_and_judged(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    good = gang_of([room("n1", "4")], [size("1")("a"), size("1")("b")])
    bad = gang_of([room("n1", "1")], [size("1")("a"), size("1")("b")])
    lines = [
        {"nodes": one.nodes, "pods": one.pods, "group": one.group, "expected": expected}
        for one, expected in ((good, "feasible"), (bad, "infeasible"))
    ]
    path = tmp_path / "some.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))

    assert main([str(path)]) == 0
    assert "1  feasible: placed" in capsys.readouterr().out
    path.write_text(json.dumps({**lines[1], "expected": "feasible"}))
    assert main([str(path)]) == 1
    assert main([str(tmp_path / "none.json")]) == 2


def test_an_instance_that_ends_the_scheduler_is_wrong_and_others_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ends(self: Machine, *_: Any) -> None:
        monkeypatch.undo()
        raise ValueError("no identity")

    monkeypatch.setattr(Machine, "handle", ends)
    one = gang_of([room("n1", "4")], [size("2")("a"), size("2")("b")])
    assert report(iter([one, decided(0)]), verbose=False) == 1
    said = capsys.readouterr().out
    assert "the scheduler ended: ValueError('no identity')" in said
    assert "1  wrong" in said
    assert "1  infeasible: infeasible" in said
