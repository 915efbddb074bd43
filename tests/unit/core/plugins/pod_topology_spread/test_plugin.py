"""PodTopologySpread against its twin on random clusters, through cached results and trials."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.config.args import LIST_DEFAULTING, DefaultSpreadConstraint, PodTopologySpreadArgs
from asched.core.framework.results.cached import CachedVerdict
from asched.core.framework.results.operation_counts import OperationCounts
from asched.core.framework.results.prepared import PreparedFilter
from asched.core.framework.status import Code
from asched.core.model.kinds import REPLICA_SET, SERVICE
from asched.core.model.pod import Pod
from asched.core.model.selector import equality_selector
from asched.core.plugins.pod_topology_spread import PodTopologySpread
from tests.conformance.twins import pod_topology_spread as twin
from tests.topology_builders import HOST, ZONE, RandomWorld, World, a_node, a_pod, spread

NODE_AFFINITY = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
            {"matchExpressions": [{"key": "example.com/rack", "operator": "Exists"}]},
        ]
    }
}


def a_spread_pod(world: RandomWorld) -> Pod:
    rng = world.rng
    spec: dict[str, Any] = {
        "topologySpreadConstraints": [world.some_constraint() for _ in range(rng.randint(1, 3))],
        "affinity": rng.choice((None, None, {"nodeAffinity": NODE_AFFINITY})),
    }
    if rng.random() < 0.2:
        spec["nodeSelector"] = {"disk": "ssd"}
    if rng.random() < 0.3:
        spec["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    return world.some_pod("", **spec)


def by_filter(world: World, expected: twin.Filter) -> dict[str, int]:
    return {name: expected.code(node) for name, node in world.nodes.items()}


def scores_of(
    world: World, plugin: PodTopologySpread, info: PodInfo, feasible: list[str]
) -> dict[str, int] | None:
    """Normalised scores as the runner makes them; None if the plugin skips."""
    table = world.cluster.nodes
    mask = np.zeros(table.height, dtype=np.bool_)
    mask[[table.row_of[name] for name in feasible]] = True
    view = world.cluster.view()
    result = plugin.pre_score(info, view, mask)
    if result.status.code is Code.SKIP:
        return None
    raw = plugin.score(info, view, result.data)
    rows = np.flatnonzero(mask).astype(np.int32)
    assert plugin.score(info, NodeView(table, rows), result.data).tolist() == raw[mask].tolist()
    values = np.zeros(table.height, dtype=np.int64)
    values[mask] = plugin.normalize(raw[mask], result.data)
    return {name: int(values[table.row_of[name]]) for name in feasible}


def check_filter(world: World, kept: CachedVerdict, pod: Pod) -> None:
    info = world.info(pod)
    result = kept.prepared.update(info)
    expected = twin.Filter(pod, world.nodes, list(world.on_nodes()))
    assert (result.status.code is Code.SKIP) == (not expected.constraints)
    if expected.constraints:
        kept.refresh(info)
        assert world.by_node(kept.codes) == by_filter(world, expected)


def check_scores(world: RandomWorld, plugin: PodTopologySpread, pod: Pod) -> None:
    names = [name for name in world.nodes if world.rng.random() < 0.8] or list(world.nodes)
    constraints = twin.constraints_of(pod, "ScheduleAnyway")
    found = scores_of(world, plugin, world.info(pod), names)
    if not constraints:
        assert found is None
        return
    placed = list(world.on_nodes())
    assert found == twin.scores(pod, world.nodes, placed, names, constraints, is_strict=True)


@pytest.mark.parametrize("seed", range(12))
def test_filter_and_score_agree_with_the_twin(seed: int) -> None:
    world = RandomWorld(2000 + seed)
    plugin = PodTopologySpread(None, world.cluster)
    pods = [a_spread_pod(world) for _ in range(5)]
    work = OperationCounts()
    kept = [
        CachedVerdict(world.cluster.nodes, PreparedFilter(plugin, world.cluster, work), work)
        for _ in pods
    ]
    for _ in range(25):
        world.step()
        for pod, verdict in zip(pods, kept, strict=True):
            if world.nodes and world.rng.random() < 0.5:
                check_filter(world, verdict, pod)
                check_scores(world, plugin, pod)


@pytest.mark.parametrize("seed", range(12))
def test_trials_agree_with_the_twin(seed: int) -> None:
    world = RandomWorld(3000 + seed)
    plugin = PodTopologySpread(None, world.cluster)
    for _ in range(12):
        world.step()
        pod = a_spread_pod(world)
        info, placed = world.info(pod), list(world.on_nodes())
        result = plugin.pre_filter(info)
        if not world.nodes or not result.status.is_success:
            continue
        before = world.by_node(plugin.filter(info, world.cluster.view(), result.data))
        stamp = plugin.stamp(info, result.data)
        with world.trial() as (name, removed, added):
            expected = twin.Filter(pod, world.nodes, placed)
            for other in removed:
                expected.remove(other, world.nodes[name])
            for other in added:
                expected.add(other, world.nodes[name])
            row = np.array([world.cluster.nodes.row_of[name]], dtype=np.int32)
            codes = plugin.filter(info, NodeView(world.cluster.nodes, row), result.data)
            assert codes.tolist() == [expected.code(world.nodes[name])]
        assert plugin.stamp(info, result.data) == stamp
        assert world.by_node(plugin.filter(info, world.cluster.view(), result.data)) == before


SYSTEM = [
    twin.Constraint(3, HOST, equality_selector({"app": "web"}), {}, 1, "Honor", "Ignore"),
    twin.Constraint(5, ZONE, equality_selector({"app": "web"}), {}, 1, "Honor", "Ignore"),
]


@pytest.mark.parametrize("seed", range(8))
def test_the_systems_defaults_agree_with_the_twin(seed: int) -> None:
    """Nodes without a zone (or with an empty one) are scored all the same."""
    world = RandomWorld(6000 + seed)
    metadata = {"name": "s", "namespace": "default"}
    world.see_other(SERVICE, metadata=metadata, spec={"selector": {"app": "web"}})
    plugin = PodTopologySpread(None, world.cluster)
    for _ in range(25):
        world.step()
        selector = world.rng.choice((None, {"disk": "ssd"}))
        pod = a_pod("new", "app=web", nodeSelector=selector)
        names = [name for name in world.nodes if world.rng.random() < 0.8] or list(world.nodes)
        if names:
            placed = list(world.on_nodes())
            found = scores_of(world, plugin, world.info(pod), names)
            wanted = twin.scores(pod, world.nodes, placed, names, SYSTEM, is_strict=False)
            assert found == wanted


def three_nodes() -> World:
    """The worked example of the system's defaults: two nodes in zone a, one in b."""
    world = World(
        a_node("n1", "zone=a host=n1"),
        a_node("n2", "zone=a host=n2"),
        a_node("n3", "zone=b host=n3"),
    )
    world.see_other(
        REPLICA_SET,
        metadata={"name": "rs", "namespace": "default"},
        spec={"selector": {"matchLabels": {"app": "web"}}},
    )
    for number, node in enumerate(("n1", "n1", "n3")):
        world.see(a_pod(f"p{number}", "app=web", node=node))
    return world


OWNED = {
    "ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "controller": True}
    ]
}


def test_defaults_spread_what_a_replica_set_owns() -> None:
    world = three_nodes()
    plugin = PodTopologySpread(None, world.cluster)
    info = world.info(a_pod("new", "app=web", metadata=OWNED))

    assert plugin.pre_filter(info).status.code is Code.SKIP
    assert scores_of(world, plugin, info, ["n1", "n2", "n3"]) == {"n1": 75, "n2": 100, "n3": 100}


def test_defaults_come_and_go_with_what_selects_the_pod() -> None:
    world = three_nodes()
    plugin = PodTopologySpread(None, world.cluster)
    info = world.info(a_pod("new", "app=web"))
    nodes = ["n1", "n2", "n3"]
    skipped = scores_of(world, plugin, info, nodes)
    stamp = plugin.stamp(info, None)
    world.see_other(
        SERVICE, metadata={"name": "s", "namespace": "default"}, spec={"selector": {"app": "web"}}
    )

    assert skipped is None
    assert plugin.stamp(info, None) != stamp
    assert scores_of(world, plugin, info, nodes) == {"n1": 75, "n2": 100, "n3": 100}


def test_a_pod_of_its_own_mind_has_no_defaults() -> None:
    world = three_nodes()
    plugin = PodTopologySpread(None, world.cluster)
    pod = a_pod("new", "app=web", metadata=OWNED, topologySpreadConstraints=[spread("zone")])

    assert scores_of(world, plugin, world.info(pod), ["n1", "n2", "n3"]) is None


def listed(*constraints: tuple[str, int, str]) -> PodTopologySpreadArgs:
    return PodTopologySpreadArgs(
        tuple(DefaultSpreadConstraint(skew, key, action) for key, skew, action in constraints),
        LIST_DEFAULTING,
    )


def test_listed_defaults_may_be_hard_and_are_strict() -> None:
    world = three_nodes()
    world.see(a_node("n4", "host=n4"))
    args = listed((ZONE, 1, "DoNotSchedule"), (ZONE, 1, "ScheduleAnyway"))
    plugin = PodTopologySpread(args, world.cluster)
    info = world.info(a_pod("new", "app=web", metadata=OWNED))
    result = plugin.pre_filter(info)

    codes = world.by_node(plugin.filter(info, world.cluster.view(), result.data))

    assert codes == {"n1": 2, "n2": 2, "n3": 0, "n4": 1}
    found = scores_of(world, plugin, info, ["n1", "n3", "n4"])
    assert found is not None
    assert found["n4"] == 0


def test_an_impossible_selector_is_an_error() -> None:
    world = three_nodes()
    plugin = PodTopologySpread(None, world.cluster)
    bad = {"matchExpressions": [{"key": "app", "operator": "Like", "values": ["web"]}]}
    for soft, words in ((False, "hard"), (True, "soft")):
        constraint = {**spread("zone", soft=soft), "labelSelector": bad}
        info = world.info(a_pod("new", topologySpreadConstraints=[constraint]))
        if soft:
            status = plugin.pre_score(info, world.cluster.view(), np.ones(3, dtype=np.bool_)).status
        else:
            status = plugin.pre_filter(info).status
        assert status.code is Code.ERROR
        assert f"obtaining pod's {words} topology spread constraints" in status.message


def test_the_reasons_tell_whether_eviction_helps() -> None:
    world = three_nodes()
    plugin = PodTopologySpread(None, world.cluster)
    info = world.info(a_pod("new", "app=web"))
    codes: Mapping[int, Code] = {n: plugin.explain(info, n).code for n in (1, 2)}

    assert codes == {1: Code.UNSCHEDULABLE_AND_UNRESOLVABLE, 2: Code.UNSCHEDULABLE}
    assert plugin.explain(info, 1).message == (
        "node(s) didn't match pod topology spread constraints (missing required label)"
    )
