"""The election in a thread of its own, with a loop and connections of its own.

    scheduling loop ──beat every second──> LeaseThread ──> Campaign ──> the lease
                  <──may_act, is_leading──┘

Renewals do not wait for a long turn or for other requests. But a loop without a beat for SILENT_S
makes no progress and must not keep the lease: then the lease is released, the loop's stack is
logged, and the process ends. A call into C that holds the interpreter lock for long blocks this
thread, too; then the lease expires behind the fence.

Bounds  SILENT_S, checked every CHECK_S; STOP_S for the end of the thread; TELLING_S for the last
        log message.
"""

import asyncio
import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any, Final

from asched.host.election import LeaderCandidate, Stand
from asched.kube.clock import Clock
from asched.kube.errors import ConnectError
from asched.kube.session import ConnectionOptions, Session, connect
from asched.kube.tasks import in_thread, tell_loop
from asched.kube.transport import Exchange, Observer, observe_nothing
from asched.serve.telemetry.component_metrics import LeaderMetrics
from asched.serve.telemetry.log import loop_failed

log = logging.getLogger("asched.leader")

#: Twice the default lease, and ten times what the first list of 100,000 pods took as one step.
SILENT_S: Final = 30.0
CHECK_S: Final = 1.0
#: Time to close the connections; requests are cancelled.
STOP_S: Final = 3.0
#: Time to write the last log message.
TELLING_S: Final = 1.0
GIVEN_UP: Final = (
    "The deciding loop has not turned for %.0f s; the lease is given back, and this process ends."
    " Its stack:\n%s"
)
#: Exit status of a process that ends itself.
EXIT_STATUS: Final = 1


def end_process() -> None:
    """End without clean-up, which would need the blocked loop."""
    os._exit(EXIT_STATUS)


class LeaseThread(LeaderCandidate):
    """Runs the election in parallel with the scheduling loop. Create it on that loop.

    `session` belongs to that loop and releases the lease at a clean stop; `options` are for the
    thread's own. `end` is called in the thread when the loop is given up.
    """

    def __init__(
        self,
        session: Session,
        stand: Stand,
        metrics: LeaderMetrics,
        *,
        options: ConnectionOptions,
        observe: Observer = observe_nothing,
        clock: Clock | None = None,
        end: Callable[[], None] = end_process,
        **more: Any,
    ) -> None:
        super().__init__(session, stand, metrics, clock=clock, **more)
        self._options = options
        self._observe = observe
        self._end = end
        self._home = asyncio.get_running_loop()
        self._home_thread = threading.get_ident()
        self._beats = 0
        self._own: Session | None = None  # the thread's
        self._stop: Callable[[], None] | None = None
        self._is_qualified = False
        self._there: asyncio.AbstractEventLoop | None = None  # the thread's

    def beat(self) -> None:
        """Called by the scheduling loop regularly."""
        self._beats += 1

    def qualify(self) -> None:
        self._is_qualified = True
        super().qualify()

    def call(self, call: Callable[[], None]) -> None:
        if self._there is not None:
            tell_loop(self._there, call)

    async def run(self) -> None:
        """As there; a cancellation waits for requests."""
        over = in_thread("lease", lambda: asyncio.run(self._campaign()))
        try:
            await asyncio.shield(over)
        finally:
            self.is_leading.clear()
            if self._stop is not None:
                self._stop()
            await asyncio.wait([over], timeout=STOP_S)

    # --- in the thread ---------------------------------------------------------------------------

    async def _campaign(self) -> None:
        """Run until the election is lost, the loop makes no progress, or `stop` is set."""
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        loop.set_exception_handler(loop_failed)
        self._stop = lambda: tell_loop(loop, stop.set)
        self._there = loop
        if self._is_qualified:  # before this loop existed
            self.campaign.qualify()
        works = (self._stands(), self._until_silent(), stop.wait())
        tasks: list[asyncio.Future[Any]] = [asyncio.ensure_future(work) for work in works]
        stands, silent, _ = tasks
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            if not stands.cancelled():
                await stands
            elif not silent.cancelled():
                await self._give_up()
        finally:
            if self._own is not None:
                await self._own.close()

    async def _stands(self) -> None:
        self._own = await self._connected()
        await self._compete(self._own)

    async def _connected(self) -> Session:
        """Connect; the scheduling loop has used the credentials, so a failure may be temporary."""
        while True:
            try:
                return await connect(self._options, observe=self._observed, handshake=False)
            except ConnectError as error:
                log.warning("The lease has no connection yet", extra={"err": error})
                await asyncio.sleep(self._stand.rules.retry_s)

    async def _until_silent(self) -> None:
        """Return when the scheduling loop, while leading, has not called `beat` for SILENT_S.

        Counts checks, not seconds: a suspended machine stops both threads.
        """
        beats, silent_checks = self._beats, 0
        while silent_checks * CHECK_S < SILENT_S:
            await asyncio.sleep(CHECK_S)
            is_silent = self._beats == beats and self.campaign.election.is_leader
            beats, silent_checks = self._beats, silent_checks + 1 if is_silent else 0

    async def _give_up(self) -> None:
        frame = sys._current_frames().get(self._home_thread)  # noqa: SLF001 - no public access
        stack = "".join(traceback.format_stack(frame))
        # The loop may be blocked in a write to the log and hold the log's lock.
        telling = threading.Thread(target=log.error, args=(GIVEN_UP, SILENT_S, stack), daemon=True)
        telling.start()
        assert self._own is not None, "leading needs a connection"
        await self._release(self._own, is_handed_on=False, is_dying=True)
        telling.join(TELLING_S)
        self._end()

    # --- from the thread to the loop -------------------------------------------------------------

    def _began(self) -> None:
        tell_loop(self._home, self.is_leading.set)

    def _observed(self, exchange: Exchange) -> None:
        tell_loop(self._home, self._observe, exchange)
