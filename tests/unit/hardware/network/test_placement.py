"""Groups and single pods placed by the tree: required and preferred levels, and what is refused."""

import random
import re
from itertools import combinations_with_replacement
from typing import Any

import pytest

from asched.core.cluster.facts import Seen
from asched.core.framework.profile import CannotBuildError
from asched.core.model.decode import decode
from asched.core.model.kinds import COSCHEDULING_GROUP
from asched.core.model.workload import CoschedulingGroup
from asched.hardware.network.plugin import NetworkTopology
from asched.testing import World, given, node, pod

LEVELS = ["block", "rack"]
ARGS = {"NetworkTopology": {"levels": LEVELS}}
REQUIRED, PREFERRED = (
    f"kueue.x-k8s.io/podset-{kind}-topology" for kind in ("required", "preferred")
)
GROUP = "scheduling.x-k8s.io/pod-group"
DEFAULT_SCORES = ("NodeResourcesFit", "NodeResourcesBalancedAllocation", "PodTopologySpread")


def a_world(nodes: dict[str, tuple[str, int]], args: Any = None) -> World:
    """Node to its place, `block/rack`, and its cores."""
    made = []
    for name, (place, cpu) in nodes.items():
        labels = dict(zip(LEVELS, place.split("/"), strict=False)) if place else {}
        made.append(node(name, cpu=cpu, labels=labels))
    profile = {
        "multiPoint": {
            "enabled": [{"name": "NetworkTopology"}, {"name": "Coscheduling"}],
            "disabled": [{"name": "PrioritySort"}],
        },
        "score": {"disabled": [{"name": name} for name in DEFAULT_SCORES]},
    }
    return given(made, plugins=[NetworkTopology], args=args or ARGS, profile=profile)


def a_crew(world: World, count: int, cpu: int = 1, **annotations: str) -> list[str]:
    """A gang that comes as a whole; where its pods went."""
    metadata = {"name": "crew", "namespace": "default", "annotations": annotations}
    group = {"metadata": metadata, "spec": {"minMember": count}}
    world._settle([Seen(COSCHEDULING_GROUP, decode(CoschedulingGroup, group))])
    names = [f"w{at}" for at in range(count)]
    world.add(*(pod(name, cpu=cpu, labels={GROUP: "crew"}) for name in names))
    return sorted(world.outcome(name).node for name in names)


def test_a_required_level_keeps_a_group_in_one_domain() -> None:
    nodes = {"a1": ("a/1", 2), "a2": ("a/2", 2), "b1": ("b/1", 2), "b2": ("b/1", 2)}
    assert a_crew(a_world(nodes), 4, **{REQUIRED: "rack"}) == ["b1", "b1", "b2", "b2"]
    assert a_crew(a_world(nodes), 5, **{REQUIRED: "rack"}) == [""] * 5


def test_racks_of_one_name_in_two_blocks_are_two() -> None:
    nodes = {"a1": ("a/1", 2), "b1": ("b/1", 2)}
    assert a_crew(a_world(nodes), 3, **{REQUIRED: "rack"}) == [""] * 3


def test_a_preferred_level_is_left_upwards_until_the_group_fits() -> None:
    nodes = {"a1": ("a/1", 2), "a2": ("a/2", 2), "b1": ("b/1", 1), "c": ("", 3)}
    assert len(set(a_crew(a_world(nodes), 2, **{PREFERRED: "rack"}))) == 1
    placed = a_crew(a_world(nodes), 4, **{PREFERRED: "rack"})
    assert placed == ["a1", "a1", "a2", "a2"]  # no rack has four, a block has
    assert "c" in a_crew(a_world(nodes), 7, **{PREFERRED: "rack"})  # nothing but all has seven


def test_of_the_domains_that_fit_the_tightest_is_taken() -> None:
    nodes = {"a1": ("a/1", 8), "b1": ("b/1", 3), "c1": ("c/1", 5)}
    assert a_crew(a_world(nodes), 3, **{REQUIRED: "block"}) == ["b1"] * 3


def test_required_bounds_what_is_preferred() -> None:
    nodes = {"a1": ("a/1", 2), "a2": ("a/2", 2), "b1": ("b/1", 2)}
    both = {REQUIRED: "block", PREFERRED: "rack"}
    assert len(set(a_crew(a_world(nodes), 2, **both))) == 1
    assert a_crew(a_world(nodes), 4, **both) == ["a1", "a1", "a2", "a2"]
    assert a_crew(a_world(nodes), 6, **both) == [""] * 6


def test_later_pods_of_a_group_go_where_the_first_are() -> None:
    world = a_world({"a1": ("a/1", 4), "b1": ("b/1", 4)})
    first = a_crew(world, 2, **{REQUIRED: "rack"})
    world.add(pod("late", cpu=1, labels={GROUP: "crew"}))
    assert world.outcome("late").node == first[0]


@pytest.mark.parametrize(
    "annotations",
    [
        {"kai.scheduler/topology-required-placement": "block"},
        {"kai.scheduler/topology-preferred-placement": "rack"},
        {"volcano.sh/network-topology-mode": "hard"},
        {"volcano.sh/network-topology-mode": "soft"},
        {
            "volcano.sh/network-topology-mode": "hard",
            "volcano.sh/network-topology-highest-tier": "block",
        },
    ],
)
def test_others_words_are_understood(annotations) -> None:
    nodes = {"a1": ("a/1", 2), "b1": ("b/1", 3), "a2": ("a/2", 2), "c1": ("c/1", 3)}
    assert a_crew(a_world(nodes), 4, **annotations) == ["a1", "a1", "a2", "a2"]


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        ({REQUIRED: "row"}, 'there is no topology level "row"; there are block, rack'),
        (
            {"kueue.x-k8s.io/podset-slice-required-topology": "rack"},
            "podset-slice-required-topology is not implemented",
        ),
        ({"volcano.sh/network-topology-mode": "x"}, '"x" is neither hard nor soft'),
        ({"kai.scheduler/topology": "other"}, '"other": this profile has no such topology'),
    ],
)
def test_what_cannot_be_had_is_refused_by_name(annotations, message) -> None:
    world = a_world({"a1": ("a/1", 2)})
    assert a_crew(world, 1, **annotations) == [""]
    assert message in world.outcome("w0").message


@pytest.mark.parametrize("seed", range(60))
def test_a_group_finds_a_domain_if_there_is_one(seed: int) -> None:
    """Against all ways to put equal pods on a dozen nodes."""
    rng = random.Random(seed)
    nodes = {
        f"n{at:02}": (f"{rng.randrange(2)}/{rng.randrange(2)}" if rng.random() < 0.9 else "", cores)
        for at, cores in enumerate(rng.choices(range(1, 4), k=rng.randrange(2, 7)))
    }
    count, required = rng.randrange(1, 6), rng.choice(("block", "rack", ""))
    preferred = rng.choice(("", "rack"))
    wishes = {REQUIRED: required} if required else {}
    wishes |= {PREFERRED: preferred} if preferred else {}
    placed = a_crew(a_world(nodes), count, **wishes)
    best = min(
        (
            spread(chosen, nodes)
            for chosen in combinations_with_replacement(sorted(nodes), count)
            if all(chosen.count(name) <= nodes[name][1] for name in set(chosen))
        ),
        default=None,
    )
    bound = {"rack": 0, "block": 1, "": 2}[required]
    if best is None or best > bound:
        assert placed == [""] * count
        return
    assert "" not in placed
    found = spread(tuple(placed), nodes)
    assert found <= bound
    if preferred:
        assert found == best


def spread(chosen: tuple[str, ...], nodes: dict[str, tuple[str, int]]) -> int:
    """0 within a rack, 1 within a block, 2 anywhere."""
    places = {nodes[name][0] for name in chosen}
    if "" in places:
        return 2
    if len(places) == 1:
        return 0
    return 1 if len({place.partition("/")[0] for place in places}) == 1 else 2


def test_single_pods_fill_domains_that_are_in_use() -> None:
    world = a_world({"a1": ("a/1", 4), "b1": ("b/1", 4), "b2": ("b/2", 4)})
    world.add(pod("there", cpu=3, on="b1"))
    assert world.schedule(pod("next", cpu=2)).node == "b2"  # b1 is full, its block is in use


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"source": "x"}, 'source "x" is none of Labels, Kueue, KAI, HyperNode'),
        ({}, "levels are the label keys of the source Labels"),
        ({"source": "HyperNode", "levels": ["a"]}, "levels are the label keys"),
        ({"source": "Kueue"}, "topology is the name of the object of Kueue or KAI"),
        ({"levels": ["a", "a"]}, "a label key is listed twice"),
    ],
)
def test_args_without_a_meaning_are_refused(args, message) -> None:
    with pytest.raises(CannotBuildError, match=re.escape(message)):
        a_world({"a1": ("a/1", 2)}, {"NetworkTopology": args})
