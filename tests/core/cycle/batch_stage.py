"""A machine with Backfill and Coscheduling, on which bindings succeed and pods are started."""

from typing import Any

from msgspec.structs import replace

from asched.core.framework.effects import Bind, PatchPodStatus
from asched.core.model.decode import decode
from asched.core.model.kinds import COSCHEDULING_GROUP, POD
from asched.core.model.timestamp import rfc3339
from asched.core.model.workload import CoschedulingGroup
from asched.core.state.facts import Bound, Gone, Seen, WallClock
from asched.core.state.reservations import Reservation, Reservations
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.core.cycle.playbook import Play

LABEL = "scheduling.x-k8s.io/pod-group"
EPOCH_S = 1_700_000_000.0


class Batch(Play):
    """A play with Backfill and Coscheduling, in which bindings succeed and pods are started."""

    def __init__(self, *nodes: NodeBuilder, args: dict[str, Any] | None = None) -> None:
        plugins = {
            "multiPoint": {
                "enabled": [{"name": "Coscheduling"}, {"name": "Backfill"}],
                "disabled": [{"name": "PrioritySort"}],
            }
        }
        config = [{"name": "Backfill", "args": args or {}}]
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
