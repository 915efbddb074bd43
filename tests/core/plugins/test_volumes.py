"""The volume plugins and the index of volumes against their twins, on random clusters."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from asched.core.framework.kept import KeptVerdict, Work
from asched.core.framework.status import Code, Status
from asched.core.plugins.node_volume_limits import NodeVolumeLimits
from asched.core.plugins.volume_binding import VolumeBinding
from asched.core.plugins.volume_choice import choose
from asched.core.plugins.volume_claims import PodClaims
from asched.core.plugins.volume_restrictions import VolumeRestrictions
from asched.core.plugins.volume_zone import VolumeZone
from asched.core.state.cluster import Cluster
from tests.twins import storage as twin
from tests.volume_builders import (
    a_claim,
    a_cluster,
    a_csi_node,
    a_node,
    a_pod,
    a_volume,
    judge,
    see,
    view_of,
)
from tests.volume_worlds import World

SEEDS = range(25)
CHANGES = 12

RULES: dict[str, tuple[Callable[[Cluster], Any], Callable[..., twin.Answer]]] = {
    "restrictions": (VolumeRestrictions, twin.restrictions),
    "limits": (NodeVolumeLimits, twin.limits),
    "zone": (VolumeZone, twin.zone),
    "binding": (lambda cluster: VolumeBinding(None, cluster), twin.binding),
}


def told(verdict: Status | dict[str, Status]) -> twin.Answer:
    if isinstance(verdict, Status):
        return {} if verdict.code is Code.SKIP else (verdict.code, verdict.reasons)
    return {node: (status.code, status.reasons) for node, status in verdict.items()}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rule", RULES)
def test_a_rule_says_what_its_twin_says(rule: str, seed: int) -> None:
    make, slow = RULES[rule]
    world = World(seed)
    plugin = make(world.cluster)
    for number, _ in enumerate(world.changes(CHANGES)):
        pod = world.waiting(number)
        assert told(judge(plugin, world.cluster, pod)) == slow(pod, world.storage), (seed, number)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rule", ["restrictions", "limits"])
def test_under_a_trial_a_rule_sees_the_pods_that_are_left(rule: str, seed: int) -> None:
    """Pods of a row are taken away one after the other, as preemption tries it."""
    make, slow = RULES[rule]
    world = World(seed)
    random = Random(seed)
    plugin = make(world.cluster)
    cluster = world.cluster
    for number, _ in enumerate(world.changes(CHANGES)):
        pod = world.waiting(number)
        info = cluster.classes.info_of(pod)
        result = plugin.pre_filter(info)
        row, node = random.choice(list(cluster.nodes.nodes()))
        gone = random.sample(list(cluster.pods_on(row).values()), len(cluster.pods_on(row)) // 2)
        before = told(judge(plugin, cluster, pod))
        if not result.status.is_success or not gone:
            continue
        with cluster.without_pods(gone, row):
            code = int(plugin.filter(info, view_of(cluster, node.name), result.data)[0])
            found = plugin.explain(info, code) if code else None
        expected = slow(pod, world.storage, [other.pod for other in gone])
        assert isinstance(expected, dict)
        reason = expected.get(node.name)
        assert (found and (found.code, found.reasons)) == reason, (seed, number)
        assert told(judge(plugin, cluster, pod)) == before


def test_claims_take_the_volumes_that_their_twin_takes() -> None:
    compared = sum(_compare_choices(World(seed), seed) for seed in SEEDS)
    assert compared > 100  # most worlds have pods that fit somewhere


def _compare_choices(world: World, seed: int) -> int:
    plugin = VolumeBinding(None, world.cluster)
    compared = 0
    for number, _ in enumerate(world.changes(CHANGES)):
        pod = world.waiting(number)
        claims = plugin.pre_filter(world.cluster.classes.info_of(pod)).data
        if not isinstance(claims, PodClaims) or not claims.delayed:
            continue
        choice = choose(world.cluster, claims, view_of(world.cluster))
        for row, node in world.cluster.nodes.nodes():
            if choice.codes[row]:
                continue
            volumes = {m.claim.metadata.name: m.volume_at(row) for m in choice.matches}
            taken = {name: v.metadata.name for name, v in volumes.items() if v is not None}
            delayed = list(claims.delayed)
            assert taken == twin.static_choice(delayed, node, world.storage), (seed, number)
            compared += 1
    return compared


@pytest.mark.parametrize("seed", SEEDS)
def test_the_index_counts_what_a_recount_finds(seed: int) -> None:
    world = World(seed)
    for _ in world.changes(CHANGES):
        storage, index = world.storage, world.cluster.volumes
        for row, node in world.cluster.nodes.nodes():
            there = {v for pod in storage.on(node.name) for v in twin.counted(pod, storage)}
            there |= set(twin.attachments_of(node.name, storage))
            csi_node = storage.csi_nodes.get(node.name)
            for driver in (*DRIVERS, "kubernetes.io/no-provisioner", "pd.csi.storage.gke.io"):
                assert index.counts(driver)[row] == sum(d == driver for d, _ in there), (
                    seed,
                    driver,
                )
                limits = index.limits(driver)
                told_limit = next(
                    (
                        d.allocatable.count
                        for d in (csi_node.spec.drivers or () if csi_node else ())
                        if d.name == driver and d.allocatable and d.allocatable.count is not None
                    ),
                    None,
                )
                found = None if limits is None or limits[row] > 1000 else int(limits[row])
                assert found == told_limit


DRIVERS = ("csi-a", "csi-b", "ebs.csi.aws.com")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rule", RULES)
def test_an_answer_that_was_kept_is_what_a_fresh_one_would_be(rule: str, seed: int) -> None:
    """Pods share answers by the key they had when they were first seen, as in a profile."""
    make, _ = RULES[rule]
    world = World(seed)
    cluster, work = world.cluster, Work()
    plugin = make(cluster)
    pods = [cluster.classes.info_of(world.waiting(number)) for number in range(8)]
    shared: dict[Any, KeptVerdict] = {}
    kept_for = [shared.setdefault(plugin.share_key(p), KeptVerdict(plugin, plugin)) for p in pods]
    for number, _ in enumerate(world.changes(2 * CHANGES)):
        for pod, kept in zip(pods, kept_for, strict=True):
            expected = told(judge(make(cluster), cluster, pod))
            result = kept.prepare(pod, cluster)
            if not result.status.is_success:
                assert told(result.status) == expected, (seed, number)
                continue
            kept.refresh(pod, cluster, work)
            codes = {n.name: int(kept.codes[row]) for row, n in cluster.nodes.nodes()}
            found = {n: plugin.explain(pod, code) for n, code in codes.items() if code}
            assert told(found) == expected, (seed, number)


def test_pods_with_claims_of_their_own_share_the_answers_about_nodes() -> None:
    """A hundred pods, each with its own bound volume, cost one pass over all nodes."""
    nodes = [a_node(f"n{i}", "a") for i in range(20)]
    limits = [a_csi_node(f"n{i}", {"csi-a": 9}) for i in range(20)]
    cluster = a_cluster(*nodes, *limits)
    for i in range(100):
        volume = a_volume(f"pv{i}", csi=("csi-a", f"h{i}"), claim=(f"c{i}", f"uid-c{i}"))
        see(cluster, volume, a_claim(f"c{i}", volume=f"pv{i}"))
    for make, _ in RULES.values():
        plugin, work = make(cluster), Work()
        shared: dict[Any, KeptVerdict] = {}
        for i in range(100):
            pod = cluster.classes.info_of(a_pod(f"p{i}", f"c{i}"))
            kept = shared.setdefault(plugin.share_key(pod), KeptVerdict(plugin, plugin))
            if kept.prepare(pod, cluster).status.is_success:
                kept.refresh(pod, cluster, work)
            cluster.assume(pod, f"n{i % 20}")
        for pod in list(cluster.placed.values()):
            cluster.forget(pod)
        assert len(shared) == 1
        assert work.full_passes <= 1
        assert work.rows <= 20 + 100
