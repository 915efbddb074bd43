"""Why a start that was promised cannot be kept: one cause, the one that explains the others."""

from typing import Any

import pytest
from msgspec.structs import replace

from asched.batch.backfill.causes import CAUSES, named, why_moved
from asched.core.model.kinds import NODE, POD
from asched.core.model.timestamp import rfc3339
from asched.core.state.ends import GRACE_S
from asched.core.state.facts import Gone, Seen
from asched.core.state.holds import HeldAmounts, HeldPlace
from asched.core.state.reservations import (
    POD_OWNER,
    NodeNeed,
    Reservation,
    Reservations,
    StartOrder,
)
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.core.cycle.batch_stage import Batch, two_full_nodes
from tests.core.cycle.playbook import Play

NOW_S = 1_000_000.0
START = "1970-01-12T14:03:20Z"


def room(name: str) -> NodeBuilder:
    return a_node(name).allocatable(cpu="4", memory="8Gi", pods="10")


class Scene:
    def __init__(self, *placed: PodBuilder) -> None:
        self.play = Play(room("n1"), room("n2"))
        self.play.machine.is_active = False
        self.cluster = self.play.parts.cluster
        self.cluster.wall_clock_s = NOW_S
        self.apply(*(Seen(POD, pod.build()) for pod in placed))
        self.ledger = self.cluster.singleton(Reservations)
        self.like = self.cluster.classes.info_of(a_pod("like").requests(cpu="3").build())

    def apply(self, *facts: Any) -> None:
        for fact in facts:
            self.cluster.apply(fact)

    def reserve(
        self, owner: str = "default/crew", since_s: float = 1.0, **more: Any
    ) -> Reservation:
        one = Reservation(
            owner,
            "default-scheduler",
            StartOrder(0, since_s, 0),
            NOW_S + 1000,
            NOW_S + 2000,
            True,
            {more.pop("node", "n1"): NodeNeed({"cpu": 3000}, 1)},
            (self.like,),
            NOW_S + 1000,
            **more,
        )
        self.ledger.put(one)
        return one

    def why(self, one: Reservation) -> tuple[str, str]:
        kind, words = why_moved(self.play.machine.context, one)
        assert kind in CAUSES
        return kind, words


def test_a_node_that_went_or_was_cordoned() -> None:
    scene = Scene()
    one = scene.reserve()
    assert scene.why(one)[0] == "rules"
    scene.apply(Seen(NODE, room("n1").cordoned().build()))
    assert scene.why(one) == ("node", "node n1 was cordoned")
    scene.apply(Gone(NODE, room("n1").build()))
    assert scene.why(one) == ("node", "node n1 went")


def test_somebody_who_does_not_end_as_was_expected() -> None:
    late = a_pod("late").requests(cpu="1").on("n1")
    scene = Scene(late)
    one = scene.reserve(awaited=(("default/late", "uid-late"),), there=frozenset({"uid-late"}))
    expected = f"pod default/late does not end by {START}, as was expected"
    assert scene.why(one) == ("overrun", expected)
    scene.apply(Gone(POD, late.build()))
    assert scene.why(one)[0] == "rules"


def test_somebody_who_ends_in_time_is_no_cause_before_the_start_has_come() -> None:
    """Of two who had to end one is known to; the other has lost what ended it."""
    known = a_pod("known").requests(cpu="1").on("n1").spec(activeDeadlineSeconds=1000 - GRACE_S)
    late = a_pod("late").requests(cpu="1").on("n1")
    there = frozenset({"uid-known", "uid-late"})
    awaited = ("default/known", "uid-known"), ("default/late", "uid-late")
    scene = Scene(known.status(startTime=rfc3339(NOW_S)), late)
    assert scene.why(scene.reserve(awaited=awaited[:1], there=there))[0] == "rules"
    one = scene.reserve(awaited=awaited, there=there)
    words = f"pod {{}} does not end by {START}, as was expected"
    assert scene.why(one) == ("overrun", words.format("default/late"))
    scene.cluster.wall_clock_s = one.start_s
    assert scene.why(one) == ("overrun", words.format("default/known")), "it should have by now"
    scene.apply(Gone(POD, known.build()))
    assert scene.why(one) == ("overrun", words.format("default/late"))


def test_somebody_who_goes_before_and_was_moved_there() -> None:
    scene = Scene()
    one = scene.reserve(made_s=5.0)
    scene.reserve("default/elsewhere", since_s=0.0, made_s=9.0, node="n2")
    scene.reserve("default/later", since_s=2.0, made_s=9.0)
    scene.reserve("default/long-since", since_s=0.0, made_s=1.0)
    scene.reserve("default/equal", since_s=1.0, made_s=9.0)
    assert scene.why(one)[0] == "rules"
    scene.reserve("default/first", since_s=0.0, made_s=5.0)
    assert scene.why(one) == ("order", "podgroup default/first goes before it and was moved there")


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        (a_pod("new").priority(9), ", which is more important"),
        (a_pod("new").spec(schedulerName="another"), " by another scheduler"),
        (a_pod("new").spec(schedulerName="default-scheduler"), ", whose profile has no Backfill"),
    ],
)
def test_somebody_who_came(pod: PodBuilder, words: str) -> None:
    scene = Scene(a_pod("old").on("n1"))
    one = scene.reserve(there=frozenset({"uid-old"}))
    assert scene.why(one)[0] == "rules"
    scene.apply(Seen(POD, pod.on("n1").build()))
    assert scene.why(one) == ("arrival", f"pod default/new came to node n1{words}")


def kept_by_all() -> tuple[Batch, Reservation]:
    """Room on n1 for somebody of 3 CPUs, in a profile that keeps promises."""
    play = two_full_nodes()
    play.machine.is_active = False
    cluster = play.parts.cluster
    like = cluster.classes.info_of(a_pod("like").requests(cpu="3").build())
    needs, order = {"n1": NodeNeed({"cpu": 3000}, 1)}, StartOrder(0, 1.0, 0)
    there = frozenset(info.pod.uid for info in cluster.pods_on(0).values())
    crew = "default/crew", "default-scheduler", order
    return play, Reservation(*crew, 2e9, 3e9, True, needs, (like,), 2e9, there)


def test_somebody_who_came_and_has_the_same_promise_to_keep_to() -> None:
    """One of the same kind, and one whom nothing here explains."""
    play, one = kept_by_all()
    cluster, (like,) = play.parts.cluster, one.likes
    other = cluster.classes.info_of(a_pod("another").requests(cpu="2").build())
    one = replace(one, likes=(other, like))
    came = a_pod("came").requests(cpu="3").spec(schedulerName="default-scheduler").on("n1")
    cluster.apply(Seen(POD, came.build()))
    told = why_moved(play.machine.context, one)
    assert told == ("arrival", "pod default/came came to node n1, which is like it")
    unlike = replace(one, likes=(other,))
    told = why_moved(play.machine.context, unlike)
    assert told == ("arrival", "pod default/came came to node n1")


def test_who_left_it_enough_when_he_came_is_not_blamed_for_who_took_the_rest() -> None:
    play, one = kept_by_all()
    cluster = play.parts.cluster
    for name, scheduler in (("beside", "default-scheduler"), ("taker", "another")):
        cluster.apply(Seen(POD, a_pod(name).spec(schedulerName=scheduler).on("n1").build()))
    words = "pod default/taker came to node n1 by another scheduler"
    assert why_moved(play.machine.context, one) == ("arrival", words)


def test_room_that_is_held_for_others() -> None:
    scene = Scene()
    one = scene.reserve()
    scene.cluster.holds.put("x", [HeldPlace(HeldAmounts({"cpu": 1}), "n1")])
    assert scene.why(one) == ("hold", "room is held for others on node n1")


def test_owners_as_people_call_them() -> None:
    one = Scene().reserve()
    assert named("scheduling.x-k8s.io:default/crew", one) == "podgroup default/crew"
    assert named("default/crew", one) == "podgroup default/crew"
    assert named(f"{POD_OWNER}uid", one) == "pod default/like"
