"""How much work equal pods share, as operation counts: full passes, passes over changed rows, rows.

A count that grows here is a regression of speed, whatever the machine. The engine runs in process,
with the whole default profile.
"""

from itertools import islice
from typing import Any

import pytest

from asched.core.config.defaults import default_configuration
from asched_lab.bench.run_decide import DecideWorld
from asched_lab.measure import calls, crowds, groups
from asched_lab.measure.engine import SCHEDULER

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
NODES = 120
#: Pods of a class before counting begins: every answer has been made by then.
WARM = 20
COUNTED = 60
#: Answers that a placed pod changes on its node: the filter and the score of resources, and their
#: balance.
MOVING_PLUGINS = 3


def node(index: int) -> dict[str, Any]:
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    labels = {HOSTNAME: f"n{index:03d}", ZONE: f"z{index % 3}"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"n{index:03d}", "labels": labels},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def pod(cpu: str = "100m", **spec: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu, "memory": "100Mi"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "p-", "labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}], **spec},
    }


class Counted:
    """An engine whose work is read as differences."""

    def __init__(self) -> None:
        self.world = DecideWorld(default_configuration())
        (runner,) = self.world.runners.values()
        self._work = runner.cache.work

    async def schedule(self, *pods: dict[str, Any]) -> tuple[int, int, int]:
        """Full passes, row passes and rows that these pods cost, all of them bound."""
        before = (self._work.full_passes, self._work.row_passes, self._work.rows)
        target = self.world.pods.scheduled_count + len(pods)
        await self.world.create(list(pods), "default")
        await self.world.until(lambda: self.world.pods.scheduled_count >= target, 60, "pods")
        return self._since(before)

    async def reject(self, *pods: dict[str, Any]) -> tuple[int, int, int]:
        """The same for pods that fit nowhere."""
        before = (self._work.full_passes, self._work.row_passes, self._work.rows)
        await self.world.create(list(pods), "default")
        await self.world.until(
            lambda: not self.world.pods.waiting((), attempted_is_enough=True), 60, "attempts"
        )
        return self._since(before)

    def _since(self, before: tuple[int, int, int]) -> tuple[int, int, int]:
        after = (self._work.full_passes, self._work.row_passes, self._work.rows)
        full, row, rows = (b - a for a, b in zip(before, after, strict=True))
        return full, row, rows


@pytest.fixture
async def engine():
    counted = Counted()
    await counted.world.create([node(i) for i in range(NODES)])
    counted.world.take_in()
    yield counted
    await counted.world.close()


def of_selector(key: str) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "a"}}}


def spread(key: str, when: str) -> dict[str, Any]:
    rule = {"maxSkew": 5, "whenUnsatisfiable": when, **of_selector(key)}
    return {"topologySpreadConstraints": [rule]}


def affinity(member: str, *, weight: int = 0) -> dict[str, Any]:
    key = HOSTNAME if member == "podAntiAffinity" else ZONE
    if weight:
        term = {"weight": weight, "podAffinityTerm": of_selector(key)}
        return {"affinity": {member: {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}}
    required = [of_selector(key)]
    return {"affinity": {member: {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


IN_ZONE = {"nodeSelector": {ZONE: "z1"}}


@pytest.mark.parametrize(
    "spec",
    [{}, IN_ZONE],
    ids=["plain", "node selector"],
)
async def test_the_next_equal_pod_costs_one_row_per_moving_plugin(engine, spec) -> None:
    await engine.schedule(*[pod(**spec) for _ in range(WARM)])
    full, _, rows = await engine.schedule(*[pod(**spec) for _ in range(COUNTED)])
    assert full == 0
    assert rows <= MOVING_PLUGINS * COUNTED


@pytest.mark.parametrize(
    "spec",
    [affinity("podAffinity"), spread(ZONE, "DoNotSchedule")],
    ids=["affinity", "hard spread"],
)
async def test_rules_about_zones_add_at_most_one_full_pass_a_pod(engine, spec) -> None:
    """What counts pods of a domain may look at all rows again, the rest of the profile may not."""
    await engine.schedule(*[pod(**spec) for _ in range(WARM)])
    full, row, _ = await engine.schedule(*[pod(**spec) for _ in range(COUNTED)])
    assert full <= COUNTED
    assert row <= MOVING_PLUGINS * COUNTED


@pytest.mark.parametrize(
    "spec",
    [
        spread(HOSTNAME, "DoNotSchedule"),
        spread(HOSTNAME, "ScheduleAnyway"),
        affinity("podAntiAffinity"),
        affinity("podAntiAffinity", weight=10),
    ],
    ids=["hard spread", "soft spread", "anti-affinity", "preferred"],
)
async def test_rules_about_single_nodes_add_one_row_a_pod(engine, spec) -> None:
    await engine.schedule(*[pod(**spec) for _ in range(WARM)])
    full, _, rows = await engine.schedule(*[pod(**spec) for _ in range(COUNTED)])
    assert full == 0
    assert rows <= (MOVING_PLUGINS + 1) * COUNTED


async def test_a_rejected_class_costs_nothing_the_second_time(engine) -> None:
    giants = [pod(cpu="100") for _ in range(COUNTED)]
    first = await engine.reject(giants[0])
    assert first[0] > 0
    assert await engine.reject(*giants[1:]) == (0, 0, 0)


async def test_a_rejected_class_costs_nothing_while_others_are_placed(engine) -> None:
    """Pods that come make no room: nobody looks at the giants again."""
    await engine.reject(*[pod(cpu="100") for _ in range(COUNTED)])
    await engine.schedule(*[pod() for _ in range(WARM)])
    attempts = sum(engine.world.recorder.results.values())
    full, _, rows = await engine.schedule(*[pod() for _ in range(COUNTED)])
    assert full == 0
    assert rows <= MOVING_PLUGINS * COUNTED
    assert sum(engine.world.recorder.results.values()) == attempts + COUNTED


async def test_rows_grow_with_pods_and_not_with_nodes() -> None:
    """The same pods on four times the nodes cost the same rows."""
    costs = []
    for count in (NODES, 4 * NODES):
        counted = Counted()
        await counted.world.create([node(i) for i in range(count)])
        await counted.schedule(*[pod() for _ in range(WARM)])
        costs.append(await counted.schedule(*[pod() for _ in range(COUNTED)]))
        await counted.world.close()
    assert costs[0] == costs[1]


@pytest.mark.parametrize(
    ("shape", "full", "rows"),
    [
        # a row for each answer that moves on the node of the last pod, and nothing else
        ("plain", 0, MOVING_PLUGINS),
        ("node-affinity", 0, MOVING_PLUGINS),
        # one more: what counts pods of one node
        ("preferred", 0, MOVING_PLUGINS + 1),
        ("soft-spread", 0, MOVING_PLUGINS + 1),
        # every other node has a pod of the group; the next group, after half as many pods as there
        # are nodes, has terms of its own, which look at all nodes once
        ("anti-affinity", 2 / NODES, MOVING_PLUGINS + 1 + 2),
        # a zone that opens or closes has all nodes looked at
        ("spread", 1 / 3, MOVING_PLUGINS + NODES / 3),
        # what counts pods of a zone may look at all nodes again
        ("affinity", 1, MOVING_PLUGINS + NODES),
        # amounts that nobody else asks for: all that moves is made for all nodes
        ("different", MOVING_PLUGINS, MOVING_PLUGINS * NODES),
        # twelve pairs of amounts and a few images are shared by all classes
        ("mixed", 1, MOVING_PLUGINS + NODES),
    ],
)
async def test_a_pod_of_a_row_of_the_benchmark_costs_at_most(shape, full, rows) -> None:
    counted, maker = Counted(), crowds.SHAPES[shape]
    await counted.world.create([crowds.node(i) for i in range(NODES)])
    await counted.schedule(*[maker(i, NODES) for i in range(WARM)])
    found, _, rows_found = await counted.schedule(
        *[maker(i, NODES) for i in range(WARM, WARM + COUNTED)]
    )
    await counted.world.close()
    assert found <= full * COUNTED
    assert rows_found <= rows * COUNTED
    assert sum(counted.world.recorder.results.values()) == WARM + COUNTED  # an attempt a pod


async def test_a_change_asks_the_hints_of_those_it_can_concern_and_of_no_others(engine) -> None:
    """Each of these waits for a pod of its own colour; each of those that come has another one."""

    def of_colour(number: int, **spec: Any) -> dict[str, Any]:
        made = pod(**spec)
        made["metadata"]["labels"] = {"colour": f"c{number}"}
        return made

    for number in range(COUNTED):
        of_this = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"colour": f"c{number}"}}}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [of_this]}
        made = pod(affinity={"podAffinity": required})
        made["metadata"]["labels"] = {"waits": f"w{number}"}
        await engine.reject(made)
    asked = engine.world.recorder.hints[1]
    await engine.world.create([of_colour(n) for n in range(COUNTED)], "default")
    await engine.world.until(
        lambda: engine.world.pods.scheduled_count == 2 * COUNTED, 60, "all of them"
    )
    assert engine.world.recorder.hints[1] - asked <= 3 * COUNTED


async def test_a_pod_of_a_gang_that_comes_asks_no_gang_that_waits_for_others() -> None:
    """All gangs but for their last pods, and then these; and what is written into a gang's object
    asks its own pods alone.
    """
    row, gangs = groups.ROWS["gang-4"], 50
    world = DecideWorld(groups.settings(row))
    await world.create([groups.racked(i) for i in range(NODES)])
    await world.create([groups.group(f"group-{i:06d}", row) for i in range(gangs)], "bench")
    pods = list(islice(groups.members(row), gangs * row.size))
    for place in range(row.size):
        await world.create(pods[place :: row.size], "bench")
        world.take_in()
    await world.until(lambda: world.pods.scheduled_count == gangs * row.size, 60, "all gangs")
    await world.close()
    assert world.recorder.hints[1] <= 2 * gangs


@pytest.mark.parametrize(("row", "most"), [("basic-2", 555), ("gang-4", 736)])
async def test_a_pod_of_a_group_takes_few_calls(row: str, most: int) -> None:
    """Of functions, Python's and C's, in all turns from its intake to its confirmation."""
    assert await groups.count_calls(groups.ROWS[row], NODES, 10 * COUNTED) <= most


async def test_a_pod_causes_one_binding_and_one_event(engine) -> None:
    engine.world.forget_measured()
    await engine.schedule(*[pod() for _ in range(COUNTED)])
    assert engine.world.effect_count == 2 * COUNTED
    assert engine.world.event_count == COUNTED


@pytest.mark.parametrize(
    ("shape", "most"),
    [
        ("plain", 220),
        ("node-affinity", 220),
        ("spread", 365),
        ("soft-spread", 297),
        ("preferred", 315),
        ("anti-affinity", 352),
        ("affinity", 427),
        ("different", 572),
        ("mixed", 650),
        ("preemption", 1_750),
    ],
)
async def test_a_pod_of_a_row_of_the_benchmark_costs_at_most_so_many_calls(shape, most) -> None:
    """Most of a decision is bookkeeping around it, where nothing else would be noticed."""
    found = await calls.of_shape(shape, NODES, WARM, COUNTED)
    assert found.python <= most


async def test_a_pod_that_fits_takes_no_more_calls_with_rebalance() -> None:
    """Nothing of it is called before the first pod is rejected. What a pod costs now and then by
    the clock, such as a record of the best nodes, may fall into either run.
    """
    without = await calls.of_shape("plain", NODES, WARM, COUNTED)
    found = await calls.of_shape("plain", NODES, WARM, COUNTED, ("Rebalance",))
    assert found.python <= 1.01 * without.python


async def test_a_pod_takes_hardly_more_calls_with_pools() -> None:
    pools = [
        {"name": name, "namespaces": [name], "profile": profile}
        for name, profile in (("batch", ""), ("gpu", SCHEDULER), ("web", ""))
    ]
    without = await calls.of_shape("plain", NODES, WARM, COUNTED)
    found = await calls.of_shape("plain", NODES, WARM, COUNTED, pools=pools)
    assert found.python <= 1.03 * without.python


async def test_a_plain_pod_passes_few_functions() -> None:
    """One pod, after others that filled all caches: none of the features that it does not use."""
    passed = await calls.passed("plain", NODES, WARM)
    of_core = [function for function in passed if function.file.startswith("core/")]
    assert len(of_core) <= 170
    assert not [f for f in passed if f.file.startswith(("batch/", "insight/"))]
