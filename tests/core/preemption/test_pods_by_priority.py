"""Pods of a row in order of importance, followed through changes."""

import random

import numpy as np
import pytest

from asched.core.model.kinds import NODE, POD
from asched.core.preemption.pods_by_priority import (
    NOBODY,
    NOW,
    POD_STEPS,
    ROW_STEPS,
    ROWS_AT_ONCE,
    SLOTS_STEP,
    SPARE_MAX,
    PodsByPriority,
    in_line,
    start_of,
)
from asched.core.state.budget import OutOfTurn
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Seen
from tests.builders import a_node, a_pod
from tests.core.preemption.stage import RandomStage, Stage, a_low


def test_priority_goes_before_age_and_who_has_not_started_comes_last() -> None:
    stage = Stage()
    stage.nodes(a_node("n1"))
    names = ("young", "old", "waiting", "high")
    for pod in (
        a_low("young", "n1", priority=5, start=30),
        a_low("old", "n1", priority=5, start=10),
        a_pod("waiting").spec(priority=5).on("n1"),
        a_low("high", "n1", priority=9, start=50),
    ):
        stage.pod(pod)
    line = in_line(stage.cluster.pods_on(0).values())
    assert [info.pod.metadata.name for info in line] == ["high", "old", "young", "waiting"]
    assert start_of(line[-1]) == NOW
    assert set(names) == {info.pod.metadata.name for info in line}


def test_those_below_a_priority_are_the_last_of_the_line() -> None:
    stage = Stage()
    stage.nodes(a_node("n1"))
    for priority in (5, 9, 1, 5):
        stage.pod(a_low(f"p{priority}-{len(stage.cluster.placed)}", "n1", priority=priority))
    pods_by_priority = stage.cluster.singleton(PodsByPriority)
    pods_by_priority.catch_up()
    line = pods_by_priority.pods(0)
    for priority in (0, 1, 2, 5, 6, 9, 10):
        lower = [info for info in line if info.pod.priority < priority]
        assert pods_by_priority.below(0, priority) == lower


def test_a_start_time_that_nobody_can_read_counts_as_now() -> None:
    stage = Stage()
    info = stage.info(a_pod("web").status(startTime="yesterday").build())
    assert start_of(info) == NOW


def test_empty_slots_are_below_nobody() -> None:
    stage = Stage()
    stage.nodes(a_node("n1"), a_node("n2"))
    stage.pod(a_low("low", "n1"))
    pods_by_priority = stage.cluster.singleton(PodsByPriority)
    pods_by_priority.catch_up()
    assert pods_by_priority.priorities[
        pods_by_priority.bulks[pods_by_priority.places(np.arange(2))]
    ].tolist() == [[0, NOBODY]]
    assert pods_by_priority.amounts[:, 0].tolist() == [0] * len(pods_by_priority.amounts)


def test_columns_follow_every_change() -> None:
    for seed in range(5):
        stage = RandomStage(seed)
        pods_by_priority = stage.cluster.singleton(PodsByPriority)
        for _ in range(30):
            stage.change()
            if stage.rng.random() < 0.5:
                pods_by_priority.catch_up()
                _compare(pods_by_priority, stage.cluster)


def test_more_pods_than_slots_and_more_rows_than_before() -> None:
    stage = Stage()
    pods_by_priority = stage.cluster.singleton(PodsByPriority)
    rng = random.Random(1)
    for number in range(90):
        stage.nodes(a_node(f"n{number}"))
        for serial in range(rng.randint(0, 20)):
            stage.pod(a_low(f"p{number}-{serial}", f"n{number}", priority=rng.randint(0, 3)))
        if number % 10 == 0:
            pods_by_priority.catch_up()
    pods_by_priority.catch_up()
    _compare(pods_by_priority, stage.cluster)


NAMES = [f"example.com/{number}" for number in range(20)]


def test_one_crowded_node_costs_what_its_pods_cost() -> None:
    stage = Stage()
    pods_by_priority = stage.cluster.singleton(PodsByPriority)
    for number in range(20):
        stage.nodes(a_node(f"n{number}"))
        stage.pod(a_low(f"p{number}", f"n{number}"))
    crowd = [stage.pod(a_low(f"c{number}", "n7", priority=number)) for number in range(2_000)]
    pods_by_priority.catch_up()
    _compare(pods_by_priority, stage.cluster)
    assert len(pods_by_priority.bulks) <= 1.5 * (1.5 * len(crowd) + 22 * SLOTS_STEP)

    for pod in crowd:
        stage.gone(pod)
    pods_by_priority.catch_up()
    _compare(pods_by_priority, stage.cluster)
    stage.pod(a_low("late", "n7", priority=7))
    for number in range(SLOTS_STEP + 1):
        stage.pod(a_low(f"more-{number}", "n8"))
    pods_by_priority.catch_up()
    _compare(pods_by_priority, stage.cluster)
    assert len(pods_by_priority.bulks) <= SPARE_MAX * 22 * SLOTS_STEP
    assert len(pods_by_priority.priorities) <= SPARE_MAX * 3


def _compare(pods_by_priority: PodsByPriority, cluster: Cluster) -> None:
    named = {name: cluster.nodes.find_resource(name) for name in ("cpu", *NAMES)}
    everywhere = pods_by_priority.bulks[pods_by_priority.places(np.arange(cluster.nodes.height))]
    for row in range(cluster.nodes.height):
        line = in_line(cluster.pods_on(row).values())
        assert pods_by_priority.pods(row) == line
        places = pods_by_priority.places(np.array([row]))[:, 0]
        assert len(places) == len(line)
        here = pods_by_priority.bulks[places]
        assert everywhere[: len(line), row].tolist() == here.tolist()
        assert not everywhere[len(line) :, row].any()
        assert pods_by_priority.priorities[here].tolist() == [info.pod.priority for info in line]
        assert pods_by_priority.starts[places].tolist() == [start_of(info) for info in line]
        for name, at in named.items():
            wanted = [info.cls.accounted.get(name, 0) for info in line]
            assert at is None or pods_by_priority.amounts[at, here].tolist() == wanted


def test_many_rows_are_lined_up_in_several_turns_and_in_one_where_nobody_may_pause() -> None:
    cluster, slices, count = Cluster(), 1, 4 * ROWS_AT_ONCE
    for i in range(count):
        cluster.apply(Seen(NODE, a_node(f"n{i}").build()))
        cluster.apply(Seen(POD, a_pod(f"p{i}").on(f"n{i}").build()))
    pods_by_priority = PodsByPriority(cluster)
    while True:
        cluster.budget.open(1)
        try:
            pods_by_priority.catch_up()
            break
        except OutOfTurn:
            slices += 1
    assert slices == 4
    cluster.budget.open(1)
    before = cluster.budget.spent
    at_once = PodsByPriority(cluster)
    at_once.catch_up(in_one_go=True)
    cluster.budget.close()
    assert cluster.budget.spent - before == pytest.approx(count * (ROW_STEPS + POD_STEPS))
    for row in range(count):
        assert pods_by_priority.pods(row) == at_once.pods(row) != []
