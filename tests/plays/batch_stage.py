"""A machine with Backfill and Coscheduling, on which bindings succeed and pods are started."""

from typing import Any

from msgspec.structs import replace

from asched.batch.backfill.reservations import (
    POD_OWNER,
    NodeNeed,
    Reservation,
    Reservations,
    StartOrder,
    StartTimes,
)
from asched.batch.backfill.starts import PromisedStarts
from asched.core.cluster.facts import Bound, Gone, Seen, WallClock
from asched.core.framework.effects import Bind, PatchPodStatus
from asched.core.model.decode import decode
from asched.core.model.kinds import COSCHEDULING_GROUP, POD
from asched.core.model.timestamp import rfc3339
from asched.core.model.workload import CoschedulingGroup
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.plays.playbook import Play

LABEL = "scheduling.x-k8s.io/pod-group"
EPOCH_S = 1_700_000_000.0


class Batch(Play):
    """A play with Backfill and Coscheduling, in which bindings succeed and pods are started. All
    tenants are trusted, unless `args` say otherwise.
    """

    def __init__(self, *nodes: NodeBuilder, args: dict[str, Any] | None = None) -> None:
        plugins = {
            "multiPoint": {
                "enabled": [{"name": "Coscheduling"}, {"name": "Backfill"}],
                "disabled": [{"name": "PrioritySort"}],
            }
        }
        trust = {"maxNamespacePercentage": 100, "softEnds": True}
        config = [{"name": "Backfill", "args": {**trust, **(args or {})}}]
        own = {"schedulerName": "default-scheduler", "plugins": plugins, "pluginConfig": config}
        super().__init__(*nodes, profiles=[own])
        self.places: dict[str, str] = {}
        self.told: dict[str, str] = {}
        self.turn(WallClock(EPOCH_S - self.now_s))

    @property
    def wall_s(self) -> float:
        return self.parts.cluster.wall_clock_s

    def go(self, *facts: Any, after_s: float = 0.0) -> None:
        """A turn, and what follows of bindings."""
        self.turn(*facts, after_s=after_s)
        while True:
            for patch in self.of(PatchPodStatus):
                if "message" in (patch.condition or ()):
                    self.told[patch.pod.name] = patch.condition["message"]
            binds = self.of(Bind)
            if not binds:
                return
            answers: list[Any] = []
            for bind in binds:
                self.places[bind.pod.name] = bind.node
                pod = self.parts.cluster.pods_seen[bind.pod.key].on(bind.node)
                status = replace(pod.status, start_time=rfc3339(self.wall_s))
                answers += [Bound(bind.id), Seen(POD, replace(pod, status=status))]
            self.turn(*answers)

    def show(self, *pods: PodBuilder) -> None:
        self.go(*(Seen(POD, pod.build()) for pod in pods))

    def end(self, name: str, after_s: float = 0.0) -> None:
        self.go(Gone(POD, self.parts.cluster.pods_seen[f"default/{name}"]), after_s=after_s)

    def pass_time(self, seconds: float) -> None:
        """Let time pass as a process does: from deadline to deadline."""
        until_s = self.now_s + seconds
        while (due_s := self.machine.next_deadline_s()) is not None and due_s <= until_s:
            self.go(after_s=max(due_s - self.now_s, 0.01))
        self.go(after_s=until_s - self.now_s)

    def gang(self, name: str, *pods: PodBuilder, minimum: int = 0) -> None:
        metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
        spec = {"minMember": minimum or len(pods)}
        group = decode(CoschedulingGroup, {"metadata": metadata, "spec": spec})
        self.go(Seen(COSCHEDULING_GROUP, group))
        self.show(*(pod.labels({LABEL: name}) for pod in pods))

    def promised(self, owner: str) -> Reservation | None:
        return self.parts.cluster.singleton(Reservations).of(owner)

    def to(self, gang: str) -> Reservation:
        found = self.promised(f"scheduling.x-k8s.io:default/{gang}")
        assert found is not None, self.told
        return found


def room(name: str, cpu: int = 4) -> NodeBuilder:
    return a_node(name).allocatable(cpu=str(cpu), memory="64Gi", pods="100")


def lasting(name: str, seconds: int | None, cpu: int = 1) -> PodBuilder:
    pod = a_pod(name).requests(cpu=str(cpu))
    return pod if seconds is None else pod.spec(activeDeadlineSeconds=seconds)


def two_full_nodes() -> Batch:
    """n1 is free after 100 s, n2 after 200 s, grace periods aside."""
    play = Batch(room("n1"), room("n2"))
    play.show(lasting("a", 100, cpu=3), lasting("b", 200, cpu=3))
    return play


class Promises:
    """One node; a pod that waits and is promised a start there in an hour. Nobody is tried."""

    def __init__(self, at_s: float = 3600.0, **args: Any) -> None:
        self.play = Batch(a_node("n1").allocatable(cpu="4", memory="8Gi", pods="9"), args=args)
        self.play.machine.is_active = False
        self.context, self.cluster = self.play.machine.context, self.play.parts.cluster
        self.ledger = self.cluster.singleton(Reservations)
        self.kept = self.cluster.singleton(StartTimes)
        self.activated: list[str] = []
        self.context.queue.activate = lambda pods, _now_s: self.activated.extend(  # type: ignore[method-assign,assignment]
            pod.metadata.name for pod in pods
        )
        self.starts = PromisedStarts(self.context)
        self.starts.begin_turn()
        self.one = self.reserve("web", at_s)

    def waits(self, name: str) -> PodBuilder:
        pod = a_pod(name).requests(cpu="1").spec(schedulerName="default-scheduler")
        self.cluster.apply(Seen(POD, pod.build()))
        return pod

    def reserve(self, name: str, at_s: float) -> Reservation:
        info = self.cluster.classes.info_of(self.waits(name).build())
        start_s = self.cluster.wall_clock_s + at_s
        one = Reservation(
            POD_OWNER + info.pod.uid,
            "default-scheduler",
            StartOrder(0, 0.0, len(self.ledger)),
            start_s,
            start_s + 1e9,
            True,
            {"n1": NodeNeed({"cpu": 1000}, 1)},
            (info,),
            start_s,
            made_s=self.cluster.wall_clock_s,
        )
        self.ledger.put(one)
        return one

    @property
    def now_s(self) -> float:
        """As `next_s` counts."""
        return self.cluster.wall_clock_s - self.cluster.wall_ahead_s

    def after(self, seconds: float) -> list[str]:
        """Who is to be tried once so much time has passed."""
        self.activated.clear()
        self.cluster.wall_clock_s += seconds
        self.context.now_s += seconds
        self.starts.begin_turn()
        return list(self.activated)
