"""The other doors of the plugin: who may ask at all, groups, extenders, and what waking asks."""

from collections.abc import Generator, Mapping
from typing import Any

import msgspec
import pytest

from asched.core.framework.points import Hint
from asched.core.framework.runner import run_alone
from asched.core.framework.status import Code, PointError
from asched.core.framework.trial import Candidate
from asched.core.model.kinds import POD_GROUP
from asched.core.plugins import default_preemption as room
from asched.core.plugins.default_preemption import DefaultPreemption
from asched.core.preemption.duels import ROOMS_LOST_MAX, Duels
from asched.core.preemption.under_way import UnderWay
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Seen
from tests.builders import a_node, a_pod
from tests.core.preemption.group_stage import GroupStage, a_group
from tests.core.preemption.stage import Stage, a_high, a_low
from tests.heard import heard

SAID = "preemption: "


def two_nodes(*lows: Any) -> Stage:
    stage = Stage()
    stage.nodes(*(a_node(f"n{n}").allocatable(cpu="2") for n in (1, 2)))
    for low in lows or (a_low("one", "n1", cpu="2"), a_low("two", "n2", cpu="2", priority=5)):
        stage.pod(low)
    return stage


def tire(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, uid: str) -> None:
    """Others take every room that is made for it."""
    duels = cluster.singleton(Duels)
    strangers = 0
    monkeypatch.setattr(cluster.refusals, "strangers", lambda _node: strangers)
    for _ in range(ROOMS_LOST_MAX):
        duels.makes_room(uid, ("n1",))
        strangers += 1
        duels.rests(uid)
    assert duels.is_resting(uid)


def may(stage: Stage, pod: Any, **trial: Any) -> tuple[bool, bool]:
    """Whether it may evict, and make room."""
    info, rejection = stage.info(pod), stage.rejection(pod)
    asked = msgspec.structs.replace(stage.trial(pod), **trial)
    plugin = stage.plugin
    return plugin.may_evict(info, asked), plugin.may_make_room(info, lambda: rejection, asked)


def test_room_may_be_made_by_whoever_matters_more_and_would_fit() -> None:
    stage = two_nodes()

    assert may(stage, stage.pod(a_high("high"))) == (True, True)
    assert may(stage, stage.pod(a_high("equal", priority=0))) == (False, False)
    assert may(stage, stage.pod(a_high("large", cpu="3"))) == (False, False)
    never = a_high("never").spec(preemptionPolicy="Never")
    assert may(stage, stage.pod(never)) == (True, False)
    elsewhere = a_high("elsewhere").selects(disk="ssd")
    assert may(stage, stage.pod(elsewhere))[1] is False


def test_no_room_is_made_for_who_lost_it_too_often(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = two_nodes()
    pod = stage.pod(a_high("high"))
    tire(stage.cluster, monkeypatch, pod.uid)

    assert may(stage, pod) == (True, False)
    assert stage.candidates(pod) == {}
    told = stage.post_filter(pod)
    assert told.status.message.endswith(SAID + room.ROOM_LOST)
    assert told.nomination.node == ""


def test_who_made_room_is_remembered_and_whoever_asks_sees_all_that_would_do() -> None:
    stage = two_nodes()
    pod = stage.pod(a_high("high"))

    found = stage.candidates(pod)

    assert {node: [v.pod.key for v in one.victims] for node, one in found.items()} == {
        "n1": ["default/one"], "n2": ["default/two"]
    }  # fmt: skip
    duels = stage.cluster.singleton(Duels)
    assert not len(duels)
    assert stage.post_filter(pod).victims == ("default/one",)
    assert len(duels) == 1


@pytest.mark.parametrize("priority", [999, 1000, 1001])
def test_only_less_important_pods_that_leave_are_waited_for(priority: int) -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    leaving = a_low("leaving", "n1", cpu="1", priority=priority).status(conditions=[condition])
    stage = two_nodes(
        leaving.metadata(deletionTimestamp="2026-01-01T00:00:00Z"), a_low("low", "n1", cpu="1")
    )
    stage.pod(a_low("other", "n2", cpu="2"))
    pod = stage.pod(a_high("high").status(nominatedNodeName="n1"))

    is_waiting = room.VICTIMS_LEAVING in stage.post_filter(pod).status.message

    assert is_waiting is (priority < 1000)


def test_a_nomination_to_an_unknown_node_holds_nobody_back() -> None:
    stage = two_nodes()
    pod = stage.pod(a_high("high").status(nominatedNodeName="gone"))

    assert stage.post_filter(pod).nomination.node == "n1"


# --- groups --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trial", "group", "obstacle"),
    [
        ({"in_placements": True}, None, room.UNKNOWN_GROUP),
        ({"in_placements": True}, a_group("crew", topology_key="rack"), room.IN_PLACEMENTS),
        ({"in_placements": True}, a_group("crew"), ""),
        ({"is_of_group": True}, a_group("crew"), room.AS_GROUP),
        ({}, None, ""),
    ],
)
def test_pods_of_a_group_may_be_bound_to_it(trial: Any, group: Any, obstacle: str) -> None:
    stage = two_nodes()
    if group is not None:
        stage.cluster.apply(Seen(POD_GROUP, group))
    pod = stage.pod(a_high("high").spec(schedulingGroup={"podGroupName": "crew"}))
    asked = msgspec.structs.replace(stage.trial(pod), **trial)

    told = stage.plugin.post_filter(stage.info(pod), stage.rejection(pod), asked)

    if obstacle:
        assert told.status.message == SAID + obstacle
        assert told.nomination.node is None
    else:
        assert told.victims == ("default/one",)


CREW = a_group("crew", priority=100)


def group_stage() -> tuple[GroupStage, DefaultPreemption]:
    pods = [f"p{n}@n{n % 5 + 1} low" for n in range(6)]
    stage = GroupStage(pods, [CREW])
    return stage, DefaultPreemption(None, stage.cluster)


@pytest.mark.parametrize("at_once", [1, 2, 500])
def test_room_is_made_for_a_group_as_a_whole(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "VICTIMS_AT_ONCE", at_once)
    stage, plugin = group_stage()
    trial = stage.trial(CREW, 2, {"p0 p1 p2": 2})
    charged: list[tuple[float, bool]] = []

    def charge(steps: float, *, is_alone: bool = False) -> Generator[Any, Any, None]:
        charged.append((steps, is_alone))
        yield from ()

    monkeypatch.setattr(trial, "charge", charge)

    made = run_alone(plugin.group_post_filter(trial))

    assert made.status.is_success
    assert sorted(made.victims) == ["default/p0", "default/p1", "default/p2"]
    assert set(made.places) == {info.pod.uid for info in trial.pods}
    assert made.background is not None
    assert charged[-1] == (room.VICTIM_STEPS * at_once, True)
    own = [entry for entry in charged if entry == charged[-1]]
    assert len(own) >= -(-3 // at_once)
    duels = stage.cluster.singleton(Duels)
    assert set(duels._fought) == {"uid-crew"}
    assert sorted(node for node, _ in duels._fought["uid-crew"].rooms) == ["n1", "n2", "n3"]


def test_a_group_is_told_why_no_room_is_made_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, plugin = group_stage()
    vain = run_alone(plugin.group_post_filter(stage.trial(CREW, 2, {"p0 nobody": 2})))
    assert not vain.status.is_success
    assert vain.victims == ()
    polite = stage.trial(CREW, 2, {"p0": 2})
    never = a_pod("never").spec(preemptionPolicy="Never").build()
    polite.pods[1] = stage.cluster.classes.info_of(never)
    told = run_alone(plugin.group_post_filter(polite))
    assert told.status.message == room.NEVER

    tire(stage.cluster, monkeypatch, "uid-crew")

    told = run_alone(plugin.group_post_filter(stage.trial(CREW, 2, {"p0": 2})))
    assert told.status.message == room.ROOM_LOST


# --- extenders -----------------------------------------------------------------------------------


class Chain:
    """An extender that leaves these of the candidates."""

    has_preempt = True
    is_interesting = True
    objects = ""

    def __init__(self, *left: str, fails: str = "") -> None:
        self.left, self.fails = left, fails
        self.asked: list[str] = []

    def is_interested(self, pod: Any) -> bool:
        return self.is_interesting

    def objection(self, pod: Any, now_s: float) -> str:
        assert (pod.pod.metadata.name, now_s) == ("high", 1000.0)
        return self.objects

    def preempt(
        self, pod: Any, candidates: Mapping[str, Candidate]
    ) -> Generator[Any, Any, Mapping[str, Candidate]]:
        assert pod.pod.metadata.name == "high"
        self.asked = sorted(candidates)
        if self.fails:
            raise PointError(self.fails)
        return {name: candidates[name] for name in self.left}
        yield


def told_with(chain: Chain, *lows: Any, seed: int = 0) -> Any:
    stage = two_nodes(*lows)
    pod = stage.pod(a_high("high"))
    trial = msgspec.structs.replace(stage.trial(pod, seed), extenders=chain)
    said = stage.plugin.post_filter(stage.info(pod), stage.rejection(pod), trial)
    return run_alone(said) if isinstance(said, Generator) else said


def test_extenders_may_drop_candidates() -> None:
    chain = Chain("n2")

    told = told_with(chain)

    assert chain.asked == ["n1", "n2"]
    assert (told.nomination.node, told.victims) == ("n2", ("default/two",))
    assert told_with(Chain("n1", "n2")).nomination.node == "n1"


@pytest.mark.parametrize(
    ("percentage", "absolute", "count"), [(10, 3, 3), (50, 3, 6), (10, 100, 12), (0, 1, 1)]
)
def test_so_many_candidates_are_looked_for(percentage: int, absolute: int, count: int) -> None:
    """A share of the nodes, and so many of them at least."""
    stage = Stage(minCandidateNodesPercentage=percentage, minCandidateNodesAbsolute=absolute)
    stage.nodes(*(a_node(f"n{n:02}").allocatable(cpu="2") for n in range(12)))
    for number in range(12):
        stage.pod(a_low(f"low-{number}", f"n{number:02}", cpu="2"))
    pod, chain = stage.pod(a_high("high")), Chain()
    trial = msgspec.structs.replace(stage.trial(pod), extenders=chain)

    run_alone(stage.plugin.post_filter(stage.info(pod), stage.rejection(pod), trial))

    assert len(chain.asked) == count


def test_of_those_that_extenders_leave_and_that_are_alike_one_is_drawn() -> None:
    lows = a_low("one", "n1", cpu="2"), a_low("two", "n2", cpu="2")
    found = [told_with(Chain("n1", "n2"), *lows, seed=seed).nomination.node for seed in range(20)]

    assert set(found) == {"n1", "n2"}
    assert found == [
        told_with(Chain("n1", "n2"), *lows, seed=seed).nomination.node for seed in range(20)
    ]


def test_what_extenders_say_against_it_is_told() -> None:
    nobody = told_with(Chain())
    assert nobody.status.message == SAID + room.NO_CANDIDATE
    assert nobody.nomination.node is None
    failed = told_with(Chain(fails="it is down"))
    assert (failed.status.code, failed.status.message) == (Code.ERROR, SAID + "it is down")
    chain = Chain("n1")
    chain.objects = "not now"
    objected = told_with(chain)
    assert objected.status.message == SAID + "not now"
    assert objected.nomination.node == ""
    assert chain.asked == []


@pytest.mark.parametrize("what", ["has_preempt", "is_interesting"])
def test_extenders_that_do_not_care_are_not_asked(what: str) -> None:
    chain = Chain()
    setattr(chain, what, False)

    assert told_with(chain).nomination.node == "n1"
    assert chain.asked == []


# --- waking --------------------------------------------------------------------------------------


def test_whoever_waits_for_victims_is_held_back_and_nothing_else_wakes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plugin = DefaultPreemption(None, Cluster())
    pod = a_pod("waits").build()
    hints = set(heard(plugin.extra_events()).values())
    assert len(hints) == 1
    (is_free,) = hints
    assert plugin.pre_enqueue(pod).is_success
    assert is_free(pod, None, None) is Hint.QUEUE
    for name, text in (("holds_back", room.WAITING), ("holds_group_back", room.GROUP_WAITING)):
        with monkeypatch.context() as patch:
            patch.setattr(UnderWay, name, lambda _self, _pod: True)
            assert plugin.pre_enqueue(pod).message == text
            assert is_free(pod, None, None) is Hint.SKIP


def test_what_it_listens_to() -> None:
    plugin = DefaultPreemption(None, Cluster())

    assert set(heard(plugin.registrations())) == {"Pod: Delete"}
    assert {told.partition(":")[0] for told in heard(plugin.extra_events())} == {
        kind.resource for kind in room.ELSEWHERE
    }
    assert all(told.endswith(": Add, Delete, Update") for told in heard(plugin.extra_events()))
