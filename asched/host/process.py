"""One scheduler process: event loop, signals, connection, machine, from start to clean stop.

    plan ─> runners, machine ─> session ─> election ─> scheduler ─> pages ─> run ─> exit code

Signals  SIGINT and SIGTERM stop it cleanly, SIGHUP reloads the configuration, SIGUSR2 compares the
         columns with the API server and logs them.
Bounds   LAG_EVERY_S between two measurements of the event loop's delay.
"""

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from asched.core.cluster.facts import Fact
from asched.core.config.args import CapacitySchedulingArgs
from asched.core.config.gates import table_of
from asched.core.config.layout import layout_of, lease_of, leases_of
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.config.versions import BASE, VersionChoice
from asched.core.cycle.machine import Machine
from asched.core.framework.effects import Effect, Lane
from asched.core.framework.meter import Meter
from asched.core.framework.profile import Profile
from asched.core.framework.runner import ExtenderChain, Runner
from asched.core.leader.election import LeaseTimes
from asched.core.model.kinds import COSCHEDULING_GROUP, ELASTIC_QUOTA, POD, Kind
from asched.core.queue.queue import MAX_IN_UNSCHEDULABLE_S
from asched.host.assemble import Parts, build_machine, build_runners
from asched.host.configuration.reload import DesiredSetup, Reloader
from asched.host.debugger import Debugger
from asched.host.election import LostLeadershipError, Stand, identity
from asched.host.ending import Ending, EndRequestedError
from asched.host.event_loop import run_on_loop
from asched.host.extenders import Consultants
from asched.host.lease_thread import LeaseThread
from asched.host.loops import Scheduler
from asched.host.pool_leases import PoolThread
from asched.host.server_version import ServerVersionWatch
from asched.host.user_plugins import instances
from asched.host.user_plugins.catalogue import Catalogue
from asched.kube.clock import monotonic_s
from asched.kube.dispatch import CONCURRENCY, DispatchOptions
from asched.kube.inbox import Listener
from asched.kube.pace import ReflectorOptions
from asched.kube.session import ConnectionOptions, Session, connect
from asched.kube.tasks import in_thread
from asched.kube.typed import ApiAccess
from asched.kube.watchdog import StartOverError
from asched.ops import shadowing
from asched.ops.audit.auditor import PERIOD_S as AUDIT_PERIOD_S
from asched.ops.audit.auditor import Auditor
from asched.ops.clashes import Clashes
from asched.ops.group_status import GroupStatus
from asched.ops.quota_status import QuotaStatus
from asched.serve.connections import listen
from asched.serve.inspection import Inspection
from asched.serve.options import ServingPlan
from asched.serve.telemetry.instruments import Exposition
from asched.serve.telemetry.measured import LANE_NAMES, MeasuredDispatcher
from asched.serve.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from asched.ops.recording.recorder import Recorder

R = TypeVar("R")


class _OfPods:
    def __init__(self, clashes: Clashes, quotas: QuotaStatus) -> None:
        self._clashes = clashes
        self._quotas = quotas

    def observing(self, put: Callable[[Fact], None]) -> Callable[[Fact], None]:
        return self._clashes.observing(self._quotas.observing_pods(put))

    async def run(self) -> None:
        """Run one listener; the other runs with its own kind."""
        await self._clashes.run()


def listeners_of(
    session: Session,
    machine: Machine,
    metrics: Metrics,
    *,
    may_act: Callable[[], bool],
    keeps_statuses: Callable[[], bool],
    spawn: Callable[[str, Coroutine[Any, Any, None]], object],
    writes_statuses: bool,
    options: ReflectorOptions | None = None,
) -> Mapping[Kind, Listener]:
    """Listeners by kind; `options` are for streams of their own. `writes_statuses`: include the
    status controllers of PodGroups and ElasticQuotas, which write while `keeps_statuses`.
    """
    context = machine.context

    clashes = Clashes(
        session,
        has_chosen=context.cluster.has_chosen,
        may_act=may_act,
        refused=metrics.own.kubelet_refusals.add,
    )
    if not writes_statuses:
        return {POD: clashes}
    quotas = QuotaStatus(
        session,
        context.cluster,
        args=partial(context.args_by_profile, CapacitySchedulingArgs),
        may_act=keeps_statuses,
        written=metrics.own.quota_statuses.add,
    )
    groups = GroupStatus(
        session,
        args=lambda: context.gangs.coscheduled,
        may_act=keeps_statuses,
        spawn=spawn,
        written=metrics.own.group_statuses.add,
        options=options,
    )
    return {POD: _OfPods(clashes, quotas), COSCHEDULING_GROUP: groups, ELASTIC_QUOTA: quotas}


log = logging.getLogger("asched.process")


LAG_EVERY_S: Final = 1.0


class RecordPlan(msgspec.Struct, frozen=True):
    path: Path
    bytes_max: int


class Plan(msgspec.Struct, frozen=True):
    configuration: SchedulerConfiguration
    connection: ConnectionOptions = msgspec.field(default_factory=ConnectionOptions)
    bind_concurrency: int = CONCURRENCY[Lane.BINDING]
    #: Whether conditions and events of pods without a node end with a hint to `asched explain`.
    advises: bool = False
    #: Whether the statuses of PodGroups and ElasticQuotas are written.
    writes_statuses: bool = False
    max_in_unschedulable_s: float = MAX_IN_UNSCHEDULABLE_S
    #: Duration of one audit of all cached objects; 0: only on demand.
    audit_period_s: float = AUDIT_PERIOD_S
    plugins: Catalogue = msgspec.field(default_factory=Catalogue)
    serving: ServingPlan = msgspec.field(default_factory=ServingPlan)
    #: Reads configuration and plugins again; None if there is nothing to read.
    reload: Callable[[], DesiredSetup] | None = None
    #: The files that `reload` would read now.
    files: Callable[[], Iterable[str]] = tuple
    gates: Mapping[str, bool] = msgspec.field(default_factory=dict)
    #: Whose rules and gates these are.
    kubernetes: VersionChoice = VersionChoice(BASE)
    #: Where all inputs are recorded, with the maximum size; None: nowhere.
    record: RecordPlan | None = None
    #: Shadow another scheduler, and do nothing else.
    shadow: "shadowing.ShadowPlan | None" = None
    exposition: Exposition = msgspec.field(default_factory=Exposition)
    #: Called when the version is needed.
    version: Callable[[], str] = str

    @property
    def wanted(self) -> DesiredSetup:
        """The settings that a reload may change."""
        return DesiredSetup(self.configuration, self.plugins)


def run_process(plan: Plan) -> int:
    """Run until a signal stops it. Raises what `Scheduler.run` and `connect` raise."""
    return run_on_loop(schedule(plan))


async def schedule(plan: Plan) -> int:
    """Run a scheduler; run a new one if the cached state turns out to be invalid. Returns the exit
    code: 0, or 1 if leadership was lost.
    """
    ending = Ending()
    while not ending.is_requested:
        try:
            status = await _Run(plan, ending).status()
        except StartOverError as error:
            log.error("Starting over, everything is listed again: %s", error)  # noqa: TRY400
            continue
        if plan.shadow is not None:
            plan.shadow.write_report()
        return status
    return 0


class _Run:
    """One scheduler of a process, from its connection to its end."""

    def __init__(self, plan: Plan, ending: Ending) -> None:
        self._plan = plan
        self._ending = ending
        self._metrics, self._parts = Metrics(plan.exposition), Parts.fresh()
        counter = self._metrics.own.extender_asked
        extenders = plan.configuration.extenders
        self._consultants = Consultants(extenders, self._parts.cluster, counter)

    async def status(self) -> int:
        """Connect, build, run and drain; returns the exit code."""
        try:
            await self._schedule()
        except LostLeadershipError:
            return 1
        except EndRequestedError:
            pass
        finally:
            await self._consultants.close()
        return 0

    async def _schedule(self) -> None:
        plan, metrics, parts = self._plan, self._metrics, self._parts
        gates = _gates(plan.gates, plan.kubernetes.minor)
        metrics.tell_build(plan.version, gates, plan.kubernetes.minor)
        metrics.follow(plan.configuration.gates)
        if gates["SchedulerAsyncAPICalls"][1]:
            metrics.show_async_calls()
        chain = self._consultants.chain(plan.configuration.extenders)
        machine = build_machine(
            plan.configuration,
            parts,
            await self._ending.unless_ended(measured_runners(plan.wanted, chain, parts, metrics)),
            monotonic_s=monotonic_s,
            observer=metrics.scheduler,
            max_in_unschedulable_s=plan.max_in_unschedulable_s,
        )
        machine.context.advises = plan.advises
        if machine.context.gangs.are_tried:
            metrics.scheduler.know_groups()
        # A serving process waits for its API server and reports that on /readyz, as upstream.
        handshake, observe = not plan.serving.is_on, metrics.client.requested
        session = await self._ending.unless_ended(
            connect(plan.connection, observe=observe, handshake=handshake)
        )
        api = parts.cluster.singleton(ApiAccess)
        api.open(session.credentials)
        campaign = campaign_for(plan, session, metrics)
        recorder = _recorder(plan, machine)
        shadow = None if plan.shadow is None else shadowing.Shadowing(plan.shadow, machine)
        scheduler = self._scheduler(session, machine, campaign, recorder)
        try:
            if shadow is not None:
                shadow.show(metrics.families.pulled)
                scheduler.tasks.spawn("shadow", shadow.run(scheduler.clock.now_s))
            await self._serve_and_run(scheduler, campaign)
        finally:
            await scheduler.tasks.cancel_all()
            await api.close()
            await session.close()
            if shadow is not None:
                shadow.end(scheduler.clock.now_s())
            if recorder is not None:
                recorder.close()

    def _scheduler(
        self,
        session: Session,
        machine: Machine,
        campaign: LeaseThread | None,
        recorder: "Recorder | None",
    ) -> Scheduler:
        plan, metrics, consultants = self._plan, self._metrics, self._consultants
        metrics.client.know_lanes(LANE_NAMES)
        concurrency = {**CONCURRENCY, Lane.BINDING: plan.bind_concurrency}

        def may_send() -> bool:
            return plan.shadow is None and made.may_act()

        def fence_s(effect: Effect) -> float:
            return made.fence_s(effect)

        def spawn(name: str, work: Coroutine[Any, Any, None]) -> None:
            made.tasks.spawn(name, work)

        made: Scheduler = Scheduler(
            session,
            machine,
            make_dispatcher=partial(
                MeasuredDispatcher,
                options=DispatchOptions(concurrency),
                extenders=consultants.client,
                metrics=metrics.client,
                may_send=may_send,
                fence_s=fence_s,
            ),
            kinds=machine.context.kinds,
            raw_objects=consultants.raw_objects,
            listeners=listeners_of(
                session,
                machine,
                metrics,
                may_act=may_send,
                keeps_statuses=lambda: may_send() and made.keeps_statuses(),
                spawn=spawn,
                writes_statuses=plan.writes_statuses,
            ),
            leadership=campaign,
            delay_cache=campaign is not None and plan.configuration.delay_cache_until_active,
            recorder=recorder,
        )
        return made

    async def _serve_and_run(self, scheduler: Scheduler, campaign: LeaseThread | None) -> None:
        """Handle signals, schedule, and open the pages."""
        plan, metrics, context = self._plan, self._metrics, scheduler.machine.context
        own, spawn = metrics.own, scheduler.tasks.spawn
        auditor = Auditor(
            scheduler,
            period_s=plan.audit_period_s,
            compared=lambda part, objects: own.audit_compared.add(part, by=objects),
            failed=own.audit_failures.add,
            differed=own.audit_differences.add,
        )
        audits = auditor.findings, auditor.findings_now
        inspection = Inspection(context, plan.configuration, scheduler.may_act, *audits)
        serving = None
        if plan.serving.is_on:
            # a tenth of a second, before the first decisions
            from asched.host.serving import Serving

            listening = await listen(
                plan.serving.options.bind_address,
                plan.serving.options.secure_port,
                cure="choose another --secure-port, or 0 to serve nothing",
                reuse_port=plan.serving.options.permit_port_sharing,
            )
            serving = Serving(plan.serving, scheduler, inspection, metrics, campaign, listening)
        try:
            self._ending.listen(scheduler.stop)
            if serving is not None:
                spawn("port", serving.open(is_profiling=plan.configuration.enable_profiling))
            spawn("audit", auditor.run())
            version = ServerVersionWatch(scheduler.session.general, plan.kubernetes, scheduler.stop)
            scheduler.history.on_checked = version.ask
            metrics.show_version(plan.kubernetes.minor, lambda: version.server)
            spawn("server version", version.run())
            debugger = Debugger(scheduler, inspection, auditor)
            asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, debugger.on_signal)
            if plan.reload is not None:
                self._follow_files(plan.reload, scheduler, inspection)
            spawn("loop lag", _watch_lag(metrics))
            profiles = ",".join(context.runners)
            log.info("starting", extra={"server": scheduler.session.url, "profiles": profiles})
            await scheduler.run()
        finally:
            if serving is not None:
                await serving.close()

    def _follow_files(
        self, reload: Callable[[], DesiredSetup], scheduler: Scheduler, inspection: Inspection
    ) -> None:
        """Reload on SIGHUP, and when a file has changed."""
        plan, parts, metrics = self._plan, self._parts, self._metrics
        reloader = Reloader(
            scheduler,
            inspection,
            self._consultants,
            metrics.own,
            current=plan.wanted,
            load=partial(in_thread, "reload", reload),
            build=lambda wanted, chain: measured_runners(wanted, chain, parts, metrics),
            files=plan.files,
        )
        spawn, loop = scheduler.tasks.spawn, asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, lambda: spawn("reload", reloader.reload()))
        spawn("configuration", reloader.follow())


def _recorder(plan: Plan, machine: Machine) -> "Recorder | None":
    """Start a recording; without it scheduling continues, and the failure is logged."""
    if plan.record is None:
        return None
    from asched.ops.recording.recorder import Recorder, head_of  # 20 ms

    head = head_of(machine, plan.configuration, plan.plugins.contents, plan.max_in_unschedulable_s)
    try:
        recorder = Recorder(machine, head, plan.record.path, plan.record.bytes_max)
    except OSError as error:
        log.error("nothing is recorded to %s: %s", plan.record.path, error.strerror)  # noqa: TRY400
        return None
    log.info("recording", extra={"file": str(plan.record.path)})
    return recorder


async def measured_runners(
    wanted: DesiredSetup, chain: ExtenderChain | None, parts: Parts, metrics: Metrics
) -> dict[str, Runner]:
    """The runners of a configuration, each with its metrics. Raises BUILD_ERRORS."""
    plugins = wanted.plugins
    made = build_runners(
        wanted.configuration,
        parts,
        factories=await instances.factories(plugins, wanted.configuration, parts.cluster),
        known=plugins.known,
        extenders=chain,
    )
    for name, runner in made.items():
        runner.cache.work.meter = Meter(metrics.scheduler, name, monotonic_s)
    metrics.scheduler.know_plugins(
        entry for runner in made.values() for entry in counted_plugins(runner.profile)
    )
    return made


def counted_plugins(profile: Profile) -> Iterator[tuple[str, str, str]]:
    """(plugin, point, profile) of all series that `plugin_evaluation_total` has from the start."""
    name = profile.scheduler_name
    for plugin in profile.pre_filters:
        yield plugin.name, "PreFilter", name
    for filterer in profile.filters:
        yield filterer.plugin.name, "Filter", name
    for scorer in profile.scorers:
        if scorer.pre_score is not None:
            yield scorer.pre_score.name, "PreScore", name
        yield scorer.plugin.name, "Score", name


def campaign_for(plan: Plan, session: Session, metrics: Metrics) -> LeaseThread | None:
    """The campaign of this process; None if it always leads."""
    election = plan.configuration.leader_election
    if not election.leader_elect:
        return None
    rules = LeaseTimes.of(identity(), lease_of(plan.configuration))
    schedulers = tuple(profile.scheduler_name for profile in plan.configuration.profiles)
    stand = Stand(rules, election.resource_namespace, election.resource_name, schedulers)
    options, observe = plan.connection, metrics.client.requested
    if not plan.configuration.pool_leases:
        return LeaseThread(session, stand, metrics.leader, options=options, observe=observe)
    return PoolThread(
        session,
        stand,
        metrics.leader,
        options=options,
        observe=observe,
        pools=leases_of(plan.configuration),
        layout=layout_of(plan.configuration),
    )


def _gates(requested: Mapping[str, bool], minor: str) -> dict[str, tuple[str, bool]]:
    known = table_of(minor).gates
    return {name: (stage, requested.get(name, on)) for name, (stage, on) in known.items()}


async def _watch_lag(metrics: Metrics) -> None:
    """Measure how late a timer is, and thereby how long the loop was busy."""
    loop = asyncio.get_running_loop()
    while True:
        due_s = loop.time() + LAG_EVERY_S
        await asyncio.sleep(LAG_EVERY_S)
        metrics.own.loop_lag.observe(max(loop.time() - due_s, 0.0))
