"""PodTopologySpread against its twin on random clusters, through cached results and trials."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pytest

from asched.core.config.args import LIST_DEFAULTING, PodTopologySpreadArgs, TopologySpreadConstraint
from asched.core.framework.points import IDLE
from asched.core.framework.results.cached import CachedVerdict
from asched.core.framework.results.prepared import PreparedFilter, Work
from asched.core.framework.status import Code
from asched.core.model.kinds import REPLICA_SET, SERVICE
from asched.core.model.pod import Pod
from asched.core.model.selector import equality_selector
from asched.core.plugins.pod_topology_spread import PodTopologySpread
from asched.core.state.pods import PodInfo
from asched.core.state.populations import Populations
from asched.core.state.view import NodeView
from tests.topology_world import HOST, ZONE, RandomWorld, World, a_node, a_pod, spread
from tests.twins import pod_topology_spread as twin

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


@pytest.mark.parametrize("seed", range(40))
def test_filter_and_score_agree_with_the_twin(seed: int) -> None:
    world = RandomWorld(2000 + seed)
    plugin = PodTopologySpread(None, world.cluster)
    pods = [a_spread_pod(world) for _ in range(5)]
    work = Work()
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


@pytest.mark.parametrize("seed", range(40))
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


@pytest.mark.parametrize("seed", range(20))
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


def test_pods_without_constraints_of_any_kind_are_all_alike() -> None:
    world = three_nodes()
    hard, soft = [spread("zone")], [spread("zone", soft=True)]
    plain, owned = a_pod("new", "app=web"), a_pod("owned", "app=web", metadata=OWNED)
    constrained = [
        a_pod(name, "app=web", topologySpreadConstraints=constraints)
        for name, constraints in (("a", hard), ("b", hard), ("c", soft), ("d", hard + soft))
    ]
    plugin = PodTopologySpread(None, world.cluster)

    def key(pod: Pod) -> Hashable:
        return plugin.share_key(world.info(pod))

    assert key(plain) is IDLE
    assert key(owned) is not IDLE
    keys = [key(pod) for pod in constrained]
    assert IDLE not in keys
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3
    nobody = PodTopologySpread(listed(), world.cluster)
    assert nobody.share_key(world.info(owned)) is IDLE
    metadata = {"name": "s", "namespace": "default"}
    world.see_other(SERVICE, metadata=metadata, spec={"selector": {"app": "db"}})
    assert key(plain) is IDLE  # the service selects others
    assert key(a_pod("other", "app=db")) is not IDLE


def test_hard_constraints_make_the_order_matter_and_soft_ones_where_it_is_feasible() -> None:
    world = three_nodes()
    plugin = PodTopologySpread(None, world.cluster)
    hard, soft = [spread("zone")], [spread("zone", soft=True)]
    for constraints, heeds, is_free in (
        (None, False, True), (hard, False, False), (soft, True, True), (hard + soft, True, False)
    ):  # fmt: skip
        info = world.info(a_pod("new", "app=web", topologySpreadConstraints=constraints))
        assert plugin.heeds_feasible(info) is heeds
        assert plugin.is_order_free(info) is is_free


def test_a_row_alone_is_scored_as_among_all() -> None:
    world = three_nodes()
    plugin = PodTopologySpread(None, world.cluster)
    soft = [spread("zone", 2, soft=True), spread("host", soft=True)]
    info = world.info(a_pod("new", "app=web", topologySpreadConstraints=soft))
    view = world.cluster.view()
    data = plugin.pre_score(info, view, view.live).data

    raw = plugin.score(info, view, data).tolist()

    assert [plugin.score_one(info, row, data) for row in range(3)] == raw
    assert len(set(raw)) > 1


def test_services_that_change_nothing_keep_the_sides_and_the_stamp() -> None:
    """Those of other pods, and of pods with constraints of their own."""
    world = three_nodes()
    plugin = PodTopologySpread(None, world.cluster)
    mixed = [spread("zone"), spread("host", soft=True)]
    own = world.info(a_pod("own", "app=web", topologySpreadConstraints=mixed))
    owned = world.info(a_pod("owned", "app=web", metadata=OWNED))
    before = plugin.stamp(own, None), plugin.stamp(owned, None)
    for number, selector in enumerate(({"app": "db"}, {"tier": "x"})):
        metadata = {"name": f"s{number}", "namespace": "default"}
        world.see_other(SERVICE, metadata=metadata, spec={"selector": selector})
        assert (plugin.stamp(own, None), plugin.stamp(owned, None)) == before
    metadata = {"name": "rs", "namespace": "default"}
    selector = {"matchLabels": {"tier": "x"}}
    world.see_other(REPLICA_SET, metadata=metadata, spec={"selector": selector})
    assert plugin.stamp(own, None) == before[0]
    assert plugin.stamp(owned, None) != before[1]


def listed(*constraints: tuple[str, int, str]) -> PodTopologySpreadArgs:
    return PodTopologySpreadArgs(
        tuple(TopologySpreadConstraint(skew, key, action) for key, skew, action in constraints),
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


def test_no_decision_looks_at_pods() -> None:
    """Once a class was seen, its cost is made of nodes and domains alone."""
    world = World(*(a_node(f"n{i}", f"host=n{i} zone=z{i % 3}") for i in range(30)))
    plugin = PodTopologySpread(None, world.cluster)
    constraints = [spread("zone"), spread("host", soft=True)]
    info = world.info(a_pod("new", "app=web", topologySpreadConstraints=constraints))
    everywhere = np.ones(30, dtype=np.bool_)
    plugin.filter(info, world.cluster.view(), plugin.pre_filter(info).data)
    scores_of(world, plugin, info, list(world.nodes))
    world.see(*(a_pod(f"p{i}", "app=web", node=f"n{i % 30}") for i in range(90)))
    # whoever recounted would find nothing
    world.cluster.topology._populations = Populations(world.cluster.budget)
    world.cluster._rows.clear()

    codes = plugin.filter(info, world.cluster.view(), plugin.pre_filter(info).data)
    data = plugin.pre_score(info, world.cluster.view(), everywhere).data

    assert codes.tolist() == [0] * 30
    assert plugin.score(info, world.cluster.view(), data).tolist() == [round(3 * np.log(32))] * 30
