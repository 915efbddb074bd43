"""A simulated world: scheduler processes, the embedded server's handlers, virtual time.

    steps ─> server <──wire (late, broken, lossy)──> process: reflectors, loops, machine, dispatcher

Nothing sleeps and all randomness comes from the seed: equal seeds give equal runs. The world also
has kubelets that start and end pods, the garbage collector of pods on lost nodes, and a second
scheduler that binds at random.
"""

import random
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, Final, Self, TypeVar

from asched.core.cluster.pools import SEVERAL
from asched.core.config.defaults import configuration
from asched.core.config.gates import DEFAULT_GATES
from asched.core.config.layout import lease_of, pools_of
from asched.core.cycle.machine import Machine
from asched.core.framework.effects import Bind, Effect, EmitEvent, ReadPod
from asched.core.leader.pools import lease_of_pool
from asched.core.model.timestamp import NS_PER_SECOND
from asched.host.assemble import Parts
from asched.host.user_plugins.catalogue import Catalogue, of_class
from asched_lab.apiserver import bootstrap
from asched_lab.apiserver.context import Change, Options
from asched_lab.apiserver.resources import NODES, POD_GROUPS, REQUESTS
from asched_lab.apiserver.server import ApiServer
from asched_lab.sim.clock import VirtualClock
from asched_lab.sim.extenders import ExtenderRule, Extenders
from asched_lab.sim.faults import (
    ActiveFaults,
    Compactions,
    Fault,
    FrozenServer,
    LeaderPause,
    OneWay,
    Partition,
    Restarts,
)
from asched_lab.sim.inhabitants import Inhabitants
from asched_lab.sim.leases import Leases
from asched_lab.sim.ledger import Ledger
from asched_lab.sim.pool_judge import PoolJudge
from asched_lab.sim.process import LEASE_NAME, LEASE_S, Process, Setup

Json = dict[str, Any]
T = TypeVar("T")

SCHEDULER: Final = "default-scheduler"
#: Turns without a step of time after which the machine counts as spinning.
SPIN_TURNS_MAX: Final = 10_000
#: Lines of the run's trace that are stored.
TRACE_LINES: Final = 4000
#: Unusual values that a configuration may have; the machine must be right with any of them.
BINDINGS_MAX: Final = (1, 2, 16, 512, 512)
CYCLES_PER_TURN: Final = (1, 4, 1000)
BACKOFFS_S: Final = ((1, 10), (1, 10), (1, 1), (5, 30))
#: A process that ended is started again within this time.
STARTS_S_MAX: Final = 3.0
#: Before the names of figures that count faults.
FAULTS: Final = "faults: "
#: Longest delay of requests that a dead process had sent.
LATE_S_MAX: Final = 60.0


class World:
    """One run. `run_for` lets time pass; steps make all other changes.

    With more than one of `replicas` a leader is elected; the rest stand by. Any number of them
    share the pools, if each has a Lease. `collects`: garbage is collected as in production.
    """

    collects: ClassVar[bool] = False
    process_class: ClassVar[type[Process]] = Process

    def __init__(
        self,
        seed: int,
        faults: Iterable[Fault] = (),
        config: Json | None = None,
        *,
        plugins: Iterable[type[Any]] = (),
        extender_rules: Sequence[ExtenderRule] = (),
        replicas: int = 1,
        record: Path | None = None,
        gates: Mapping[str, bool] | None = None,
        audit_period_s: float = 0.0,
    ) -> None:
        """`record`: a folder for recordings; `gates`: those that differ from the defaults."""
        self.seed = seed
        self.rng = random.Random(seed)
        self.clock = VirtualClock()
        self.active_faults = ActiveFaults(faults, random.Random(self.rng.random()))
        options, clock = Options(alpha=POD_GROUPS | REQUESTS), self.clock.now_s
        self.server = ApiServer(options=options, clock=clock, seed=seed)
        bootstrap.fill(self.server.ctx, port=1, authority="")
        self.server.store.begin_history()
        self.ledger = Ledger()
        self.leases = Leases(self)
        self.inhabitants = Inhabitants(self.server, self.clock, random.Random(self.rng.random()))
        self.trace: deque[str] = deque(maxlen=TRACE_LINES)
        self.event_count = self.step_count = 0  # steps: of the scenario, that were taken
        #: Of an incident: seconds from the end of its fault to the first right decision; its
        #: counts.
        self.recoveries_s: list[float] = []
        self.figures: Counter[str] = Counter()
        #: observers of sent bindings, of accepted bindings, and of other effects
        self.on_sent: list[Callable[[Process, Bind], None]] = []
        self.on_bound: list[Callable[[Bind], None]] = []
        self.on_effect: list[Callable[[Process, Effect], None]] = []
        #: (name, version) -> the node at that version
        self.node_versions: dict[tuple[str, str], Json] = {}
        self.server.store.table(NODES.storage).listeners.append(self._note_node)
        self.numbers = count(1)
        names = "podInitialBackoffSeconds", "podMaxBackoffSeconds"
        self._drawn = dict(zip(names, self.rng.choice(BACKOFFS_S), strict=True))
        self._gates = {**DEFAULT_GATES, **(gates or {})}
        effective = self.effective(config or {})
        self.setup = Setup(
            configuration=effective,
            catalogue=Catalogue([of_class(cls, "the scenario") for cls in plugins]),
            seed=seed,
            bindings_max=self.rng.choice(BINDINGS_MAX),
            cycles_per_turn=self.rng.choice(CYCLES_PER_TURN),
            record=record,
            audit_period_s=audit_period_s,
        )
        self.extenders = Extenders(self, effective, extender_rules) if effective.extenders else None
        #: Whether all processes act, each for the pools that it holds.
        self.shares_pools = effective.pool_leases
        self.is_elected = replicas > 1 or self.shares_pools
        self.pools = pools_of(effective) if self.shares_pools else ()
        lease = lease_of(effective)
        self.lease_s = lease.lease_ns / NS_PER_SECOND if self.shares_pools else LEASE_S
        self._pool_judge = PoolJudge(self) if self.shares_pools else None
        self._spins = self.leaders = 0  # leaders: number of changes of leadership
        self.processes: list[Process] = []
        self.ended: list[Process] = []
        for _ in range(replicas):
            self._begin_process()
        #: the process whose decisions count: the leader, or the last one; any if pools are shared
        self.acting = self.processes[0]
        self._plan_all()

    # --- processes -------------------------------------------------------------------------------

    @property
    def deciding(self) -> list[Process]:
        """The processes whose decisions count."""
        return list(self.processes) if self.shares_pools else [self.acting]

    @property
    def machine(self) -> Machine:
        return self.acting.machine

    @property
    def parts(self) -> Parts:
        return self.acting.parts

    @property
    def scheduler_names(self) -> frozenset[str]:
        """Names of the schedulers that this process runs."""
        return frozenset(self.machine.context.runners)

    def effective(self, config: Json) -> Any:
        """A configuration with this run's unusual values."""
        return configuration({**self._drawn, **config}, self._gates)

    def _begin_process(self) -> Process:
        """A new scheduler: it lists everything and starts."""
        name = f"scheduler-{next(self.numbers)}" if self.is_elected else "scheduler"
        process = self.process_class(self, self.setup, name, is_elected=self.is_elected)
        self.processes.append(process)
        return process

    def restart(self) -> None:
        """Kill the acting process and start another one."""
        process = self._struck()
        if process not in self.processes:
            return  # it is dead, and no process leads yet
        self.note(f"{process.name} dies")
        self._replace(process)

    def _struck(self) -> Process:
        """The process that a fault strikes."""
        if self.shares_pools and self.processes:
            return self.rng.choice(self.processes)
        return self.acting

    def lost_lease(self, process: Process) -> None:
        """A process may not act any more and ends."""
        self.note(f"{process.name} lost the lease")
        self._replace(process)

    def starts_over(self, process: Process, why: str) -> None:
        """A process drops all it knows, and starts again."""
        self.note(f"{process.name} starts over: {why}")
        self._replace(process)

    def _replace(self, process: Process) -> None:
        process.cut(LATE_S_MAX)
        self.ended.append(process)
        self.processes.remove(process)
        if self._pool_judge is not None:
            self._pool_judge.ended(process)
            self.ledger.one_died(process.name)
            if self.acting is process and self.processes:
                self.acting = self.processes[0]
        if not self.is_elected:
            self.ledger.process_died()
            self.acting = self._begin_process()
            return
        self.clock.after(self.rng.uniform(0.0, STARTS_S_MAX), self._begin_another)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """The run is over; its state can still be read."""
        for process in self.processes:
            process.end()

    def _begin_another(self) -> None:
        self._begin_process()

    def _check_leaders(self) -> None:
        """At most one process may act, unless they share pools."""
        self.leases.check()
        if self.shares_pools:
            return
        leading = [process for process in self.processes if process.may_act]
        if len(leading) > 1:
            names = ", ".join(process.name for process in leading)
            self.ledger.complain(f"two processes lead: {names}")
        if leading and leading[0] is not self.acting:
            self.acting = leading[0]
            self.leaders += 1
            self.note(f"{self.acting.name} leads")
            self.ledger.process_died()

    def _pause(self) -> None:
        seconds = self.active_faults.seconds(LeaderPause, "lasting_s_max")
        process = self._struck()
        self.note(f"{process.name} stands still for {seconds:.1f} s")
        self.figures[f"{FAULTS}pauses longer than a lease"] += seconds > self.lease_s
        process.pause(seconds)

    def _cut_off(self) -> None:
        seconds = self.active_faults.seconds(Partition, "lasting_s_max")
        process = self._struck()
        self.note(f"{process.name} is cut off for {seconds:.1f} s")
        process.cut_off(seconds)

    def _cut_one_way(self) -> None:
        seconds = self.active_faults.seconds(OneWay, "lasting_s_max")
        process, to_server = self._struck(), self.rng.random() < 0.5
        what = "requests" if to_server else "answers"
        self.note(f"{what} of {process.name} do not pass for {seconds:.1f} s")
        self.figures[f"{FAULTS}{what} lost for longer than a lease"] += seconds > self.lease_s
        process.cut_off(seconds, to_server=to_server, from_server=not to_server)

    def _freeze(self) -> None:
        seconds = self.active_faults.seconds(FrozenServer, "lasting_s_max")
        self.note(f"the server stands still for {seconds:.1f} s")
        self.active_faults.frozen_until_s = self.clock.now_s() + seconds

    # --- what processes do -----------------------------------------------------------------------

    def sends(self, process: Process, bind: Bind) -> None:
        """A binding leaves a process."""
        self.note(f"bind {bind.pod.key} to {bind.node}")
        if not process.may_act:
            self.ledger.complain(f"{process.name} does not lead and binds {bind.pod.key}")
        if not process.is_acting:
            return
        process.leases_of[bind.pod.uid] = self._leases_for(process, bind)
        self._enter(bind, process)
        for observe in self.on_sent:
            observe(process, bind)

    def asks_extender_to_bind(self, bind: Bind) -> None:
        """An extender is asked to bind, which counts as a binding."""
        self.note(f"ask an extender to bind {bind.pod.key} to {bind.node}")
        self._enter(bind, self.acting)

    def _enter(self, bind: Bind, process: Process) -> None:
        cluster = process.parts.cluster
        seen = {
            pod.uid: node
            for key, pod in cluster.pods_seen.items()
            if (node := pod.spec.node_name) and (node == bind.node or key == bind.pod.key)
        }
        known = self.seen_node(bind.node, process)
        self.ledger.sends(bind, by=process.name, node=known, placed=seen)
        if self.extenders is not None and (objection := self.extenders.objects_to(bind)):
            self.ledger.complain(f"pod {bind.pod.key}: {objection}")

    def performs(self, process: Process, effect: Effect) -> None:
        """Another effect leaves a process."""
        if isinstance(effect, EmitEvent):
            self.event_count += 1
        if isinstance(effect, ReadPod):
            seen = process.parts.cluster.pods_seen.get(effect.pod.key)
            was_known = effect.pod.key not in process.keys_now
            is_seen = seen is not None and seen.uid == effect.pod.uid and seen.spec.node_name
            if was_known and is_seen:
                self.ledger.complain(f"pod {effect.pod.key} is asked about, it was seen on a node")
        for observe in self.on_effect:
            observe(process, effect)

    def bound(self, bind: Bind, *, late: bool, is_lie: bool = False) -> None:
        """The server has just accepted a binding; `late`: after its timeout, `is_lie`: by an
        extender that denies it, or that was asked for another node.
        """
        self.note(f"{bind.pod.key} is on {bind.node}{' at last' * late}")
        self.ledger.bound(bind, self.pods(), self.nodes(), is_lie=is_lie)
        for observe in self.on_bound:
            observe(bind)

    def judged(self, steps: Generator[Effect, Any, T]) -> T:
        """Run a cycle to its end, with correct and immediate answers of extenders."""
        answer: Any = None
        try:
            while True:
                effect = steps.send(answer)
                assert self.extenders is not None
                answer = self.extenders.answered(effect)
        except StopIteration as end:
            result: T = end.value
            return result

    def concerns(self, lease: str, process: Process, bind: Bind) -> bool:
        """Whether a binding of a process is about what a lease was needed for when it was sent."""
        return not self.shares_pools or lease in process.leases_of.get(bind.pod.uid, ())

    def _leases_for(self, process: Process, bind: Bind) -> set[str]:
        """The leases of pools that a binding needs, as its process sees that now."""
        pools, cluster = process.machine.context.pools, process.parts.cluster
        if not self.shares_pools or pools is None:
            return set()
        pod, node = cluster.pods_seen.get(bind.pod.key), cluster.node_of(bind.node)
        needed = {pools.of_namespace(bind.pod.namespace) if pod is None else pools.of_waiting(pod)}
        if node is not None:
            needed.add(pools.with_labels(node.labels))
        return {lease_of_pool(LEASE_NAME, pools.names[number]) for number in needed - {SEVERAL}}

    def seen_node(self, name: str, process: Process | None = None) -> Json | None:
        """A node as the acting process knows it; None if it knows none."""
        node = (process or self.acting).parts.cluster.node_of(name)
        return None if node is None else self.node_versions[name, node.metadata.resource_version]

    def _note_node(self, change: Change) -> None:
        node = change.new.obj
        self.node_versions[node["metadata"]["name"], str(change.revision)] = node

    # --- time ------------------------------------------------------------------------------------

    def run_for(self, seconds: float) -> None:
        """Run everything that is due within this time."""
        end_s = self.clock.now_s() + seconds
        while True:
            next_s = self._next_s()
            if next_s is None or next_s > end_s:
                break
            self._count_spins(next_s)
            self.clock.jump(next_s)
            self.clock.run_due()
            if self.is_elected:
                self._check_leaders()
            for process in tuple(self.processes):
                deadline_s = process.deadline_s()
                if deadline_s is not None and deadline_s <= self.clock.now_s():
                    process.step()
                    if self._pool_judge is not None:
                        self._pool_judge.stepped(process)
        self.clock.jump(end_s)

    def _next_s(self) -> float | None:
        next_s = self.clock.next_s()
        for process in self.processes:
            deadline_s = process.deadline_s()
            if deadline_s is not None and (next_s is None or deadline_s < next_s):
                next_s = deadline_s
        return next_s

    def _count_spins(self, next_s: float) -> None:
        self._spins = self._spins + 1 if next_s <= self.clock.now_s() else 0
        if self._spins > SPIN_TURNS_MAX:
            raise AssertionError("the machine asks for turn after turn and time stands still")

    def _plan_all(self) -> None:
        self._plan(LeaderPause, self._pause)
        self._plan(Restarts, self.restart)
        self._plan(Partition, self._cut_off)
        self._plan(OneWay, self._cut_one_way)
        self._plan(FrozenServer, self._freeze)
        self._plan(Compactions, self.server.store.begin_history)

    def _plan(
        self,
        kind: type[LeaderPause | Restarts | Partition | OneWay | FrozenServer | Compactions],
        strike: Callable[[], None],
    ) -> None:
        """Strike repeatedly, at random times, while the fault is in force."""
        fault = self.active_faults.find(kind)
        if fault is None:
            return

        def due() -> None:
            if self.active_faults.is_on:
                strike()
                self._plan(kind, strike)

        self.clock.after(self.rng.uniform(0.0, 2 * fault.every_s), due)

    # --- objects ---------------------------------------------------------------------------------

    def pods(self) -> list[Json]:
        return self.server.list("pods")

    def nodes(self) -> list[Json]:
        return self.server.list("nodes")

    def node_names(self) -> list[str]:
        return [node["metadata"]["name"] for node in self.nodes()]

    def waiting(self) -> list[Json]:
        """Pods of this scheduler without a node."""
        names = self.scheduler_names
        return [
            pod
            for pod in self.pods()
            if not pod["spec"].get("nodeName") and pod["spec"]["schedulerName"] in names
        ]

    def placed(self) -> list[Json]:
        """Pods on a node that are not terminating."""
        return [
            pod
            for pod in self.pods()
            if pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp")
        ]

    def shuffled(self, items: Iterable[T]) -> list[T]:
        mixed = list(items)
        self.rng.shuffle(mixed)
        return mixed

    def some(self, items: Sequence[T], number: int) -> list[T]:
        return self.rng.sample(items, min(number, len(items)))

    def note(self, text: str) -> None:
        self.trace.append(f"{self.clock.now_s() % 100_000:10.4f} {text}")
