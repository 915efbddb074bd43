"""Preemptors from their first attempt to their node, in a small world that answers every effect."""

from collections import Counter
from typing import ClassVar

import msgspec
import numpy as np
import pytest

from asched.core.cluster.facts import Bound, Done, Fact, Gone, Refused, Returned, Seen, Unknown
from asched.core.framework.effects import (
    Bind,
    CallPlugin,
    CancelCall,
    DeletePod,
    Effect,
    EmitEvent,
    MarkVictim,
    PatchPodStatus,
)
from asched.core.framework.points import FilterPlugin, PermitPlugin
from asched.core.framework.status import SUCCESS, Code, Status
from asched.core.model.kinds import POD
from asched.core.model.pod import Pod, PodCondition
from tests.builders import a_node, a_pod
from tests.playbook import Play
from tests.unit.core.preemption.stage import a_high, a_low

TURNS_MAX = 200


class World:
    """The API server's side: pods by key. A deleted pod terminates first and goes a turn later."""

    def __init__(self, play: Play) -> None:
        self.play = play
        self.pods: dict[str, Pod] = {}
        self.leaving: list[Pod] = []
        self.log: list[Effect] = []
        self.notes: list[str] = []
        self.goes_at_once = True

    def add(self, *pods: Pod) -> None:
        for pod in pods:
            self.pods[pod.key] = pod
        self.play.turn(*(Seen(POD, pod) for pod in pods))

    def run(self) -> None:
        """Answer until nothing is asked any more."""
        for _ in range(TURNS_MAX):
            effects = self.play.effects
            facts: list[Fact] = []
            if self.goes_at_once:
                facts += [Gone(POD, self.pods.pop(pod.key)) for pod in self.leaving]
                self.leaving = []
            for effect in effects:
                facts += self.answers(effect)
            if not facts and not effects and self.play.machine.next_deadline_s() != 0.0:
                return
            self.play.turn(*facts, after_s=0.01)
        raise AssertionError("the world does not come to rest")

    def answers(self, effect: Effect) -> list[Fact]:
        self.log.append(effect)
        match effect:
            case EmitEvent():
                self.notes.append(f"{effect.reason} {effect.regarding.name}: {effect.note}")
                return []
            case Bind():
                return [Bound(effect.id), self._put(self.pods[effect.pod.key].on(effect.node))]
            case PatchPodStatus():
                pod = self.pods.get(effect.pod.key)
                if pod is None:
                    return [Refused(effect.id, 404, "not found")]
                return [Done(effect.id), self._put(_patched(pod, effect))]
            case DeletePod():
                pod = self.pods.get(effect.pod.key)
                if pod is None:
                    return [Refused(effect.id, 404, "not found")]
                self.leaving.append(pod)
                stamped = msgspec.structs.replace(
                    pod.metadata, deletion_timestamp="2026-01-01T01:00:00Z"
                )
                return [
                    Done(effect.id),
                    self._put(msgspec.structs.replace(pod, metadata=stamped)),
                ]
        raise AssertionError(effect)

    def _put(self, pod: Pod) -> Seen:
        self.pods[pod.key] = pod
        return Seen(POD, pod)

    def count(self, kind: type[Effect]) -> int:
        return sum(type(effect) is kind for effect in self.log)


def _patched(pod: Pod, patch: PatchPodStatus) -> Pod:
    status = pod.status
    if patch.nominated_node_name is not None:
        status = msgspec.structs.replace(status, nominated_node_name=patch.nominated_node_name)
    if patch.condition is not None:
        fields = patch.condition
        old = pod.condition(fields["type"]) or PodCondition(type=fields["type"])
        known = {"status", "reason", "message"} & fields.keys()
        new = msgspec.structs.replace(old, **{name: fields[name] for name in known})
        others = [c for c in status.conditions or () if c.type != new.type]
        status = msgspec.structs.replace(status, conditions=(*others, new))
    return msgspec.structs.replace(pod, status=status)


def full_world(nodes: int, per_node: int = 3) -> World:
    """Every node has 4 CPUs and so many pods of one CPU each."""
    play = Play(*(a_node(f"n{i}").allocatable(cpu="4") for i in range(nodes)))
    world = World(play)
    world.add(
        *(
            a_low(f"low-{i}-{j}", f"n{i}", start=j).spec(schedulerName="other").build()
            for i in range(nodes)
            for j in range(per_node)
        )
    )
    return world


def test_one_preemptor_evicts_what_it_must_and_takes_the_place() -> None:
    world = full_world(1, per_node=4)
    world.add(a_high("pre").build())
    assert world.play.parts.nominator.node_of("uid-pre") == "n0"
    world.run()
    assert world.pods["default/pre"].spec.node_name == "n0"
    assert sorted(world.pods) == ["default/low-0-0", "default/low-0-1", "default/pre"]
    marks = [effect for effect in world.log if isinstance(effect, MarkVictim)]
    assert [mark.pod.name for mark in marks] == ["low-0-2", "low-0-3"]
    assert marks[0].condition_types == ("DisruptionTarget",)
    assert marks[0].condition == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": "default-scheduler: preempting to accommodate a higher priority pod",
        "lastTransitionTime": "1970-01-01T00:16:40Z",
        "lastProbeTime": None,
    }
    assert "Preempted low-0-2: Preempted by pod uid-pre on node n0" in world.notes
    assert world.play.machine.is_idle


@pytest.mark.parametrize("count", [5, 40])
def test_as_many_preemptors_as_nodes_all_get_one(count: int) -> None:
    world = full_world(count)
    world.add(*(a_high(f"pre{i}", cpu="3").build() for i in range(count)))
    world.run()
    placed = [world.pods[f"default/pre{i}"].spec.node_name for i in range(count)]
    assert sorted(placed) == sorted(f"n{i}" for i in range(count))
    assert world.count(DeletePod) == 2 * count
    assert world.count(MarkVictim) == 2 * count
    assert (
        Counter(effect.pod.key for effect in world.log if type(effect) is DeletePod).most_common(1)[
            0
        ][1]
        == 1
    )
    assert len(world.play.parts.nominator) == 0
    tried_in_vain = [note for note in world.notes if note.startswith("FailedScheduling pre")]
    assert len(tried_in_vain) == count, "departures elsewhere wake nobody who cannot profit"


def test_all_but_the_last_victim_go_at_once_and_the_preemptor_waits_meanwhile() -> None:
    world = full_world(1, per_node=4)
    world.add(a_high("pre", cpu="4").build())
    asked = world.play.of(MarkVictim)
    assert [mark.pod.name for mark in asked] == ["low-0-0", "low-0-1", "low-0-2"]
    gate = world.play.machine.context.runners["default-scheduler"].profile.plugins[
        "DefaultPreemption"
    ]
    status = gate.pre_enqueue(world.pods["default/pre"])
    assert status.message == "waiting for the preemption for this pod to be finished"
    world.run()
    assert gate.pre_enqueue(world.pods["default/pre"]).is_success
    assert world.pods["default/pre"].spec.node_name == "n0"


def test_a_failed_eviction_is_begun_again_after_the_preemptors_backoff() -> None:
    world = full_world(1, per_node=1)
    world.add(a_high("pre", cpu="4").build())
    mark = world.play.the(MarkVictim)
    world.play.turn(Unknown(mark.id, "no answer"))
    assert not world.play.of(MarkVictim)
    world.play.turn(after_s=2.0)
    assert [effect.pod.name for effect in world.play.of(MarkVictim)] == ["low-0-0"]
    world.run()
    assert world.pods["default/pre"].spec.node_name == "n0"


def test_a_less_important_nominated_pod_loses_its_promise() -> None:
    world = full_world(1, per_node=4)
    world.add(a_high("middle", priority=100).build())
    world.add(a_high("top", cpu="4", priority=2000).build())
    world.run()
    assert world.pods["default/top"].spec.node_name == "n0"
    assert world.pods["default/middle"].status.nominated_node_name == ""
    assert world.play.parts.nominator.node_of("uid-middle") is None


def test_a_victim_that_went_while_the_others_were_evicted_holds_nobody_back() -> None:
    """1. The last victim goes by itself while the preemptor is held back. 2. So it hears nothing
    of it. 3. Once the others are through it is tried all the same.
    """
    world = full_world(1, per_node=4)
    world.add(a_high("pre", cpu="4").build())
    marks = world.play.of(MarkVictim)
    last = world.pods.pop("default/low-0-3")
    world.play.turn(Gone(POD, last), after_s=2)
    facts = [fact for mark in marks for fact in world.answers(mark)]
    world.play.turn(*facts)
    deletes = world.play.of(DeletePod)
    gone = [Gone(POD, world.pods.pop(delete.pod.key)) for delete in deletes]
    world.play.turn(*gone, after_s=2)
    assert not world.play.of(Bind), "not before all of them are through"
    world.play.turn(*(Done(delete.id) for delete in deletes), after_s=2)
    assert [bind.pod.name for bind in world.play.of(Bind)] == ["pre"]


def test_a_victim_whose_binding_failed_is_not_deleted() -> None:
    """It takes no room any more, and it only waits like everybody else."""
    play = Play(a_node("n0").allocatable(cpu="4"))
    world = World(play)
    world.add(a_low("low", "n0", cpu="2").spec(schedulerName="other").build())
    world.add(a_pod("late").requests(cpu="2").spec(priority=0).build())
    bind = play.the(Bind)
    world.add(a_high("pre", cpu="4").build())
    mark = play.the(MarkVictim)
    assert mark.pod.name == "low", "late is the last one"
    play.turn(Refused(bind.id, 403, "no"), after_s=2)
    play.turn(*world.answers(mark))
    world.run()
    assert "default/late" in world.pods
    assert not world.pods["default/late"].is_terminating
    assert world.pods["default/pre"].spec.node_name == "n0"


class Thinking(PermitPlugin, FilterPlugin):
    """Lets `slow` wait, thinks about it for good, and counts attempts."""

    name = "Thinking"
    attempts: ClassVar[list[str]] = []

    def permit(self, pod, node) -> tuple[Status, float]:
        return (Status(Code.WAIT), 600.0) if pod.pod.metadata.name == "slow" else (SUCCESS, 0.0)

    def permit_late(self, pod, node):
        yield CallPlugin(plugin=self.name, call=lambda: None)
        return SUCCESS

    def filter(self, pod, nodes, data):
        self.attempts.append(pod.pod.metadata.name)
        assert len(self.attempts) < 100, "it is tried again and again"
        return np.zeros(nodes.size, dtype=np.int32)


def test_a_pod_that_is_deleted_at_permit_holds_no_place_though_its_plugin_still_thinks() -> None:
    """1. A pod waits at Permit. 2. It is deleted. 3. Nobody waits for its plugin's answer."""
    Thinking.attempts.clear()
    play = Play(a_node("n0").allocatable(cpu="4"), plugins=[Thinking])
    slow = a_pod("slow").requests(cpu="3").spec(priority=0).build()
    play.see(slow)
    thinking = play.the(CallPlugin)
    play.turn(Gone(POD, slow))
    assert play.the(CancelCall).call_id == thinking.id
    assert play.node_of("uid-slow") == ""
    play.see(a_high("pre", cpu="4").build())
    bind = play.the(Bind)
    assert bind.pod.name == "pre"
    play.turn(Returned(thinking.id, None))  # it had ended just before
    play.bound(bind)
    assert play.machine.is_idle


class Patience(PermitPlugin):
    """Pods named `slow…` wait for a permission that nobody gives."""

    name = "Patience"

    def permit(self, pod, node) -> tuple[Status, float]:
        waits = pod.pod.metadata.name.startswith("slow")
        return (Status(Code.WAIT), 600.0) if waits else (SUCCESS, 0.0)


def test_a_victim_that_waits_for_a_permit_is_turned_back_in_memory() -> None:
    play = Play(a_node("n0").allocatable(cpu="4"), plugins=[Patience])
    world = World(play)
    world.add(a_pod("slow").requests(cpu="3").spec(priority=0).build())
    world.add(a_high("pre", cpu="4").build())
    world.run()
    assert world.pods["default/pre"].spec.node_name == "n0"
    assert world.pods["default/slow"].spec.node_name == ""
    assert world.count(DeletePod) == world.count(MarkVictim) == 0
    note = "Preempted by pod uid-pre on node n0 (in kube-scheduler memory)."
    assert f"Preempted slow: {note}" in world.notes
