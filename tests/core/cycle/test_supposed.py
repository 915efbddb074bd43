"""Steps that run without some pods, turn by turn: who is there for them, and who for others."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from asched.batch.groups.attempt import GroupOutcome, Result
from asched.batch.groups.without_pods import MOVE_STEPS, without
from asched.core.config.v1 import Extender
from asched.core.framework.effects import AskExtender, EmitEvent, PatchPodStatus, Pause, ref_of
from asched.core.model.kinds import NODE, POD
from asched.core.state.audit import recount
from asched.core.state.budget import SLICE_STEPS
from asched.core.state.facts import Done, Gone, Seen
from asched.core.state.pods import PodInfo
from asched.core.state.supposition import Supposition
from tests.builders import a_cluster, a_node, a_pod

CLUSTER = (a_node("n1").allocatable(cpu="4", memory="8Gi", pods="10"),)
ENDED = GroupOutcome(Result.SCHEDULED, "")


class Scene:
    def __init__(self) -> None:
        pods = (a_pod("a").requests(cpu="1").on("n1"), a_pod("b").requests(cpu="2").on("n1"))
        self.cluster = a_cluster(*CLUSTER, pods=pods)
        self.seen: list[set[str]] = []
        self.answers: list[object] = []

    def pods(self, *names: str) -> list[PodInfo]:
        return [self.cluster.placed[f"uid-{name}"] for name in names]

    def names(self) -> set[str]:
        return {info.pod.metadata.name for info in self.cluster.pods_on(0).values()}

    def trial(self, *effects: Any) -> Any:
        """Asks for these, and looks who is there after each."""
        self.seen.append(self.names())
        for effect in effects:
            self.answers.append((yield effect))
            self.seen.append(self.names())
        return ENDED

    def run(self, steps: Any, others: Any = lambda: None) -> list[tuple[str, set[str]]]:
        """What was asked, and who was there then; `others` have a turn at each question."""
        asked: list[tuple[str, set[str]]] = []
        answer = None
        try:
            while True:
                effect = steps.send(answer)
                answer = None
                if effect.answers and effect.wants_answer:
                    answer = Done(effect.id)
                    asked.append((type(effect).__name__, self.names()))
                    others()
                else:
                    asked.append((f"({type(effect).__name__})", self.names()))
        except StopIteration as end:
            found = end.value
        assert found is ENDED
        assert recount(self.cluster) == []
        return asked


def event() -> EmitEvent:
    words = {"reason": "r", "action": "a", "note": "n", "reporting_controller": "c"}
    of = POD.reference(a_pod("x").build().metadata)
    return EmitEvent(regarding=of, type="Normal", **words)


def test_steps_are_without_them_and_others_are_not() -> None:
    scene = Scene()
    asked = scene.run(without(scene.cluster, scene.pods("a"), scene.trial(Pause(), Pause())))
    assert scene.seen == [{"b"}, {"b"}, {"b"}]
    assert asked == [("Pause", {"a", "b"})] * 2
    assert scene.answers == [Done(0), Done(0)]
    assert scene.names() == {"a", "b"}


def test_what_wants_no_answer_is_asked_once_all_are_back_and_in_order() -> None:
    scene = Scene()
    patch = PatchPodStatus(pod=ref_of(a_pod("x").build()), wants_answer=False)
    trial = scene.trial(event(), patch, Pause(), event())
    asked = scene.run(without(scene.cluster, scene.pods("a"), trial))
    names = ["(EmitEvent)", "(PatchPodStatus)", "Pause", "(EmitEvent)"]
    assert asked == [(name, {"a", "b"}) for name in names]
    assert scene.answers == [None, None, Done(0), None]
    assert scene.seen == [{"b"}] * 5


def test_who_goes_while_others_have_their_turn_does_not_come_back() -> None:
    scene = Scene()
    steps = without(scene.cluster, scene.pods("a", "b"), scene.trial(Pause(), Pause()))
    gone = a_pod("a").requests(cpu="1").on("n1").build()
    scene.run(steps, others=lambda: scene.cluster.apply(Gone(POD, gone)))
    assert scene.seen == [set(), set(), set()]
    assert scene.names() == {"b"}


def test_pods_whose_node_goes_meanwhile_are_without_one_for_steps_and_others() -> None:
    scene = Scene()
    steps = without(scene.cluster, scene.pods("a"), scene.trial(Pause()))
    scene.run(steps, others=lambda: scene.cluster.apply(Gone(NODE, CLUSTER[0].build())))
    assert scene.seen == [{"b"}, set()]
    assert set(scene.cluster.placed) == {"uid-a", "uid-b"}
    scene.cluster.apply(Seen(NODE, CLUSTER[0].build()))
    assert scene.names() == {"a", "b"}
    assert recount(scene.cluster) == []


def test_what_else_is_supposed_is_so_for_the_steps_alone() -> None:
    scene = Scene()
    told: list[bool] = []

    def beside(suppose: Supposition) -> Iterator[float]:
        yield 1.0
        told.append(True)
        suppose.also(lambda: told.append(False))

    def asks() -> Any:
        told.append(True)
        yield Pause()
        told.append(True)
        return ENDED

    scene.run(without(scene.cluster, [], asks(), beside), others=lambda: told.append(False))
    assert told == [True, True, False, False, True, True, False]


def test_few_pods_cost_no_turn_of_their_own() -> None:
    """The steps have a whole slice, and pay for what it took to begin it and to end it."""
    scene = Scene()
    budget = scene.cluster.budget
    left: list[float] = []

    def asks() -> Any:
        left.append(budget.left)
        yield Pause()
        return ENDED

    steps = without(scene.cluster, scene.pods("a", "b"), asks())
    assert not next(steps).is_alone
    assert budget.spent == 2 * MOVE_STEPS * 2
    assert left == [SLICE_STEPS]
    steps.close()


COUNT = 2 * SLICE_STEPS


def a_full_node() -> Any:
    pods = [a_pod(f"p{i}").requests(cpu="1m").on("n1") for i in range(COUNT)]
    node = a_node("n1").allocatable(cpu="4", memory="8Gi", pods=str(COUNT))
    return a_cluster(node, pods=pods)


def test_many_pods_go_and_come_back_in_slices_that_are_nobody_elses() -> None:
    cluster = a_full_node()
    budget, here = cluster.budget, cluster.pods_on(0)
    counts: list[int] = []

    def asks() -> Any:
        counts.append(len(here))
        while budget.spent < 2 * MOVE_STEPS * COUNT - SLICE_STEPS:
            budget.note(SLICE_STEPS)
            yield Pause()
            counts.append(len(here))
        yield AskExtender(extender=Extender(url_prefix=""), verb="filter", body={})
        counts.append(len(here))
        return ENDED

    steps = without(cluster, list(cluster.placed.values()), asks())
    asked: list[bool] = []
    spent = [0.0]
    for effect in steps:
        asked.append(effect.lets_others)
        assert len(here) == COUNT or not effect.lets_others
        assert cluster.is_supposed != effect.lets_others
        spent.append(budget.spent)
        budget.open()  # as the machine does for every turn
    assert recount(cluster) == []
    assert not cluster.is_supposed
    assert counts == [0] * len(counts)
    assert asked.count(True) == 1
    assert max(b - a for a, b in pairwise(spent)) <= 2 * SLICE_STEPS


def test_steps_that_are_given_up_leave_everybody_where_they_were() -> None:
    cluster = a_full_node()
    steps = without(cluster, list(cluster.placed.values()), iter(()))  # type: ignore[arg-type]
    assert next(steps).is_alone
    assert len(cluster.pods_on(0)) < COUNT
    steps.close()
    assert len(cluster.pods_on(0)) == COUNT
    assert recount(cluster) == []
    assert not cluster.is_supposed
