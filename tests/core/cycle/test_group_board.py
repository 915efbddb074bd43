"""The board of a gang's search: pods put and taken back, what is left, and which rows are alike."""

from collections.abc import Hashable
from typing import Any, ClassVar

import numpy as np
import pytest

from asched.core.cycle import group_board
from asched.core.cycle.group_board import STATE_STEPS, GroupBoard, claims_look
from asched.core.framework.choices import CHOICES_MAX, Choices
from asched.core.framework.effects import Pause
from asched.core.framework.order_free import POD_PLACE
from asched.core.framework.points import (
    IDLE,
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreFilterResult,
    ReservePlugin,
)
from asched.core.framework.status import SUCCESS, Status, unschedulable
from asched.core.gang.search import MOVED, SPENT
from asched.core.model.claim import ResourceClaim
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, POD, RESOURCE_CLAIM
from asched.core.state.audit import recount
from asched.core.state.facts import Gone, Seen
from asched.core.state.pods import PodInfo
from asched.core.state.view import NodeView
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.core.cycle.attempts import GroupScene, members, run
from tests.core.cycle.test_gang_plays import a_member

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


class Pegs(PreFilterPlugin, ReservePlugin):
    """Pods with the label take one of so many pegs, if there are any."""

    name = "Pegs"
    reads_counts = True
    taken: ClassVar[dict[str, tuple[str, int]]] = {}  # uid to what was prepared for it

    def stamp(self, pod: PodInfo, data: Any) -> Hashable:
        return len(self.taken)

    def pre_filter(self, pod: PodInfo) -> PreFilterResult:
        return PreFilterResult(data=len(self.taken))

    def reserve(self, pod: PodInfo, node: str, data: Any) -> Status:
        self.taken[pod.pod.uid] = node, data
        return SUCCESS if _pegs(pod) != "0" else unschedulable("there is no peg")

    def unreserve(self, pod: PodInfo, node: str) -> None:
        self.taken.pop(pod.pod.uid, None)

    def chooses(self, pod: PodInfo) -> bool:
        return _pegs(pod) is not None

    def choices(self, pod: PodInfo, node: str, data: Any) -> int:
        assert (node, data) == ("n0", len(self.taken)), "as things are now"
        return int(_pegs(pod) or 1)

    def chosen(self, pod: PodInfo) -> Hashable:
        return _pegs(pod) or "whatever is left of another pod"


class Hats(Pegs):
    """The other one of two of which something is chosen: there is one for everybody."""

    name = "Hats"
    taken: ClassVar[dict[str, tuple[str, int]]] = {}

    def choices(self, pod: PodInfo, node: str, data: Any) -> int:
        return 1


def _pegs(pod: PodInfo) -> str | None:
    return (pod.pod.metadata.labels or {}).get("pegs")


class Named(FilterPlugin):
    """Reads of some pods, and of nodes, whatever it likes, and has nothing against any yet."""

    name = "Named"
    reads_counts = True

    def share_key(self, pod: PodInfo) -> Hashable:
        return pod.cls.number if "named" in (pod.pod.metadata.labels or {}) else IDLE

    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Any:
        return np.zeros(nodes.size, dtype=np.int32)


def choosy(name: str, pegs: int = 3) -> PodBuilder:
    return a_member(name).labels(pegs=str(pegs))


def pegged(*pods: PodBuilder, plugins: tuple[type[Plugin], ...] = (Pegs,)) -> Scene:
    for plugin in (Pegs, Hats):
        plugin.taken.clear()
    return Scene(*pods, plugins=plugins)


def test_all_that_could_be_chosen_is_offered_up_to_a_number() -> None:
    board = pegged(choosy("a"), choosy("b", CHOICES_MAX), choosy("c", CHOICES_MAX + 1)).board
    assert not board.is_thorough
    assert {sum(choice) for choice in board.choices(0, 0)} == {0, 1, 2}
    assert len(list(board.choices(1, 0))) == CHOICES_MAX
    assert not board.has_more
    assert len(list(board.choices(2, 0))) == CHOICES_MAX
    assert board.has_more
    assert len(list(board.choices(0, 0))) == 3
    assert board.has_more, "once there was more, nothing was proved"


@pytest.mark.parametrize("plugins", [(Pegs, Hats), (Hats, Pegs)])
def test_one_plugin_of_which_there_is_more_is_enough(plugins: Any) -> None:
    board = pegged(choosy("a", CHOICES_MAX + 1), plugins=plugins).board
    assert len(list(board.choices(0, 0))) == CHOICES_MAX
    assert board.has_more


def test_what_is_reserved_and_offered_is_so_as_things_are_after_the_last_pod() -> None:
    board = pegged(choosy("a"), choosy("b"), choosy("c")).board
    for number in range(3):
        assert board.put(0, 0)
        assert Pegs.taken[f"uid-{'abc'[number]}"] == ("n0", number)
    assert len(list(board.choices(0, 0))) == 3
    assert board.has_chosen
    assert board.example(0).pod.metadata.name == "c", "the last one, as no other is left"


def test_a_pod_that_gets_another_than_the_first_gets_it_until_it_is_taken_back() -> None:
    scene = pegged(choosy("a"), choosy("b"))
    board, choices = scene.board, scene.cluster.singleton(Choices)
    (other,) = (choice for choice in board.choices(0, 0) if sum(choice) == 2)
    assert board.put(0, 0, other)
    assert board.put(0, 0)
    assert choices.number("uid-a", "n0", "Pegs") == 2
    assert board.choices_made["uid-a"][1]["Pegs"] == 2
    assert set(board.choices_made) == {"uid-a"}
    run(board.take_back())
    assert set(board.choices_made) == {"uid-a"}
    run(board.take_back())
    assert (choices.number("uid-a", "n0", "Pegs"), board.choices_made) == (0, {})
    assert not Pegs.taken


def test_a_pod_for_which_nothing_is_left_is_on_the_board_all_the_same() -> None:
    board = pegged(choosy("a", 0)).board
    assert not board.put(0, 0)
    assert len(board.placed) == 1
    run(board.clear())
    assert not Pegs.taken


def test_while_nothing_is_reserved_nothing_is_chosen_nor_told() -> None:
    board = pegged(choosy("a", 0), a_member("plain", cpu="2")).board
    assert [board.chooses(c) for c in (0, 1)] == [True, False]
    assert not board.is_order_free(0)
    board.is_relaxed = True
    assert not board.chooses(0)
    assert board.put(0, 0)
    assert (Pegs.taken, board.chosen(), board.has_chosen) == ({}, (), False)
    run(board.clear())
    board.is_relaxed = False
    assert board.put(1, 0)
    assert board.chosen() == (), "nothing of the plain one could be otherwise"
    board.put(0, 0)
    assert len(board.chosen()) == 1  # type: ignore[arg-type]


# --- how long it may take ------------------------------------------------------------------------


def test_the_search_ends_when_its_steps_are_spent() -> None:
    board = Scene(*members(1), steps=3).board
    assert run(board.charge(1)) is None
    assert run(board.charge(2)) is None
    assert run(board.charge(0.5)) is SPENT


def test_half_of_the_steps_that_are_left_may_be_kept_for_another_search() -> None:
    board = Scene(*members(1), steps=12).board
    assert run(board.charge(2)) is None
    board.keep_half()
    assert run(board.charge(5)) is None
    assert run(board.charge(0.5)) is SPENT
    board.keep_nothing()
    assert run(board.charge(4.5)) is None
    assert run(board.charge(0.5)) is SPENT


@pytest.mark.parametrize(("classes", "times"), [(1, 1), (3, 1), (4, 2), (8, 3)])
def test_a_state_takes_steps_by_the_rows_and_the_classes(
    classes: int, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One more for each so many rows, and all of them once more for each so many classes."""
    monkeypatch.setattr(group_board, "ROWS_A_STEP", 2)
    monkeypatch.setattr(group_board, "CLASSES_A_STATE", 4)
    pods = [a_member(f"p{n}", cpu=f"{n + 1}m") for n in range(classes)]
    scene = Scene(*pods, nodes=tuple(room(f"n{n}") for n in range(5)))
    spent = scene.cluster.budget.spent
    assert run(scene.board.goes_on()) is None
    assert scene.cluster.budget.spent - spent == (STATE_STEPS + 2) * times


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


def test_it_pauses_once_the_slice_is_used_up_and_others_see_what_is_taken() -> None:
    scene = Scene(*members(1))
    assert paused(scene) is None
    assert not scene.board.was_moved
    (change,) = scene.board._group.freed.take()
    assert (change.old.metadata.name, change.old.spec.node_name) == ("p0", "n0")


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


def a_claim(name: str, count: int, device: str = "") -> ResourceClaim:
    exactly = {"deviceClassName": "gpu", "count": count}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    result = {"request": "r", "driver": "d", "pool": "p", "device": device}
    status = {"allocation": {"devices": {"results": [result]}}} if device else {}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return decode(ResourceClaim, {"metadata": metadata, "spec": spec, "status": status})


def claiming(pod: str, *claims: tuple[str, str]) -> PodBuilder:
    """(name in the pod, name of the claim that was made for it)."""
    made = [{"name": name, "resourceClaimName": claim} for name, claim in claims]
    return a_member(pod).status(resourceClaimStatuses=made)


def test_pods_whose_claims_ask_for_and_have_the_same_stand_together() -> None:
    """Each has one of its own, made from a template."""
    scene = GroupScene(room("n0"))
    claims = {"a": (1,), "b": (1,), "c": (2,), "d": (1, "gpu-7")}
    for pod, said in claims.items():
        scene.cluster.apply(Seen(RESOURCE_CLAIM, a_claim(f"{pod}-r", *said)))
    pods = [claiming(pod, ("r", f"{pod}-r")) for pod in claims]
    unmade, plain = claiming("e", ("r", "not-seen-yet")), a_member("f")
    group = scene.group(*pods, unmade, plain)
    board = GroupBoard(scene.context, group, 6, None, 0)
    names = [[one.pod.metadata.name for one in attempts] for attempts in board.members]
    assert names == [["a", "b"], ["c"], ["d"], ["e", "f"]]
    looks = [claims_look(scene.cluster, one.build()) for one in (*pods, unmade, plain)]
    assert looks[0] == looks[1] != looks[2]
    assert looks[4] == looks[5] == ()


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


@pytest.mark.parametrize("plain_first", [True, False])
def test_where_a_class_may_tell_nodes_by_their_names_every_row_stands_for_itself(
    plain_first: bool,
) -> None:
    """A filter that reads pods may look at which they are; so may one that chooses at Reserve."""
    plain = a_member("plain", cpu="2")
    for telling, plugin in ((a_member("x").labels(named="yes"), Named), (choosy("y"), Pegs)):
        pods = (plain, telling) if plain_first else (telling, plain)
        scene = Scene(*pods, nodes=tuple(hosts("a", "b", "c")), plugins=(plugin,))
        assert scene.board.alike() == (0, 1, 2)


def test_rows_to_which_a_filter_says_something_else_are_not_alike() -> None:
    pods = a_member("a").spec(nodeSelector={HOST: "b"}), a_member("b", cpu="2")
    assert Scene(*pods, nodes=tuple(hosts("a", "b", "c"))).board.alike() == (0, 1, 0)


def test_a_row_without_a_node_and_nodes_that_offer_nothing_are_like_no_other() -> None:
    a, b, c, d = hosts("a", "b", "c", "d")
    scene = Scene(*members(1), nodes=(a, b, c.status(allocatable=None), d))
    board = scene.board
    scene.cluster.apply(Gone(NODE, b.build()))
    assert board.alike() == (0, 1, 2, 0)
