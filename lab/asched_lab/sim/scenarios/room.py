"""Places of ProvisioningRequests, promised starts, and quotas of namespaces."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final

from asched.batch.backfill.expected_ends import DURATION
from asched.batch.backfill.reservations import Reservations, StartTimes
from asched.batch.backfill.starts import CHANGES
from asched.batch.provisioning.book import Bookings, Slot
from asched.batch.provisioning.requests import read
from asched.core.framework.effects import Bind
from asched.core.model.decode import decode
from asched.core.model.kinds import PROVISIONING_REQUEST
from asched.core.model.provisioning import ProvisioningRequest, RequestStage
from asched.kube.transport import WireRequest
from asched.names import PREFIX
from asched_lab.apiserver.context import Change
from asched_lab.apiserver.resources import PODS, find
from asched_lab.sim.checker import EndState, is_through
from asched_lab.sim.faults import unreliable
from asched_lab.sim.process import Process
from asched_lab.sim.scenario import Scenario, profile
from asched_lab.sim.steps import (
    AddNodes,
    AddPods,
    DeletePods,
    FinishPods,
    Json,
    RemoveNode,
    Step,
    cpu_of,
    end_pods,
    pod_manifest,
)
from asched_lab.sim.wire import send
from asched_lab.sim.world import World

CLASS: Final = f"check-and-hold.{PREFIX}"
CONSUMES: Final = "autoscaling.x-k8s.io/consume-provisioning-request"
CHECK_S: Final = 0.25
#: A hold may outlast its deadline by this time.
LATE_S: Final = 1.0
#: All requests are of one namespace, on a small cluster.
ARGS: Final = {"holdSeconds": 40, "maxNamespacePercentage": 100, "priority": 1000}
#: Priority of pods that may take held places.
ABOVE: Final = 2000


class HeldPlaces(Scenario):
    """Requests come and go, with pods that consume them and pods that do not, some of them with a
    high priority, on a small cluster that loses nodes; the scheduler dies, answers get lost and
    watches are late. By the API objects alone: promised places and bound pods never exceed a node,
    except for pods above the priority of held places, and break no rule; no hold outlasts its
    deadline; pods that consume a request go to its places.
    """

    faults = unreliable(0.1, lag_s=4, restarts_s=60)
    config: ClassVar[Json] = profile("CheckAndHold", CheckAndHold=ARGS)
    settle_s = 300.0

    def __init__(self) -> None:
        self._loses_nodes = False
        self.held = 0
        self._sent: set[tuple[str, str]] = set()  # uid and node of decided bindings

    def setup(self, world: World) -> None:
        self._loses_nodes = world.rng.random() < 0.4
        AddNodes(count=world.rng.randint(3, 6), cpu=(2, 4), pods=(6, 110)).do(world)
        for cpu in ("300m", "700m", "1"):
            world.server.create("podtemplates", template(f"of-{cpu}", cpu))
        for storage in (PODS.storage, find("provisioningrequests").storage):
            world.server.store.table(storage).listeners.append(lambda c: self._moved(world, c))
        world.on_sent.append(self._must_be_promised)
        self._check_deadlines(world)
        world.run_for(2.0)

    def start(self, world: World) -> Iterator[Step]:
        for number in range(self.rounds):
            roll = world.rng.random()
            if roll < 0.5:
                yield AddRequest(name=f"job-{number}")
            elif roll < 0.7:
                yield AddPods(
                    count=world.rng.randint(1, 3), priority=world.rng.choice((0, 1000, ABOVE))
                )
            elif roll < 0.8:
                yield FinishPods(count=2)
            elif roll < 0.88:
                yield DeletePods(count=2)
            elif roll < 0.94:
                yield RemoveRequest()
            elif self._loses_nodes and len(world.node_names()) > 2:
                yield RemoveNode(node=world.rng.choice(world.node_names()))
            else:
                yield AddNodes(cpu=(2, 4))

    def is_plain(self, pod: Json) -> bool:
        return CONSUMES not in pod["metadata"].get("annotations", {})

    def check(self, world: World) -> None:
        """Every request is finished by now, and no place is held."""
        undecided = [r.metadata.name for r in requests(world) if r.stage is not RequestStage.ENDED]
        assert not undecided, f"{undecided} have no end"
        assert not world.parts.cluster.singleton(Bookings).all()
        assert not len(world.parts.cluster.holds)
        world.note(f"{self.held} times places were held")

    # --- at each event ---------------------------------------------------------------------------

    def _moved(self, world: World, change: Change) -> None:
        if "provisioningClassName" in change.new.obj["spec"]:
            request = decode(ProvisioningRequest, change.new.obj)
            world.note(f"request {request.metadata.name} is {request.stage.value}")
            self.held += request.stage is RequestStage.HELD
        end = state_of(world)
        for node, free in end.free.items():
            for resource, rest in free.items():
                if rest < 0:
                    text = f"{resource} of {node} is promised or bound {-rest} too often"
                    world.ledger.complain(text)

    def _must_be_promised(self, process: Process, bind: Bind) -> None:
        """A pod of a request with a free place goes to such a place."""
        world, place = process.world, (bind.pod.uid, bind.node)
        if place in self._sent:
            return  # repeated, since its first result is unknown
        self._sent.add(place)
        pod = world.server.get("pods", bind.pod.namespace, bind.pod.name)
        name = pod["metadata"].get("annotations", {}).get(CONSUMES) if pod is not None else None
        booking = process.parts.cluster.singleton(Bookings).get(f"default/{name}")
        if pod is None or booking is None:
            return
        cpu = cpu_of(pod)
        slots = [slot for slot in booking.slots.values() if cpu_of_slot(slot) == cpu]
        is_free = any(not slot.taken_by and slot.node for slot in slots)
        if is_free and all(slot.node != bind.node for slot in slots):
            world.ledger.complain(f"{bind.pod.name} is not bound to a place of {name}")

    def _check_deadlines(self, world: World) -> None:
        """No hold lasts longer than promised."""
        now_s, acting = world.clock.now_s(), world.acting
        deadline_s = acting.deadline_s()
        if deadline_s is None or deadline_s <= now_s + CHECK_S:  # the process is not stopped
            cluster = acting.parts.cluster
            for booking in cluster.singleton(Bookings).all():
                if booking.until_s + LATE_S < cluster.steady_s:
                    text = f"{booking.key} was to be held until {booking.until_s}"
                    world.ledger.complain(text)
        world.clock.after(CHECK_S, lambda: self._check_deadlines(world))


@dataclass(frozen=True, slots=True)
class AddRequest(Step):
    """Create a request, and soon after it most or all pods that consume it."""

    name: str

    def do(self, world: World) -> None:
        rng = world.rng
        cpus = rng.sample(("300m", "700m", "1"), rng.randint(1, 2))
        sets = [(cpu, rng.randint(1, 4)) for cpu in cpus]
        parameters = {"ValidUntilSeconds": "30", "holdSeconds": str(rng.randint(2, 40))}
        if rng.random() < 0.3:
            parameters["noRetry"] = "true"
        pod_sets = [{"podTemplateRef": {"name": f"of-{cpu}"}, "count": n} for cpu, n in sets]
        spec = {"provisioningClassName": CLASS, "podSets": pod_sets, "parameters": parameters}
        metadata = {"name": self.name, "namespace": "default"}
        world.server.create("provisioningrequests", {"metadata": metadata, "spec": spec})
        wait_s = rng.choice((0.0, 0.0, 1.0, 5.0, 15.0))
        for cpu, count in sets:
            for number in range(count):
                if rng.random() < 0.9:
                    pod = consumer(f"{self.name}-{cpu}-{number}", cpu, self.name)
                    world.clock.after(wait_s + rng.uniform(0.0, 1.0), partial(create, world, pod))


class RemoveRequest(Step):
    """Delete a request that may be in use."""

    def do(self, world: World) -> None:
        for request in world.some(world.server.list("provisioningrequests"), 1):
            path = PROVISIONING_REQUEST.object_path("default", request["metadata"]["name"])
            send(world.server.ctx, WireRequest("DELETE", path, None))


def create(world: World, pod: Json) -> None:
    world.server.create("pods", pod)


def template(name: str, cpu: str) -> Json:
    pod = pod_manifest(name, cpu)
    return {
        "metadata": {"name": name, "namespace": "default"},
        "template": {"metadata": {"labels": {"app": "job"}}, "spec": pod["spec"]},
    }


def consumer(name: str, cpu: str, request: str) -> Json:
    pod = pod_manifest(name, cpu)
    pod["metadata"]["annotations"] = {CONSUMES: request}
    return pod


def requests(world: World) -> list[ProvisioningRequest]:
    return [decode(ProvisioningRequest, obj) for obj in world.server.list("provisioningrequests")]


def state_of(world: World) -> EndState:
    """Pods on their nodes, and the promised places without pods. Pods that may take held places are
    left out: the API shows their right to do so only after the write.
    """
    pods = [
        pod
        for pod in world.pods()
        if not is_through(pod) and (pod["spec"].get("priority") or 0) < ABOVE
    ]
    end = EndState(world.nodes(), pods)
    for request in requests(world):
        promised = read(request.status.provisioning_class_details)
        if request.stage is not RequestStage.HELD or promised is None:
            continue
        places, until_s = promised
        if until_s <= world.clock.now_s():
            continue
        name = request.metadata.name
        of_it = [
            p
            for p in pods
            if p["metadata"].get("annotations", {}).get(CONSUMES) == name
            and p["spec"].get("nodeName")
        ]
        taken = Counter((cpu_of(pod), pod["spec"]["nodeName"]) for pod in of_it)
        for place in places:
            cpu = request.spec.pod_sets[place.pod_set].pod_template_ref.name.removeprefix("of-")
            used = min(taken[cpu, place.node], place.times)
            taken[cpu, place.node] -= used
            for _ in range(place.times - used if place.node in end.nodes else 0):
                end.place(consumer(f"{name}-to-come", cpu, name), place.node)
    return end


def cpu_of_slot(slot: Slot) -> str:
    (container,) = slot.what.pod.spec.containers or ()
    requests = container.resources.requests if container.resources is not None else None
    return str((requests or {})["cpu"])


LASTS_S: Final = (20, 60, 120)


class PromisedStarts(Scenario):
    """Pods with a deadline, pods with an expected duration and pods without either, and large pods
    for which there is no room, on a small cluster that loses nodes; the scheduler dies, answers get
    lost and watches are late. A promise that was moved back has a cause, and once all pods with an
    end have ended no pod waits for room that is promised to other pods.
    """

    rounds = 30
    faults = unreliable(0.1, lag_s=4, restarts_s=90)
    config: ClassVar[Json] = profile(
        "Backfill",
        Backfill={
            "reservations": 3,
            "maxNamespacePercentage": 100,
            "softEnds": True,
            "learnDurations": True,
        },
    )
    settle_s = 900.0
    keepers = frozenset({"Backfill"})

    def __init__(self) -> None:
        self.promised = 0
        self._starts: dict[str, float] = {}

    def setup(self, world: World) -> None:
        AddNodes(count=world.rng.randint(2, 4), cpu=(2, 4), pods=(20, 110)).do(world)
        listeners = world.server.store.table(PODS.storage).listeners
        listeners.append(lambda change: self._limit(world, change))
        world.run_for(2.0)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(self.rounds):
            roll = world.rng.random()
            if roll < 0.45:
                count, cpu = world.rng.randint(1, 3), ("300m", "700m", "1")
                yield AddPods(count=count, cpu=cpu, make=_lasting)
            elif roll < 0.65:
                priority = world.rng.choice((0, 0, 0, 10))
                yield AddPods(cpu=("2", "3"), priority=priority, make=_lasting)
            elif roll < 0.75:
                yield FinishPods(count=1)
            elif roll < 0.85:
                yield DeletePods(count=1)
            elif roll < 0.92 and len(world.node_names()) > 2:
                yield RemoveNode(node=world.rng.choice(world.node_names()))
            else:
                yield AddNodes(cpu=(2, 4))
            self._check_promises(world)

    def check(self, world: World) -> None:
        self._check_promises(world)
        outcomes = world.parts.cluster.singleton(StartTimes).outcomes
        assert set(outcomes) <= set(CHANGES)
        world.note(f"{self.promised} starts were promised")

    def _check_promises(self, world: World) -> None:
        """A promise that is later than before has a cause."""
        starts = {}
        for promise in world.parts.cluster.singleton(Reservations).all():
            key = f"{world.leaders}/{id(world.acting)}/{promise.owner}"
            before_s = self._starts.get(key)
            self.promised += before_s is None
            if before_s is not None and promise.start_s > before_s and not promise.cause:
                world.ledger.complain(
                    f"the start of {promise.owner} was moved back without a cause"
                )
            starts[key] = promise.start_s
        self._starts = starts

    def _limit(self, world: World, change: Change) -> None:
        """As kubelets do: end pods at their deadline, some sooner and some later."""
        pod = change.new.obj
        lasts_s = pod["spec"].get("activeDeadlineSeconds")
        begun = pod["status"].get("phase") == "Running"
        was = change.old.obj["status"].get("phase") if change.old is not None else ""
        if lasts_s is not None and begun and was != "Running":
            world.clock.after(world.rng.uniform(0.3, 1.0) * lasts_s, lambda: end_pods(world, [pod]))


def _lasting(world: World, pod: Json) -> None:
    roll, lasts_s = world.rng.random(), world.rng.choice(LASTS_S)
    if roll < 0.75:
        pod["spec"]["activeDeadlineSeconds"] = lasts_s
    elif roll < 0.85:
        pod["metadata"]["annotations"] = {DURATION: str(lasts_s)}


#: Namespace to (guaranteed, maximum), milli-CPU.
QUOTAS: Final = {"red": (1000, 2500), "green": (2000, 3000), "blue": (500, 500)}
MILLI: Final = {"100m": 100, "300m": 300, "700m": 700}


#: The profiles of a configuration with ElasticQuotas.
WITH_QUOTAS: Final[list[Json]] = [
    {
        "schedulerName": "default-scheduler",
        "plugins": {
            "multiPoint": {"enabled": [{"name": "CapacityScheduling"}]},
            "postFilter": {
                "enabled": [{"name": "CapacityScheduling"}],
                "disabled": [{"name": "*"}],
            },
        },
    }
]


def add_quotas(world: World, quotas: Mapping[str, tuple[int, int]]) -> None:
    """Create these quotas, by namespace."""
    for namespace, (least, most) in quotas.items():
        spec = {"min": {"cpu": f"{least}m"}, "max": {"cpu": f"{most}m"}}
        quota = {"metadata": {"name": "quota", "namespace": namespace}, "spec": spec}
        world.server.create("elasticquotas", quota)


class Quotas(Scenario):
    """Pods of three namespaces with quotas, and of one without, some of them important, on a
    cluster that has more room than is guaranteed; the scheduler dies, answers get lost and watches
    are late. By the API objects alone: no binding exceeds the maximum of its namespace, nor the sum
    of what is guaranteed to all of them.
    """

    rounds = 30
    faults = unreliable(0.1, lag_s=4, restarts_s=60)
    config: ClassVar[Json] = {"profiles": WITH_QUOTAS}

    def setup(self, world: World) -> None:
        AddNodes(count=4, cpu=(2, 4), pods=(20, 110)).do(world)
        for namespace in QUOTAS:
            world.server.create("namespaces", {"metadata": {"name": namespace}})
        add_quotas(world, QUOTAS)
        world.on_bound.append(lambda bind: check_quotas(world, bind, QUOTAS))
        world.run_for(2.0)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(self.rounds):
            roll = world.rng.random()
            if roll < 0.6:
                priority = world.rng.choice((0, 0, 10, 1000))
                count = world.rng.randint(1, 4)
                yield AddPods(count=count, priority=priority, cpu=tuple(MILLI), make=_somewhere)
            elif roll < 0.8:
                yield FinishPods(count=2)
            else:
                yield DeletePods(count=2)

    def is_plain(self, pod: Json) -> bool:
        return pod["metadata"]["namespace"] not in QUOTAS


def check_quotas(world: World, bind: Bind, quotas: Mapping[str, tuple[int, int]]) -> None:
    """Complain about a pod that was bound beyond a maximum, or beyond all that is guaranteed;
    `quotas`: both by namespace.
    """
    if bind.pod.namespace not in quotas:
        return
    used = Counter[str]()
    for pod in world.server.list("pods"):
        if pod["spec"].get("nodeName") and not is_through(pod):
            (container,) = pod["spec"]["containers"]
            used[pod["metadata"]["namespace"]] += MILLI[container["resources"]["requests"]["cpu"]]
    for namespace, (_, most) in quotas.items():
        if used[namespace] > most:
            text = f"{namespace} uses {used[namespace]}m after {bind.pod.name}, more than {most}m"
            world.ledger.complain(text)
    together = sum(used[namespace] for namespace in quotas)
    guaranteed = sum(least for least, _ in quotas.values())
    if together > guaranteed:
        text = f"all use {together}m after {bind.pod.name}, more than {guaranteed}m"
        world.ledger.complain(text)


def _somewhere(world: World, pod: Json) -> None:
    pod["metadata"]["namespace"] = world.rng.choice((*QUOTAS, "default"))
