"""Which levels there are, what they are called, and the way down to a node."""

from typing import Any

import pytest

from asched.core.model.decode import decode
from asched.core.model.node import Node
from asched.hardware.network.sources import (
    KAI_TOPOLOGY,
    KUEUE_TOPOLOGY,
    LEVELS_MAX,
    HyperNode,
    Levels,
    Tiers,
)
from tests.builders import a_node

Json = dict[str, Any]


def tiers(*told: Json) -> Tiers:
    return Tiers([decode(HyperNode, one) for one in told])


def a_hyper_node(name: str, tier: int, *members: Json, tier_name: str = "") -> Json:
    spec = {"tier": tier, "tierName": tier_name, "members": list(members)}
    return {"metadata": {"name": name}, "spec": spec}


def exactly(name: str, kind: str = "HyperNode") -> Json:
    return {"type": kind, "selector": {"exactMatch": {"name": name}}}


def like(pattern: str, kind: str = "HyperNode") -> Json:
    return {"type": kind, "selector": {"regexMatch": {"pattern": pattern}}}


def where(**labels: str) -> Json:
    return {"type": "Node", "selector": {"labelMatch": {"matchLabels": labels}}}


def n1(**labels: str) -> Node:
    return a_node("n1").labels(labels).build()


def test_the_objects_are_kueues_and_kais() -> None:
    """Cluster-scoped, and one is not taken for the other."""
    for kind, group, version in (
        (KUEUE_TOPOLOGY, "kueue.x-k8s.io", "v1beta1"),
        (KAI_TOPOLOGY, "kai.scheduler", "v1alpha1"),
    ):
        assert (kind.name, kind.plural) == ("Topology", "topologies")
        assert kind.group_version == f"{group}/{version}"
        assert kind.resource == f"{group}/Topology"
        assert not kind.namespaced


def test_a_node_that_lacks_a_level_is_in_no_domain_from_there_on() -> None:
    levels = Levels(["zone", "block", "rack"])
    assert levels.path(n1(zone="z", rack="r")) == ("z",)
    assert levels.path(n1(block="b", rack="r")) == ()
    assert levels.path(n1(zone="z", block="", rack="r")) == ("z", "", "r")
    assert [levels.level_of(name) for name in ("zone", "rack", "row", "")] == [0, 2, None, None]


def test_levels_beyond_the_bound_are_none() -> None:
    """Of labels those from the top count, as they are told; of tiers those next to the nodes."""
    keys = [f"l{at}" for at in range(LEVELS_MAX + 2)]
    assert Levels(keys).names == tuple(keys[:LEVELS_MAX])
    many = tiers(*(a_hyper_node(f"h{at}", at) for at in range(1, LEVELS_MAX + 3)))
    assert many.names == tuple(str(tier) for tier in range(LEVELS_MAX, 0, -1))
    assert many.level_of("1") == LEVELS_MAX - 1
    assert many.level_of(str(LEVELS_MAX + 1)) is None


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("spine", 0),
        ("12", 0),
        ("leaf", 1),
        ("3", 1),
        ("1", 2),
        ("2", None),
        ("", None),
        ("rack", None),
        ("³", None),  # a digit, and no number
        ("٣", None),  # a number, and not ours
        ("-3", None),
        ("9" * 5000, None),  # more digits than Python reads
    ],
)
def test_a_tier_is_told_by_its_number_or_by_a_name_of_its_hyper_nodes(
    name: str, level: int | None
) -> None:
    told = tiers(
        a_hyper_node("top", 12, tier_name="spine"),
        a_hyper_node("a", 3, tier_name="leaf"),
        a_hyper_node("b", 3),
        a_hyper_node("x", 1),
    )
    assert told.level_of(name) == level
    assert told.names == ("spine", "leaf", "1")  # of several names the first HyperNode's


def test_every_level_is_found_by_what_it_is_called() -> None:
    numbers = (10**12, 10**9, 999_999_999, 7, 0, -3)
    told = tiers(*(a_hyper_node(f"h{number}", number) for number in numbers))
    assert [told.level_of(name) for name in told.names] == list(range(len(numbers)))
    named = tiers(a_hyper_node("a", 999_999_999, tier_name="far"), a_hyper_node("b", 10**9))
    assert named.level_of("999999999") == 1


def test_the_way_down_ends_where_a_tier_is_left_out() -> None:
    told = (
        a_hyper_node("top", 3, exactly("rack")),
        a_hyper_node("other", 2),
        a_hyper_node("rack", 1, exactly("n1", "Node")),
    )
    assert tiers(*told).path(n1()) == ("top",)
    assert tiers(*told[1:]).path(n1()) == ()
    assert tiers(told[0], told[2]).path(n1()) == ("top", "rack")
    assert tiers().path(n1()) == ()


@pytest.mark.parametrize(
    ("member", "holds"),
    [
        (exactly("n1", "Node"), True),
        (exactly("n", "Node"), False),
        (like("n", "Node"), True),  # anywhere in the name, as Go's MatchString
        (like("^n$", "Node"), False),
        (like("(", "Node"), False),
        (like("^n1$"), False),  # the pattern is one of HyperNodes' names
        (where(pool="a"), True),
        (where(pool="b"), False),
        (where(), True),
        ({"type": "Node", "selector": {}}, False),
        (
            {
                "type": "Node",
                "selector": {"labelMatch": {"matchExpressions": [{"key": "p", "operator": "x"}]}},
            },
            False,
        ),
        ({"type": "Row", "selector": {"exactMatch": {"name": "n1"}}}, False),
    ],
)
def test_who_is_a_member(member: Json, holds: bool, capfd: pytest.CaptureFixture[str]) -> None:
    told = tiers(a_hyper_node("h", 1, member))
    assert told.path(n1(pool="a")) == (("h",) if holds else ())
    assert capfd.readouterr() == ("", "")  # a pattern that makes no sense is nobody's news


@pytest.mark.parametrize(
    ("member", "paths"),
    [
        (exactly("rack-1"), {"n1": ("block", "rack-1"), "n2": ()}),
        (like("^rack"), {"n1": ("block", "rack-1"), "n2": ("block", "rack-2")}),
        (like("2"), {"n1": (), "n2": ("block", "rack-2")}),
        (like("("), {"n1": (), "n2": ()}),
        (exactly("rack-3"), {"n1": (), "n2": ()}),
    ],
)
def test_hyper_nodes_hold_others_by_name_or_by_pattern(
    member: Json, paths: dict[str, tuple[str, ...]]
) -> None:
    told = tiers(
        a_hyper_node("block", 2, member),
        a_hyper_node("rack-1", 1, exactly("n1", "Node")),
        a_hyper_node("rack-2", 1, exactly("n2", "Node")),
    )
    assert {name: told.path(a_node(name).build()) for name in paths} == paths


def test_hyper_nodes_without_members_or_within_one_another_are_walked_once() -> None:
    bare = {"metadata": {"name": "bare"}, "spec": {"tier": 2}}
    chain = [a_hyper_node(f"c{at}", at, exactly(f"c{at - 1}")) for at in range(2, 9)]
    told = tiers(bare, a_hyper_node("c1", 1, exactly("n1", "Node"), exactly("c8")), *chain)
    # of two in one tier the first by name
    assert told.path(n1()) == tuple(f"c{at}" for at in range(8, 0, -1))
