"""The serving port of a scheduler: health checks and the sources of its pages.

Readiness checks more than upstream's: informers that receive nothing count as not synchronized
(`watchdog.py`), and a leader without a fresh lease is unhealthy.
"""

import asyncio
import socket
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from time import time
from typing import Any, Final

from asched.host.lease_thread import LeaseThread
from asched.host.loops import Scheduler
from asched.kube.errors import ConnectError
from asched.kube.tasks import Unawaited, in_thread, tell_loop
from asched.serve.app import Server
from asched.serve.auth import Access
from asched.serve.figures import Figures
from asched.serve.health import PING, Check, Health
from asched.serve.inspection import Inspection
from asched.serve.options import CannotServeError, ServingPlan
from asched.serve.pages import Page, PageRequest
from asched.serve.probers import Probers, addresses_of_node
from asched.serve.routes import Routes
from asched.serve.telemetry.log import loop_failed
from asched.serve.telemetry.metrics import Metrics
from asched.serve.turns import FairSelector
from asched.serve.view.live import LiveView

Pages = Callable[[PageRequest], Coroutine[Any, Any, Page]]
#: A kubelet's first probe comes after a second at the earliest, by default after ten.
OPEN_S: Final = 1.0
#: Requests in progress have 5 s to end.
STOP_S: Final = 7.0


def health_of(scheduler: Scheduler, campaign: LeaseThread | None) -> Health:
    """The health checks, in upstream's order."""

    def synced() -> str:
        if not scheduler.is_synced:
            return "handlers are not fully synchronized"
        return scheduler.watchdog.readiness_problem()

    def shutdown() -> str:
        return "process is shutting down" if scheduler.is_stopping else ""

    ready = [Check("shutdown", shutdown), Check("sched-handler-sync", synced)]
    if campaign is None:
        return Health({"healthz": [PING], "livez": [PING], "readyz": ready})
    election = Check("leaderElection", campaign.health_problem)
    return Health({"healthz": [election], "livez": [PING], "readyz": [election, *ready]})


class Serving:
    """The port, in a thread: `open` it as a task in parallel with the scheduler, then `close` it.

        clients <─> port's thread: TLS, requests, authorization ──PageRequest──> scheduling loop
                                                                        <──Page───────┘

    The kernel queues connections until the first decisions: certificates take a tenth of a second
    of CPU, on a busy machine several times that, which would delay the first binding. A failure to
    serve stops the process cleanly, and the lease is released.

    Work that unauthorized clients can cause is done in the thread, within its share of CPU time
    (`FairSelector`); pages for authorized clients, and probes, are made on the scheduling loop, the
    only place where its state is read. A blocked loop therefore answers no probe.

    Bounds  pages open after OPEN_S at the latest.
    """

    def __init__(
        self,
        plan: ServingPlan,
        scheduler: Scheduler,
        inspection: Inspection,
        metrics: Metrics,
        campaign: LeaseThread | None,
        listening: Sequence[socket.socket],
    ) -> None:
        """Serve on these sockets, which are bound already."""
        self._plan = plan
        self._scheduler = scheduler
        self._inspection = inspection
        self._metrics = metrics
        self._campaign = campaign
        self._listening = listening
        self._home = asyncio.get_running_loop()
        self._opened: asyncio.Future[None] = self._home.create_future()
        self._over: asyncio.Future[None] | None = None
        self._stop: Callable[[], None] = lambda: None
        self._failure: Exception | None = None

    async def open(self, *, is_profiling: bool) -> None:
        """Serve after the first decisions, until closed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(OPEN_S):
                await self._scheduler.begun.wait()
        plan, scheduler = self._plan, self._scheduler
        Figures(scheduler, self._metrics).show()
        is_leader = self._inspection.is_leader
        live = LiveView(scheduler, self._metrics, plan.version(), plan.rules, is_leader)
        routes = Routes(
            self._inspection,
            live,
            self._metrics,
            health_of(scheduler, self._campaign),
            plan.flags,
            rules=plan.rules,
            is_profiling=is_profiling,
            started_s=time(),
            hidden=plan.hidden,
        )
        self._over = in_thread("port", partial(self._run, routes.page))
        await asyncio.wait([self._opened, self._over], return_when=asyncio.FIRST_COMPLETED)
        if self._opened.done():
            scheduler.tasks.spawn("pulse", live.pulse.run())
        try:
            await asyncio.shield(self._over)
        except (CannotServeError, ConnectError) as error:
            if self._opened.done():
                raise
            self._failure = error
            scheduler.stop()

    async def close(self) -> None:
        """Finish requests in progress, then close. Raises the error that kept the port from
        opening.
        """
        if self._over is not None and self._opened.done():
            self._stop()
            await asyncio.wait([self._over], timeout=STOP_S)
        for sock in self._listening:
            sock.close()
        if self._failure is not None:
            raise self._failure

    # --- in the thread ---------------------------------------------------------------------------

    def _run(self, pages: Pages) -> None:
        turns = FairSelector(Probers(addresses_of_node()))
        with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(turns)) as runner:
            runner.run(self._serve(pages, turns))

    async def _serve(self, pages: Pages, turns: FairSelector) -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        loop.set_exception_handler(loop_failed)
        loop.set_default_executor(Unawaited())

        async def from_home(request: PageRequest) -> Page:
            made = asyncio.run_coroutine_threadsafe(pages(request), self._home)
            return await asyncio.wrap_future(made)

        plan = self._plan
        own = self._scheduler.session.options
        access = await Access.open(plan.access, self._metrics.access, own)
        try:
            checks = access.authenticator, access.authorizer
            server = Server(plan.options, from_home, *checks, turns=turns)
            server.certificates.trust(access.authorities())
            server.start(self._listening)
            self._stop = lambda: tell_loop(loop, stop.set)
            tell_loop(self._home, self._opened.set_result, None)
            works = server.keep_certificates(), access.follow(server.certificates), stop.wait()
            tasks: list[asyncio.Future[Any]] = [asyncio.ensure_future(work) for work in works]
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            await server.stop()
            for task in tasks:
                task.cancel()
            for task in ended:
                await task
        finally:
            await access.close()
