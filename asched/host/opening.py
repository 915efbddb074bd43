"""Open the pages: the port is bound at once, and served after the first decisions.

Certificates take a tenth of a second of CPU, on a busy machine several times that, which would
delay the first binding. The kernel queues connections meanwhile. A failure to serve stops the
process cleanly, and the lease is released.

Bounds  pages open after OPEN_S at the latest.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from asched.core.config.v1 import SchedulerConfiguration
from asched.host.lease_thread import LeaseThread
from asched.host.loops import Scheduler
from asched.kube.errors import ConnectError
from asched.serve import listening
from asched.serve.inspection import Inspection
from asched.serve.options import CannotServeError, ServingPlan
from asched.serve.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from asched.host.serving import Serving

#: A kubelet's first probe comes after a second at the earliest, by default after ten.
OPEN_S: Final = 1.0


class Pages:
    """`take_port`, then `open` as a task beside the scheduler, then `close`."""

    def __init__(
        self,
        plan: ServingPlan,
        scheduler: Scheduler,
        inspection: Inspection,
        metrics: Metrics,
        campaign: LeaseThread | None,
    ) -> None:
        self._plan = plan
        self._scheduler = scheduler
        self._inspection = inspection
        self._metrics = metrics
        self._campaign = campaign
        self._listening: Sequence[socket.socket] = ()
        self._open: Callable[..., Awaitable[Serving]] | None = None
        self._serving: Serving | None = None
        self._failure: Exception | None = None

    async def take_port(self) -> None:
        """Bind the port. Raises CannotServeError."""
        options = self._plan.options
        if not self._plan.is_on:
            return
        # Imported before the first decisions: takes a tenth of a second of CPU.
        from asched.host.serving import Serving

        self._open = Serving.open
        self._listening = await listening.listen(
            options.bind_address,
            options.secure_port,
            cure="choose another --secure-port, or 0 to serve nothing",
            reuse_port=options.permit_port_sharing,
        )

    async def open(self, configuration: SchedulerConfiguration) -> None:
        """Serve on the bound port, if there is one."""
        if self._open is None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(OPEN_S):
                await self._scheduler.begun.wait()
        try:
            self._serving = await self._open(
                self._plan,
                self._scheduler,
                self._inspection,
                self._metrics,
                self._campaign,
                listening=self._listening,
                is_profiling=configuration.enable_profiling,
            )
        except (CannotServeError, ConnectError) as error:
            self._failure = error
            self._scheduler.stop()

    async def close(self) -> None:
        """Close the port. Raises the error that kept the pages from opening."""
        if self._serving is not None:
            await self._serving.close()
        for sock in self._listening:
            sock.close()
        if self._failure is not None:
            raise self._failure
