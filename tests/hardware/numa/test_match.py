"""The plugin around zones and cache: who is judged, by what is known now, and what wakes whom."""

import pytest

from asched.core.model.kinds import NODE, POD
from asched.hardware.numa.match import (
    STRATEGIES,
    NodeResourceTopologyMatch,
    NodeResourceTopologyMatchArgs,
    ScoringStrategy,
)
from asched.hardware.numa.topology import NODE_RESOURCE_TOPOLOGY
from asched.plugin import Action, Trigger
from tests.builders import all_rows
from tests.hardware.numa.watching import Watched, named
from tests.hardware.numa.worlds import GPU, Json, a_pod

PINNED, SHARED, PLAIN = (
    {"cpu": "2", "memory": "1Gi"},
    {"cpu": "2", "_burst": True},
    {"_burst": True},
)


def a_plugin(
    watched: Watched, strategy: str = "LeastAllocated", **args: int
) -> NodeResourceTopologyMatch:
    made = NodeResourceTopologyMatchArgs(scoring_strategy=ScoringStrategy(strategy), **args)
    return NodeResourceTopologyMatch(made, watched.cluster)


def codes(plugin: NodeResourceTopologyMatch, watched: Watched, asked: Json) -> list[str]:
    found = plugin.filter(watched.world.pending(a_pod("p", asked)), all_rows(watched.cluster), None)
    return [plugin.reasons[code - 1].text if code else "" for code in found.tolist()]


def scores(plugin: NodeResourceTopologyMatch, watched: Watched, asked: Json) -> list[int]:
    info = watched.world.pending(a_pod("p", asked))
    return plugin.score(info, all_rows(watched.cluster), None).tolist()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_of_a_node_that_waits_nothing_is_known_but_by_pods_that_no_zone_concerns(
    strategy: str,
) -> None:
    watched = Watched().node().word(8, 8, fingerprint=named("x"))
    plugin = a_plugin(watched, strategy, cache_resync_period_seconds=5)
    assert codes(plugin, watched, PINNED) == ["invalid node topology data"]
    assert codes(plugin, watched, SHARED) == ["invalid node topology data"]
    assert codes(plugin, watched, PLAIN) == [""]
    assert codes(plugin, watched, {GPU: "1", "_burst": True}) == ["invalid node topology data"]
    assert scores(plugin, watched, PINNED) == [0]
    assert scores(plugin, watched, SHARED) == [100]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_word_that_was_withdrawn_or_is_of_another_policy_rejects_nobody(strategy: str) -> None:
    watched = Watched().node().word(1, 1)
    plugin = a_plugin(watched, strategy)
    assert codes(plugin, watched, PINNED) == ["cannot align container"]
    watched.word(4, 4, policy="restricted")
    assert codes(plugin, watched, PINNED) == [""]
    assert (scores(plugin, watched, PINNED)[0] > 0) == (strategy == "LeastNUMANodes")
    watched.word(4, 4)
    assert scores(plugin, watched, PINNED)[0] > 0
    watched.word(1, 1)
    assert codes(plugin, watched, PINNED) == ["cannot align container"]
    watched.no_word()
    assert codes(plugin, watched, PINNED) == [""]
    assert scores(plugin, watched, PINNED) == [0]


def test_whoever_asks_first_takes_in_what_was_told() -> None:
    watched = Watched().node()
    filtering, scoring, stamping = (a_plugin(watched) for _ in range(3))
    info = watched.world.pending(a_pod("p", PINNED))
    before = stamping.stamp(info, None)
    watched.word(4, 1)
    assert scores(scoring, watched, PINNED) == [(0 + 87) // 2]  # of the second zone
    watched.word(1, 1)
    assert codes(filtering, watched, PINNED) == ["cannot align container"]
    assert stamping.stamp(info, None) != before


def test_what_is_reserved_is_taken_off_until_it_is_given_back() -> None:
    watched = Watched().node().word(3, 3)
    plugin = a_plugin(watched, cache_resync_period_seconds=5)
    assert codes(plugin, watched, PINNED) == [""]
    info = watched.world.pending(a_pod("q", PINNED))
    watched.cluster.assume(info, "n1")
    plugin.reserve(info, "n1", None)
    assert codes(plugin, watched, PINNED) == ["cannot align container"]
    plugin.unreserve(info, "n1")
    watched.cluster.forget(info)
    assert codes(plugin, watched, PINNED) == [""]


def test_pods_share_what_is_known_where_they_ask_for_the_same_of_zones() -> None:
    watched = Watched()
    plugin = a_plugin(watched)

    def key(asked: Json, **labels: str) -> object:
        pod = a_pod("p", asked)
        pod["metadata"]["labels"] = labels
        return plugin.share_key(watched.world.pending(pod))

    assert key(PINNED) == key(PINNED, app="a") != key({"cpu": "3", "memory": "1Gi"})
    assert key(PINNED) != key(SHARED)
    assert key(PLAIN) == key({"ephemeral-storage": "1Gi", "_burst": True}) != key(SHARED)


def test_who_waits_is_woken_by_pods_that_go_nodes_that_change_and_agents() -> None:
    told = [one.trigger for one in a_plugin(Watched()).registrations()]
    assert told == [
        Trigger(POD.resource, Action.DELETE),
        Trigger(NODE.resource, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE),
        Trigger(NODE_RESOURCE_TOPOLOGY.resource, Action.ADD | Action.UPDATE),
    ]
