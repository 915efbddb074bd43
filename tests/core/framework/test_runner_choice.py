"""Which nodes an attempt looks at, which it takes, and who is asked to make room or to bind."""

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from asched.core.framework.attempt import Rejection
from asched.core.framework.effects import Pause
from asched.core.framework.points import (
    BindPlugin,
    Nomination,
    PostFilterPlugin,
    PostFilterResult,
)
from asched.core.framework.runner import Decision, NoNodesError, Runner, run_alone
from asched.core.framework.status import (
    SUCCESS,
    Code,
    PointError,
    Status,
    failure,
    unresolvable,
    unschedulable,
)
from asched.core.model.kinds import NODE, POD
from asched.core.state.facts import Done, Gone, Seen
from asched.core.state.pods import PodInfo
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod, pending, term
from tests.core.cycle.playbook import Play

NODES = 12
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "o", "controller": True}


class Scene:
    """Twelve nodes of four CPUs; of `n0` three are taken, so that it is the worst."""

    def __init__(self, *plugins: Any, nodes: int = NODES, **config: Any) -> None:
        named = [a_node(f"n{i}").allocatable(cpu="4", memory="8Gi", pods="9") for i in range(nodes)]
        self.play = Play(*named, plugins=plugins, **config)
        self.play.machine.is_active = False
        self.cluster = self.play.parts.cluster
        self.context = self.play.machine.context
        if nodes:
            self.see(a_pod("there").requests(cpu="3").on("n0"))

    @property
    def runner(self) -> Runner:
        return self.context.runners["default-scheduler"]

    def see(self, *objects: PodBuilder | NodeBuilder) -> None:
        for each in objects:
            kind = POD if isinstance(each, PodBuilder) else NODE
            self.play.turn(Seen(kind, each.build()))

    def rows(self, *names: str) -> Any:
        within = np.zeros(self.cluster.nodes.height, dtype=np.bool_)
        within[[self.cluster.nodes.row_of[name] for name in names]] = True
        return within

    def pod(self, pod: PodBuilder) -> PodInfo:
        return pending(self.cluster, pod.spec(schedulerName="default-scheduler"))

    def found(self, pod: PodBuilder, seed: int = 0, within: Any = None) -> Decision | Rejection:
        answer: Decision | Rejection = run_alone(self.runner.schedule(self.pod(pod), seed, within))
        return answer

    def node(self, pod: PodBuilder, seed: int = 0, within: Any = None) -> Decision:
        found = self.found(pod, seed, within)
        assert isinstance(found, Decision), found.message()
        return found


def test_without_a_node_there_is_nothing_to_be_looked_at() -> None:
    scene = Scene(nodes=0)
    with pytest.raises(NoNodesError):
        scene.found(a_pod())


def test_of_the_best_one_is_drawn_and_the_same_seed_draws_the_same() -> None:
    scene = Scene()
    drawn = [scene.node(a_pod().requests(cpu="1"), seed) for seed in range(60)]
    assert {one.node for one in drawn} == {f"n{i}" for i in range(1, NODES)}
    assert {(one.feasible, one.evaluated) for one in drawn} == {(NODES, NODES)}
    again = [scene.node(a_pod().requests(cpu="1"), seed).node for seed in range(60)]
    assert again == [one.node for one in drawn]


@pytest.mark.parametrize("names", [("n3",), ("n3", "n5"), tuple(f"n{i}" for i in range(1, 9))])
def test_within_a_part_of_the_cluster_only_its_nodes_count(names: tuple[str, ...]) -> None:
    """Few of them are ranked by themselves, many with all others left out."""
    scene = Scene()
    within = scene.rows(*names, "n0")
    drawn = [scene.node(a_pod().requests(cpu="2"), seed, within) for seed in range(40)]
    assert {one.node for one in drawn} == set(names), "n0 has no room"
    assert {one.feasible for one in drawn} == {len(names)}
    whole = {seed: scene.node(a_pod().requests(cpu="2"), seed).score for seed in range(3)}
    if len(names) > 1:
        assert drawn[0].score == whole[0], "points are what they are in the whole cluster"
    else:
        assert drawn[0].score is None, "there was nothing to choose"
    nothing = scene.found(a_pod().requests(cpu="2"), 0, scene.rows("n0"))
    assert isinstance(nothing, Rejection)
    assert nothing.message() == "0/1 nodes are available: 1 Insufficient cpu."


@pytest.mark.parametrize("names", [("n1", "n2"), tuple(f"n{i}" for i in range(1, 9))])
def test_room_that_is_promised_to_others_is_left_out_within_a_part_too(
    names: tuple[str, ...],
) -> None:
    scene = Scene()
    vip = a_pod("vip").requests(cpu="3").priority(9).status(nominatedNodeName="n1")
    scene.see(vip.spec(schedulerName="other"))
    within = scene.rows(*names)
    drawn = [scene.node(a_pod().requests(cpu="2"), seed, within) for seed in range(30)]
    assert {one.node for one in drawn} == set(names) - {"n1"}
    assert {one.feasible for one in drawn} == {len(names) - 1}
    drawn = [scene.node(a_pod().requests(cpu="2"), seed) for seed in range(30)]
    assert "n1" not in {one.node for one in drawn}
    assert {one.feasible for one in drawn} == {NODES - 2}, "n0 has no room either"
    alone = scene.found(a_pod().requests(cpu="2"), 0, scene.rows("n1"))
    assert isinstance(alone, Rejection)
    assert "Insufficient cpu" in alone.message()


def test_where_only_one_node_is_left_nothing_is_ranked() -> None:
    scene = Scene()
    one = scene.node(a_pod().requests(cpu="1"), 0, scene.rows("n4"))
    assert (one.node, one.feasible, one.score) == ("n4", 1, None)
    scene.see(*(a_node(f"n{i}").cordoned() for i in range(1, NODES) if i != 7))
    one = scene.node(a_pod().requests(cpu="2"))
    assert (one.node, one.feasible, one.score) == ("n7", 1, None)
    scene.see(a_node("n2").allocatable(cpu="4", memory="8Gi", pods="9"))
    vip = a_pod("vip").requests(cpu="4").priority(9).status(nominatedNodeName="n2")
    scene.see(vip.spec(schedulerName="other"))
    one = scene.node(a_pod().requests(cpu="2"))
    assert (one.node, one.feasible, one.score) == ("n7", 1, None), "n2 is promised"


def test_where_a_part_of_the_nodes_is_to_be_scored_no_more_are() -> None:
    """Never fewer than a hundred; the next pod's begin behind them, also within a part."""
    scene = Scene(nodes=404, percentageOfNodesToScore=1)
    drawn = [scene.node(a_pod(), seed) for seed in range(3)]
    assert {one.feasible for one in drawn} == {100}
    assert [one.row // 100 for one in drawn] == [0, 1, 2]
    names = [f"n{i}" for i in range(101)]
    few = scene.node(a_pod(), 0, scene.rows(*names))
    assert (few.node in names, few.feasible) == (True, 100)
    assert scene.node(a_pod()).row // 100 == 1, "behind those of the part"
    narrowed = a_pod().requires_nodes(*(term(fields=[f"metadata.name In {n}"]) for n in names))
    half = Scene(nodes=404, percentageOfNodesToScore=50)
    half.see(*(a_node(f"n{i}").labels(disk="ssd") for i in range(220)))
    assert half.node(a_pod().selects(disk="ssd")).feasible == 202, "half of all, not of these"
    assert half.node(a_pod()).feasible == 202
    assert half.node(narrowed).feasible == 100, "a half of those that are looked at, at least 100"


@pytest.mark.parametrize(
    ("why", "stays"),
    [
        ("it fits", True),
        ("there is no room", False),
        ("it is gone", False),
        ("it is outside", False),
        ("it is within", True),
        ("it is promised", False),
        ("its kubelet refused the owner's", False),
        ("its kubelet refused another's", True),
    ],
)
def test_the_node_that_a_pod_was_nominated_to_is_taken_if_nothing_stands_against_it(
    why: str, stays: bool
) -> None:
    scene, within = Scene(), None
    pod = a_pod().requests(cpu="2").metadata(ownerReferences=[OWNER])
    scene.see(a_pod("beside").requests(cpu="1").on("n6"))
    if why == "there is no room":
        scene.see(a_pod("large").requests(cpu="3").on("n6"))
    elif why == "it is gone":
        scene.play.turn(Gone(NODE, a_node("n6").build()))
    elif why in ("it is outside", "it is within"):
        within = scene.rows("n1", "n6" if why == "it is within" else "n2")
    elif why == "it is promised":
        vip = a_pod("vip").requests(cpu="2").priority(9).status(nominatedNodeName="n6")
        scene.see(vip.spec(schedulerName="other"))
    elif why.startswith("its kubelet"):
        owner = "o" if "the owner" in why else "another"
        scene.cluster.refusals.note(owner, "n6", scene.cluster.wall_clock_s)
    decision = scene.node(pod.status(nominatedNodeName="n6"), 0, within)
    assert (decision.node == "n6") == stays
    assert (decision.feasible == 1) == stays, "nobody else is looked at"
    assert decision.evaluated == scene.cluster.nodes.count


def test_a_promise_in_memory_counts_before_what_is_written() -> None:
    scene = Scene()
    pod = a_pod("web").requests(cpu="1").status(nominatedNodeName="n2")
    assert scene.runner.nominated_node(scene.pod(pod)) == "n2"
    scene.see(pod)
    scene.context.nominator.add(scene.cluster.pods_seen["default/web"], "n3")
    assert scene.node(pod).node == "n3"
    assert scene.runner.nominated_node(scene.pod(a_pod("other"))) == ""


def a_room(name: str, answer: Any) -> Any:
    class Room(PostFilterPlugin):
        asked = 0

        def post_filter(self, pod: Any, rejection: Any, trial: Any) -> Any:
            type(self).asked += 1
            return answer() if callable(answer) else answer

    Room.name = name
    return Room


def made(status: Status, node: str | None = None) -> PostFilterResult:
    return PostFilterResult(status, Nomination(node))


def post_filtered(*plugins: Any) -> PostFilterResult:
    """Of those plugins alone."""
    enabled = [{"name": plugin.name} for plugin in plugins]
    points = {
        "multiPoint": {"enabled": enabled},
        "postFilter": {"disabled": [{"name": "DefaultPreemption"}]},
    }
    profile = {"schedulerName": "default-scheduler", "plugins": points}
    play = Play(a_node("n1"), plugins=plugins, profiles=[profile])
    context = play.machine.context
    runner = context.runners["default-scheduler"]
    play.machine.is_active = False
    pod = pending(play.parts.cluster, a_pod().requests(cpu="99"))
    rejection = run_alone(runner.schedule(pod, 0))
    assert isinstance(rejection, Rejection)
    trial = runner.trial(runner.cache.state_of(pod), context.waiting, 5, 7.0)
    assert (trial.seed, trial.now_s, trial.scheduler_name) == (5, 7.0, "default-scheduler")
    result: PostFilterResult = run_alone(runner.post_filter(pod, rejection, trial))
    return result


def test_the_first_that_makes_room_is_the_last_that_is_asked() -> None:
    first, third = a_room("A", made(unschedulable("no"), "n7")), a_room("C", made(SUCCESS))
    second = a_room("B", made(SUCCESS, "n1"))
    assert post_filtered(first, second, third) == made(SUCCESS, "n1")
    assert (first.asked, second.asked, third.asked) == (1, 1, 0)


@pytest.mark.parametrize("status", [failure("broken"), unresolvable("never")])
def test_an_error_and_what_nobody_can_resolve_end_it_too(status: Status) -> None:
    first, second = a_room("A", made(status)), a_room("B", made(SUCCESS))
    assert post_filtered(first, second) == made(status)
    assert second.asked == 0


def test_words_of_those_who_make_no_room_are_joined_and_the_last_promise_stays() -> None:
    told = post_filtered(
        a_room("A", made(unschedulable("no"), "")), a_room("B", made(unschedulable("nor here")))
    )
    assert told.status.reasons[-2:] == ("no", "nor here")
    assert (told.status.code, told.nomination.node) == (Code.UNSCHEDULABLE, "")


def test_who_makes_room_may_yield_effects_and_nothing_else() -> None:
    """Nobody is there to answer effects here; that they come out tells as much."""

    def steps(effect: Any) -> Any:
        yield effect

    with pytest.raises(PointError, match=r"Pause.* needs an answer"):
        post_filtered(a_room("A", lambda: steps(Pause())))
    with pytest.raises(PointError, match='running postFilter plugin "A": answered 7 '):
        post_filtered(a_room("A", lambda: steps(7)))


def test_what_goes_on_after_the_attempt_may_yield_effects_and_nothing_else() -> None:
    def steps() -> Any:
        yield Pause()
        yield "no effect"

    assert post_filtered(a_room("A", made(SUCCESS))).background is None
    later = post_filtered(a_room("A", PostFilterResult(SUCCESS, background=steps()))).background
    assert later is not None
    assert isinstance(next(later), Pause)
    with pytest.raises(PointError, match="where an effect is expected"):
        later.send(Done(0))


@pytest.mark.parametrize(
    ("alike", "idle", "is_so"),
    [
        ((), (), True),
        ((True, True), (), True),
        ((True, False), (), False),
        ((True, False), ("P1",), True),
        ((True, False), ("P0",), False),
        ((False, False), ("P1",), False),
    ],
)
def test_equals_are_treated_alike_where_all_who_make_room_do_or_have_nothing_to_do(
    alike: tuple[bool, ...], idle: tuple[str, ...], is_so: bool
) -> None:
    rooms = [a_room(f"P{at}", made(SUCCESS)) for at in range(len(alike))]
    for room, each in zip(rooms, alike, strict=True):
        room.treats_equals_alike = each
    mine = {"enabled": [{"name": room.name} for room in rooms], "disabled": [{"name": "*"}]}
    profile = {"schedulerName": "default-scheduler", "plugins": {"postFilter": mine}}
    scene = Scene(*rooms, profiles=[profile])
    active = scene.runner.cache.state_of(scene.pod(a_pod())).active_plugins
    assert scene.runner.treats_equals_alike(replace(active, idle=frozenset(idle))) == is_so


def test_an_answer_that_means_nothing_here_is_an_error_that_names_its_plugin() -> None:
    odd = post_filtered(a_room("A", made(Status(Code.WAIT, ("hm",)))))
    assert odd == made(failure('running PostFilter plugin "A": hm'))


def test_plugins_that_bind_are_asked_in_the_order_of_the_profile() -> None:
    class Own(BindPlugin):
        name = "Own"

        def bind(self, pod: Any, node: str) -> Any:
            raise AssertionError("nobody binds here")

    scene = Scene(Own)
    names = [plugin.name for plugin in scene.runner.binders(scene.pod(a_pod()))]
    assert sorted(names) == ["DefaultBinder", "Own"]
    assert names == [plugin.name for plugin in scene.runner.profile.binds]


def test_who_has_nobody_to_ask_may_not_ask() -> None:
    def asks() -> Any:
        yield Pause()

    with pytest.raises(PointError, match="needs an answer"):
        run_alone(asks())
