"""The process of `asched extender`: watch the cluster and answer an extender's requests.

    watch streams ─> inactive machine ─> cluster <── Advisor <── port of the extender
    bind request ─> bind plugins ─> effects ─> a dispatcher of its own ─> API

With `follows` off nothing is watched and no API server is needed: each request is answered from the
whole nodes it contains (nodeCacheCapable: false), which have as few pods as kube-scheduler sends.
Extenders in our own configuration are ignored, or two processes could call each other forever.
"""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from ipaddress import ip_address
from typing import Any, TypeVar

import msgspec
from msgspec.structs import force_setattr, replace

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Answer, Done, Listed, Returned, TimedOut
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.cycle.confirmation import settle
from asched.core.extender import wire
from asched.core.extender.answer import Advisor
from asched.core.framework.effects import Bind, CallPlugin, Effect, PodRef, WaitFor
from asched.core.framework.status import PointError, Status
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE
from asched.core.model.node import Node
from asched.host.assemble import Parts, build_machine, build_runners
from asched.host.ending import stop_on_signals
from asched.host.event_loop import run_on_loop
from asched.host.loops import DRAIN_S, Scheduler
from asched.host.plugin_calls import answer_of
from asched.host.user_plugins.catalogue import Catalogue
from asched.kube.clock import monotonic_s
from asched.kube.dispatch import Dispatcher
from asched.kube.files import file_content
from asched.kube.session import ConnectionOptions, Session, connect
from asched.serve.connections import ConnectionServer, Limits, connections_max, listen
from asched.serve.extender import NAMES_BYTES_MAX, ExtenderService, Opinion
from asched.serve.options import CannotServeError, ServingOptions
from asched.serve.tls import Certificates

log = logging.getLogger("asched.extender")

R = TypeVar("R")


class AdvisingPlan(msgspec.Struct, frozen=True):
    """`serving` has address, port and certificate; `client_ca_file` is the CA of clients."""

    configuration: SchedulerConfiguration
    serving: ServingOptions
    connection: ConnectionOptions = msgspec.field(default_factory=ConnectionOptions)
    plugins: Catalogue = msgspec.field(default_factory=Catalogue)
    follows: bool = True
    tls: bool = False
    client_ca_file: str = ""


def run_advising(plan: AdvisingPlan) -> int:
    """Run until a signal stops it. Raises CannotServeError, ConnectError, CannotStartError,
    BUILD_ERRORS.
    """
    return run_on_loop(advise(plan))


async def advise(plan: AdvisingPlan, started: "asyncio.Future[int] | None" = None) -> int:
    """Run within a loop; `started` gets the port."""
    plan = replace(plan, configuration=replace(plan.configuration, extenders=()))
    adviser = _Following(plan, await connect(plan.connection)) if plan.follows else _Alone(plan)
    port = None
    try:
        port, number = await _listen(plan, adviser.opinion())
        if started is not None:
            started.set_result(number)
        log.info("serving", extra={"port": number, "follows": plan.follows})
        await adviser.run()
    finally:
        if port is not None:
            await port.close()
    return 0


async def _listen(plan: AdvisingPlan, opinion: Opinion) -> tuple[ConnectionServer, int]:
    options = plan.serving
    # One kube-scheduler is the client, with a connection for each pod that it binds.
    handle, limits = ExtenderService(opinion).handle, Limits(by_peer=connections_max())
    server = ConnectionServer(handle, _tls_of(plan), limits)
    cure = "choose another --port"
    return server, server.open(await listen(options.bind_address, options.secure_port, cure=cure))


def _tls_of(plan: AdvisingPlan) -> ssl.SSLContext | None:
    """None for plain HTTP. With a client CA every client needs a certificate."""
    if not plan.tls:
        return None
    context = Certificates(plan.serving).context
    if plan.client_ca_file:
        try:
            bundle = file_content(plan.client_ca_file)
            context.load_verify_locations(cadata=bundle.decode("ascii", "ignore"))
        except (OSError, ValueError) as error:
            raise CannotServeError(
                f"--client-ca-file {plan.client_ca_file} cannot be used: {error}"
            ) from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _is_local(plan: AdvisingPlan) -> bool:
    """Whether only this machine can connect, without a certificate."""
    if plan.client_ca_file:
        return False
    address = plan.serving.bind_address
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


class _Following:
    def __init__(self, plan: AdvisingPlan, session: Session) -> None:
        self._plan = plan
        parts = Parts.fresh()
        plugins = plan.plugins
        runners = build_runners(
            plan.configuration, parts, factories=plugins.factories, known=plugins.known
        )
        machine = build_machine(plan.configuration, parts, runners, monotonic_s=monotonic_s)
        machine.is_active = False
        self._cluster = parts.cluster
        self._advisor = Advisor(parts.cluster, runners)
        self._scheduler = Scheduler(session, machine)
        self._binding = _Binding(session, parts.cluster)

    def opinion(self) -> Opinion:
        return Opinion(
            advisor_for=lambda _question: self._advisor,
            bind=lambda question: self._binding.run(self._advisor.bind(question)),
            is_ready=lambda: "" if self._scheduler.is_synced else "the cluster is still being read",
            may_bind=_is_local(self._plan) or bool(self._plan.client_ca_file),
            is_local=_is_local(self._plan),
            bytes_max=NAMES_BYTES_MAX,
        )

    async def run(self) -> None:
        self._scheduler.tasks.spawn("bindings of others", self._binding.dispatcher.run())
        stop_on_signals(self._ending)
        await self._scheduler.run()

    def _ending(self) -> None:
        self._scheduler.tasks.spawn("last bindings", self._end())

    async def _end(self) -> None:
        """Answer the open binding requests, then end the watch."""
        await self._binding.dispatcher.drain(DRAIN_S / 2)
        self._scheduler.stop()


class _Alone:
    def __init__(self, plan: AdvisingPlan) -> None:
        self._plan = plan
        self._stop = asyncio.Event()
        self._advisor(())  # fails at once for a configuration that cannot be built

    def opinion(self) -> Opinion:
        async def bind(_: wire.BindingArguments) -> str:
            return "this extender does not watch the cluster and cannot bind"

        is_local = _is_local(self._plan)
        return Opinion(self._advisor_for, bind, lambda: "", may_bind=True, is_local=is_local)

    async def run(self) -> None:
        stop_on_signals(self._stop.set)
        await self._stop.wait()

    def _advisor_for(self, question: wire.Arguments | None) -> Advisor:
        if question is None:
            raise PointError("preemption needs a watched cluster; remove the verb")
        if question.nodes is None:
            raise PointError(
                "the request has only node names: set nodeCacheCapable: false, or let the extender"
                " watch the cluster"
            )
        return self._advisor(question.nodes)

    def _advisor(self, nodes: Any) -> Advisor:
        parts = Parts.fresh()
        plugins = self._plan.plugins
        parts.cluster.apply(Listed(NODE, tuple(decode(Node, node) for node in nodes)))
        runners = build_runners(
            self._plan.configuration, parts, factories=plugins.factories, known=plugins.known
        )
        return Advisor(parts.cluster, runners)


async def _driven(
    steps: Generator[Effect, Answer, R], ask: Callable[[Effect], Awaitable[Answer]]
) -> R:
    """The result of steps whose effects are asked for, one after the other."""
    try:
        effect = next(steps)
        while True:
            effect = steps.send(await ask(effect))
    except StopIteration as end:
        result: R = end.value
        return result


class _Binding:
    """Performs the effects of bind plugins in parallel with the machine."""

    def __init__(self, session: Session, cluster: Cluster) -> None:
        self._cluster = cluster
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._effect_ids = 0
        self.dispatcher = Dispatcher(session, self._answered)

    async def run(self, steps: Generator[Effect, Answer, Status]) -> str:
        """The error, empty for success."""
        try:
            status = await _driven(steps, self._follow_binding)
        except PointError as error:
            return str(error)
        return "" if status.is_success else status.message

    async def _follow_binding(self, effect: Effect) -> Answer:
        """Read a pod back if the answer to its binding was lost, as in the scheduler."""
        if not isinstance(effect, Bind):
            return await self._ask(effect)
        lost = partial(log.warning, "the answer to a binding was lost: %s")
        rows = self._cluster.nodes.row_of

        def newest(_is_lost: bool) -> PodRef | None:
            return effect.pod if effect.node in rows else None

        return await _driven(settle(effect, self._cluster, lost, newest), self._ask)

    async def _ask(self, effect: Effect) -> Answer:
        if isinstance(effect, CallPlugin):
            return await answer_of(effect, effect.timeout_s)
        if isinstance(effect, WaitFor):
            if effect.ready():
                return Done(0)
            await asyncio.sleep(effect.timeout_s)
            return TimedOut(0)
        self._effect_ids += 1
        force_setattr(effect, "id", self._effect_ids)
        if not effect.answers or not effect.wants_answer:
            self.dispatcher.submit(effect)
            return Returned(0, None)
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[self._effect_ids] = future
        self.dispatcher.submit(effect)
        return await future

    def _answered(self, answer: Answer) -> None:
        future = self._waiting.pop(answer.effect_id, None)
        if future is not None and not future.done():
            future.set_result(answer)
