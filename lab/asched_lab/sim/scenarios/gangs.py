"""Gangs: not all fit at the same time, they preempt each other, change, lose members, or wait."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Final

from asched import names
from asched.core.cluster.pod_groups import COSCHEDULING_LABEL, coscheduled_key, group_key
from asched.core.framework.effects import Bind, Effect, EmitEvent
from asched.core.model.decode import decode
from asched.core.model.pod import Pod
from asched_lab.apiserver.resources import PODS, find
from asched_lab.sim.checker import EndState, is_through, requests_of
from asched_lab.sim.faults import unreliable
from asched_lab.sim.process import Process
from asched_lab.sim.scenario import Scenario, profile
from asched_lab.sim.steps import (
    AddNodes,
    AddPods,
    Json,
    Step,
    Wait,
    end_pods,
    pod_manifest,
    priority_class,
    remove,
)
from asched_lab.sim.world import World

PRIORITY: Final = 50


class Gangs(Scenario):
    """Gangs and single pods compete for a few nodes, with lost answers, stale watches and a dying
    scheduler. Their pods and PodGroups are created in any order. In half of the worlds gangs have a
    higher priority than single pods, and preempt them.
    """

    rounds = 12
    faults = unreliable(0.1, lag_s=5, restarts_s=120)
    config: ClassVar[Json] = profile("GangScheduling")

    def __init__(self) -> None:
        self._gangs: dict[str, tuple[int, int]] = {}  # name -> minCount, pods
        self._are_important = False
        #: sent and not accepted so far: uid of the pod -> its name
        self._open: dict[str, str] = {}

    def setup(self, world: World) -> None:
        self._are_important = world.rng.random() < 0.5
        AddNodes(count=world.rng.randint(2, 4), cpu=(2, 4), pods=(10,)).do(world)
        world.on_sent.append(lambda _, bind: self._open.update({bind.pod.uid: bind.pod.name}))
        world.on_bound.append(lambda bind: self._check_binding(world, bind))
        world.run_for(2.0)

    def start(self, world: World) -> Iterator[Step]:
        for number in range(self.rounds):
            self._add_gang(world, f"gang-{number}")
            yield Wait(wait_s=None)
            roll = world.rng.random()
            if roll < 0.3:
                yield AddPods(count=2)
            elif roll < 0.4:
                yield AddNodes(cpu=(2,), pods=(10,))

    def _add_gang(self, world: World, name: str) -> None:
        for plural, manifest in world.shuffled(self._made(world, name)):
            world.server.create(plural, manifest)
            if world.rng.random() < 0.2:
                world.run_for(world.rng.uniform(0.0, 0.3))

    def _made(self, world: World, name: str) -> list[tuple[str, Json]]:
        """(plural, manifest) of its PodGroup, then of its pods."""
        size = world.rng.randint(2, 6)
        min_count = world.rng.randint(2, size)
        cpu = world.rng.choice(("300m", "700m", "1"))
        self._gangs[name] = (min_count, size)
        return [
            ("podgroups", self._group(world, name, min_count)),
            *(("pods", self._member(world, name, number, cpu)) for number in range(size)),
        ]

    def _group(self, world: World, name: str, min_count: int) -> Json:  # noqa: ARG002
        return pod_group(name, min_count)

    def _member(self, world: World, gang: str, number: int, cpu: str) -> Json:
        pod = member(gang, number, cpu)
        if self._are_important:
            pod["spec"]["priorityClassName"] = priority_class(world, PRIORITY)
        return pod

    def _check_binding(self, world: World, bind: Bind) -> None:
        """When a pod of a gang is bound, the machine has places for minCount of its pods."""
        self._open.pop(bind.pod.uid, None)
        pod = world.server.get("pods", bind.pod.namespace, bind.pod.name)
        name = gang_of(pod) if pod is not None else ""
        if pod is None or not name:
            return
        placed = world.parts.cluster.pod_groups.get(group_key(decode(Pod, pod))).placed
        bound = sum(gang_of(p) == name for p in world.placed())
        if max(len(placed), bound) < self._gangs[name][0]:
            world.ledger.broken.append(f"{bind.pod.name} is bound while its gang has no quorum")

    def is_plain(self, pod: Json) -> bool:
        return not gang_of(pod)

    def state_of(self, name: str, pods: Sequence[Json]) -> tuple[int, list[Json], bool]:
        """Of a gang: the number of its pods, those that wait, and whether a binding got lost."""
        members = [pod for pod in pods if gang_of(pod) == name]
        waiting = [pod for pod in members if not pod["spec"].get("nodeName")]
        is_hurt = any(pod.rpartition("-")[0] == name for pod in self._open.values())
        return len(members), waiting, is_hurt

    def check(self, world: World) -> None:
        """No gang is half bound, unless a request to bind one of its pods got lost; a waiting gang
        does not fit as a whole, not even with the room of pods it may preempt; each group has its
        condition.
        """
        pods = [pod for pod in world.pods() if not is_through(pod)]
        end = EndState(world.nodes(), [p for p in pods if gang_of(p) or not self._are_important])
        for name, (min_count, size) in self._gangs.items():
            _, waiting, is_hurt = self.state_of(name, pods)
            bound = size - len(waiting)
            whole = bound == 0 or bound >= min_count
            assert whole or is_hurt, f"{bound} of {name} ({min_count}) are bound"
            if waiting:
                must_not_fit(end, name, waiting, max(min_count - bound, 1))
            self._check_condition(world, name, bound=bound, is_hurt=is_hurt)

    def _check_condition(self, world: World, name: str, *, bound: int, is_hurt: bool) -> None:
        group = world.server.get("podgroups", "default", name)
        assert group is not None
        (condition,) = group["status"]["conditions"]
        assert condition["type"] == "PodGroupScheduled"
        is_right = (condition["status"] == "True") is (bound > 0)
        assert is_right or is_hurt, f"{name}: {condition}"


def must_not_fit(end: EndState, name: str, waiting: Sequence[Json], needed: int) -> None:
    fits = sum(room_for(end, node, waiting[0]) for node in end.nodes)
    assert fits < needed, f"{needed} of {name} would fit and wait"


def room_for(end: EndState, node: str, pod: Json) -> int:
    """How many pods like this one a node would take."""
    if not end.has_place(node, pod):
        return 0
    free = end.free[node]
    return int(min(free[name] // requested for name, requested in requests_of(pod).items()))


def create(world: World, made: Iterable[tuple[str, Json]]) -> None:
    """Create objects in any order."""
    for plural, manifest in world.shuffled(made):
        world.server.create(plural, manifest)


def gang_of(pod: Json) -> str:
    labels = pod["metadata"].get("labels") or {}
    name: str = pod["spec"].get("schedulingGroup", {}).get("podGroupName", "")
    return name or labels.get(COSCHEDULING_LABEL, "")


def member(gang: str, number: int, cpu: str) -> Json:
    """A pod of a PodGroup of Kubernetes."""
    pod = pod_manifest(f"{gang}-{number}", cpu)
    pod["spec"]["schedulingGroup"] = {"podGroupName": gang}
    return pod


def pod_group(name: str, min_count: int) -> Json:
    """A PodGroup of Kubernetes 1.36."""
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": min_count}}},
    }


PRIORITIES: Final = (10, 50, 90)


class GroupRoom(Gangs):
    """Gangs with WorkloadAwarePreemption and several priorities: half of them are preempted as a
    whole, or not at all. Preempted pods are not created again.
    """

    config: ClassVar[Json] = {}
    gates: ClassVar[Mapping[str, bool]] = {
        "GenericWorkload": True,
        "GangScheduling": True,
        "WorkloadAwarePreemption": True,
    }

    def __init__(self) -> None:
        super().__init__()
        self._priorities: dict[str, int] = {}
        self._whole: set[str] = set()

    def _group(self, world: World, name: str, min_count: int) -> Json:
        group = super()._group(world, name, min_count)
        self._priorities[name] = priority = world.rng.choice(PRIORITIES)
        group["spec"]["priorityClassName"] = priority_class(world, priority)
        if world.rng.random() < 0.5:
            self._whole.add(name)
            group["spec"]["disruptionMode"] = "PodGroup"
        return group

    def _member(self, world: World, gang: str, number: int, cpu: str) -> Json:
        pod = super()._member(world, gang, number, cpu)
        pod["spec"]["priorityClassName"] = priority_class(world, self._priorities[gang])
        return pod

    def check(self, world: World) -> None:
        """If a pod of a gang that is preempted as a whole was evicted, all its pods were. A waiting
        gang does not fit as a whole, not even with the room of all less important pods.
        """
        pods = [pod for pod in world.pods() if not is_through(pod)]
        for name, (min_count, size) in self._gangs.items():
            number, waiting, is_hurt = self.state_of(name, pods)
            bound = number - len(waiting)
            goes_by_one = number < size and name not in self._whole
            is_whole = bound == 0 or bound >= min_count
            assert is_whole or is_hurt or goes_by_one, f"{bound} of {name} ({min_count}) are left"
            needed = max(min_count - bound, 1)
            if waiting and needed <= len(waiting):
                mine = self._priorities[name]
                others = [pod for pod in pods if pod["spec"].get("priority", 0) >= mine]
                must_not_fit(EndState(world.nodes(), others), name, waiting, needed)


STORM_GANGS: Final = 30
SIZE: Final = 4
NODES: Final = 2
#: Failed attempts that each process may make: for each pod, and for each pod of a gang for which
#: room was freed.
A_POD: Final = 2
A_FREED_PLACE: Final = 4


class ActivationStorm(Scenario):
    """Thirty equal gangs wait for two nodes, each of which has room for one. Gangs end one by one,
    answers get lost, watches are late, and the scheduler dies. For each freed room only as many
    gangs are tried as fit, not all that wait.
    """

    rounds = 12
    faults = unreliable(0.05, lag_s=2, restarts_s=120)
    config: ClassVar[Json] = Gangs.config

    def __init__(self) -> None:
        self._vain: Counter[Process] = Counter()
        self._freed = 0

    def setup(self, world: World) -> None:
        AddNodes(count=NODES, cpu=(SIZE,), pods=(20,)).do(world)
        world.on_effect.append(self._note)
        world.run_for(2.0)

    def start(self, world: World) -> Iterator[Step]:
        for number in range(STORM_GANGS):
            name = f"gang-{number}"
            world.server.create("podgroups", pod_group(name, SIZE))
            for n in range(SIZE):
                world.server.create("pods", member(name, n, "1"))
        for _ in range(self.rounds):
            yield Wait(wait_s=world.rng.uniform(2.0, 15.0))
            self._end_one(world)
        self._check_attempts()

    def _end_one(self, world: World) -> None:
        """Delete all pods of a running gang."""
        running = sorted({gang_of(pod) for pod in world.placed()})
        if not running:
            return
        ended = world.rng.choice(running)
        for pod in world.pods():
            if gang_of(pod) == ended:
                remove(world, "pods", pod["metadata"]["name"], "default")
                self._freed += 1

    def _note(self, process: Process, effect: Effect) -> None:
        """Count failed attempts by the events of pods."""
        if isinstance(effect, EmitEvent) and effect.reason == names.EVENT_FAILED_SCHEDULING:
            self._vain[process] += effect.regarding.kind == "Pod"

    def _check_attempts(self) -> None:
        most = A_POD * STORM_GANGS * SIZE + A_FREED_PLACE * self._freed
        for count in self._vain.values():
            assert count <= most, f"{count} failed attempts of one process, {most} are many"

    def check(self, world: World) -> None:
        """Gangs run if there is room for any, and each is whole."""
        bound = Counter(gang_of(pod) for pod in world.placed())
        waits = {gang_of(pod) for pod in world.waiting()}
        assert len(bound) == NODES or not waits, f"{len(bound)} gangs run, {len(waits)} wait"
        assert set(bound.values()) <= {SIZE}, f"{bound}: not all are whole"


#: CPU of every pod: equal sizes leave no unusable fragments.
CPU: Final = "500m"
GROUPS: Final = "podgroups.scheduling.x-k8s.io"
CONFIG: Final = profile("Coscheduling", without="PrioritySort")


def coscheduled(name: str, **spec: object) -> Json:
    """A PodGroup of scheduling.x-k8s.io."""
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def labelled(group: str, role: str, cpu: str = CPU) -> Json:
    """A pod of such a group."""
    pod = pod_manifest(f"{group}-{role}", cpu)
    pod["metadata"]["labels"][COSCHEDULING_LABEL] = group
    return pod


class _Coscheduled(Scenario):
    """Base of scenarios with such groups alone."""

    config: ClassVar[Json] = CONFIG

    def is_plain(self, pod: Json) -> bool:
        return not gang_of(pod)


def set_minimum(world: World, name: str, minimum: int) -> None:
    group = world.server.get(GROUPS, "default", name)
    assert group is not None
    spec = {**group["spec"], "minMember": minimum}
    world.server.ctx.put(find(GROUPS), {**group, "spec": spec})


#: Time after a change until the scheduler knows of it: late and broken streams, and answers that
#: get lost when they are opened again.
KNOWN_S: Final = 30.0


class ResizedGangs(Gangs):
    """PodGroups are created with a wrong minimum, and changed: it is lowered or raised, with or
    without more pods. No gang starts below the current minimum, and a gang for which the new one is
    enough does not wait for the old one.
    """

    config: ClassVar[Json] = CONFIG

    def __init__(self) -> None:
        super().__init__()
        self._cpu: dict[str, str] = {}
        self._least: dict[str, int] = {}  # the lowest minimum that a group had
        self._resized_s: dict[str, float] = {}

    def setup(self, world: World) -> None:
        super().setup(world)
        self._are_important = False
        world.on_sent.append(lambda _, bind: self._check_start(world, bind))

    def start(self, world: World) -> Iterator[Step]:
        for number in range(self.rounds):
            self._add_gang(world, f"gang-{number}")
            yield Wait(wait_s=None)
            if world.rng.random() < 0.8:
                self._resize(world, world.rng.choice(sorted(self._gangs)))
            yield Wait(wait_s=world.rng.choice((1.0, 10.0, 1.5 * KNOWN_S)))
            if world.rng.random() < 0.3:
                yield AddPods(count=2)

    def _group(self, world: World, name: str, min_count: int) -> Json:
        del world
        self._least[name] = min_count
        return coscheduled(name, minMember=min_count)

    def _member(self, world: World, gang: str, number: int, cpu: str) -> Json:
        del world
        self._cpu[gang] = cpu
        return labelled(gang, f"{number}", cpu)

    def _resize(self, world: World, name: str) -> None:
        size, minimum = self._gangs[name][1], world.rng.randint(1, 7)
        for number in range(size, minimum if world.rng.random() < 0.8 else size):
            world.server.create("pods", labelled(name, f"{number}", self._cpu[name]))
            size = number + 1
        self._gangs[name] = minimum, size
        self._least[name] = min(minimum, self._least[name])
        self._resized_s[name] = world.clock.now_s()
        set_minimum(world, name, minimum)
        world.note(f"{name} needs {minimum} of {size} now")

    def _check_binding(self, world: World, bind: Bind) -> None:  # noqa: ARG002
        self._open.pop(bind.pod.uid, None)

    def _check_start(self, world: World, bind: Bind) -> None:
        """At the first binding of a gang as many pods as it needs now have places."""
        pod = world.server.get("pods", bind.pod.namespace, bind.pod.name)
        name = gang_of(pod) if pod is not None else ""
        is_known = world.clock.now_s() - self._resized_s.get(name, -KNOWN_S) >= KNOWN_S
        if not name or any(gang_of(pod) == name for pod in world.placed()):
            return
        placed = world.parts.cluster.pod_groups.get(coscheduled_key(f"default/{name}")).placed
        minimum = self._gangs[name][0] if is_known else self._least[name]
        if len(placed) < minimum:
            world.ledger.complain(f"{name} starts with {len(placed)}, it needs {minimum}")

    def check(self, world: World) -> None:
        """Each gang has no bound pod, or as many as it once needed; a waiting gang does not fit."""
        pods = [pod for pod in world.pods() if not is_through(pod)]
        end = EndState(world.nodes(), pods)
        for name, (minimum, size) in self._gangs.items():
            _, waiting, is_hurt = self.state_of(name, pods)
            bound = size - len(waiting)
            is_whole = bound == 0 or bound >= self._least[name]
            assert is_whole or is_hurt, f"{bound} of {name} are bound, never less were enough"
            needed = max(minimum - bound, 1)
            if needed <= len(waiting):
                must_not_fit(end, name, waiting, needed)


class DyingMembers(_Coscheduled):
    """Gangs start, and then lose pods: these fail, succeed, or are deleted, and some are created
    again. Answers get lost, watches are late, and the scheduler dies. In the end the status of each
    PodGroup counts its pods, and no group with fewer than its minimum is Running.
    """

    faults = unreliable(0.1, lag_s=3, restarts_s=90)

    def __init__(self) -> None:
        self._gangs: dict[str, tuple[int, int]] = {}  # minMember, size

    def setup(self, world: World) -> None:
        AddNodes(count=3, cpu=(8,), pods=(110,)).do(world)
        world.run_for(2.0)

    def start(self, world: World) -> Iterator[Step]:
        for number in range(8):
            self._submit(world, f"gang{number}")
            yield Wait(wait_s=world.rng.uniform(0.0, 3.0))
        for _ in range(self.rounds):
            yield Wait(wait_s=None)
            running = [pod for pod in world.placed() if pod["status"].get("phase") == "Running"]
            for pod in world.some(running, world.rng.randint(0, 2)):
                self._hurt(world, pod)

    def _submit(self, world: World, name: str) -> None:
        size = world.rng.randint(2, 5)
        minimum = world.rng.randint(1, size)
        self._gangs[name] = minimum, size
        made = [(GROUPS, coscheduled(name, minMember=minimum))]
        made += [("pods", labelled(name, f"{number}")) for number in range(size)]
        create(world, made)

    def _hurt(self, world: World, pod: Json) -> None:
        roll = world.rng.random()
        if roll < 0.5:
            phase = "Failed" if roll < 0.3 else "Succeeded"
            world.server.ctx.put(PODS, {**pod, "status": {**pod["status"], "phase": phase}})
            return
        end_pods(world, [pod])
        if roll < 0.75:
            name = gang_of(pod)
            made = labelled(name, f"again-{next(world.numbers)}")
            world.server.create("pods", made)

    def check(self, world: World) -> None:
        """Compare with the server's pods, not with the events of any process."""
        for name, (minimum, _) in self._gangs.items():
            group = world.server.get(GROUPS, "default", name)
            assert group is not None
            status = group.get("status") or {}
            phases = [p["status"].get("phase") for p in world.pods() if gang_of(p) == name]
            by_phase = Counter(phases)
            said = status.get("phase", "")
            if said in ("Failed", "Finished"):
                continue
            status_counts = {key: status.get(key, 0) for key in ("running", "succeeded", "failed")}
            counts = {key: by_phase[key.capitalize()] for key in status_counts}
            if len(phases) >= minimum and said != "Pending":
                assert status_counts == counts, (
                    f"{name} has {status_counts} in its status, and {counts} pods"
                )
            enough = by_phase["Running"] + by_phase["Succeeded"] >= minimum
            wanted = "Pending" if len(phases) < minimum else "Running" if enough else "Scheduling"
            assert said == wanted, f"{name} is {said}, with {counts} of {minimum} it is {wanted}"


JOBS: Final = 8
FOLLOWERS_MAX: Final = 4
#: A job may wait so long for missing pods without an event; and the time between two steps.
REPORTED_S: Final = 60.0
STEP_S: Final = 5.0
#: Delay of streams and answers until a process knows all objects.
LATE_S: Final = 15.0


class LeaderFirst(_Coscheduled):
    """A leader is created alone; its followers are created once it runs, and its PodGroup requires
    all of them at once, so that the job never starts. Each gets an event within a minute that says
    what it waits for. Some users then lower the minimum: their jobs run. Answers get lost, watches
    are late, and the scheduler dies.
    """

    faults = unreliable(0.1, lag_s=3, restarts_s=200)

    def __init__(self) -> None:
        self._followers: dict[str, int] = {}
        self._lowered: set[str] = set()
        self._reported: set[str] = set()  # by the acting process
        self._since_s: dict[str, float] = {}
        self._acting: Process | None = None

    def setup(self, world: World) -> None:
        nodes = JOBS * (1 + FOLLOWERS_MAX) // 8 + 1
        AddNodes(count=nodes, cpu=(4,), pods=(110,)).do(world)
        world.on_effect.append(self._note)
        world.run_for(2.0)

    def start(self, world: World) -> Iterator[Step]:
        for number in range(JOBS):
            self._submit(world, f"job{number}")
            for _ in range(world.rng.randint(1, 12)):
                yield Wait(wait_s=STEP_S)
                self._check_events(world)
        for _ in range(int(2 * REPORTED_S / STEP_S)):
            yield Wait(wait_s=STEP_S)
            self._check_events(world)

    def _submit(self, world: World, name: str) -> None:
        followers = self._followers[name] = world.rng.randint(1, FOLLOWERS_MAX)
        group = coscheduled(name, minMember=1 + followers)
        made = [(GROUPS, group), ("pods", labelled(name, "leader"))]
        create(world, made)
        self._since_s[name] = world.clock.now_s()

    def _check_events(self, world: World) -> None:
        """Act as operator and users, and check the time of events."""
        now_s = world.clock.now_s()
        if self._acting is not world.acting:
            self._acting = world.acting
            self._reported.clear()
            self._since_s = dict.fromkeys(self._since_s, now_s)
        led = self._make_followers(world)
        for name, followers in self._followers.items():
            if name in led or name in self._lowered:
                continue
            if name not in self._reported and now_s - self._since_s[name] > REPORTED_S + LATE_S:
                world.ledger.complain(f"{name} waits for {followers} pods and got no event")
            if name in self._reported and world.rng.random() < 0.05:
                self._lower(world, name)

    def _make_followers(self, world: World) -> set[str]:
        """Create followers of jobs whose leader has a node, and return the jobs that have them."""
        led = {gang_of(pod) for pod in world.placed()}
        pods = {pod["metadata"]["name"] for pod in world.pods()}
        for name in sorted(led):
            if f"{name}-follower-0" not in pods:
                for number in range(self._followers[name]):
                    world.server.create("pods", labelled(name, f"follower-{number}"))
        return led

    def _lower(self, world: World, name: str) -> None:
        self._lowered.add(name)
        set_minimum(world, name, 1)
        world.note(f"{name} needs only its leader")

    def _note(self, process: Process, effect: Effect) -> None:
        if isinstance(effect, EmitEvent) and effect.reason == names.EVENT_FAILED_SCHEDULING:
            name = effect.regarding.name.removesuffix("-leader")
            missing = f"1 of minMember {1 + self._followers.get(name, 0)} pods exist"
            if process is self._acting and missing in effect.note:
                self._reported.add(name)

    def check(self, world: World) -> None:
        """Jobs that need only their leader run, the other jobs have not started."""
        self._make_followers(world)
        world.run_for(REPORTED_S)
        bound = [gang_of(pod) for pod in world.placed()]
        for name, followers in self._followers.items():
            wanted = 1 + followers if name in self._lowered else 0
            assert bound.count(name) == wanted, f"{bound.count(name)} of {name}, not {wanted}"


OLD: Final = "scheduling.k8s.io/v1alpha2"
NEW: Final = "scheduling.k8s.io/v1beta1"


class VanishingVersions(Gangs):
    """Gangs are created while the API server serves PodGroups in one version or the other. In
    between it serves them in none for a while, as in the middle of an upgrade: pods of known gangs
    are created all the same, room is freed, and the scheduler dies. No pod of a gang is scheduled
    as a single pod because its group is not served, and with a version all goes on.
    """

    rounds = 8

    def setup(self, world: World) -> None:
        super().setup(world)
        self._are_important = False  # priorities are the groups' own since 1.37

    def start(self, world: World) -> Iterator[Step]:
        for number in range(self.rounds):
            made = self._made(world, f"gang-{number}")
            early = world.rng.randint(1, len(made))  # the PodGroup at least
            for plural, manifest in made[:early]:
                world.server.create(plural, manifest)
            yield Wait(wait_s=world.rng.uniform(0.0, 6.0))
            served = {OLD, NEW} & world.server.ctx.alpha
            world.server.ctx.alpha.difference_update(served)
            world.note(f"{', '.join(served)} is served no more")
            yield Wait(wait_s=world.rng.uniform(0.0, 20.0))
            for plural, manifest in made[early:]:
                world.server.create(plural, manifest)
            if world.rng.random() < 0.5:
                yield AddNodes(cpu=(2,), pods=(10,))
            if world.rng.random() < 0.3:
                world.restart()
            yield Wait(wait_s=world.rng.uniform(0.0, 20.0))
            version = world.rng.choice((OLD, NEW))
            world.server.ctx.alpha.add(version)
            world.note(f"{version} is served")
            yield Wait(wait_s=world.rng.uniform(0.0, 30.0))

    def _check_condition(self, world: World, name: str, *, bound: int, is_hurt: bool) -> None:
        """Accept the conditions of any version that was served; while none is, nothing can be
        written, and the condition of a start is not written later.
        """
        group = world.server.get("podgroups", "default", name)
        assert group is not None
        conditions = {
            condition["type"]: condition["status"]
            for condition in group["status"].get("conditions") or ()
        }
        assert conditions.keys() <= {"PodGroupScheduled", "PodGroupInitiallyScheduled"}, conditions
        assert bound or is_hurt or "True" not in conditions.values(), f"{name} waits: {conditions}"
