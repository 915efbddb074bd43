"""GpuSharing: what it makes of real pods and nodes, what it learns, and how ties fall."""

import pytest

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Seen
from asched.core.model.kinds import POD
from asched.hardware.gpu.args import EXPECTING, STRATEGIES, ExpectedPod, GpuSharingArgs
from asched.hardware.gpu.ledger import held_by
from asched.hardware.gpu.plugin import GpuSharing
from asched.hardware.gpu.shares import GpuDemand
from asched.testing import given, node, pod
from tests.builders import NodeBuilder, PodBuilder, a_cluster, a_node, a_pod, all_rows, pending
from tests.conformance.twins import gpu_shares as twin
from tests.conformance.twins.gpu_shares import Node

GPU, PERCENT = "nvidia.com/gpu", "nvidia.com/gpucores"
EXPECTED = (
    ExpectedPod(milli_cpu=4000, devices=1, milli_device=470, weight=3),
    ExpectedPod(milli_cpu=8000, devices=1, milli_device=1000, weight=5),
    ExpectedPod(milli_cpu=2000, weight=2),
)


def gpus(name: str, number: int, cpu: str = "64") -> NodeBuilder:
    offered = {GPU: str(number * 10), PERCENT: str(number * 100)}
    return a_node(name).allocatable(offered, cpu=cpu).labels({"nvidia.com/gpu.count": str(number)})


def asks(name: str, number: int, percent: int = 0, cpu: str = "4") -> PodBuilder:
    wanted = {GPU: str(number)} | ({PERCENT: str(percent)} if percent else {})
    return a_pod(name).requests(wanted, cpu=cpu)


def scores(cluster: Cluster, pod: PodBuilder, args: GpuSharingArgs) -> list[int]:
    plugin = GpuSharing(args, cluster)
    info = pending(cluster, pod)
    plugin.stamp(info, None)
    return plugin.normalize(plugin.score(info, all_rows(cluster), None), None).tolist()


def test_fragmentation_gradient_descent_says_what_its_twin_says() -> None:
    placed = [asks("a", 1, 47).on("n1"), asks("b", 1).on("n1"), asks("c", 1, 60).on("n3")]
    cluster = a_cluster(gpus("n1", 2), gpus("n2", 2), gpus("n3", 4, cpu="9"), pods=placed)
    nodes = [Node(56_000, (0, 530), ""), Node(64_000, (1000, 1000), "")]
    nodes.append(Node(5_000, (400, 1000, 1000, 1000), ""))
    workload = [
        (GpuDemand(4000, 470, 1), 0.3),
        (GpuDemand(8000, 1000, 1), 0.5),
        (GpuDemand(2000), 0.2),
    ]
    for wanted, demand in (
        (asks("w", 1, 47), GpuDemand(4000, 470, 1)),
        (asks("w", 1), GpuDemand(4000, 1000, 1)),
    ):
        found = scores(cluster, wanted, GpuSharingArgs(workload=EXPECTED))
        fitting = [twin.fits(there, demand) for there in nodes]
        said = [
            twin.descent(there, demand, workload)[0] if fits else 0
            for there, fits in zip(nodes, fitting, strict=True)
        ]
        assert found == said


def test_every_strategy_prefers_the_half_used_device_to_a_fresh_one() -> None:
    cluster = a_cluster(gpus("fresh", 2), gpus("used", 2), pods=[asks("a", 1, 47, "32").on("used")])
    for strategy in STRATEGIES:
        workload = EXPECTED if strategy in EXPECTING else ()
        args = GpuSharingArgs(strategy=strategy, workload=workload)
        fresh, used = scores(cluster, asks("w", 1, 47, "16"), args)
        assert used > fresh, strategy


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_node_without_a_device_for_the_pod_comes_last(strategy: str) -> None:
    full = [asks(f"p{at}", 1, 60).on("full") for at in range(2)]
    cluster = a_cluster(gpus("full", 2), gpus("free", 8), pods=full)
    without, free = scores(cluster, asks("w", 1, 47), GpuSharingArgs(strategy=strategy))
    assert (without, free >= without) == (0, True)


@pytest.mark.parametrize(
    ("using", "left"),
    [
        ([GpuDemand(0, 470, 1), GpuDemand(0, 1000, 1), GpuDemand(0, 530, 1)], [0, 0, 1000]),
        ([GpuDemand(0, 810, 1), GpuDemand(0, 190, 1), GpuDemand(0, 1000, 2)], [0, 0, 0]),
        ([GpuDemand(0, 600, 1)] * 4, [0, 400, 400]),  # more than there is: taken from what is left
    ],
)
def test_a_node_is_supposed_to_hold_its_pods_tightly(
    using: list[GpuDemand], left: list[int]
) -> None:
    assert sorted(held_by(using, 3)) == sorted(left)
    assert sorted(held_by(reversed(using), 3)) == sorted(left)


def test_a_pod_that_selects_a_model_is_expected_there_only() -> None:
    selecting = asks("w", 1).selects(**{"nvidia.com/gpu.product": "A100"})
    a100 = gpus("a100", 2).labels({"nvidia.com/gpu.product": "A100"})
    cluster = a_cluster(gpus("other", 2), a100, pods=[selecting.on("a100")])
    plugin = GpuSharing(GpuSharingArgs(), cluster)
    assert plugin.share_key(pending(cluster, selecting)) == GpuDemand(4000, 1000, 1, ("A100",))
    assert scores(cluster, selecting, GpuSharingArgs())[0] == 0


def test_the_expected_pods_are_learnt_from_those_placed_and_again_after_half_as_many() -> None:
    cluster = a_cluster(gpus("n1", 8), pods=[asks(f"p{at}", 1, 10).on("n1") for at in range(10)])
    plugin = GpuSharing(GpuSharingArgs(), cluster)
    info = pending(cluster, asks("w", 1, 10))
    first = plugin.stamp(info, None)
    stamps = []
    for at in range(10, 16):
        cluster.apply(Seen(POD, asks(f"p{at}", 1, 10).on("n1").build()))
        stamps.append(plugin.stamp(info, None))
    assert stamps[:5] == [first] * 5
    assert stamps[5] != first


def test_given_pods_are_not_learnt_over() -> None:
    cluster = a_cluster(gpus("n1", 8))
    plugin = GpuSharing(GpuSharingArgs(workload=EXPECTED), cluster)
    info = pending(cluster, asks("w", 1))
    before = plugin.stamp(info, None)
    for at in range(5):
        cluster.apply(Seen(POD, asks(f"p{at}", 1, 10).on("n1").build()))
    assert plugin.stamp(info, None) == before


@pytest.mark.parametrize("seed", range(5))
def test_in_a_profile_with_it_the_first_of_equal_nodes_wins(seed: int) -> None:
    nodes = [node(f"n{at}", cpu=64, labels={"nvidia.com/gpu.count": "2"}) for at in range(20)]
    for one in nodes:
        one["status"]["allocatable"][GPU] = "2"
    profile = {
        "score": {"enabled": [{"name": GpuSharing.name}], "disabled": [{"name": "*"}]},
    }
    world = given(nodes, plugins=[GpuSharing], profile=profile, seed=seed)
    placed = []
    for at in range(3):
        wanted = pod(f"p{at}", cpu=4)
        resources = wanted["spec"]["containers"][0]["resources"]
        resources["requests"][GPU] = "1"
        placed.append(world.schedule(wanted).node)
    assert placed == ["n0", "n0", "n1"]


def test_a_fraction_fits_where_one_device_has_so_much_left_and_not_where_two_have_together() -> (
    None
):
    full = [asks(f"p{at}", 1, 60).on("parts") for at in range(2)]
    cluster = a_cluster(gpus("parts", 2), gpus("whole", 1), a_node("none"), pods=full)
    plugin = GpuSharing(GpuSharingArgs(), cluster)
    half, both = asks("w", 1, 50), asks("w", 2)
    found = [plugin.filter(pending(cluster, one), all_rows(cluster), None) for one in (half, both)]
    assert [codes.tolist() for codes in found] == [[1, 0, 1], [1, 1, 1]]
    assert plugin.filter(pending(cluster, a_pod()), all_rows(cluster), None).tolist() == [0, 0, 0]


def test_a_trial_is_judged_as_it_would_be_and_leaves_no_trace() -> None:
    cluster = a_cluster(gpus("n1", 1), gpus("n2", 1), pods=[asks("a", 1, 60).on("n1")])
    plugin = GpuSharing(GpuSharingArgs(), cluster)
    wanted = pending(cluster, asks("w", 1, 50))

    def codes() -> list[int]:
        return plugin.filter(wanted, all_rows(cluster), None).tolist()

    there = next(iter(cluster.pods_on(0).values()))
    for name, place in (("b", "n2"), ("d", "n1")):
        cluster.apply(Seen(POD, asks(name, 1, 10).on(place).build()))  # not read before the trial
    with cluster.supposing().gone([there], 0):
        plugin.stamp(wanted, None)
        assert codes() == [0, 0]
        with cluster.supposing().there([pending(cluster, asks("c", 1, 50))], 1):
            assert codes() == [0, 1]
    assert codes() == [1, 0]


def test_devices_that_come_free_wake_who_waits_for_them() -> None:
    nodes = [node("n1", cpu=64, labels={"nvidia.com/gpu.count": "1"}, resources={GPU: 10})]
    world = given(
        nodes,
        plugins=[GpuSharing],
        profile={"multiPoint": {"enabled": [{"name": GpuSharing.name}]}},
    )
    first, second = (pod(f"p{at}") for at in range(2))
    for one in (first, second):
        one["spec"]["containers"][0]["resources"]["requests"][GPU] = "1"
    assert world.schedule(first).node == "n1"
    waits = world.schedule(second)
    assert "1 node(s) had too little left of each GPU" in waits.message
    world.remove(first)
    world.wait(15)
    assert world.outcome("p1").node == "n1"
