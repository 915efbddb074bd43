"""Reload the configuration while the process runs: after a change of its files, or on SIGHUP.

A valid new configuration takes effect between two turns of the machine: profiles, extenders,
plugins from files, and the client's rate. Running scheduling cycles end with the profile and the
extenders they began with, waiting pods keep their place in the queue, and unschedulable pods are
tried again, because the plugin that rejected them may be gone. An invalid configuration is refused
as a whole, with all its errors, and the old one stays in use: a faulty document, a plugin file that
cannot be imported, certificates that cannot be read.

    read ─> build ─> list whole objects for new extenders ─> take over

Reading imports users' plugins and therefore runs in a thread, so that scheduling continues; so does
the creation of plugin instances (`user_plugins/instances.py`).

Settings that are fixed at the start (`FieldMark.START_ONLY`) take effect with the next start; one
line names the changed ones.

Bounds  files are checked every CHECK_S; lists are awaited for LIST_S.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from asched.core.config import text
from asched.core.config.fields import DeclaredField, FieldMark, fields_of
from asched.core.config.merge import UnusableProfileError
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.config.validate import pool_lease_faults, pool_profile_faults
from asched.core.cycle.context import kinds_read
from asched.core.framework.runner import ExtenderChain, Runner
from asched.core.model.kinds import Kind
from asched.host.assemble import BUILD_ERRORS, reconfigured
from asched.host.configuration.file import ConfigError, UnreadableFileError
from asched.host.extenders import Consultants
from asched.host.loops import Scheduler
from asched.host.user_plugins.catalogue import Catalogue, PluginLoadError, drop_old_modules
from asched.kube.errors import ConnectError
from asched.kube.files import file_versions
from asched.serve.inspection import Inspection
from asched.serve.telemetry.component_metrics import OwnMetrics

log = logging.getLogger("asched.config")

#: A mounted ConfigMap changes a minute after its object at best; this adds little.
CHECK_S: Final = 5.0
#: How long a reload waits for whole objects for new extenders. A guess; the first lists of 5,000
#: nodes and 30,000 pods take a few seconds.
LIST_S: Final = 60.0
#: Fields of clientConnection that can change at run time all the same.
RATE: Final = ("qps", "burst")


class CannotListError(Exception):
    """The API server does not provide the objects that new extenders need."""


#: Errors that edited files can cause.
REFUSALS: Final[tuple[type[Exception], ...]] = (
    ConfigError,
    ConnectError,
    UnreadableFileError,
    PluginLoadError,
    CannotListError,
    *BUILD_ERRORS,
)


class DesiredSetup(msgspec.Struct, frozen=True):
    """The settings of files and flags."""

    configuration: SchedulerConfiguration
    plugins: Catalogue = msgspec.field(default_factory=Catalogue)

    def is_like(self, other: "DesiredSetup") -> bool:
        """Whether both are equal in effect."""
        return (
            text.effective(self.configuration) == text.effective(other.configuration)
            and self.plugins.edition == other.plugins.edition
        )


class Reloader:
    """`load` reads everything again, `build` creates the runners; both may refuse. `files` returns
    the files that `load` reads now, `current` is what it read at the start.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        inspection: Inspection,
        consultants: Consultants,
        metrics: OwnMetrics,
        *,
        current: DesiredSetup,
        load: Callable[[], Awaitable[DesiredSetup]],
        build: Callable[[DesiredSetup, ExtenderChain | None], Awaitable[dict[str, Runner]]],
        files: Callable[[], Iterable[str]],
    ) -> None:
        self._scheduler = scheduler
        self._inspection = inspection
        self._consultants = consultants
        self._metrics = metrics
        self._current = current
        self._load = load
        self._build = build
        self._files = files
        self._versions = file_versions(self._files())
        self._one_at_a_time = asyncio.Lock()

    async def follow(self) -> None:
        """Check the files until cancelled."""
        while True:
            await asyncio.sleep(CHECK_S)
            if not self._scheduler.machine.is_deciding and not self._one_at_a_time.locked():
                self._consultants.settle()
            versions = file_versions(self._files())
            if versions != self._versions:
                self._versions = versions
                await self.reload()

    async def reload(self) -> bool:
        """Read the configuration again and take it over; returns whether it changed."""
        async with self._one_at_a_time:
            try:
                wanted = self._followed(await self._load())
                if wanted.is_like(self._current):
                    self._metrics.reloads.add("unchanged")
                    log.info("The configuration was read again and is unchanged")
                    return False
                await self._apply(wanted)
            except REFUSALS as error:
                self._metrics.reloads.add("refused")
                for line in str(error).splitlines():
                    log.error("The new configuration is refused: %s", line)  # noqa: TRY400
                return False
        self._metrics.reloads.add("applied")
        profiles = ",".join(self._scheduler.machine.context.runners)
        log.info("The new configuration is in use", extra={"profiles": profiles})
        return True

    def _followed(self, wanted: DesiredSetup) -> DesiredSetup:
        """The settings that can change at run time; changes of others are logged."""
        now, then = wanted.configuration, self._current.configuration
        fixed = _changed(text.effective(then), text.effective(now))
        if fixed:
            log.warning("a change of %s takes effect with the next start", ", ".join(fixed))
        kept = {field.attribute: getattr(then, field.attribute) for field in _start_only()}
        if then.pool_leases:
            if now.pools != then.pools:
                log.warning("a change of pools takes effect with the next start: each has a Lease")
            kept["pools"] = then.pools
        rate = {name: getattr(now.client_connection, name) for name in RATE}
        kept["client_connection"] = replace(then.client_connection, **rate)
        followed = replace(now, **kept)
        if faults := pool_lease_faults(followed) + pool_profile_faults(followed):
            raise UnusableProfileError(faults)
        return replace(wanted, configuration=followed)

    async def _apply(self, wanted: DesiredSetup) -> None:
        """Take over the settings. Raises REFUSALS, without any change."""
        extenders = wanted.configuration.extenders
        chain = self._consultants.chain(extenders)
        runners = await self._build(wanted, chain)
        missing = self._consultants.prepare(extenders)
        if missing:
            await self._list_again(missing)
        self._consultants.adopt(extenders, chain)
        await self._take_over(wanted, runners)

    async def _list_again(self, missing: Sequence[Kind]) -> None:
        try:
            async with asyncio.timeout(LIST_S):
                await self._scheduler.list_again(missing)
        except TimeoutError:
            listed = " and ".join(kind.plural for kind in missing)
            text = f"the {listed} for its extenders could not be listed in {LIST_S:.0f} s"
            raise CannotListError(text) from None

    async def _take_over(self, wanted: DesiredSetup, runners: dict[str, Runner]) -> None:
        """Take over between two turns, at the message's place among the facts."""
        configuration, scheduler = wanted.configuration, self._scheduler
        observer = scheduler.machine.context.observer
        order = reconfigured(configuration, runners, wanted.plugins.edition, observer)
        for kind in kinds_read(order.gangs, runners):
            scheduler.watch(kind)
        if scheduler.leadership is not None:
            await scheduler.leadership.announce(runners)
        await scheduler.reconfigure(order)
        client = configuration.client_connection
        scheduler.dispatcher.rates.limit(client.qps, client.burst)
        self._inspection.current = configuration
        self._current = wanted
        drop_old_modules(wanted.plugins)


def _start_only() -> list[DeclaredField]:
    fields = fields_of(SchedulerConfiguration).values()
    return [field for field in fields if FieldMark.START_ONLY in field.marks]


def _changed(then: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """The fields of START_ONLY that differ, as spelled in the document."""
    changed = []
    for key in (field.name for field in _start_only()):
        before, after = then.get(key), now.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            differing = (name for name in after if before.get(name) != after[name])
            changed += [f"{key}.{name}" for name in differing if name not in RATE]
        elif before != after:
            changed.append(key)
    return changed
