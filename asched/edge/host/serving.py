"""The serving port of a scheduler: which checks there are, and everything a page needs.

Readiness tells more than upstream's: handlers that do not hear of a kind any more count as not
synchronized (`hearing.py`), and a leader without a fresh lease is not well.
"""

import socket
from collections.abc import Sequence
from time import time

from asched.edge.host.access import Access
from asched.edge.host.figures import Figures
from asched.edge.host.inspection import Inspection
from asched.edge.host.lease_thread import LeaseThread
from asched.edge.host.loops import Scheduler
from asched.edge.host.view.live import LiveView
from asched.edge.serve.app import Server
from asched.edge.serve.health import PING, Check, Health
from asched.edge.serve.options import ServingPlan
from asched.edge.serve.routes import Routes
from asched.edge.telemetry.metrics import Metrics


def health_of(scheduler: Scheduler, campaign: LeaseThread | None) -> Health:
    """The checks, in upstream's order."""

    def synced() -> str:
        if not scheduler.is_synced:
            return "handlers are not fully synchronized"
        return scheduler.hearing.trouble()

    def shutdown() -> str:
        return "process is shutting down" if scheduler.is_stopping else ""

    ready = [Check("shutdown", shutdown), Check("sched-handler-sync", synced)]
    if campaign is None:
        return Health({"healthz": [PING], "livez": [PING], "readyz": ready})
    election = Check("leaderElection", campaign.trouble)
    return Health({"healthz": [election], "livez": [PING], "readyz": [election, *ready]})


class Serving:
    """Opened by `pages.py`, closed after the scheduler has run."""

    def __init__(self, server: Server, access: Access) -> None:
        self.server = server
        self._access = access

    @classmethod
    async def open(
        cls,
        plan: ServingPlan,
        scheduler: Scheduler,
        inspection: Inspection,
        metrics: Metrics,
        campaign: LeaseThread | None,
        *,
        listening: Sequence[socket.socket],
        is_profiling: bool,
    ) -> "Serving":
        """Answer whoever comes by these sockets. Raises CannotServeError or ConnectError."""
        Figures(scheduler, metrics).show()
        live = LiveView(scheduler, metrics, plan.version(), inspection.is_leader)
        access = await Access.open(plan.access, metrics.access, scheduler.session.options)
        try:
            routes = Routes(
                inspection,
                live,
                metrics,
                health_of(scheduler, campaign),
                plan.flags,
                is_profiling=is_profiling,
                started_s=time(),
                hidden=plan.hidden,
            )
            server = Server(plan.options, routes, access.authenticator, access.authorizer)
            server.certificates.trust(access.authorities())
            server.start(listening)
        except BaseException:
            await access.close()
            raise
        scheduler.tasks.spawn("pulse", live.pulse.run())
        scheduler.tasks.spawn("certificates", server.keep_certificates())
        scheduler.tasks.spawn("access", access.follow(server.certificates))
        return cls(server, access)

    async def close(self) -> None:
        await self.server.stop()
        await self._access.close()
