"""The API server refuses, fails and disconnects; the scheduler dies, or does not lead any more."""

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar, Final

from asched import names
from asched.core.cluster.pod_groups import group_key
from asched.core.framework.effects import Bind
from asched.core.leader.election import LeaseRecord, Term
from asched.core.model.decode import decode
from asched.core.model.pod import Pod
from asched_lab.apiserver.context import Change, Record
from asched_lab.apiserver.resources import PODS
from asched_lab.sim.faults import (
    BrokenWatches,
    ClockRates,
    Conflicts,
    ExpiredWatches,
    FrozenServer,
    LateWrites,
    LeaderPause,
    LostAnswers,
    Overload,
    Partition,
    Restarts,
    ServerErrors,
    SlowAnswers,
    StaleWatch,
    Unreachable,
)
from asched_lab.sim.leases import LEASE
from asched_lab.sim.process import Process
from asched_lab.sim.scenario import Scenario, profile
from asched_lab.sim.scenarios import gangs
from asched_lab.sim.steps import (
    AddNodes,
    AddPods,
    DeletePods,
    Json,
    Step,
    Wait,
    pod_manifest,
    priority_class,
    wipe,
)
from asched_lab.sim.world import FAULTS, World


class _Traffic(Scenario):
    """Base: pods are created and deleted, on a few nodes."""

    #: Bounds of the numbers of pods created in a round, and deleted in a share of the rounds.
    created: ClassVar[tuple[int, int]] = (1, 5)
    deleted: ClassVar[tuple[int, int]] = (1, 3)
    share_deleted: ClassVar[float] = 0.3

    def setup(self, world: World) -> None:
        AddNodes(count=world.rng.randint(2, 6)).do(world)

    def add(self, world: World) -> Step:
        """The pods of a round."""
        return AddPods(count=world.rng.randint(*self.created))

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(self.rounds):
            yield self.add(world)
            if world.rng.random() < self.share_deleted:
                yield DeletePods(count=world.rng.randint(*self.deleted))


class BurningServer(_Traffic):
    """Most requests fail in one way or another; every pod is bound once all the same."""

    created = (1, 6)
    deleted = (1, 4)
    share_deleted = 0.4

    faults = (
        Overload(rate=0.1),
        ServerErrors(rate=0.1),
        LostAnswers(rate=0.2),
        Unreachable(rate=0.1),
        Conflicts(rate=0.05),
        SlowAnswers(seconds_max=3.0),
        BrokenWatches(every_s=30),
        ExpiredWatches(every_s=30),
        StaleWatch(lag_s_max=10),
    )

    def setup(self, world: World) -> None:
        AddNodes(count=world.rng.randint(2, 8), cpu=(1, 2)).do(world)


class Inferno(Scenario):
    """The same with more faults, late requests and a dying scheduler, without any other change: in
    the end every single pod is bound, and was bound once.
    """

    faults = (*BurningServer.faults, LateWrites(rate=0.1), Restarts(every_s=20))

    def setup(self, world: World) -> None:
        AddNodes(count=world.rng.randint(3, 6), cpu=(64,), pods=(200,)).do(world)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(60 // world.rng.choice((1, 2, 4))):
            yield AddPods(count=world.rng.randint(1, 4))

    def check(self, world: World) -> None:
        waiting = [pod["metadata"]["name"] for pod in world.waiting()]
        assert not waiting, f"{waiting} were never bound"
        for pod in world.pods():
            number = world.ledger.accepted[pod["metadata"]["uid"]]
            assert number == 1, f"{pod['metadata']['name']} was bound {number} times"


class DyingScheduler(_Traffic):
    """The process dies with open bindings; the next one starts from a list and continues."""

    faults = (
        Restarts(every_s=8),
        SlowAnswers(seconds_max=1.0),
        LostAnswers(rate=0.1),
        StaleWatch(lag_s_max=3),
    )


class LateBindings(_Traffic):
    """A binding without an answer may still be carried out: there is room for it then, and the pod
    is on the API's node, once.
    """

    faults = (LateWrites(rate=0.3), StaleWatch(lag_s_max=5), Conflicts(rate=0.1))


class LeaderChanges(_Traffic):
    """Leaders die, stop and are disconnected with open work: their successor finishes it.

    No process binds without the lease, no two lead at a time, and requests of a dead leader may
    still arrive.
    """

    rounds = 30
    replicas = 3
    faults = (
        LeaderPause(every_s=25, lasting_s_max=15),
        Partition(every_s=30, lasting_s_max=15),
        Restarts(every_s=40),
        SlowAnswers(seconds_max=0.5),
        LostAnswers(rate=0.05),
        LateWrites(rate=0.1, late_s_max=15),
        StaleWatch(lag_s_max=3),
    )

    def setup(self, world: World) -> None:
        super().setup(world)
        world.run_for(10.0)  # until all is listed and one process leads

    def add(self, world: World) -> Step:
        wait_s = world.rng.choice((None, world.rng.uniform(1.0, 10.0)))
        priority = world.rng.choice((0, 0, 0, 10))
        return AddPods(count=world.rng.randint(*self.created), priority=priority, wait_s=wait_s)

    def check(self, world: World) -> None:
        assert world.leaders > 1, "leadership never changed, so nothing was tried"


#: Share of bindings at which the process dies, and at which another client changes the pod.
DIES: Final = 0.15
CHANGES: Final = 0.3
#: Share of touches at which late requests arrive.
LANDS: Final = 0.1
#: Share of touches at which the process dies that seals, and of bindings of its first pods.
SEALER_DIES: Final = 0.1
BINDER_DIES: Final = 0.1
#: The longest time from a touch until late requests for other pods arrive (s).
LANDS_S_MAX: Final = 2.0
#: The priority of pods that are created when a process dies.
URGENT: Final = 20


class Takeovers(_Traffic):
    """Leaders die while they bind, on nodes that are nearly full, and what they had sent arrives up
    to a minute later. Processes and the server stand still for longer than a lease, clocks run at
    different rates, and another client changes pods while they are bound.

    More important pods appear when a process dies, and get places that it had chosen for others. Of
    what it had sent some arrives while its successor seals the pods.
    Nothing is overcommitted, no pod loses its place because its labels have changed, and no gang
    starts without places for all that it needs.
    """

    rounds = 30
    replicas = 3
    created = (1, 4)
    share_deleted = 0.6
    faults = (
        ClockRates(share=0.1),
        FrozenServer(every_s=60, lasting_s_max=12),
        LeaderPause(every_s=60, lasting_s_max=12),
        Partition(every_s=60, lasting_s_max=12),
        SlowAnswers(seconds_max=0.5),
        LostAnswers(rate=0.05),
        LateWrites(rate=0.1, late_s_max=50),
        StaleWatch(lag_s_max=8),  # longer than a lease
    )
    config: ClassVar[Json] = profile("GangScheduling")

    def __init__(self) -> None:
        self._minimum: dict[str, int] = {}  # of each gang
        self._begun: set[tuple[Process, str]] = set()  # gangs of which it has sent a binding
        self._deaths = 0

    def setup(self, world: World) -> None:
        AddNodes(count=world.rng.randint(2, 4), cpu=(1, 2), pods=(10,)).do(world)
        world.server.store.table(PODS.storage).listeners.append(lambda c: _land(world, c))
        world.on_sent.append(self._check_gang)
        world.on_sent.append(self._interfere)
        world.run_for(10.0)  # until all is listed and one process leads

    def start(self, world: World) -> Iterator[Step]:
        for number in range(self.rounds):
            if world.rng.random() < 0.25:
                self._add_gang(world, f"gang-{number}")
            priority = world.rng.choice((0, 0, 10))
            yield AddPods(count=world.rng.randint(*self.created), priority=priority)
            if world.rng.random() < self.share_deleted:
                yield DeletePods(count=world.rng.randint(*self.deleted), waiting_too=False)

    def _add_gang(self, world: World, name: str) -> None:
        size = world.rng.randint(2, 4)
        self._minimum[name] = world.rng.randint(2, size)
        world.server.create("podgroups", gangs.pod_group(name, self._minimum[name]))
        for number in range(size):
            world.server.create("pods", gangs.member(name, number, "300m"))

    def _interfere(self, process: Process, bind: Bind) -> None:
        """Change the pod at about the time of its binding, or kill its process."""
        world = process.world
        if not world.active_faults.is_on:
            return
        if world.rng.random() < CHANGES:
            world.clock.after(world.rng.uniform(0.0, 1.0), lambda: _annotate(world, bind))
        if world.rng.random() < DIES:
            self._deaths += 1
            world.clock.after(world.rng.uniform(0.0, 0.02), lambda: _kill(process))
            urgent = AddPods(count=2, priority=URGENT)
            world.clock.after(world.rng.uniform(0.0, 0.1), lambda: urgent.do(world))

    def _check_gang(self, process: Process, bind: Bind) -> None:
        """At the first binding of a gang as many pods as it needs have places. It may be repeated
        when others are deleted.
        """
        world = process.world
        pod = world.server.get("pods", bind.pod.namespace, bind.pod.name)
        name = gangs.gang_of(pod) if pod is not None else ""
        if pod is None or not name or (process, name) in self._begun:
            return
        self._begun.add((process, name))
        if any(gangs.gang_of(other) == name for other in world.placed()):
            return
        placed = process.parts.cluster.pod_groups.get(group_key(decode(Pod, pod))).placed
        if len(placed) < self._minimum[name]:
            minimum = self._minimum[name]
            world.ledger.complain(f"{name} starts with {len(placed)}, it needs {minimum}")

    def is_plain(self, pod: Json) -> bool:
        return not gangs.gang_of(pod)

    def check(self, world: World) -> None:
        assert self._deaths or world.leaders > 1, "nothing died, so nothing was tried"


class HardRestarts(Takeovers):
    """The same with one process that needs no lease: nothing says how the last one ended."""

    replicas = 1


def _land(world: World, change: Change) -> None:
    """When a pod is sealed, let late requests arrive, also for pods that are not sealed yet."""
    if _is_touch(change) and world.active_faults.is_on and world.rng.random() < LANDS:
        for process in world.ended:
            world.clock.after(0.0, process.wire.hurry)


def _is_touch(change: Change) -> bool:
    before, after = (() if r is None else _conditions(r) for r in (change.old, change.new))
    return before != after


def _conditions(record: Record) -> list[Json]:
    """Those that a seal writes."""
    conditions = record.obj["status"].get("conditions") or ()
    return [condition for condition in conditions if condition["type"] == names.TAKEN_OVER]


def _annotate(world: World, bind: Bind) -> None:
    """Change what decides nothing, as controllers do."""
    pod = world.server.get("pods", bind.pod.namespace, bind.pod.name)
    if pod is None or pod["metadata"]["uid"] != bind.pod.uid:
        return
    part = world.rng.choice(("labels", "annotations"))
    texts = {**(pod["metadata"].get(part) or {}), "seen-at": f"{world.clock.now_s():.0f}"}
    world.server.ctx.put(PODS, {**pod, "metadata": {**pod["metadata"], part: texts}})


def _kill(process: Process) -> None:
    if process.world.acting is process:
        process.world.restart()


class SlowSeals(Scenario):
    """A process dies as it binds `first` to the only place. While its successor seals, `urgent` is
    touched at once and `first` seconds later, and between the two the late binding arrives. So
    `urgent` has a new version, and its binding would be accepted, before the streams show that its
    place is taken.
    """

    rounds = 5
    replicas = 1
    faults = (
        SlowAnswers(seconds_max=0.1),
        LateWrites(rate=0.5, late_s_max=60),
        Overload(rate=0.6, retry_after_s=2, only="first/status"),
        StaleWatch(lag_s_max=8),
    )

    def setup(self, world: World) -> None:
        self._deaths = 0
        AddNodes(cpu=(1,), pods=(10,)).do(world)
        world.on_sent.append(self._strike)
        world.server.store.table(PODS.storage).listeners.append(lambda c: self._land(world, c))
        world.run_for(10.0)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(self.rounds):
            yield AddPods(name="first", cpu=("1",), wait_s=world.rng.uniform(20.0, 40.0))
            for pod in world.pods():
                wipe(world, pod)
            yield Wait(wait_s=10.0)

    def _strike(self, process: Process, bind: Bind) -> None:
        """Kill the process that binds `first`, and create the pod that gets the place now."""
        world = process.world
        if bind.pod.name != "first" or not world.active_faults.is_on:
            return
        self._deaths += 1
        world.clock.after(world.rng.uniform(0.0, 0.2), lambda: _kill(process))
        urgent = AddPods(name="urgent", cpu=("1",), priority=URGENT)
        world.clock.after(world.rng.uniform(0.0, 0.2), lambda: urgent.do(world))

    def _land(self, world: World, change: Change) -> None:
        if change.new.obj["metadata"]["name"] == "urgent" and _is_touch(change):
            for process in world.ended:
                world.clock.after(world.rng.uniform(0.0, LANDS_S_MAX), process.wire.hurry)

    def check(self, _world: World) -> None:
        assert self._deaths, "nothing died, so nothing was tried"


class UnfinishedSeals(Scenario):
    """Leaders die while they seal, or as they bind their first pods. The next one goes on where the
    seal was, but begins anew if anything may have been decided. What the dead ones had sent arrives
    up to a minute later. Seals take seconds, since the server refuses most touches at first.
    """

    rounds = 12
    replicas = 2
    created, deleted = (3, 12), (2, 12)
    faults = (
        SlowAnswers(seconds_max=0.1),
        LateWrites(rate=0.4, late_s_max=60),
        Overload(rate=0.7, retry_after_s=2, only="/status"),
        StaleWatch(lag_s_max=2),
    )

    def setup(self, world: World) -> None:
        self._continued = 0
        AddNodes(count=world.rng.randint(2, 4), cpu=(1, 2), pods=(10,)).do(world)
        world.on_sent.append(self._strike)
        world.server.store.table(PODS.storage).listeners.append(lambda c: self._sealing(world, c))
        world.server.store.table(LEASE.storage).listeners.append(self._taken)
        world.run_for(10.0)  # until all is listed and one process leads

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(self.rounds):
            priority = world.rng.choice((0, 0, 10))
            yield AddPods(count=world.rng.randint(*self.created), priority=priority)
            yield DeletePods(count=world.rng.randint(*self.deleted), waiting_too=False)

    def _strike(self, process: Process, _: Bind) -> None:
        world = process.world
        if world.active_faults.is_on and world.rng.random() < BINDER_DIES:
            world.clock.after(world.rng.uniform(0.0, 0.02), lambda: _kill(process))

    def _sealing(self, world: World, change: Change) -> None:
        """Kill the process that seals, and let late requests of dead ones arrive."""
        _land(world, change)
        is_struck = _is_touch(change) and world.active_faults.is_on
        if is_struck and world.rng.random() < SEALER_DIES:
            process = world.acting
            world.clock.after(world.rng.uniform(0.0, 1.0), lambda: _kill(process))

    def _taken(self, change: Change) -> None:
        """Count leaders that go on with a seal."""
        term = None if change.old is None else Term.of(change.old.obj)
        if term is None or term.open_seal is None:
            return
        was, now = (LeaseRecord.of(one.obj).holder for one in (change.old, change.new) if one)
        self._continued += bool(now) and now != was

    def check(self, world: World) -> None:
        world.figures[f"{FAULTS}continued seals"] += self._continued


PLACES: Final = 3
LOW, HIGH, RUNNING = 0, 10, 100


class KeptOrder(Scenario):
    """The leader dies while more pods wait than there are places: the important ones get them, and
    no other is bound. Twice only: from the third end within ten minutes on one pod is tried later.
    """

    rounds = 2
    replicas = 2
    faults = (SlowAnswers(seconds_max=0.5), StaleWatch(lag_s_max=3), BrokenWatches(every_s=30))

    def setup(self, world: World) -> None:
        self._sent: list[str] = []
        world.on_sent.append(lambda _, bind: self._sent.append(bind.pod.name))
        AddNodes(count=PLACES, cpu=(1,), pods=(10,)).do(world)
        world.run_for(10.0)

    def start(self, world: World) -> Iterator[Step]:
        for number in range(self.rounds):
            create = [*[("low", LOW)] * 5, *[("high", HIGH)] * PLACES]
            has_waited = world.rng.random() < 0.5  # with conditions and backoff, for places in use
            if has_waited:
                yield AddPods(count=PLACES, cpu=("1",), priority=RUNNING, wait_s=8.0)
                self._create(world, number, create)
                yield Wait(wait_s=world.rng.uniform(1.0, 20.0))
            _kill(world.acting)
            yield Wait(wait_s=world.rng.uniform(0.0, 0.5))
            for pod in world.placed() if has_waited else ():
                wipe(world, pod)
            if not has_waited:
                self._create(world, number, create)
            self._sent.clear()
            yield Wait(wait_s=60.0)
            bound = sorted(set(self._sent))
            expected = [f"high-{number}-{n}" for n in range(PLACES)]
            assert bound == expected, f"{bound} are bound, not {expected}"
            for pod in world.pods():
                wipe(world, pod)
            yield Wait(wait_s=5.0)

    def _create(self, world: World, number: int, pods: list[tuple[str, int]]) -> None:
        """Create them in any order; the low ones may not be evicted for the high ones."""
        numbers: Counter[str] = Counter()
        for kind, priority in world.shuffled(pods):
            pod = pod_manifest(f"{kind}-{number}-{numbers[kind]}", "1")
            pod["spec"]["priorityClassName"] = priority_class(world, priority, "Never")
            numbers[kind] += 1
            world.server.create("pods", pod)
