"""One scheduler process in a simulated world: production's code, on a loop in virtual time.

    reflectors ─> inbox ─> turns ─> machine ─> dispatcher      (host/loops.py, kube)
         └──────────── wire (late, broken, lossy) ───────┘      instead of sockets and TLS

With an election it leads on its own loop, where production has a thread for it. A process that
loses the lease ends: the world starts another one in its place.
"""

import asyncio
import random
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import count
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from asched.core.cluster.facts import Answer, Fact, Listed, Seen
from asched.core.config.layout import layout_of, lease_of, leases_of
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.cycle.machine import Machine
from asched.core.cycle.observer import Observer
from asched.core.framework.effects import Bind, Effect, Lane
from asched.core.framework.runner import Runner
from asched.core.leader.election import ElectionPhase, LeaseTimes
from asched.core.leader.pools import lease_of_pool
from asched.core.model.meta import ObjectMeta, runs_backwards
from asched.host.assemble import Parts, build_machine, build_runners
from asched.host.election import LeaderCandidate, LostLeadershipError, Stand
from asched.host.loops import Scheduler
from asched.host.memory import Collector
from asched.host.pool_leases import PoolCandidate
from asched.host.process import listeners_of
from asched.host.user_plugins.catalogue import Catalogue
from asched.kube.clock import Clock
from asched.kube.dispatch import DispatchOptions
from asched.kube.events import EventRecorder
from asched.kube.pace import ReflectorOptions
from asched.kube.session import Session
from asched.kube.transport import WireRequest
from asched.kube.watchdog import StartOverError
from asched.ops.audit.auditor import Auditor
from asched.ops.recording.recorder import Recorder, head_of
from asched.serve.telemetry.measured import MeasuredDispatcher
from asched.serve.telemetry.metrics import Metrics
from asched_lab.sim.clock import VirtualLoop
from asched_lab.sim.faults import ClockRates
from asched_lab.sim.wire import Wire, WireSession

if TYPE_CHECKING:
    from asched_lab.sim.world import World

Handle = Callable[[Iterable[Fact], float], list[Effect]]

#: kube-scheduler's times (s), divided by three: more elections in a run.
LEASE_S: Final = 5.0
RENEW_S: Final = 10 / 3
RETRY_S: Final = 2 / 3
LEASE_NAME: Final = "asched"
LEASES_PATH: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
#: Lanes that are empty once everything is settled; events may still be written in series.
SETTLED: Final = (Lane.BINDING, Lane.WRITE, Lane.STATUS, Lane.LOCAL)
#: Size limit of one recording; a run needs some tens of kilobytes.
RECORD_BYTES_MAX: Final = 1 << 28
#: Rounds of a loop within which a stopped process has ended.
END_ROUNDS_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class Setup:
    """Settings of a process."""

    configuration: SchedulerConfiguration
    catalogue: Catalogue
    seed: int
    bindings_max: int
    cycles_per_turn: int
    #: The folder of recordings; None: no recording.
    record: Path | None = None
    #: Period of the audit; 0: no audit.
    audit_period_s: float = 0.0

    def runners(self, parts: Parts) -> dict[str, Runner]:
        """Runners without cached results, over the current state."""
        return build_runners(
            self.configuration,
            parts,
            factories=self.catalogue.factories,
            known=self.catalogue.known,
        )


class Uncollected(Collector):
    """Garbage of all processes is in one memory, so production's collector does not apply."""

    def settle(self) -> None:
        """Keep Python's own thresholds."""


class Witnessed(MeasuredDispatcher):
    """Production's dispatcher; its process sees effects and answers."""

    def __init__(
        self,
        session: Session,
        on_answer: Callable[[Answer], None],
        *,
        process: "Process",
        **options: Any,
    ) -> None:
        self._process = process

        def hear(answer: Answer) -> None:
            process.hears(answer)
            on_answer(answer)

        super().__init__(session, hear, **options)

    def submit(self, effect: Effect) -> None:
        self._process.performs(effect)
        super().submit(effect)


class Alarmed(Observer):
    """An exception of the scheduler's own is a finding, contained or not."""

    def __init__(self, world: "World", name: str) -> None:
        self._world = world
        self._name = name

    def contained(self, part: str, about: str, error: BaseException) -> None:
        self._world.ledger.complain(f"{self._name}, {part} of {about}: {error!r}")


class Process:
    """It lists everything and starts; `cut` kills it."""

    def __init__(self, world: "World", setup: Setup, name: str, *, is_elected: bool) -> None:
        self.name = name
        self.world = world
        self.clock_rate = 1.0
        if (rates := world.active_faults.find(ClockRates)) is not None:
            self.clock_rate += world.active_faults.rng.choice((-1, 0, 1)) * rates.share
        self.loop = VirtualLoop(world.clock, self.clock_rate)
        self._began_s = world.clock.now_s()
        self._paused_until_s = 0.0
        self._seeds = random.Random(world.active_faults.rng.random())
        self.metrics = Metrics()
        ticks = count()
        self.parts = Parts.fresh()
        self.machine: Machine = build_machine(
            setup.configuration,
            self.parts,
            setup.runners(self.parts),
            monotonic_s=lambda: next(ticks) * 0.0002 / setup.cycles_per_turn,
            seed=setup.seed,
            bindings_max=setup.bindings_max,
            observer=self.observer(),
        )
        self.machine.handle = self._witnessed(self.machine.handle)  # type: ignore[assignment, method-assign]
        self.kinds = self.machine.context.kinds
        self.wire = Wire(
            world.server.ctx,
            world.clock,
            world.active_faults,
            lambda bind, late: world.bound(bind, late=late),
        )
        #: keys of objects in the last turn's facts: its effects may have been decided before that
        self.keys_now: set[str] = set()
        self._places: set[tuple[str, str]] = set()  # uid and node of decided bindings
        #: until when it may need to end, once it lost the mode's Lease
        self._ends_s = 0.0
        #: by uid: the leases of pools that the last binding of a pod needed
        self.leases_of: dict[str, set[str]] = {}
        self.candidate: LeaderCandidate | None = None
        self.recorder = self._recorder(setup)
        self.scheduler = self.loop.run_until_complete(self._built(is_elected=is_elected))
        self.auditor = self.loop.run_until_complete(self._audited(setup.audit_period_s))
        self._task = self.loop.create_task(self.scheduler.run())

    def observer(self) -> Observer:
        return Alarmed(self.world, self.name)

    async def _built(self, *, is_elected: bool) -> Scheduler:
        now_s, draw = self.world.clock.now_s, self._seeds.random
        clock = Clock(steady=self.loop.time, wall=now_s, awake=self.loop.time)
        rng = random.Random(draw())
        session, metrics = await WireSession.begun(self.wire, self._leaves), self.metrics
        if is_elected:
            rules = LeaseTimes(self.name, LEASE_S, RENEW_S, RETRY_S)
            written = self.world.setup.configuration
            if written.pool_leases:
                rules = LeaseTimes.of(self.name, lease_of(written))
            stand = Stand(rules, "kube-system", LEASE_NAME, tuple(self.machine.context.runners))
            self.candidate = self._candidate(session, stand, clock, draw)
        return Scheduler(
            session,
            self.machine,
            make_dispatcher=partial(
                Witnessed,
                process=self,
                options=DispatchOptions(seed=self._seeds.getrandbits(32)),
                recorder=EventRecorder(self.name, lambda: int(now_s() * 1e9)),
                extenders=self.world.extenders,
                metrics=metrics.client,
                may_send=lambda: self.may_act,
                fence_s=lambda effect: self.scheduler.fence_s(effect),  # noqa: PLW0108 - not yet there
            ),
            kinds=self.kinds,
            listeners=listeners_of(
                session,
                self.machine,
                metrics,
                may_act=lambda: self.may_act,
                keeps_statuses=lambda: self.may_act and self.scheduler.keeps_statuses(),
                writes_statuses=True,
                spawn=lambda *task: self.scheduler.tasks.spawn(*task),  # noqa: PLW0108 - not yet there
                options=ReflectorOptions(rng=rng, clock=self.loop.time),
            ),
            clock=clock,
            leadership=self.candidate,
            memory=nullcontext(Collector(now_s) if self.world.collects else Uncollected()),
            rng=rng,
            recorder=self.recorder,
        )

    def _candidate(
        self, session: Session, stand: Stand, clock: Clock, draw: Callable[[], float]
    ) -> LeaderCandidate:
        written, metrics = self.world.setup.configuration, self.metrics.leader
        if not written.pool_leases:
            return LeaderCandidate(session, stand, metrics, clock=clock, draw=draw)
        return PoolCandidate(
            session,
            stand,
            metrics,
            pools=leases_of(written),
            layout=layout_of(written),
            clock=clock,
            draw=draw,
        )

    async def _audited(self, period_s: float) -> Auditor:
        """A started auditor; without a period it audits on demand only."""
        own = self.metrics.own
        auditor = Auditor(
            self.scheduler,
            period_s=period_s,
            compared=lambda part, objects: own.audit_compared.add(part, by=objects),
            failed=own.audit_failures.add,
            differed=own.audit_differences.add,
        )
        if period_s:
            self.scheduler.tasks.spawn("audit", auditor.run())
        return auditor

    def _recorder(self, setup: Setup) -> Recorder | None:
        if setup.record is None:
            return None
        number = sum(1 for _ in setup.record.iterdir())
        path = setup.record / f"{number:03d}-{self.name}"
        head = head_of(self.machine, setup.configuration, setup.catalogue.contents)
        return Recorder(self.machine, head, path, RECORD_BYTES_MAX)

    def cut(self, late_s_max: float = 0.0) -> None:
        """Kill the process: it receives nothing more, and open requests arrive or not."""
        self.wire.cut(late_s_max)
        self.end()

    def end(self) -> None:
        """Stop everything of it; none of its requests arrives."""
        self.wire.close()
        self._task.cancel()
        for _ in range(END_ROUNDS_MAX):
            if self._task.done():
                break
            self.loop.step()
        else:
            raise AssertionError(f"{self.name} does not end")
        if not self._task.cancelled():
            self._task.exception()
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        while self.loop.is_busy:
            self.loop.step()
        self.loop.close()
        if self.recorder is not None:
            self.recorder.close()

    @property
    def is_acting(self) -> bool:
        """Whether the decisions of this process count."""
        return self is self.world.acting or self.world.shares_pools

    def cut_off(self, seconds: float, *, to_server: bool = True, from_server: bool = True) -> None:
        """The network between the process and the server fails for this time."""
        self.wire.cut_off(seconds, to_server=to_server, from_server=from_server)

    @property
    def may_act(self) -> bool:
        """Whether no other process can be leading."""
        return self.scheduler.may_act()

    def unfinished(self) -> int:
        """Effects that wait or are open, without events."""
        lanes = self.scheduler.dispatcher
        return sum(lanes.queued_count(lane) + lanes.in_flight_count(lane) for lane in SETTLED)

    # --- turns -----------------------------------------------------------------------------------

    def pause(self, seconds: float) -> None:
        """The process stops for this time."""
        self._paused_until_s = max(self._paused_until_s, self.world.clock.now_s() + seconds)

    @property
    def is_paused(self) -> bool:
        """Whether it is stopped now."""
        return self._paused_until_s > self.world.clock.now_s()

    def deadline_s(self) -> float | None:
        """When it has work; None if never."""
        deadline_s = self.loop.next_s()
        if deadline_s is None or deadline_s >= self._paused_until_s:
            return deadline_s
        return self._paused_until_s

    def step(self) -> None:
        """Do what is due. Raises what ended the process, unless such an end is expected."""
        self.loop.step()
        if not self._task.done():
            return
        try:
            self._task.result()
        except LostLeadershipError:
            self.world.lost_lease(self)
        except StartOverError as error:
            self.world.starts_over(self, str(error))

    def _witnessed(self, handle: Handle) -> Handle:
        """Check the machine's turns: an object older than one it has seen would be believed."""
        versions: dict[str, str] = {}  # by uid

        def turn(facts: Iterable[Fact], now_s: float) -> list[Effect]:
            facts = list(facts)
            self.keys_now = {meta.key for fact in facts for meta in _metadata_in(fact)}
            for fact in facts:
                if isinstance(fact, Seen):
                    meta: ObjectMeta = fact.obj.metadata  # type: ignore[attr-defined]
                    known = versions.get(meta.uid, "")
                    if runs_backwards(known, meta.resource_version):
                        version = f"version {meta.resource_version} after {known}"
                        self.world.ledger.complain(
                            f"{self.name} receives old {meta.key}, {version}"
                        )
                    versions[meta.uid] = meta.resource_version
            return handle(facts, now_s)

        return turn

    # --- what the world observes -----------------------------------------------------------------

    def performs(self, effect: Effect) -> None:
        """An effect leaves the machine."""
        if isinstance(effect, Bind):
            self._decides(effect)
        else:
            self.world.performs(self, effect)

    def _decides(self, bind: Bind) -> None:
        """Without the lease a binding is held back, which is right for a repeated one, and for a
        pod that waited for its volumes or devices; another one shows that the machine goes on.
        """
        place, pod = (bind.pod.uid, bind.node), self.parts.cluster.pods_seen.get(bind.pod.key)
        has_waited = pod is not None and bool(pod.spec.volumes or pod.spec.resource_claims)
        if self.may_act or not (place in self._places or has_waited):
            self.world.sends(self, bind)
        self._places.add(place)

    def _leaves(self, request: WireRequest) -> None:
        """A request leaves a lane."""
        if not self.may_act:
            self.world.ledger.complain(f"{self.name} does not lead and sends {request.path}")

    def hears(self, answer: Answer) -> None:
        """An answer arrives."""
        if self.is_acting:
            self.world.ledger.hears(answer, self.name)

    def holds(self, pool: str) -> bool:
        """Whether it may act for a pool, where each pool has a lease."""
        return self.held_until_s(pool) > self.world.clock.now_s()

    def held_until_s(self, pool: str) -> float:
        """Until when it may act for a pool without another renewal, in the world's time."""
        candidate = self.candidate
        if not isinstance(candidate, PoolCandidate):
            return -inf
        return self.world.clock.now_s() + candidate.pool_fence_s(pool) / self.clock_rate

    def pool_fences(self) -> tuple[float, ...]:
        """The same for each pool, in the time of its own loop; they change when it renews, takes
        or loses a Lease.
        """
        candidate = self.candidate
        if not isinstance(candidate, PoolCandidate):
            return ()
        return tuple(map(candidate.board.fence_s, candidate.board.pools))

    def able_since_s(self, pool: str) -> float:
        """Since when, or from when on, it runs, reaches the server in both directions, and none of
        its requests about the Leases of the pool and of the mode was lost. One that lost the mode's
        ends, which takes as long as its longest Lease, since it hands its pools on.
        """
        if (
            self.candidate is not None
            and self.candidate.campaign.election.phase is ElectionPhase.LOST
        ):
            self._ends_s = self._ends_s or self.world.clock.now_s() + self.world.lease_s
        names = LEASE_NAME, lease_of_pool(LEASE_NAME, pool)
        lost_s = (self.wire.lost_s.get(f"{LEASES_PATH}/{name}", -inf) for name in names)
        since_s = max(self._began_s, self._paused_until_s, self.wire.passes_since_s, *lost_s)
        return max(since_s, self._ends_s or -inf)


def _metadata_in(fact: Fact) -> Iterable[ObjectMeta]:
    objects: Iterable[Any] = (fact.obj,) if isinstance(fact, Seen) else ()
    if isinstance(fact, Listed):
        objects = fact.objects
    return (obj.metadata for obj in objects)
