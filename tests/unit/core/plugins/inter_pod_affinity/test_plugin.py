"""InterPodAffinity against its twin on random clusters, through cached results and trials."""

import numpy as np
import pytest

from asched.core.cluster.view import NodeView
from asched.core.config.args import InterPodAffinityArgs
from asched.core.framework.results.cached import CachedScores, CachedVerdict
from asched.core.framework.results.operation_counts import OperationCounts
from asched.core.framework.results.prepared import Masked, PreparedFilter, PreparedScores
from asched.core.framework.status import Code
from asched.core.model.pod import Pod
from asched.core.plugins.inter_pod_affinity import InterPodAffinity
from tests.conformance.twins import inter_pod_affinity as twin
from tests.topology_builders import RandomWorld, World, a_node, a_pod, affinity, term


def a_choosy_pod(world: RandomWorld) -> Pod:
    plain = world.rng.random() < 0.2
    return world.some_pod("", affinity=None if plain else world.some_affinity())


def check_filter(world: World, kept: CachedVerdict, pod: Pod) -> None:
    info = world.info(pod)
    result = kept.prepared.update(info)
    expected = twin.Filter(pod, world.nodes, list(world.on_nodes()), world.namespaces)
    assert (result.status.code is Code.SKIP) == expected.skips
    if not expected.skips:
        kept.refresh(info)
        codes = {name: expected.code(node) for name, node in world.nodes.items()}
        assert world.by_node(kept.codes) == codes


def check_scores(
    world: World, plugin: InterPodAffinity, kept: CachedScores, pod: Pod, args: InterPodAffinityArgs
) -> None:
    info = world.info(pod)
    everywhere = np.ones(world.cluster.nodes.height, dtype=np.bool_)
    kept.prepared.update(info, Masked(everywhere))
    expected = twin.raw_scores(
        pod,
        world.nodes,
        list(world.on_nodes()),
        world.namespaces,
        hard_weight=args.hard_pod_affinity_weight,
        ignores_others=args.ignore_preferred_terms_of_existing_pods,
    )
    assert kept.prepared.is_skipped == (expected is None)
    if expected is not None:
        kept.refresh(info)
        assert world.by_node(kept.raw) == expected
        rows = [world.cluster.nodes.row_of[name] for name in expected]
        normal = plugin.normalize(kept.raw[rows], kept.data).tolist()
        assert dict(zip(expected, normal, strict=True)) == twin.normalized(expected)


ARGS = (
    InterPodAffinityArgs(),
    InterPodAffinityArgs(hard_pod_affinity_weight=0),
    InterPodAffinityArgs(7, ignore_preferred_terms_of_existing_pods=True),
)


@pytest.mark.parametrize("seed", range(12))
def test_filter_and_score_agree_with_the_twin(seed: int) -> None:
    world = RandomWorld(4000 + seed)
    args = ARGS[seed % 3]
    plugin = InterPodAffinity(args, world.cluster)
    pods = [a_choosy_pod(world) for _ in range(5)]
    nodes, work = world.cluster.nodes, OperationCounts()
    verdicts = [
        CachedVerdict(nodes, PreparedFilter(plugin, world.cluster, work), work) for _ in pods
    ]
    scores = [
        CachedScores(nodes, PreparedScores(plugin, plugin, world.cluster, work), work) for _ in pods
    ]
    for _ in range(25):
        world.step()
        for pod, verdict, points in zip(pods, verdicts, scores, strict=True):
            if world.nodes and world.rng.random() < 0.5:
                check_filter(world, verdict, pod)
                check_scores(world, plugin, points, pod, args)


@pytest.mark.parametrize("seed", range(12))
def test_trials_agree_with_the_twin(seed: int) -> None:
    world = RandomWorld(5000 + seed)
    plugin = InterPodAffinity(None, world.cluster)
    for _ in range(12):
        world.step()
        pod = a_choosy_pod(world)
        info, placed = world.info(pod), list(world.on_nodes())
        result = plugin.pre_filter(info)
        if not world.nodes or not result.status.is_success:
            continue
        before = world.by_node(plugin.filter(info, world.cluster.view(), result.data))
        with world.trial() as (name, removed, added):
            expected = twin.Filter(pod, world.nodes, placed, world.namespaces)
            for other in removed:
                expected.remove(other, world.nodes[name])
            for other in added:
                expected.add(other, world.nodes[name])
            row = np.array([world.cluster.nodes.row_of[name]], dtype=np.int32)
            codes = plugin.filter(info, NodeView(world.cluster.nodes, row), result.data)
            assert codes.tolist() == [expected.code(world.nodes[name])]
        assert world.by_node(plugin.filter(info, world.cluster.view(), result.data)) == before


def test_the_reasons_tell_whether_eviction_helps() -> None:
    world = World(a_node("n1"))
    plugin = InterPodAffinity(None, world.cluster)
    info = world.info(a_pod("new"))

    told = [plugin.explain(info, code) for code in (1, 2, 3)]

    assert [(status.code, status.message) for status in told] == [
        (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "node(s) didn't match pod affinity rules"),
        (Code.UNSCHEDULABLE, "node(s) didn't match pod anti-affinity rules"),
        (Code.UNSCHEDULABLE, "node(s) didn't satisfy existing pods anti-affinity rules"),
    ]


def test_a_term_without_sense_rejects_the_pod() -> None:
    world = World(a_node("n1"))
    plugin = InterPodAffinity(None, world.cluster)
    bad = term("zone")
    bad["labelSelector"] = {"matchExpressions": [{"key": "app", "operator": "Like"}]}
    info = world.info(a_pod("new", affinity=affinity(near=[bad])))
    everywhere = np.ones(1, dtype=np.bool_)

    status = plugin.pre_filter(info).status

    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message.startswith("parsing pod: ")
    assert plugin.pre_score(info, world.cluster.view(), everywhere).status.code is Code.ERROR
