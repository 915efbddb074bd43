"""The cycle of a pod group, played through the machine: preemption, errors, and whoever is odd."""

from typing import Any, ClassVar

import pytest

from asched.core.cluster.facts import Done, Refused, Seen
from asched.core.cluster.pods import PodInfo
from asched.core.framework.effects import Bind, DeletePod, PatchPodStatus
from asched.core.framework.points import PermitPlugin, ReservePlugin
from asched.core.framework.status import SUCCESS, Code, Status, unschedulable
from asched.core.model.kinds import NODE, POD, POD_GROUP
from tests.builders import a_node, a_pod
from tests.playbook import GANGS, Play, a_group, a_member, bound, places, room_for, seen_group
from tests.unit.core.cycle.group_attempts import nominated, notes_of

FULL_GROUP = "pod group is unschedulable, pod group is waiting for preemption to complete"
OTHER_FAILED = "failed to schedule other pod from a pod group: "


def a_play(*nodes: Any, plugins: Any = ()) -> Play:
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {
            "multiPoint": {
                "enabled": [
                    {"name": "GangScheduling"},
                    *({"name": plugin.name} for plugin in plugins),
                ]
            }
        },
    }
    return Play(*nodes, plugins=plugins, profiles=[profile])


# --- preemption ----------------------------------------------------------------------------------


def crowded(minus: int = 1) -> Play:
    """Room for three, of which `minus` is taken by pods of low priority."""
    play = a_play(room_for(3))
    for number in range(minus):
        play.see(a_pod(f"low-{number}").requests(cpu="1").priority(-1).on("room-for-3"))
    all_at_once(play, priority=5)
    return play


def all_at_once(play: Play, min_count: int = 3, priority: int = 0) -> None:
    """Three pods wait for their group, which lets them in one after the other."""
    for name in ("a", "b", "c"):
        play.see(a_member(name).priority(priority))
    seen_group(play, min_count=min_count)


def test_a_gang_that_fits_once_others_have_gone_waits_for_that_with_nominations() -> None:
    play = crowded()

    notes = notes_of(play)
    assert notes["a"] == notes["b"] == FULL_GROUP
    assert notes["c"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert nominated(play) == dict.fromkeys("abc", "room-for-3")
    patched = {e.pod.name: e.nominated_node_name for e in play.of(PatchPodStatus)}
    assert {patched[name] for name in "abc"} == {"room-for-3"}
    assert not places(play)
    assert not bound(play)


def test_while_victims_leave_the_nominations_of_its_own_pods_stand_in_nobodys_way() -> None:
    """Recorded from kube-scheduler 1.36.2: two of three fit beside the victim, and are told so."""
    play = crowded()
    evictions = [e for e in play.effects if e.wants_answer and e.answers]
    leaving = a_pod("low-0").requests(cpu="1").priority(-1).on("room-for-3")
    play.turn(*(Done(e.id) for e in evictions))
    play.turn(*(Done(e.id) for e in play.effects if e.wants_answer and e.answers))
    leaving.metadata(deletionTimestamp="2026-01-01T00:00:00Z", resourceVersion="2")
    leaving.status(
        conditions=[
            {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        ]
    )
    play.see(leaving)

    play.turn(after_s=3)

    waits = "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, "
    notes = notes_of(play)
    assert notes["a"].startswith(waits)
    assert notes["b"].startswith(waits)
    assert notes["c"] == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: not"
        " eligible due to a terminating pod on the nominated node."
    )
    assert nominated(play)["a"] is None


def evict(play: Play) -> list[str]:
    """Let every eviction of the last turn happen; the names of those who had to go."""
    gone = []
    while writes := [e for e in play.effects if e.wants_answer and e.answers]:
        deleted = [e for e in writes if isinstance(e, DeletePod)]
        play.turn(*(Done(e.id) for e in writes))
        for effect in deleted:
            gone.append(effect.pod.name)
            play.lose(a_pod(effect.pod.name).requests(cpu="1").priority(-1).on("room-for-3"))
    return gone


def test_once_the_victims_have_gone_all_pods_of_the_gang_are_bound_together() -> None:
    play = crowded()

    assert evict(play) == ["low-0"]
    play.turn(after_s=3)

    assert bound(play) == {"a", "b", "c"}


def test_nobody_is_evicted_for_a_gang_that_would_not_fit_even_then() -> None:
    """A node of two, one of them taken: evicting would make room for two of three."""
    play = a_play(room_for(2))
    play.see(a_pod("low").requests(cpu="1").priority(-1).on("room-for-2"))
    all_at_once(play, priority=5)

    assert not play.of(DeletePod)
    assert not [e for e in play.effects if e.wants_answer and e.answers]
    assert nominated(play) == dict.fromkeys("abc")
    waits = "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, "
    notes = notes_of(play)
    assert notes["a"].startswith(waits)
    assert notes["b"].startswith(waits)
    assert notes["c"].startswith("0/1 nodes are available")
    play.turn(Seen(NODE, a_node("more").allocatable(cpu="1", pods="9").build()), after_s=3)
    assert len(play.notes()) == 3, "nobody is held back for an eviction that never began"


# --- pods that fail ------------------------------------------------------------------------------


def test_a_group_without_a_gang_policy_goes_on_without_those_that_do_not_fit() -> None:
    play = a_play(room_for(2))
    seen_group(play, min_count=None)
    play.turn(*(Seen(POD, a_member(name).build()) for name in ("a", "b", "c")))

    assert bound(play) == {"a", "b"}
    assert notes_of(play)["c"].startswith("0/1 nodes are available: 1 Insufficient cpu.")


class Fragile(ReservePlugin):
    name = "Fragile"
    status: Status = SUCCESS

    def reserve(self, pod: PodInfo, node: str, data: Any) -> Status:
        return self.status if pod.pod.metadata.name == "b" else SUCCESS

    def unreserve(self, pod: PodInfo, node: str) -> None:
        type(self).undone.append(pod.pod.metadata.name)

    undone: ClassVar[list[str]] = []


@pytest.fixture(autouse=True)
def _sturdy() -> None:
    Fragile.status = SUCCESS
    Fragile.undone = []
    Slow.said = Status(Code.WAIT, ("not yet",))


def three_with(plugin: type, min_count: int = 3) -> Play:
    play = a_play(room_for(3), plugins=[plugin])
    all_at_once(play, min_count)
    return play


def test_an_error_of_one_pod_ends_the_attempt_of_all() -> None:
    Fragile.status = Status(Code.ERROR, ("the disk is on fire",))
    play = three_with(Fragile)

    own = 'running Reserve plugin "Fragile": the disk is on fire'
    assert notes_of(play) == {"a": OTHER_FAILED + own, "b": own, "c": OTHER_FAILED + own}
    reasons = {e.condition["reason"] for e in play.of(PatchPodStatus) if e.condition}
    assert reasons == {"SchedulerError"}
    assert Fragile.undone == ["b", "a"]
    assert not places(play)


def test_a_pod_that_reserve_rejects_fails_alone_if_the_others_are_enough() -> None:
    Fragile.status = unschedulable("no licence left")
    play = three_with(Fragile, min_count=2)

    assert bound(play) == {"a", "c"}
    assert notes_of(play)["b"] == "0/1 nodes are available: 1 no licence left."


class Slow(PermitPlugin):
    name = "Slow"
    said: Status = SUCCESS

    def permit(self, pod: PodInfo, node: str) -> tuple[Status, float]:
        return self.said, 60.0


def test_a_group_is_schedulable_only_once_permit_lets_one_of_its_pods_go() -> None:
    """kube-scheduler's rule: with a plugin that lets everybody wait no group ever is."""
    play = three_with(Slow)

    assert not bound(play)
    assert not places(play)
    # The quorum was there with the last pod: only the other plugin lets it wait.
    waits = "one or more plugins asked to wait and no plugin rejected pod"
    assert notes_of(play)["c"] == f"pod group is unschedulable, not yet, {waits}"


def test_pods_of_one_group_must_name_one_scheduler() -> None:
    both = [
        {**GANGS["profiles"][0], "schedulerName": name} for name in ("default-scheduler", "second")
    ]
    play = Play(room_for(3), profiles=both)
    seen_group(play)
    play.turn(
        Seen(POD, a_member("a").build()),
        Seen(POD, a_member("b").spec(schedulerName="second").build()),
        Seen(POD, a_member("c").build()),
    )

    said = (
        "all pods in a single pod group should have the same .spec.schedulerName set, got:"
        ' "default-scheduler" and "second"'
    )
    assert notes_of(play) == dict.fromkeys("abc", said)
    assert not places(play)


def test_the_more_important_pods_of_a_group_choose_first() -> None:
    play = a_play(room_for(1))
    seen_group(play, min_count=None)
    play.turn(
        Seen(POD, a_member("a").build()),
        Seen(POD, a_member("b").priority(7).build()),
        Seen(POD, a_member("c").priority(3).build()),
    )

    assert bound(play) == {"b"}


# --- two gangs -----------------------------------------------------------------------------------


def test_two_gangs_that_do_not_fit_together_do_not_hold_each_others_room() -> None:
    play = a_play(room_for(4))
    seen_group(play)
    play.turn(Seen(POD_GROUP, a_group("other")))
    mixed = [a_member(f"{name}{i}", group) for i in range(3) for name, group in PAIRS]
    play.turn(*(Seen(POD, pod.build()) for pod in mixed))

    first = bound(play)
    assert len(first) == 3
    assert len({name[0] for name in first}) == 1, "one gang whole, nobody of the other"


PAIRS = (("x", "crew"), ("y", "other"))


def test_a_binding_that_fails_costs_its_own_pod_alone() -> None:
    play = a_play(room_for(3))
    seen_group(play)
    play.turn(*(Seen(POD, a_member(name).build()) for name in ("a", "b", "c")))
    binds = {bind.pod.name: bind for bind in play.of(Bind)}

    play.answer(Refused(binds["b"].id, 403, "no", "Forbidden"))

    assert places(play) == {"a", "c"}
    play.turn(after_s=3)
    assert bound(play) == {"b"}, "the others still count for the gang"
