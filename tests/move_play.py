"""Plays of moved pods: an API server that carries out evictions, and controllers."""

import asyncio
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from asched.core.cluster.facts import Bound, Done, Fact, Gone, Refused, Seen, Unknown, WallClock
from asched.core.framework.effects import (
    Bind,
    DeletePod,
    EmitEvent,
    Evict,
    NotePod,
    PatchPodStatus,
)
from asched.core.model.decode import decode
from asched.core.model.kinds import POD, REPLICA_SET, STATEFUL_SET, Kind
from asched.core.model.pod import Pod, PodCondition
from asched.core.model.timestamp import rfc3339
from asched.serve.view.draining import drain_page
from tests.builders import NodeBuilder, PodBuilder, a_pod
from tests.playbook import Play

EPOCH_S = 1_700_000_000.0
OLD = rfc3339(EPOCH_S - 86_400)
WAITING_S, BACKOFF_S, LIMIT_S, PAUSE_S = 60, 600, 300, 1800
OPENED: dict[str, Any] = {"namespaces": ["default"], "waitingSeconds": WAITING_S}


class MovePlay(Play):
    """A play with an API server that carries out evictions, and controllers that create pods again.
    Each turn is followed by those that its effects cause.
    """

    def __init__(self, *nodes: NodeBuilder, plugins: Iterable[str] = (), **args: Any) -> None:
        enabled = [{"name": name} for name in ("Rebalance", "Coscheduling", *plugins)]
        disabled = [{"name": "PrioritySort"}]
        profile = {
            "schedulerName": "default-scheduler",
            "plugins": {"multiPoint": {"enabled": enabled, "disabled": disabled}},
            "pluginConfig": [{"name": "Rebalance", "args": {**OPENED, **args}}],
        }
        self.evicted: list[str] = []
        self.deleted: list[str] = []
        self.noted: list[str] = []
        self.said: list[tuple[str, str, str]] = []  # pod, reason, note
        self.messages: dict[str, str] = {}
        #: what the server answers to evictions, one after the other; None: it evicts
        self.answers: list[Refused | Unknown | None] = []
        #: whether controllers create pods again, and whether evicted pods leave at once
        self.replaces = self.leaves = True
        #: whether the watch shows what became of a pod only once `catch_up` is called
        self.is_late = False
        self._unseen: list[Fact] = []
        #: labels that pods have from their nodes
        self.copied: frozenset[str] = frozenset()
        self.count = 0
        super().__init__(*nodes, profiles=[profile])
        self.turn(WallClock(EPOCH_S - self.now_s))

    def owned(self, kind: Kind, name: str, *pods: PodBuilder, **spec: Any) -> None:
        """A controller with these pods, which run."""
        metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
        body = {"metadata": metadata, "spec": {"replicas": len(pods), **spec}}
        self.turn(Seen(kind, decode(kind.record, body)))
        owner = {"apiVersion": kind.group_version, "kind": kind.name, "name": name}
        for pod in pods:
            pod.json["metadata"].setdefault("creationTimestamp", OLD)
            pod.metadata(ownerReferences=[{**owner, "uid": f"uid-{name}", "controller": True}])
            pod.labels(app=name)
            self.turn(Seen(POD, pod.build()))

    def sets(self, *pods: PodBuilder) -> None:
        """Running pods, each of a ReplicaSet of its own."""
        for pod in pods:
            self.owned(REPLICA_SET, f"set-of-{pod.json['metadata']['name']}", pod)

    def go(self, *facts: Fact, after_s: float = 0.0) -> None:
        """A turn, and all that follows from its effects."""
        pending: list[Fact] = list(facts)
        while True:
            self.turn(*pending, after_s=after_s)
            after_s, pending = 0.001, []
            for effect in self.effects:
                pending += self._answers(effect)
            if not pending:
                return

    def wait(self, seconds: float) -> None:
        """Let time pass, as a process does."""
        until_s = self.now_s + seconds
        while (due_s := self.machine.next_deadline_s()) is not None and due_s <= until_s:
            self.go(after_s=max(due_s - self.now_s, 0.01))
        self.go(after_s=max(until_s - self.now_s, 0.0))

    def node(self, name: str) -> str:
        return self.node_of(f"uid-{name}")

    def held(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for hold in self.parts.cluster.holds:
            for place in hold.places:
                found[place.node_name] = found.get(place.node_name, 0) + 1
        return found

    def _answers(self, effect: Any) -> list[Fact]:
        if isinstance(effect, Bind):
            pod = self.parts.cluster.pods_seen[effect.pod.key].on(effect.node)
            return [Bound(effect.id), Seen(POD, pod)]
        if isinstance(effect, NotePod):
            self.noted.append(effect.pod.name)
        if isinstance(effect, PatchPodStatus):
            return self._patched(effect)
        if isinstance(effect, DeletePod):
            self.deleted.append(effect.pod.name)
            return [Done(effect.id), Gone(POD, self.parts.cluster.pods_seen[effect.pod.key])]
        if isinstance(effect, EmitEvent):
            self.said.append((effect.regarding.name, effect.reason, effect.note))
        return self._evictions(effect) if isinstance(effect, Evict) else []

    def _patched(self, effect: PatchPodStatus) -> list[Fact]:
        pod = self.parts.cluster.pods_seen.get(effect.pod.key)
        if pod is None or effect.condition is None:
            return [Done(effect.id)]
        made = decode(PodCondition, dict(effect.condition))
        if "message" in effect.condition:
            self.messages[effect.pod.name] = made.message
        others = [c for c in pod.status.conditions or () if c.type != made.type]
        status = replace(pod.status, conditions=(*others, made))
        return [Done(effect.id), Seen(POD, replace(pod, status=status))]

    def _evictions(self, effect: Evict) -> list[Fact]:
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            return [type(answer)(effect.id, *_fields(answer))]
        pod = self.parts.cluster.pods_seen[effect.pod.key]
        self.evicted.append(pod.metadata.name)
        if not self.leaves:
            gone = replace(pod.metadata, deletion_timestamp=rfc3339(EPOCH_S))
            return [Done(effect.id), Seen(POD, replace(pod, metadata=gone))]
        if self.is_late:
            self._unseen += self.leave(pod)
            return [Done(effect.id)]
        return [Done(effect.id), *self.leave(pod)]

    def catch_up(self) -> None:
        """The watch shows the pods that have left, and their successors."""
        unseen, self._unseen = self._unseen, []
        self.go(*unseen)

    def leave(self, pod: Pod) -> list[Fact]:
        """A pod leaves, and its controller creates another one."""
        owner = pod.metadata.controller
        assert owner is not None
        self.count += 1
        is_set = owner.kind == STATEFUL_SET.name
        name = pod.metadata.name if is_set else f"{owner.name}-new-{self.count}"
        now = rfc3339(self.parts.cluster.wall_clock_s)
        uid = f"uid-new-{self.count}" if is_set else f"uid-{name}"
        labels = {k: v for k, v in (pod.metadata.labels or {}).items() if k not in self.copied}
        metadata = replace(
            pod.metadata,
            name=name,
            uid=uid,
            creation_timestamp=now,
            deletion_timestamp=None,
            labels=labels,
        )
        spec = replace(pod.spec, node_name="")
        successor = Pod(metadata, spec)
        return [Gone(POD, pod), *([Seen(POD, successor)] if self.replaces else [])]


def _fields(answer: Any) -> tuple[Any, ...]:
    if isinstance(answer, Refused):
        return answer.code, answer.message, answer.reason
    return (answer.message,)


def small(name: str, node: str, cpu: str = "1") -> PodBuilder:
    return a_pod(name).requests(cpu=cpu).on(node)


def drain_page_of(play: MovePlay, node: str, *, deletes_data: bool = False) -> dict[str, Any]:
    """What the page about the drain of a node says."""
    found = asyncio.run(drain_page(play.machine.context, node, deletes_data=deletes_data))
    assert found is not None
    return found
