"""A simulated world: the machine of production, the embedded server's handlers, and virtual time.

    steps ─> server ──streams (late, broken)──> inbox ─> machine ─> wire (lossy) ─> server

Nothing sleeps and nothing is random but the seed: the same seed lives the same life. The world also
plays everybody else: kubelets that start and end pods, the collector of pods on lost nodes, and a
second scheduler that takes what it likes.
"""

import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any, Final, TypeVar

from asched.core.config.defaults import configuration
from asched.core.cycle.machine import Machine
from asched.core.framework.attempt import Rejection
from asched.core.framework.effects import Bind, EmitEvent
from asched.core.framework.runner import NoNodesError, run_alone
from asched.core.model.decode import decode
from asched.core.model.kinds import KINDS
from asched.core.state import audit
from asched.core.state.facts import Answer, Fact
from asched.edge.host.assemble import Parts, build_machine, build_runners
from asched.edge.host.inbox import Inbox
from asched.lab.apiserver import bootstrap
from asched.lab.apiserver.server import ApiServer
from asched.lab.sim.clock import VirtualClock
from asched.lab.sim.faults import Fault, LeaderPause, Restarts, Troubles
from asched.lab.sim.inhabitants import Inhabitants
from asched.lab.sim.ledger import Ledger
from asched.lab.sim.streams import Stream
from asched.lab.sim.wire import Wire

Json = dict[str, Any]
T = TypeVar("T")

SCHEDULER: Final = "default-scheduler"
#: Turns without a step of time before we say that the machine spins.
SPIN_TURNS_MAX: Final = 10_000
#: The machine is woken this long after the first fact of a batch arrived.
WAKE_S: Final = 0.0005
#: Lines of the run's record that are kept.
TRACE_LINES: Final = 4000
#: Odd values that a configuration may hold; the machine must be right with any of them.
BINDINGS_MAX: Final = (1, 2, 16, 512, 512)
CYCLES_PER_TURN: Final = (1, 4, 1000)
BACKOFFS_S: Final = ((1, 10), (1, 10), (1, 1), (5, 30))


class World:
    """One life. `run_for` lets time pass; everything else is done to the world by steps."""

    def __init__(self, seed: int, faults: Iterable[Fault] = (), config: Json | None = None) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.clock = VirtualClock()
        self.troubles = Troubles(faults, random.Random(self.rng.random()))
        self.server = ApiServer(clock=self.clock.now_s, seed=seed)
        bootstrap.fill(self.server.ctx, port=1, authority="")
        self.server.store.begin_history()
        self.ledger = Ledger()
        self.inhabitants = Inhabitants(self.server, self.clock, random.Random(self.rng.random()))
        self.trace: deque[str] = deque(maxlen=TRACE_LINES)
        self.event_count = 0
        #: who else looks at each binding that the server accepts
        self.on_bound: list[Callable[[Bind], None]] = []
        self.numbers = count(1)
        backoff = self.rng.choice(BACKOFFS_S)
        drawn = {"podInitialBackoffSeconds": backoff[0], "podMaxBackoffSeconds": backoff[1]}
        self._config = configuration({**drawn, **(config or {})})
        self._bindings_max = self.rng.choice(BINDINGS_MAX)
        self._cycles_per_turn = self.rng.choice(CYCLES_PER_TURN)
        self._paused_until_s = 0.0
        self._spins = 0
        self.begin_process()
        self._plan_pause()
        self._plan_restart()

    # --- the process -----------------------------------------------------------------------------

    def begin_process(self) -> None:
        """A scheduler that knows nothing yet: it lists everything and begins."""
        ticks = count()
        self.parts = Parts.fresh()
        self.machine: Machine = build_machine(
            self._config,
            self.parts,
            build_runners(self._config, self.parts),
            counter_s=lambda: next(ticks) * 0.0002 / self._cycles_per_turn,
            seed=self.seed,
            bindings_max=self._bindings_max,
        )
        self._is_woken = False
        inbox = self._inbox = Inbox(lambda: self._wake(inbox))
        self.wire = Wire(
            self.server.ctx,
            self.clock,
            self.troubles,
            hear=self._hearing(inbox),
            on_bound=self._bound,
        )
        ctx, clock, troubles = self.server.ctx, self.clock, self.troubles
        self.streams = [Stream(kind, ctx, clock, troubles, inbox.put) for kind in KINDS]

    def restart(self) -> None:
        """The process dies in the middle of everything, and another one begins."""
        self.note("the scheduler dies and begins anew")
        self.wire.cut()
        for stream in self.streams:
            stream.close()
        self.ledger.process_died()
        self.begin_process()

    def pause(self, seconds: float) -> None:
        """The process stands still."""
        self.note(f"the scheduler stands still for {seconds:.1f} s")
        self._paused_until_s = self.clock.now_s() + seconds

    def _hearing(self, inbox: Inbox) -> Callable[[Answer], None]:
        def hear(answer: Answer) -> None:
            self.ledger.hears(answer)
            inbox.put(answer)

        return hear

    def _wake(self, inbox: Inbox) -> None:
        if inbox is self._inbox and not self._is_woken:
            self._is_woken = True
            self.clock.after(WAKE_S, lambda: None)

    def _turn(self) -> None:
        """One turn, as the serial loop of production takes it."""
        facts: list[Fact] = self._inbox.drain()
        self._is_woken = False
        for effect in self.machine.handle(facts, self.clock.now_s()):
            if isinstance(effect, EmitEvent):
                self.event_count += 1
                continue
            if isinstance(effect, Bind):
                self._sends(effect)
            self.wire.perform(effect)

    def _sends(self, bind: Bind) -> None:
        self.note(f"bind {bind.pod.key} to {bind.node}")
        cluster = self.parts.cluster
        seen = {p.uid: p.spec.node_name for p in cluster.pods_seen.values() if p.spec.node_name}
        self.ledger.sends(bind, nodes_known=cluster.nodes.row_of, placed=seen)

    def _bound(self, bind: Bind, late: bool) -> None:
        self.note(f"{bind.pod.key} is on {bind.node}{' at last' * late}")
        self.ledger.bound(bind, self.pods(), self.nodes(), late=late)
        for look in self.on_bound:
            look(bind)

    # --- time ------------------------------------------------------------------------------------

    def run_for(self, seconds: float) -> None:
        """Let everything happen that is due within this time."""
        end_s = self.clock.now_s() + seconds
        while True:
            next_s = self._next_s()
            if next_s is None or next_s > end_s:
                break
            self._count_spins(next_s)
            self.clock.jump(next_s)
            self.clock.run_due()
            if self._is_turn_due():
                self._turn()
        self.clock.jump(end_s)

    def _next_s(self) -> float | None:
        moments = [self.clock.next_s(), self._deadline_s()]
        return min((moment for moment in moments if moment is not None), default=None)

    def _deadline_s(self) -> float | None:
        deadline_s = self.machine.next_deadline_s()
        if self._inbox:
            deadline_s = self.clock.now_s()
        return None if deadline_s is None else max(deadline_s, self._paused_until_s)

    def _is_turn_due(self) -> bool:
        deadline_s = self._deadline_s()
        return deadline_s is not None and deadline_s <= self.clock.now_s()

    def _count_spins(self, next_s: float) -> None:
        self._spins = self._spins + 1 if next_s <= self.clock.now_s() else 0
        if self._spins > SPIN_TURNS_MAX:
            raise AssertionError("the machine asks for turn after turn and time stands still")

    def _plan_pause(self) -> None:
        fault = self.troubles.find(LeaderPause)
        if fault is None:
            return

        def due() -> None:
            if self.troubles.is_on:
                self.pause(self.troubles.seconds(LeaderPause, "lasting_s_max"))
                self._plan_pause()

        self.clock.after(self.rng.uniform(0.0, 2 * fault.every_s), due)

    def _plan_restart(self) -> None:
        fault = self.troubles.find(Restarts)
        if fault is None:
            return

        def due() -> None:
            if self.troubles.is_on:
                self.restart()
                self._plan_restart()

        self.clock.after(self.rng.uniform(0.0, 2 * fault.every_s), due)

    # --- what there is ---------------------------------------------------------------------------

    def pods(self) -> list[Json]:
        return self.server.list("pods")

    def nodes(self) -> list[Json]:
        return self.server.list("nodes")

    def node_names(self) -> list[str]:
        return [node["metadata"]["name"] for node in self.nodes()]

    def waiting(self) -> list[Json]:
        """Pods that are ours to place and have no node."""
        return [
            pod
            for pod in self.pods()
            if not pod["spec"].get("nodeName") and pod["spec"]["schedulerName"] == SCHEDULER
        ]

    def placed(self) -> list[Json]:
        """Pods on a node that are not on their way out."""
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

    # --- judgement -------------------------------------------------------------------------------

    def audit(self) -> list[str]:
        """Columns against a fresh count, and all that was seen against what the server holds."""
        found = audit.recount(self.parts.cluster)
        listed = {}
        for kind in KINDS:
            objects = self.server.list(kind.plural)
            if kind.plural == "pods":
                objects = [p for p in objects if p["status"].get("phase") not in FINISHED]
            listed[kind] = [decode(kind.record, obj) for obj in objects]
        return found + audit.compare(self.parts.cluster, listed)

    def unsettled(self) -> list[str]:
        """What should be over: bindings, questions, requests, assumed places."""
        machine, cluster = self.machine, self.parts.cluster
        found = [
            f"{info.pod.key} is still assumed" for info in cluster.placed.values() if info.assumed
        ]
        if not machine.is_idle:
            found.append(f"{machine.bindings} bindings are not over")
        if self.wire.open_count:
            found.append(f"{self.wire.open_count} requests are not over")
        if len(machine.desk.queue.in_flight):
            found.append(f"{len(machine.desk.queue.in_flight)} attempts are not over")
        found += [f"the watch of {s.kind.plural} is behind" for s in self.streams if s.is_behind]
        return found

    def lost(self) -> list[str]:
        """Waiting pods that the queue has forgotten, and queued pods that nobody waits for."""
        waiting = {f"{p['metadata']['namespace']}/{p['metadata']['name']}" for p in self.waiting()}
        listing = self.machine.desk.queue.places.listing()
        queued = {queued.key for lane in listing for queued in lane}
        return [f"{key} is in no queue" for key in sorted(waiting - queued)] + [
            f"{key} is queued and does not wait" for key in sorted(queued - waiting)
        ]

    def sleepers(self) -> list[str]:
        """Pods at rest for which a fresh attempt finds a node."""
        found = []
        runners = build_runners(self._config, self.parts)
        for queued in list(self.machine.desk.queue.places.resting):
            pod = queued.pod
            runner = runners[pod.spec.scheduler_name]
            if not all(p.pre_enqueue(pod).is_success for p in runner.profile.pre_enqueue):
                continue
            try:
                answer = run_alone(runner.schedule(self.parts.cluster.classes.info_of(pod), 0))
            except NoNodesError:
                continue
            if not isinstance(answer, Rejection):
                blamed = sorted(queued.rejectors)
                found.append(f"{pod.key} sleeps, rejected by {blamed}, but fits {answer.node}")
        return found

    def untold(self) -> list[str]:
        """Waiting pods whose PodScheduled condition does not say why."""
        return [
            f"{pod['metadata']['name']} was not told why it waits"
            for pod in self.waiting()
            if not any(
                c["type"] == "PodScheduled" and c["status"] == "False" and c.get("reason")
                for c in pod["status"].get("conditions") or ()
            )
        ]


FINISHED: Final = ("Succeeded", "Failed")
