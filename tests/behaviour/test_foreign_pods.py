"""Pods whose node asched did not choose count on their node, and nothing else follows from them.

Any client that may create pods may write `spec.nodeName`, and so play another scheduler, a pod that
a kubelet refuses, or a pod of another owner.
"""

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from asched.core.cluster.facts import Bound, Done, Fact, Gone, Seen, WallClock
from asched.core.framework.effects import Bind, DeletePod, MarkVictim
from asched.core.model.kinds import POD
from asched.core.model.pod import Pod
from tests.builders import PodBuilder, a_node, a_pod
from tests.playbook import Play, placed, refused

NODES = [f"n{number}" for number in range(6)]
#: A priority of system-cluster-critical.
CRITICAL = 2_000_000_000
RIVAL = "rival"


class Tenant:
    """A cluster whose nodes are full of pods of priority 0. For each evicted pod another one is on
    the node before the evicted one is gone, `times` times.
    """

    def __init__(self, times: int, *, binds: bool = False, priority: int = 0, **args: Any) -> None:
        """`binds`: the pods wait first, and a scheduler named `rival` binds them; otherwise they
        are created with the node. `args`: of DefaultPreemption.
        """
        config = [{"name": "DefaultPreemption", "args": args}]
        nodes = [a_node(name).allocatable(cpu="1", memory="1Gi", pods="10") for name in NODES]
        own = {"schedulerName": "default-scheduler", "pluginConfig": config}
        self.play = Play(*nodes, profiles=[own])
        self.times, self.binds, self.priority = times, binds, priority
        self.evicted: list[str] = []
        self._leaving: list[Pod] = []
        for name in NODES:
            self.play.see(a_pod(f"low-{name}").requests(cpu="1").on(name))

    def seconds_until_bound(self, name: str, limit_s: int) -> int | None:
        """The seconds until a pod of ours has a node; None if it has none within the limit."""
        uid = a_pod(name).build().uid
        for second in range(limit_s):
            while facts := list(self._answers()):
                self.play.turn(*facts)
            if self.play.node_of(uid):
                return second
            gone = [Gone(POD, pod) for pod in self._leaving]
            self._leaving = []
            self.play.turn(*gone, after_s=1.0)
        return None

    def _answers(self) -> Iterable[Fact]:
        for effect in self.play.effects:
            if isinstance(effect, Bind):
                placed = self.play.parts.cluster.pods_seen[effect.pod.key].on(effect.node)
                yield from (Bound(effect.id), Seen(POD, placed))
            elif isinstance(effect, MarkVictim):
                yield Done(effect.id)
            elif isinstance(effect, DeletePod):
                yield Done(effect.id)
                yield from self._evicted(effect.pod.key)

    def _evicted(self, key: str) -> Iterable[Fact]:
        victim = self.play.parts.cluster.pods_seen[key]
        metadata = replace(victim.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
        self._leaving.append(replace(victim, metadata=metadata))
        self.evicted.append(victim.spec.node_name)
        yield Seen(POD, self._leaving[-1])
        if len(self.evicted) <= self.times:
            thief = a_pod(f"thief-{len(self.evicted)}").requests(cpu="1").priority(self.priority)
            if self.binds:
                yield Seen(POD, thief.spec(schedulerName=RIVAL).build())
            yield Seen(POD, thief.spec(schedulerName=RIVAL).on(victim.spec.node_name).build())


def critical(name: str = "critical", priority: int = CRITICAL) -> PodBuilder:
    return a_pod(name).requests(cpu="1").priority(priority)


@pytest.mark.parametrize("binds", [False, True])
@pytest.mark.parametrize("times", [0, 2, 3])
def test_less_important_pods_take_no_room_for_good(times: int, binds: bool) -> None:
    tenant = Tenant(times, binds=binds)
    tenant.play.see(critical())
    seconds = tenant.seconds_until_bound("critical", 60)
    assert seconds is not None
    assert seconds <= 5 * (times + 1)
    assert len(tenant.evicted) == times + 1


@pytest.mark.parametrize("others", [(), (RIVAL,)])
def test_pods_created_with_a_node_suspend_no_evictions(others: tuple[str, ...]) -> None:
    """Even pods of equal priority, which say that a scheduler placed them that is named."""
    tenant = Tenant(3, priority=10, otherSchedulers=list(others))
    tenant.play.see(critical(priority=10))
    seconds = tenant.seconds_until_bound("critical", 60)
    assert seconds is not None
    assert seconds <= 20
    assert len(set(tenant.evicted)) == 4


@pytest.mark.parametrize("step_s", [-86_400.0, 0.0, 86_400.0])
def test_a_node_rests_where_a_named_scheduler_took_the_room(step_s: float) -> None:
    """Its pods are as important as ours, so each room would be taken again: with one node that has
    a victim left, nothing is evicted there for a minute, and then once more. The wall clock may be
    set meanwhile.
    """
    tenant = Tenant(1, binds=True, priority=10, otherSchedulers=[RIVAL])
    for name in NODES[1:]:  # these cannot be evicted
        low = a_pod(f"low-{name}").requests(cpu="1").on(name).build()
        tenant.play.turn(Gone(POD, low))
        tenant.play.see(a_pod(f"high-{name}").requests(cpu="1").priority(20).on(name))
    tenant.play.see(a_pod("small").requests(cpu="0").on("n0"))
    tenant.play.see(critical(priority=10))
    assert tenant.seconds_until_bound("critical", 10) is None
    assert tenant.evicted == ["n0"]
    tenant.play.turn(WallClock(step_s))
    thief = a_pod("thief-1").requests(cpu="1").priority(10).on("n0").build()
    tenant.play.turn(Gone(POD, thief))
    tenant.play.see(a_pod("low again").requests(cpu="1").on("n0"))
    assert tenant.seconds_until_bound("critical", 40) is None
    assert tenant.evicted == ["n0"]
    assert tenant.seconds_until_bound("critical", 40) is not None
    assert tenant.evicted == ["n0", "n0"]


# --- pods that kubelets refuse -------------------------------------------------------------------


def of_web(name: str, namespace: str = "default") -> PodBuilder:
    built = a_pod(name).requests(cpu="1")
    built.json["metadata"]["namespace"] = namespace
    reference = {"kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
    built.json["metadata"]["ownerReferences"] = [reference]
    return built


def test_an_owner_counts_in_its_namespace() -> None:
    play = Play(a_node("n").allocatable(cpu="8", memory="8Gi", pods="100"))
    forged = of_web("forged", namespace="tenant")
    assert placed(play, forged) == "n"
    refused(play, forged.build())
    assert not placed(play, of_web("of the same", namespace="tenant"))
    assert placed(play, of_web("of another", namespace="bank")) == "n"
