"""NodeResourcesFit against its twin, on all rows together and on some of them one by one."""

import pytest

from asched.core.cluster.pods import PodInfo
from asched.core.config import args as config
from asched.core.framework.status import Code
from asched.core.plugins.resources.fit import NodeResourcesFit
from tests.builders import PodBuilder, all_rows, pending
from tests.conformance.twins import node_resources_fit as twin
from tests.unit.core.plugins.resources.amount_worlds import GPU, HUGE, NIC, AmountWorld

SEEDS = range(8)
RISING = tuple(config.UtilizationShapePoint(x, y) for x, y in ((0, 0), (100, 10)))
MORE = tuple(
    config.ResourceSpec(name, weight)
    for name, weight in (("memory", 2), ("cpu", 1), (GPU, 3), ("ephemeral-storage", 1), (HUGE, 1))
)
WEIGHED = (config.ResourceSpec("cpu", 3), config.ResourceSpec("memory", 1))


@pytest.mark.parametrize(
    "args",
    [
        None,
        config.NodeResourcesFitArgs(ignored_resources=(GPU, HUGE)),
        config.NodeResourcesFitArgs(ignored_resource_groups=("example.com",)),
    ],
    ids=["nothing ignored", "a resource ignored", "a group ignored"],
)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_row_is_told_what_its_twin_is_told(
    args: config.NodeResourcesFitArgs | None, seed: int
) -> None:
    world = AmountWorld(seed)
    plugin, view = NodeResourcesFit(args, world.cluster), all_rows(world.cluster)
    rows = list(range(view.size))
    for pod in world.waiting:
        info = pending(world.cluster, pod)
        codes = plugin.filter(info, view, None).tolist()
        for row, code in enumerate(codes):
            expected = twin.reject(pod.build(), world.place_of(row), world.picture, args)
            assert told(plugin, info, code) == expected, (seed, row)
        few = plugin.filter_few(info, rows, None)
        is_plain = not asks_for_others(pod, args)
        assert few == (codes if is_plain else None)
        some = world.random.sample(rows, 2)
        assert plugin.filter_few(info, some, None) == (few and [few[row] for row in some])


def told(plugin: NodeResourcesFit, pod: PodInfo, code: int) -> tuple[list[str], bool] | None:
    if not code:
        return None
    status = plugin.explain(pod, code)
    return list(status.reasons), status.code is Code.UNSCHEDULABLE


def asks_for_others(pod: PodBuilder, args: config.NodeResourcesFitArgs | None) -> bool:
    """For more than cpu, memory and storage, if it counts."""
    spec = pod.json["spec"]
    asked = dict(pod.first.get("resources", {}).get("requests", {}))
    asked.update(spec.get("resources", {}).get("requests", {}))
    ignored = set(args.ignored_resources) & {GPU} if args else set()
    if args and args.ignored_resource_groups:
        ignored |= {GPU, NIC}
    return any(asked.get(name, "0") != "0" and name not in ignored for name in (GPU, NIC, HUGE))


@pytest.mark.parametrize("resources", [config.CPU_AND_MEMORY, WEIGHED, MORE], ids=str)
@pytest.mark.parametrize(
    "kind", [config.LEAST_ALLOCATED, config.MOST_ALLOCATED, config.REQUESTED_TO_CAPACITY_RATIO]
)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_row_gets_the_points_that_its_twin_gets(
    resources: tuple[config.ResourceSpec, ...], kind: str, seed: int
) -> None:
    ratio = config.RequestedToCapacityRatio(RISING)
    is_curve = kind == config.REQUESTED_TO_CAPACITY_RATIO
    strategy = config.ScoringStrategy(kind, resources, ratio if is_curve else None)
    args = config.NodeResourcesFitArgs(scoring_strategy=strategy)
    world = AmountWorld(seed)
    plugin, view = NodeResourcesFit(args, world.cluster), all_rows(world.cluster)
    rows = list(range(view.size))
    for pod in world.waiting:
        info = pending(world.cluster, pod)
        points = plugin.score(info, view, None).tolist()
        for row, found in enumerate(points):
            expected = twin.raw_score(pod.build(), world.place_of(row), world.picture, args)
            assert found == expected, (seed, row)
        is_short = not is_curve and resources is not MORE
        assert plugin.score_few(info, rows, None) == (points if is_short else None)
