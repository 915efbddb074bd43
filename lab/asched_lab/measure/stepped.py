"""A machine that is driven turn by turn in process: facts in, effects out, time as a number."""

import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from asched import testing
from asched.core.cluster.facts import Fact, Seen
from asched.core.config.defaults import configuration
from asched.core.config.gates import DEFAULT_GATES
from asched.core.cycle.observer import Observer
from asched.core.cycle.turn_limit import TurnLimit
from asched.core.framework.effects import Effect
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, POD, Kind
from asched.core.model.pod import Pod
from asched.core.plugins import in_tree
from asched.host.assemble import Parts, build_machine, build_runners

Json = dict[str, Any]

SCHEDULER: Final = "default-scheduler"
ZONES: Final = 10
#: The profile with gangs of Kubernetes, without its gates.
GANGS: Final[Json] = {
    "profiles": [
        {
            "schedulerName": SCHEDULER,
            "plugins": {"multiPoint": {"enabled": [{"name": "GangScheduling"}]}},
        }
    ]
}
GANG_GATES: Final = {"GenericWorkload": True, "GangScheduling": True}
GATES_OF_PREEMPTING_GANGS: Final = {**GANG_GATES, "WorkloadAwarePreemption": True}


class _Strict(Observer):
    """Records contained exceptions, which make a measurement worthless."""

    def __init__(self) -> None:
        self.raised: list[BaseException] = []

    def contained(self, part: str, about: str, error: BaseException) -> None:  # noqa: ARG002
        self.raised.append(error)


class SteppedMachine:
    """A machine whose turns are limited by processor time of this thread, as in production by the
    clock. A contained exception is raised.
    """

    def __init__(self, gates: Mapping[str, bool] | None = None, **config: Any) -> None:
        switched = {**DEFAULT_GATES, **(gates or {})}
        profiles = {"profiles": [{"schedulerName": SCHEDULER}]}
        effective = configuration({**profiles, **config}, switched)
        self.parts = Parts.fresh()
        self._observer = _Strict()
        runners = build_runners(effective, self.parts, factories=in_tree(switched))
        self.machine = build_machine(
            effective, self.parts, runners, monotonic_s=time.thread_time, observer=self._observer
        )
        self.machine.limit = TurnLimit(time.thread_time)
        self.now_s = 1000.0

    def turn(self, *facts: Fact, after_s: float = 0.0) -> list[Effect]:
        self.now_s += after_s
        effects = self.machine.handle(list(facts), self.now_s)
        for error in self._observer.raised:
            raise error
        return effects

    def see(self, kind: Kind, manifests: Iterable[Json]) -> None:
        self.turn(*(seen(kind, manifest) for manifest in manifests))

    def rest(self) -> None:
        """Run turns until nothing is left to do at once."""
        while self.machine.next_deadline_s() == 0.0:
            self.turn()

    def node_of(self, pod: Pod) -> str:
        info = self.parts.cluster.placed.get(pod.uid)
        return info.node_name if info is not None else ""


def a_world(
    nodes: int, pods: int, gates: Mapping[str, bool] | None = None, **config: Any
) -> SteppedMachine:
    """Nodes with twenty labels and a soft taint, and pods that differ in one label."""
    world = SteppedMachine(gates, **config)
    world.see(NODE, (a_node(i) for i in range(nodes)))
    world.rest()
    names = ((f"p{i}", f"n{i % nodes}", f"a{i}") for i in range(pods))
    world.see(POD, (a_pod(name, on=node, labels={"app": app}) for name, node, app in names))
    world.rest()
    return world


def seen(kind: Kind, manifest: Json) -> Seen:
    """The fact of an object; a uid is added where there is none, since the inbox needs one."""
    manifest["metadata"].setdefault("uid", f"uid-{manifest['metadata']['name']}")
    return Seen(kind, decode(kind.record, manifest))


def record_of(pod: Json) -> Pod:
    return decode(Pod, pod)


def on_node(pod: Pod, node: str) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))


def a_node(
    number: int, *taints: str, labels: Mapping[str, str] | None = None, cpu: str = "32"
) -> Json:
    keys = {f"n{k}": "v" for k in range(20)}
    places = {"zone": f"z{number % ZONES}", "rack": f"r{number % 200}"}
    return testing.node(
        f"n{number}",
        cpu=cpu,
        memory="128Gi",
        labels={**places, **keys, **(labels or {})},
        taints=(f"k=v{number % 50}:PreferNoSchedule", *taints),
    )


def a_pod(name: str, *, cpu: str = "0", **fields: Any) -> Json:
    """A pod of one container that requests nothing but `cpu`; fields as in `asched.testing.pod`."""
    return testing.pod(name, cpu=cpu, memory="0", schedulerName=SCHEDULER, **fields)


def a_pod_group(name: str, **spec: Any) -> Json:
    """A PodGroup of Kubernetes; by default without a policy of a gang."""
    spec.setdefault("schedulingPolicy", {"basic": {}})
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def gang_of(count: int) -> Json:
    return {"gang": {"minCount": count}}


def member(name: str, group: str, cpu: str = "1", **fields: Any) -> Json:
    return a_pod(name, cpu=cpu, schedulingGroup={"podGroupName": group}, **fields)
