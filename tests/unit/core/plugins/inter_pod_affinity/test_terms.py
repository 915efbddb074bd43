"""Where terms look, and how often that is found out."""

from typing import Any

from asched.core.cluster.affinity_terms import AffinityTerm
from asched.core.plugins.inter_pod_affinity.terms import (
    ByKey,
    Namespaces,
    all_matching,
    term_matches,
)
from tests.topology_builders import World, a_node, a_pod, affinity, term


def a_term(world: World, on: str | None = "app=web", **more: Any) -> AffinityTerm:
    pod = a_pod("p", affinity=affinity(near=[term("zone", on, **more)]))
    return world.info(pod).cls.terms.required_affinity[0]


def names_of(world: World, **more: Any) -> set[str] | None:
    predicate = Namespaces(world.cluster).predicate(a_term(world, **more))
    assert predicate is not None
    return None if predicate.namespaces is None else set(predicate.namespaces)


def a_world() -> World:
    world = World()
    world.namespace("default")
    world.namespace("x", "team=a")
    world.namespace("y", "team=b")
    return world


def test_namespaces() -> None:
    world = a_world()

    assert names_of(world) == {"default"}
    assert names_of(world, namespaces=["x"]) == {"x"}
    assert names_of(world, within="team=a") == {"x"}
    assert names_of(world, within="team", namespaces=["z"]) == {"x", "y", "z"}
    assert names_of(world, within="team=none") == set()
    assert names_of(world, within="") is None
    assert names_of(world, within="!team") == {"default"}
    assert names_of(world, within="team!=a") == {"default", "y"}


def test_a_term_without_selector_matches_nobody() -> None:
    world = a_world()
    nothing, web = a_term(world, None), a_term(world)
    namespaces = Namespaces(world.cluster)

    assert namespaces.predicate(nothing) is None
    assert all_matching(namespaces, (web, nothing)) is None
    world.see(a_node("n", "zone=a"))
    assert len(ByKey(namespaces, (web, nothing)).carried()) == 1
    assert not term_matches(nothing, "default", {"app": "web"})
