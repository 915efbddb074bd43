"""Which existing volume a claim takes on each node."""

from random import Random
from typing import Any

import pytest

from asched.core.plugins.volumes.matching import match_claims
from asched.core.plugins.volumes.store import VolumeStore
from tests.twins.storage import Storage, static_choice
from tests.volume_builders import HOST, ZONE, a_claim, a_cluster, a_node, a_volume

NODES = (a_node("n1", "a"), a_node("n2", "b"))


def matched(claims: list[Any], volumes: list[Any]) -> list[tuple[str, str | None, str | None]]:
    """(claim, its volume on n1, its volume on n2), in the order in which claims choose."""
    cluster = a_cluster(*NODES, *volumes)
    found = []
    for match in match_claims(claims, VolumeStore(cluster), cluster.view()):
        chosen = [match.volume_at(row) for row in (0, 1)]
        named = [v.metadata.name if v is not None else None for v in chosen]
        found.append((match.claim.metadata.name, named[0], named[1]))
    return found


def test_small_claims_choose_first() -> None:
    claims = [a_claim("large", size="2Gi"), a_claim("small", size="1Gi")]
    volumes = [a_volume("one", size="2Gi"), a_volume("two", size="3Gi")]

    assert matched(claims, volumes) == [("small", "one", "one"), ("large", "two", "two")]


def test_a_volume_is_taken_once_per_node() -> None:
    claims = [a_claim("x"), a_claim("y"), a_claim("z")]
    volumes = [
        a_volume("a", reach={ZONE: ["a"]}),
        a_volume("both"),
        a_volume("c", reach={ZONE: ["b"]}),
    ]

    assert matched(claims, volumes) == [
        ("x", "a", "both"),
        ("y", "both", "c"),
        ("z", None, None),
    ]


def test_claims_of_different_kinds_do_not_take_the_same_volume() -> None:
    claims = [a_claim("x", size="1Gi"), a_claim("y", size="2Gi")]
    volumes = [a_volume("only", size="5Gi")]

    assert matched(claims, volumes) == [("x", "only", "only"), ("y", None, None)]


def test_a_volume_made_for_the_claim_wins_even_where_it_cannot_be_reached() -> None:
    mine = a_volume("mine", size="9Gi", reach={ZONE: ["b"]}, claim=("x", ""), phase="Bound")

    assert matched([a_claim("x")], [a_volume("free"), mine]) == [("x", None, "mine")]


def test_a_claim_named_twice_needs_two_volumes_even_if_one_was_made_for_it() -> None:
    claim, mine = a_claim("x"), a_volume("mine", claim=("x", ""))

    assert matched([claim, claim], [mine]) == [("x", "mine", "mine"), ("x", None, None)]


def test_of_several_volumes_made_for_the_claim_the_first_by_name_is_taken() -> None:
    sizes = {"b": "2Gi", "a": "9Gi", "c": "1Gi"}
    mine = [a_volume(name, claim=("x", "uid-x"), size=size) for name, size in sizes.items()]

    assert matched([a_claim("x")], mine) == [("x", "a", "a")]


def test_a_claim_that_asks_for_nothing_chooses_with_those_that_ask_for_zero() -> None:
    claims = [a_claim("none", size=None), a_claim("zero", size="0"), a_claim("byte", size="1")]
    volumes = [a_volume("one", size="1"), a_volume("two", size="2")]

    assert matched(claims, volumes) == [
        ("none", "one", "one"), ("zero", "two", "two"), ("byte", None, None)
    ]  # fmt: skip
    assert [name for name, *_ in matched(claims[::-1], volumes)] == ["zero", "none", "byte"]


@pytest.mark.parametrize("seed", range(60))
def test_claims_take_what_each_node_alone_would_give_them(seed: int) -> None:
    """As the twin says, which looks at one node and one claim after the other."""
    random = Random(seed)
    reaches = (None, {ZONE: ["a"]}, {ZONE: ["b"]}, {HOST: ["n1"]}, {HOST: ["n2"]})
    sizes = ("1Gi", "2Gi", "3Gi", "5Gi")
    volumes = [
        a_volume(
            f"pv{n}", cls=random.choice("st"), size=random.choice(sizes),
            reach=random.choice(reaches), modes=random.choice((["ReadWriteOnce"], ["x"])),
            claim=("c0", "uid-c0") if random.random() < 0.1 else None,
        )
        for n in range(random.randint(1, 9))
    ]  # fmt: skip
    claims = [
        a_claim(f"c{n}", cls=random.choice("sst"), size=random.choice(sizes[:3]))
        for n in range(random.randint(1, 5))
    ]
    storage = Storage(volumes={volume.metadata.name: volume for volume in volumes})
    found = matched(claims, volumes)

    for row, node in enumerate(NODES):
        taken = {name: on[row] for name, *on in found if on[row] is not None}
        assert taken == static_choice(claims, node, storage)


def test_a_volume_made_for_the_claim_that_is_too_small_is_passed_over() -> None:
    mine = a_volume("mine", size="1Mi", claim=("x", ""))

    assert matched([a_claim("x")], [a_volume("free"), mine]) == [("x", "free", "free")]
