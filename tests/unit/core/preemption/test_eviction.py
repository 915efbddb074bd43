"""One candidate's victims: who is evicted at all, and whose promise goes with them."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from asched.core.cluster.facts import Done, Gone, Refused, Returned, Seen, Unknown
from asched.core.framework.effects import (
    DeletePod,
    Effect,
    EmitEvent,
    MarkVictim,
    PatchPodStatus,
    Together,
)
from asched.core.framework.status import SKIP, SUCCESS, Status
from asched.core.framework.waiting import Stage, WaitingPod, WaitingPods
from asched.core.model.kinds import NODE, POD
from asched.core.model.pod import Pod
from asched.core.preemption.eviction import Eviction, is_preempted
from asched.core.preemption.under_way import Preemptor, UnderWay
from asched.host.assemble import Parts
from tests.builders import PodBuilder, a_node
from tests.unit.core.preemption.stage import a_high, a_low

STAMP = "2026-01-01T00:30:00Z"


class Scene:
    """Victims on n0, and pods that are nominated to it."""

    def __init__(self, *victims: PodBuilder) -> None:
        parts = Parts.fresh()
        self.cluster, self.nominator = parts.cluster, parts.nominator
        cluster = self.cluster
        cluster.apply(Seen(NODE, a_node("n0").build()))
        infos = []
        for victim in victims:
            pod = victim.build()
            cluster.apply(Seen(POD, pod))
            infos.append(cluster.placed[pod.uid])
        self.waiting = WaitingPods()
        trial: Any = SimpleNamespace(
            cluster=cluster,
            nominator=self.nominator,
            waiting=self.waiting,
        )
        self.under_way = UnderWay(cluster)
        self.preemptor = a_high("pre", priority=100).spec(schedulerName="asched").build()
        self.eviction = Eviction(
            "DefaultPreemption",
            Preemptor.of_pod(self.preemptor, "n0"),
            infos,
            trial,
            self.under_way,
        )

    def nominate(self, name: str, priority: int) -> Pod:
        pod = a_high(name, priority=priority).build()
        self.cluster.apply(Seen(POD, pod))
        self.nominator.add(pod, "n0")
        return pod

    @property
    def nominated_amounts(self) -> set[str]:
        return {pod.metadata.name for pod in self.nominator.on("n0").values()}


def test_nothing_is_done_if_all_victims_are_on_their_way_out() -> None:
    scene = Scene(*(a_low(f"low-{i}", "n0").metadata(deletionTimestamp=STAMP) for i in range(2)))
    scene.nominate("less", 50)
    assert scene.eviction.begin() is None
    assert not scene.under_way.holds_back(scene.preemptor), "it is woken when they have gone"
    assert scene.nominated_amounts == {"less"}


def test_only_less_important_pods_lose_their_promise_and_get_it_back_with_a_withdrawal() -> None:
    scene = Scene(a_low("low", "n0"))
    for name, priority in (("less", 99), ("equal", 100), ("more", 101)):
        scene.nominate(name, priority)
    assert scene.eviction.begin() is not None
    assert scene.under_way.holds_back(scene.preemptor)
    assert scene.nominated_amounts == {"equal", "more"}
    scene.eviction.withdraw()
    assert scene.nominated_amounts == {"less", "equal", "more"}
    assert not scene.under_way.holds_back(scene.preemptor)


GONE, CONFLICT = Refused(0, 404, "not found"), Refused(0, 409, "has been modified")


def played(scene: Scene, *answers: Any, others: Any = lambda: None) -> tuple[list[Effect], Status]:
    """All that is asked, each kind of write answered in turn by one of these, or done; `others`
    have a turn before the first.
    """
    steps: Any = scene.eviction.begin()
    others()
    told = iter(answers)
    asked: list[Effect] = []

    def play(steps: Any) -> Status:
        answer: Any = None
        try:
            while True:
                effect = steps.send(answer)
                answer = None
                if isinstance(effect, Together):
                    answer = Returned(0, [play(part) for part in effect.parts])
                    continue
                asked.append(effect)
                if isinstance(effect, DeletePod | MarkVictim):
                    answer = next(told, Done(0))
        except StopIteration as end:
            status: Status = end.value
        return status

    return asked, play(steps)


def kinds(effects: list[Effect]) -> list[str]:
    return [type(effect).__name__ for effect in effects]


WRITES = ["MarkVictim", "DeletePod", "EmitEvent"]


def test_each_victim_is_marked_deleted_and_told_the_last_one_after_all_others() -> None:
    scene = Scene(*(a_low(f"low-{i}", "n0") for i in range(3)))

    asked, status = played(scene)

    assert kinds(asked) == WRITES * 3
    assert [e.pod.name for e in asked if isinstance(e, DeletePod)] == ["low-0", "low-1", "low-2"]
    mark, event = asked[0], asked[2]
    assert isinstance(mark, MarkVictim)
    assert mark.condition is not None
    assert mark.condition["type"] == "DisruptionTarget"
    assert mark.condition["status"] == "True"
    assert mark.condition["reason"] == "PreemptionByScheduler"
    assert mark.condition["message"] == ("asched: preempting to accommodate a higher priority pod")
    assert isinstance(event, EmitEvent)
    assert (event.type, event.reason, event.action) == ("Normal", "Preempted", "Preempting")
    assert event.note == "Preempted by pod uid-pre on node n0"
    assert status.is_success
    assert scene.under_way.holds_back(scene.preemptor), "until the last one was seen to go"


@pytest.mark.parametrize(
    ("answers", "writes", "says"),
    [
        ((GONE,), ["MarkVictim"], ""),
        ((CONFLICT,), ["MarkVictim"], "preempting default/low: has been modified"),
        ((Unknown(0, "timed out"),), ["MarkVictim"], "preempting default/low: timed out"),
        ((Done(0), GONE), WRITES[:2], ""),
        ((Done(0), CONFLICT), WRITES[:2], "preempting default/low: has been modified"),
        ((Done(0), Refused(0, 403, "no")), WRITES[:2], "preempting default/low: no"),
    ],
)
def test_what_the_server_answers_ends_it_and_lets_the_preemptor_go_on(
    answers: Any, writes: list[str], says: str
) -> None:
    """Who is not there any more has made room; anything else is a failure that is told."""
    scene = Scene(a_low("low", "n0"))
    asked, status = played(scene, *answers)
    assert kinds(asked) == writes
    assert (status.is_success, status.message) == (not says, says)
    assert scene.under_way.holds_back(scene.preemptor) == (not says)


def test_that_one_of_the_others_stays_is_told_though_the_last_one_goes() -> None:
    scene = Scene(*(a_low(f"low-{i}", "n0") for i in range(2)))
    asked, status = played(scene, CONFLICT)
    assert kinds(asked) == ["MarkVictim", *WRITES]
    assert status.message == "preempting default/low-0: has been modified"


def test_who_goes_by_itself_or_is_another_pod_by_now_is_left_alone() -> None:
    for now, said in (
        (a_low("low", "n0").metadata(deletionTimestamp=STAMP).build(), SUCCESS),
        (a_low("low", "n0").metadata(uid="another").build(), SKIP),
    ):
        scene = Scene(a_low("low", "n0"))
        asked, status = played(scene, others=partial(scene.cluster.apply, Seen(POD, now)))
        assert (kinds(asked), status) == ([], said)
        assert not scene.under_way.holds_back(scene.preemptor)


def test_a_last_victim_that_left_before_the_end_wakes_the_preemptor_at_once() -> None:
    """Whoever heard of its leaving was held back."""
    scene = Scene(a_low("first", "n0"), a_low("low", "n0"))
    gone = Gone(POD, a_low("low", "n0").build())
    asked, status = played(scene, others=lambda: scene.cluster.apply(gone))
    assert kinds(asked) == WRITES
    assert status is SKIP
    assert not scene.under_way.holds_back(scene.preemptor)
    other = Scene(a_low("first", "n0"), a_low("low", "n0"))
    _, failed = played(other, CONFLICT, others=lambda: other.cluster.apply(gone))
    assert failed.message == "preempting default/first: has been modified"


def test_nominations_that_are_written_are_cleared_first() -> None:
    scene = Scene(a_low("low", "n0"))
    for name, fields in (("written", {"nominatedNodeName": "n0"}), ("thought", {})):
        scene.nominate(name, 50)
        pod = a_high(name, priority=50).status(**fields, conditions=[{"type": "PodScheduled"}])
        scene.cluster.apply(Seen(POD, pod.build()))
    asked, _ = played(scene)
    assert kinds(asked) == ["PatchPodStatus", *WRITES]
    patch = asked[0]
    assert isinstance(patch, PatchPodStatus)
    assert (patch.pod.name, patch.nominated_node_name) == ("written", "")
    assert patch.condition_types == ("PodScheduled",)


def test_nominations_of_pods_that_went_or_are_others_now_are_not_written() -> None:
    for now in (None, a_high("less", priority=50).metadata(uid="another")):
        scene = Scene(a_low("low", "n0"))
        pod = scene.nominate("less", 50)
        scene.cluster.apply(Gone(POD, pod))
        if now is not None:
            written = now.status(nominatedNodeName="n0").build()
            scene.cluster.apply(Seen(POD, written))
        assert kinds(played(scene)[0]) == WRITES
    scene = Scene(a_low("low", "n0"))
    scene.nominate("less", 50)
    bare = a_high("less", priority=50).status(nominatedNodeName="n0").build()
    scene.cluster.apply(Seen(POD, bare))
    assert kinds(played(scene)[0]) == ["PatchPodStatus", *WRITES]


def test_what_another_scheduler_promised_is_not_ours_to_take_back() -> None:
    scene = Scene(a_low("low", "n0"))
    theirs = a_high("theirs", priority=50).status(nominatedNodeName="n0").build()
    scene.cluster.apply(Seen(POD, theirs))
    scene.nominator.add_of_others(theirs)
    asked, _ = played(scene)
    assert kinds(asked) == WRITES
    assert scene.nominated_amounts == {"theirs"}


@pytest.mark.parametrize("is_binding", [False, True])
def test_a_victim_that_waits_to_be_bound_is_turned_back_in_memory(is_binding: bool) -> None:
    scene = Scene(a_low("low", "n0"))
    (info,) = scene.cluster.placed.values()
    waiting = WaitingPod(info, "n0", "asched")
    waiting.stage = Stage.BINDING if is_binding else Stage.PERMIT
    scene.waiting.add(waiting)

    asked, status = played(scene)

    assert status.is_success
    if is_binding:
        assert kinds(asked) == WRITES
        return
    (event,) = asked
    assert isinstance(event, EmitEvent)
    assert event.note == "Preempted by pod uid-pre on node n0 (in kube-scheduler memory)."
    assert waiting.decision is not None
    assert waiting.decision.message == "preempted"
    assert not scene.under_way.holds_back(scene.preemptor), "nothing is to be seen of it"


@pytest.mark.parametrize(
    ("fields", "is_one"),
    [
        ({}, True),
        ({"status": "False"}, False),
        ({"reason": "EvictionByEvictionAPI"}, False),
        ({"type": "Ready"}, False),
    ],
)
def test_whom_a_scheduler_preempted_is_told_by_its_condition(
    fields: dict[str, str], is_one: bool
) -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    pod = a_low("low", "n0").status(conditions=[{**condition, **fields}])
    assert not is_preempted(pod.build()), "it does not go yet"
    assert is_preempted(pod.metadata(deletionTimestamp=STAMP).build()) == is_one
