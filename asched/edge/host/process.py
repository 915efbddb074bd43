"""One scheduler process: event loop, signals, connection, machine, from start to orderly end."""

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from asched.core.config.v1 import SchedulerConfiguration
from asched.core.framework.effects import Lane
from asched.core.queue.queue import MAX_IN_UNSCHEDULABLE_S
from asched.edge.client.dispatch import CONCURRENCY, Dispatcher, DispatchOptions
from asched.edge.client.session import ConnectionOptions, connect
from asched.edge.host.assemble import Parts, build_machine, build_runners
from asched.edge.host.clock import counter_s
from asched.edge.host.extenders import client_for, originals_for
from asched.edge.host.loops import Scheduler
from asched.edge.host.user_plugins import Catalogue

log = logging.getLogger("asched.process")


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a process is told before it starts."""

    configuration: SchedulerConfiguration
    connection: ConnectionOptions = field(default_factory=ConnectionOptions)
    bind_concurrency: int = CONCURRENCY[Lane.BINDING]
    max_in_unschedulable_s: float = MAX_IN_UNSCHEDULABLE_S
    dispatch: DispatchOptions = field(default_factory=DispatchOptions)
    plugins: Catalogue = field(default_factory=Catalogue)


def run_process(plan: Plan) -> int:
    """Run until a signal asks for the end. Raises what `Scheduler.run` and `connect` raise."""
    return runner()(schedule(plan))


def runner() -> Callable[[Coroutine[Any, Any, int]], int]:
    """Uvloop where it is installed, asyncio's own loop elsewhere."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    return uvloop.run


async def schedule(plan: Plan) -> int:
    """Connect, assemble, run, drain."""
    parts = Parts.fresh()
    plugins = plan.plugins
    runners = build_runners(
        plan.configuration, parts, factories=plugins.factories, known=plugins.known
    )
    machine = build_machine(
        plan.configuration,
        parts,
        runners,
        counter_s=counter_s,
        max_in_unschedulable_s=plan.max_in_unschedulable_s,
    )
    options = DispatchOptions(
        concurrency={**CONCURRENCY, Lane.BINDING: plan.bind_concurrency},
        queue_max=plan.dispatch.queue_max,
    )
    session = await connect(plan.connection)
    originals = originals_for(plan.configuration)
    extenders = client_for(plan.configuration, originals)
    scheduler = Scheduler(
        session,
        machine,
        make_dispatcher=partial(Dispatcher, options=options, extenders=extenders),
        originals=originals,
    )
    stop_on_signals(scheduler.stop)
    log.info("starting", extra={"server": session.url, "profiles": ",".join(runners)})
    try:
        await scheduler.run()
    finally:
        if extenders is not None:
            await extenders.close()
    return 0


def stop_on_signals(stop: Callable[[], None]) -> None:
    """The first SIGINT or SIGTERM asks for an orderly end, the second does not ask."""
    loop = asyncio.get_running_loop()

    def once(number: int) -> None:
        log.info("stopping", extra={"signal": signal.Signals(number).name})
        loop.remove_signal_handler(number)
        stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, once, number)
