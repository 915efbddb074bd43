"""Where terms look, and how often that is found out."""

from typing import Any

from asched.core.plugins.inter_pod_affinity.terms import (
    ByKey,
    Namespaces,
    Speakers,
    all_matching,
    term_matches,
)
from asched.core.state.affinity_terms import AffinityTerm
from asched.core.state.counters import CounterKey
from asched.core.state.many_terms import Counting
from tests.topology_world import World, a_node, a_pod, affinity, term


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
    assert len(ByKey(namespaces, (web, nothing), Counting.ANY).carried()) == 1
    assert not term_matches(nothing, "default", {"app": "web"})


def test_equal_terms_count_as_one() -> None:
    world = a_world()
    key = all_matching(Namespaces(world.cluster), (a_term(world), a_term(world)))

    assert isinstance(key, CounterKey)
    assert len(key.predicates) == 1
    assert key.counts_terminating


def test_a_selector_is_resolved_once_for_each_version_of_the_namespaces() -> None:
    world = a_world()
    namespaces = Namespaces(world.cluster)
    selector = a_term(world, within="team=a").namespace_selector
    assert selector is not None

    first = namespaces.selected(selector)
    again = namespaces.selected(selector)
    world.namespace("y", "team=a")
    later = namespaces.selected(selector)

    assert (sorted(first), sorted(later)) == (["x"], ["x", "y"])
    assert again is first


def test_hints_judge_namespace_selectors_on_no_labels() -> None:
    world = a_world()
    labels = {"app": "web"}

    assert not term_matches(a_term(world, within="team=a"), "x", labels)
    assert term_matches(a_term(world, within="!team"), "x", labels)
    assert term_matches(a_term(world, namespaces=["x"]), "x", labels)


def test_speakers_follow_terms_and_namespaces() -> None:
    world = a_world()
    world.see(a_node("n", "zone=a"))
    pod = world.info(a_pod("new", "app=web"))
    speakers = Speakers(world.cluster, Namespaces(world.cluster), pod.cls)
    changed = [speakers.renew()]
    for wishes in (
        affinity(apart=[term("zone")]),
        affinity(apart=[term("zone", "app=db")]),
        affinity(apart=[term("host", within="team=a")]),
    ):
        world.see(a_pod(f"p{len(changed)}", node="n", affinity=wishes))
        changed.append(speakers.renew())
    world.namespace("default", "team=a")
    changed.append(speakers.renew())

    assert changed == [False, True, False, False, True]
    assert len(speakers.terms) == 2
