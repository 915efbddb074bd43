"""The volume plugins and the index of volumes against their twins, on random clusters."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from asched import names
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nominated import Nominator
from asched.core.cluster.pods import PodInfo
from asched.core.config.defaults import configuration
from asched.core.config.merge import resolve
from asched.core.framework.profile import build
from asched.core.framework.runner import Decision, NoNodesError, Runner, run_alone
from asched.core.framework.status import Code, PointError, Status
from asched.core.plugins import IN_TREE, IN_TREE_POINTS
from asched.core.plugins.volumes.binding import VolumeBinding
from asched.core.plugins.volumes.choice import choose
from asched.core.plugins.volumes.claims import PodClaims
from asched.core.plugins.volumes.limits import NodeVolumeLimits
from asched.core.plugins.volumes.restrictions import VolumeRestrictions
from asched.core.plugins.volumes.zone import VolumeZone
from tests.conformance.twins import storage as twin
from tests.volume_builders import RandomWorld, judge, view_of

SEEDS = range(8)
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
    world = RandomWorld(seed)
    plugin = make(world.cluster)
    for number, _ in enumerate(world.changes(CHANGES)):
        pod = world.waiting(number)
        assert told(judge(plugin, world.cluster, pod)) == slow(pod, world.storage), (seed, number)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rule", ["restrictions", "limits"])
def test_under_a_trial_a_rule_sees_the_pods_that_are_left(rule: str, seed: int) -> None:
    """Pods of a row are taken away one after the other, as preemption tries it."""
    make, slow = RULES[rule]
    world = RandomWorld(seed)
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
        with cluster.supposing().gone(gone, row):
            code = int(plugin.filter(info, view_of(cluster, node.name), result.data)[0])
            found = plugin.explain(info, code) if code else None
        expected = slow(pod, world.storage, [other.pod for other in gone])
        assert isinstance(expected, dict)
        reason = expected.get(node.name)
        assert (found and (found.code, found.reasons)) == reason, (seed, number)
        assert told(judge(plugin, cluster, pod)) == before


def test_claims_take_the_volumes_that_their_twin_takes() -> None:
    compared = sum(_compare_choices(RandomWorld(seed), seed) for seed in range(25))
    assert compared > 100  # most worlds have pods that fit somewhere


def _compare_choices(world: RandomWorld, seed: int) -> int:
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
    world = RandomWorld(seed)
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
def test_a_runner_that_keeps_answers_decides_as_a_fresh_one(seed: int) -> None:
    """One runner lives through all changes and placements, the other is made for each attempt."""
    world = RandomWorld(seed)
    cluster = world.cluster
    pods = [cluster.classes.info_of(world.waiting(number)) for number in range(6)]
    lasting = a_runner(cluster)
    for number, _ in enumerate(world.changes(2 * CHANGES)):
        for pod in pods:
            assert outcome(lasting, pod, number) == outcome(a_runner(cluster), pod, number), seed
        newcomer = cluster.classes.info_of(world.pod(f"newcomer-{number}"))
        node, _ = outcome(lasting, newcomer, number)
        if node:
            cluster.assume(newcomer, node)


def a_runner(cluster: Cluster) -> Runner:
    """The volume plugins and what a profile cannot do without."""
    needed = (names.PRIORITY_SORT, names.DEFAULT_BINDER)
    volumes = (
        names.VOLUME_RESTRICTIONS,
        names.NODE_VOLUME_LIMITS,
        names.VOLUME_BINDING,
        names.VOLUME_ZONE,
    )
    enabled = [{"name": name} for name in (*needed, *volumes)]
    plugins = {"multiPoint": {"enabled": enabled, "disabled": [{"name": "*"}]}}
    profile = configuration({"profiles": [{"plugins": plugins}]}).profiles[0]
    built = build(resolve(profile, IN_TREE_POINTS, 0), IN_TREE, cluster, 100)
    return Runner(built, cluster, Nominator(cluster.pods_seen.get))


def outcome(runner: Runner, pod: PodInfo, seed: int) -> tuple[str, Any]:
    """(chosen node, all that would do), or ("", what is told of each node)."""
    rows = runner.cluster.nodes.row_of.items()
    try:
        found = run_alone(runner.schedule(pod, seed))
    except (PointError, NoNodesError) as error:
        return "", str(error)
    if isinstance(found, Decision):
        return found.node, {name for name, row in rows if found.state.feasible[row]}
    return "", {name: found.status_at(row) for name, row in rows}
