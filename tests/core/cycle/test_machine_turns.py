"""What the machine does around cycles: who answers whom, what counts, when it is due again."""

from collections.abc import Generator, Iterator
from itertools import count
from typing import Any

import pytest

from asched.core.config.defaults import configuration
from asched.core.cycle import parked, request_cycle
from asched.core.cycle.context import Attempt
from asched.core.cycle.group_trial import TRY_STEPS
from asched.core.cycle.request_cycle import Work
from asched.core.cycle.turn_limit import CountedLimit
from asched.core.framework.effects import (
    Bind,
    CallPlugin,
    CancelCall,
    DeletePod,
    Effect,
    Patch,
    ReadPod,
    Together,
    WaitFor,
)
from asched.core.framework.points import PermitPlugin, PreBindPlugin
from asched.core.framework.status import SUCCESS, Code, Status
from asched.core.model.kinds import NODE, POD, POD_GROUP
from asched.core.state.budget import SLICE_STEPS, Budget
from asched.core.state.facts import Answer, Bound, Done, Returned, Seen, Unknown
from asched.host.assemble import build_runners
from tests.builders import a_node, a_pod
from tests.core.cycle.playbook import Play
from tests.core.cycle.test_budget import a_play as a_slow_play
from tests.core.cycle.test_gang_plays import GANGS, a_group, a_member, bound
from tests.core.cycle.test_profile_gone import drop_profile

PROFILE = {"schedulerName": "default-scheduler"}


def parts_of(*steps: Effect) -> Generator[Effect, Answer, list[type[Answer]]]:
    answers = []
    for step in steps:
        answer = yield step
        answers.append(type(answer))
    return answers


def pre_bind(make: Any) -> type[PreBindPlugin]:
    """A plugin that does these steps before each binding; what they were answered is kept."""

    class Early(PreBindPlugin):
        name = "Early"
        heard: list[Any] = []  # noqa: RUF012 - of a class of its own

        def pre_bind_pre_flight(self, pod: Any, node: str) -> Status:
            return SUCCESS

        def pre_bind(self, pod: Any, node: str) -> Any:
            for effect in make():
                self.heard.append((yield effect))
            return SUCCESS

    return Early


def a_patch(name: str) -> Patch:
    return Patch(kind=NODE, namespace="", name=name, body={})


def two_at_once() -> list[Effect]:
    return [Together(parts=(parts_of(a_patch("x")), parts_of(a_patch("y"), a_patch("z"))))]


def test_steps_side_by_side_are_answered_once_all_have_ended() -> None:
    plugin = pre_bind(two_at_once)
    play = Play(a_node("n1"), plugins=[plugin])
    play.see(a_pod("web"))
    first, second = play.of(Patch)
    assert (first.name, second.name) == ("x", "y")
    play.answer(Done(second.id))
    third = play.the(Patch)
    play.answer(Done(first.id))
    assert (plugin.heard, play.of(Bind)) == ([], [])  # type: ignore[attr-defined]
    play.answer(Done(third.id))
    assert [answer.value for answer in plugin.heard] == [[[Done], [Done, Done]]]  # type: ignore[attr-defined]
    bind = play.the(Bind)
    turns = {effect.turn for effect in (first, second, third, bind)}
    assert len(turns) == 1, "all of them are one binding's"
    play.see(a_pod("other"))
    assert play.of(Patch)[0].turn not in turns


def test_a_binding_keeps_its_turn_whatever_it_asks() -> None:
    play = Play(a_node("n1"))
    play.see(a_pod("web"))
    bind = play.the(Bind)
    play.answer(Unknown(bind.id, "reset"))
    read = play.the(ReadPod)
    assert read.id != bind.id
    assert read.turn == bind.turn


def test_requests_of_a_binding_count_however_they_are_sent() -> None:
    play = Play(a_node("n1"), plugins=[pre_bind(two_at_once)])
    play.machine.bindings_max = 2
    play.see(a_pod("web"))
    first, second = play.of(Patch)
    play.see(a_pod("other"))
    assert play.effects == []
    play.answer(Done(first.id))
    assert len(play.of(Patch)) == 2, "there is room for one request more, and who asks has two"
    play.answer(Done(second.id))
    assert [patch.name for patch in play.of(Patch)] == ["z"]


@pytest.mark.parametrize("binds", [False, True])
def test_a_coroutine_counts_as_a_request_if_it_binds(binds: bool) -> None:
    async def think() -> None: ...

    play = Play(
        a_node("n1"), plugins=[pre_bind(lambda: [CallPlugin(plugin="E", call=think, binds=binds)])]
    )
    play.machine.bindings_max = 1
    play.see(a_pod("web"))
    play.see(a_pod("other"))
    assert len(play.of(CallPlugin)) == (0 if binds else 1)


def test_a_coroutine_that_nobody_waits_for_any_more_is_ended_once() -> None:
    async def think() -> None: ...

    gone: set[str] = set()
    call = {"plugin": "E", "call": think, "on": ((POD.resource, "default/web"),)}
    made: list[CallPlugin] = []

    def ask() -> list[Effect]:
        made.append(CallPlugin(**call, ready=lambda: "web" in gone))
        return [made[-1]]

    play = Play(a_node("n1"), plugins=[pre_bind(ask)])
    play.see(a_pod("web"))
    asked = play.the(CallPlugin)
    gone.add("web")
    play.see(a_pod("web").metadata(resourceVersion="2"))
    assert play.the(CancelCall).call_id == asked.id
    assert play.the(Bind).pod.name == "web"
    play.answer(Done(asked.id))
    assert play.effects == [], "it was answered"


def test_a_coroutine_that_has_ended_is_not_ended_again() -> None:
    async def think() -> None: ...

    topic = (POD.resource, "default/web")
    gone: set[str] = set()
    call = CallPlugin(plugin="E", call=think, on=(topic,), ready=lambda: "web" in gone)
    play = Play(a_node("n1"), plugins=[pre_bind(lambda: [call])])
    play.see(a_pod("web"))
    play.answer(Returned(play.the(CallPlugin).id, None))
    assert play.the(Bind).pod.name == "web"
    gone.add("web")
    play.see(a_pod("web").metadata(resourceVersion="2"))
    assert play.effects == []
    assert len(play.machine._waits) == 0


def test_a_wait_that_follows_another_one_is_asked_about_at_once() -> None:
    on = ((POD.resource, "default/web"),)
    waits = [WaitFor(ready=lambda: True, timeout_s=600.0, on=on) for _ in range(3)]
    play = Play(a_node("n1"), plugins=[pre_bind(lambda: waits)])
    play.see(a_pod("web"))
    found = bound(play)
    while play.machine.next_deadline_s() == 0.0:
        play.turn()
        found |= bound(play)
    assert found == {"web"}, "though nothing has moved, and nobody's patience ended"


def steps_of_two_slices(budget: Budget) -> Iterator[None]:
    for _ in range(2):
        budget.note(SLICE_STEPS)
        yield


def test_nobody_is_tried_before_all_have_heard_of_what_a_turn_began_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play = Play(a_node("n1"))
    queue = play.machine.context.queue

    def tell(_: object) -> None:
        if not queue.sliced:
            queue.sliced.do(steps_of_two_slices(queue.sliced.budget))

    monkeypatch.setattr(queue, "tick", tell)
    play.see(a_pod("web"))
    monkeypatch.undo()
    assert queue.sliced
    assert bound(play) == set()
    assert play.machine.next_deadline_s() == 0.0
    while not bound(play):
        play.turn()
    assert not queue.sliced


def test_nobody_is_tried_before_all_have_heard_of_what_an_attempt_did() -> None:
    class Loud(PermitPlugin):
        name = "Loud"

        def permit(self, pod: Any, node: str) -> tuple[Status, float]:
            sliced = play.machine.context.queue.sliced
            if pod.pod.metadata.name == "p0":
                sliced.do(steps_of_two_slices(sliced.budget))
            return SUCCESS, 0.0

    play = Play(a_node("n1"), plugins=[Loud])
    play.turn(*(Seen(POD, a_pod(f"p{i}").build()) for i in range(2)))
    assert bound(play) == {"p0"}
    assert play.machine.next_deadline_s() == 0.0
    while play.machine.context.queue.sliced:
        play.turn()
    assert bound(play) == {"p1"}


def test_looks_that_were_not_finished_go_on_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play(a_node("n1"))
    looking = play.machine.context.queue.looking
    monkeypatch.setattr(looking, "wake_next", lambda _: setattr(looking, "is_unfinished", True))
    play.turn()
    assert play.machine.next_deadline_s() == 0.0
    monkeypatch.undo()
    play.turn()
    assert play.machine.next_deadline_s() is None


class Pairs(PermitPlugin):
    """The second of two lets the first go."""

    name = "Pairs"
    play: Play

    def permit(self, pod: Any, node: str) -> tuple[Status, float]:
        if pod.pod.metadata.name == "first":
            return Status(Code.WAIT), 60.0
        waiting = self.play.machine.context.waiting.get("uid-first")
        assert waiting is not None
        waiting.allow("Pairs")
        return SUCCESS, 0.0


def test_who_is_let_go_by_a_cycle_goes_on_in_the_same_turn() -> None:
    pairs = type("Pairs", (Pairs,), {})
    play = Play(a_node("n1"), plugins=[pairs])
    pairs.play = play
    play.see(a_pod("first"))
    assert bound(play) == set()
    play.see(a_pod("second"))
    assert bound(play) == {"first", "second"}


def test_rows_are_given_back_only_while_nothing_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    play = a_slow_play()
    told: list[bool] = []
    begin = play.parts.cluster.begin_turn

    def noted(now_s: float, *, is_quiet: bool) -> None:
        told.append(is_quiet)
        begin(now_s, is_quiet=is_quiet)

    monkeypatch.setattr(play.parts.cluster, "begin_turn", noted)
    play.see(a_pod("web"))
    bind = play.the(Bind)
    play.bound(bind)
    play.see(a_pod("slow").labels(slow="yes"))
    play.turn()
    assert told == [True, False, True, False], "open: a binding, then an attempt that paused"


def test_each_part_of_a_turn_has_a_slice_of_its_own_and_between_turns_nobody_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play = Play(a_node("n1"))
    context, cluster = play.machine.context, play.parts.cluster
    sliced = context.queue.sliced
    apply, tick = cluster.apply, context.queue.tick
    left: list[float] = []

    def applying(fact: Any) -> Any:
        left.append(cluster.budget.left)
        cluster.budget.note(SLICE_STEPS)
        sliced.budget.note(SLICE_STEPS - 1)
        return apply(fact)

    def ticking(now_s: float) -> None:
        left.append(sliced.budget.left)
        tick(now_s)

    monkeypatch.setattr(cluster, "apply", applying)
    monkeypatch.setattr(context.queue, "tick", ticking)
    for _ in range(2):
        play.see(a_pod("web").gated("later"))
    assert left == [SLICE_STEPS] * 4
    for budget in (cluster.budget, sliced.budget):
        budget.note(1e9)
        assert not budget.is_used_up


def an_attempt(play: Play, name: str) -> Attempt:
    """At a pod that was taken from the queue, as one that is parked."""
    context = play.machine.context
    play.machine.is_active = False
    play.see(a_pod(name))
    play.machine.is_active = True
    queued = context.queue.pop(play.now_s)
    assert queued is not None
    info = context.cluster.classes.info_of(queued.pod)
    return Attempt(7, queued, info, context.runners["default-scheduler"], 0.0)


def test_who_is_parked_is_no_reason_for_a_turn_while_too_many_bindings_are_open() -> None:
    play = Play(a_node("n1"))
    play.machine._parked.add(an_attempt(play, "web"))
    play.machine.bindings_max = 0
    play.turn()
    assert play.effects == []
    assert play.machine.next_deadline_s() is None, "it would turn round and round"
    play.machine.bindings_max = 1
    play.turn()
    assert bound(play) == {"web"}


def test_who_was_parked_is_judged_by_the_profile_of_now_and_from_now() -> None:
    play = Play(a_node("n1"))
    context = play.machine.context
    attempt = an_attempt(play, "web")
    play.machine._parked.add(attempt)
    now = next(iter(build_runners(configuration({"profiles": [PROFILE]}), play.parts).values()))
    context.runners, context.counter_s = {"default-scheduler": now}, lambda: 5.0
    play.turn()
    assert bound(play) == {"web"}
    assert attempt.runner is now
    assert attempt.started_s == 5.0


def test_who_was_parked_and_has_no_profile_any_more_is_let_go() -> None:
    play = Play(a_node("n1"))
    play.machine._parked.add(an_attempt(play, "web"))
    play.machine._parked.add(an_attempt(play, "other"))
    drop_profile(play)
    play.turn()
    assert bound(play) == set()
    assert len(play.machine.context.queue.in_flight) == 0


def test_a_popped_pod_without_a_profile_is_let_go() -> None:
    play = Play(a_node("n1"))
    play.machine.is_active = False
    play.see(a_pod("web"))
    play.machine.context.runners = {}
    play.machine.is_active = True
    play.turn()
    assert len(play.machine.context.queue.in_flight) == 0


def test_nobody_is_popped_while_as_many_wait_for_others_as_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play = Play(a_node("n1"))
    monkeypatch.setattr(parked, "PARKED_MAX", 0)
    play.see(a_pod("web"))
    assert bound(play) == set()
    monkeypatch.setattr(parked, "PARKED_MAX", 1)
    play.turn()
    assert bound(play) == {"web"}


def test_while_the_trial_of_a_group_is_open_no_other_group_is_tried() -> None:
    count = SLICE_STEPS // TRY_STEPS + 5
    play = Play(a_node("n").allocatable(cpu="1k", memory="1Ti", pods="1k"), **GANGS)
    play.turn(Seen(POD_GROUP, a_group("a", count)), Seen(POD_GROUP, a_group("b", 2)))
    play.turn(*(Seen(POD, a_member(f"a{i:03}", "a").build()) for i in range(count)))
    assert bound(play) == set(), "it paused"
    play.machine.limit = CountedLimit(100, resumed=False)
    play.turn(*(Seen(POD, a_member(name, "b").build()) for name in ("b0", "b1")))
    assert bound(play) == set()
    play.see(a_pod("single"))
    assert bound(play) == {"single"}
    found: set[str] = set()
    while play.machine.next_deadline_s() == 0.0:
        play.turn()
        found |= bound(play)
    assert len(found) == count + 2


def test_bindings_of_a_large_group_are_begun_in_turns_of_their_own() -> None:
    play = Play(a_node("n").allocatable(cpu="1k", memory="1Ti", pods="1k"), **GANGS)
    play.turn(Seen(POD_GROUP, a_group(min_count=4)))
    play.machine.limit = CountedLimit(0)
    play.turn(*(Seen(POD, a_member(f"m{i}").build()) for i in range(4)))
    found = [bound(play)]
    while play.machine.next_deadline_s() == 0.0:
        play.turn(*(Bound(bind.id) for bind in play.of(Bind)))
        found.append(bound(play))
        if sum(map(len, found)) < 4:
            assert not play.machine.is_idle
    assert [len(some) for some in found if some] == [1, 1, 1, 1]


def test_an_attempt_that_paused_waits_while_others_are_tried_though_nothing_comes() -> None:
    play = a_slow_play(parts=2)
    play.machine.limit = CountedLimit(0)
    play.see(a_pod("slow").labels(slow="yes"))
    play.turn(*(Seen(POD, a_pod(f"p{i}").build()) for i in range(3)))
    found = [bound(play)]
    for _ in range(4):
        play.turn()
        found.append(bound(play))
    assert [len(some) for some in found[:3]] == [1, 1, 1]
    assert "slow" not in set.union(*found[:3])
    assert "slow" in set.union(*found[3:])


def test_evictions_are_no_bindings_and_hold_nobody_up() -> None:
    play = Play(a_node("n1").allocatable(cpu="1", memory="1Gi", pods="10"))
    play.see(a_pod("victim").requests(cpu="1").on("n1"))
    play.machine.bindings_max = 1
    play.see(a_pod("important").requests(cpu="1").priority(10))
    assert bound(play) == set()
    play.see(a_pod("web"))
    assert bound(play) == {"web"}
    assert not play.of(DeletePod)


def test_it_is_known_how_long_the_last_turns_facts_took() -> None:
    play = Play(a_node("n1"))
    assert play.machine.intake_s == 0.0
    play.machine.context.counter_s = count(5.0, 1.0).__next__
    play.see(a_pod("web").gated("later"))
    assert play.machine.intake_s == 3.0, "the clock is asked at both ends, and twice for a fact"


def test_an_attempt_at_a_request_is_a_cycle_and_a_write_is_none() -> None:
    """While it waits for somebody, pods that would have to wait as well are put aside."""
    play = Play(a_node("n1"))
    deciding: list[bool] = []

    def due(_: Any) -> Iterator[Work]:
        for decides in (False, True):
            yield Work(asking(), decides=decides)
            deciding.append(play.machine.is_deciding)

    def asking() -> Iterator[Any]:
        yield Patch(kind=POD, namespace="default", name="x", body={})

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(request_cycle, "due", due)
        play.turn()
    assert deciding == [False, True]
    write, attempt = play.of(Patch)
    assert play.machine.is_deciding
    play.turn(Done(write.id))
    assert play.machine.is_deciding
    play.turn(Done(attempt.id))
    assert not play.machine.is_deciding
