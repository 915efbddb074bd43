"""The board of a gang's search: pods put and taken back, what is left, and which rows are alike."""

from typing import Any

import numpy as np
import pytest

from asched.batch.groups.board import GroupBoard
from asched.batch.placement.search import MOVED, SPENT
from asched.core.framework.effects import Pause
from asched.core.framework.order_free import POD_PLACE
from asched.core.framework.points import (
    Plugin,
)
from asched.core.model.kinds import NODE, POD
from asched.core.state.audit import recount
from asched.core.state.facts import Seen
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.core.cycle.attempts import GroupScene, members, run
from tests.core.cycle.gang_plays import a_member

CPU = 0


def room(name: str, cpu: int = 4, pods: int = 10) -> NodeBuilder:
    return a_node(name).allocatable(cpu=str(cpu), memory="8Gi", pods=str(pods))


class Scene:
    def __init__(
        self,
        *pods: PodBuilder,
        nodes: tuple[NodeBuilder, ...] = (),
        placed: tuple[PodBuilder, ...] = (),
        within: Any = None,
        steps: int = 10_000,
        plugins: tuple[type[Plugin], ...] = (),
    ) -> None:
        rows = nodes or (room("n0"), room("n1", 2))
        self.scene = GroupScene(*rows, placed=placed, plugins=plugins)
        self.cluster = self.scene.cluster
        group = self.scene.group(*pods)
        self.board = GroupBoard(self.scene.context, group, len(pods), within, steps)


def test_pods_of_one_class_and_priority_stand_together() -> None:
    one = Scene(*members(2), a_member("large", cpu="2"), a_member("vip").priority(5)).board
    assert one.counts == (2, 1, 1)
    assert [[a.pod.metadata.name for a in attempts] for attempts in one.members] == [
        ["p0", "p1"],
        ["large"],
        ["vip"],
    ]
    assert one.example(1).pod.metadata.name == "large"


def test_where_a_class_fits_within_its_nodes() -> None:
    pods = a_member("a", cpu="3")
    assert Scene(pods).board.feasible(0).tolist() == [True, False]
    within = np.array([False, True])
    assert Scene(pods, within=within).board.feasible(0).tolist() == [False, False]


def test_what_a_pod_takes_and_what_is_left() -> None:
    placed = (a_pod("there").requests(cpu="1").on("n1"),)
    one = Scene(*members(5, cpu="1"), placed=placed).board
    takes = one.takes(0)
    assert (takes[CPU], takes[POD_PLACE]) == (1000, 1)
    assert one.free([CPU, POD_PLACE]).tolist() == [[4000, 1000], [10, 9]]
    assert one.slots(0).tolist() == [4, 1]
    assert Scene(*members(2)).board.slots(0).tolist() == [2, 2], "there are no more of them"
    over = (a_pod("huge").requests(cpu="9").on("n1"),)
    assert Scene(*members(1), placed=over).board.free([CPU]).tolist() == [[4000, 0]]


def test_pods_are_put_in_the_order_of_their_attempts_and_taken_back() -> None:
    scene = Scene(*members(3))
    board, read = scene.board, scene.cluster.nodes.columns.read
    assert board.put(0, 0)
    assert board.put(0, 1)
    assert [attempt.pod.metadata.name for _, attempt in board.placed] == ["p0", "p1"]
    assert read("requested")[0, :2].tolist() == [1000, 1000]
    run(board.take_back())
    assert read("requested")[0, :2].tolist() == [1000, 0]
    assert board.put(0, 0)
    assert [attempt.pod.metadata.name for _, attempt in board.placed] == ["p0", "p1"]
    run(board.clear())
    assert (board.placed, read("requested")[0, :2].tolist()) == ([], [0, 0])
    assert recount(scene.cluster) == []


def test_a_rule_that_needs_somebody_there_first_is_not_free_of_order() -> None:
    term = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "zone"}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    zoned = (room("n0").labels(zone="a"), room("n1").labels(zone="b"))
    assert Scene(*members(1)).board.is_order_free(0)
    assert not Scene(a_member("a").spec(affinity=near), nodes=zoned).board.is_order_free(0)


# --- what Reserve chooses ------------------------------------------------------------------------


# --- how long it may take ------------------------------------------------------------------------


def test_the_search_ends_when_its_steps_are_spent() -> None:
    board = Scene(*members(1), steps=3).board
    assert run(board.charge(1)) is None
    assert run(board.charge(2)) is None
    assert run(board.charge(0.5)) is SPENT


def paused(scene: Scene, *facts: Any) -> Any:
    """The answer to a charge during which others have their turn."""
    scene.cluster.budget.open(0)
    scene.board.put(0, 0)
    steps = scene.board.charge(1)
    assert isinstance(next(steps), Pause)
    for fact in facts:
        scene.cluster.apply(fact)
    scene.cluster.budget.open()
    return run(steps)


@pytest.mark.parametrize(
    "fact",
    [Seen(NODE, room("n1", 3).build()), Seen(POD, a_pod("new").requests(cpu="1").on("n1").build())],
)
def test_what_happened_meanwhile_proves_nothing_any_more(fact: Any) -> None:
    scene = Scene(*members(1))
    assert paused(scene, fact) is None
    assert scene.board.was_moved


def test_another_node_ends_it() -> None:
    assert paused(Scene(*members(1)), Seen(NODE, room("n2").build())) is MOVED


# --- rows that look the same ---------------------------------------------------------------------

HOST = "kubernetes.io/hostname"


def alike(*nodes: NodeBuilder, placed: tuple[PodBuilder, ...] = (), within: Any = None) -> Any:
    return Scene(*members(1), nodes=nodes, placed=placed, within=within).board.alike()


def hosts(*names: str) -> list[NodeBuilder]:
    return [room(name).labels({HOST: name}) for name in names]


def test_rows_that_differ_in_the_host_s_name_alone_are_alike() -> None:
    assert alike(*hosts("a", "b", "c")) == (0, 0, 0)


def test_a_host_s_name_that_two_nodes_have_is_a_label_like_any_other() -> None:
    a, b, c = hosts("a", "b", "c")
    assert alike(a, b.labels({HOST: "a"}), c) == (0, 0, 2)


@pytest.mark.parametrize(
    "change",
    [
        lambda node: node.labels(zone="x"),
        lambda node: node.taints("a=b:PreferNoSchedule"),
        lambda node: node.allocatable(cpu="5"),
        lambda node: node.features("X"),
        lambda node: node.cordoned(),
    ],
)
def test_rows_that_differ_in_what_rules_read_are_not(change: Any) -> None:
    a, b, c = hosts("a", "b", "c")
    assert alike(a, change(b), c) == (0, 1, 0)


def test_pods_there_make_a_difference_by_their_class() -> None:
    a, b, c = hosts("a", "b", "c")
    there = tuple(a_pod(f"x{name}").requests(cpu="1").on(name) for name in ("a", "b"))
    assert alike(a, b, c, placed=there) == (0, 0, 2)
    unlike = (there[0], a_pod("y").requests(cpu="2").on("b"))
    assert alike(*hosts("a", "b", "c"), placed=unlike) == (0, 1, 2)


def test_a_row_that_is_promised_or_outside_stands_for_itself() -> None:
    scene = Scene(*members(1), nodes=tuple(hosts("a", "b", "c")))
    waiting = a_pod("waiting").build()
    scene.cluster.apply(Seen(POD, waiting))
    scene.scene.context.nominator.add(waiting, "b")
    assert scene.board.alike() == (0, 1, 0)
    assert alike(*hosts("a", "b", "c"), within=np.array([True, False, True])) == (0, 1, 0)
