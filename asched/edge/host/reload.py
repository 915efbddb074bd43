"""The configuration, followed while the process runs: a changed file, or SIGHUP.

A valid new set of profiles takes over between two turns of the machine: attempts under way end with
the profile they began with, every waiting pod keeps its place, and pods at rest are tried again,
because whoever rejected them may be gone. An invalid file is refused with all its errors and the
old configuration goes on.

What was fixed when the process started (the connection, the election, extenders) takes effect with
the next start; a change of it is told.

Bounds  the file is looked at every LOOK_S.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from asched.core.config.text import effective
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.framework.runner import Runner
from asched.core.queue.backoff import Backoff
from asched.core.queue.reprofile import reprofile
from asched.edge.host.assemble import BUILD_ERRORS, queue_profiles
from asched.edge.host.config_file import ConfigError, LoadedConfig, UnreadableFileError
from asched.edge.host.inspection import Inspection
from asched.edge.host.loops import Scheduler
from asched.edge.host.user_plugins import PluginLoadError
from asched.edge.telemetry.component_metrics import OwnMetrics

log = logging.getLogger("asched.config")

#: A mounted ConfigMap changes a minute after its object at best; this adds little.
LOOK_S: Final = 5.0

#: What may be wrong with a file that somebody edited.
REFUSALS: Final[tuple[type[Exception], ...]] = (
    ConfigError,
    UnreadableFileError,
    PluginLoadError,
    *BUILD_ERRORS,
)

Version = tuple[int, int, int]


class Reloader:
    """`load` reads the configuration anew, `build` makes its runners; both may refuse."""

    def __init__(
        self,
        scheduler: Scheduler,
        inspection: Inspection,
        metrics: OwnMetrics,
        *,
        load: Callable[[], LoadedConfig],
        build: Callable[[SchedulerConfiguration], dict[str, Runner]],
        files: Sequence[str],
    ) -> None:
        self._scheduler = scheduler
        self._inspection = inspection
        self._metrics = metrics
        self._load = load
        self._build = build
        self._files = files
        self._versions = self._look()

    async def follow(self) -> None:
        """Look at the files until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            versions = self._look()
            if versions != self._versions:
                self._versions = versions
                self.reload()

    def reload(self) -> bool:
        """Read the configuration anew and take it over; whether something changed."""
        current = self._inspection.current
        try:
            wanted = self._load().configuration
            for field in ("leader_election", "client_connection", "extenders"):
                if getattr(wanted, field) != getattr(current, field):
                    log.warning("a change of %s takes effect with the next start", field)
                    wanted = replace(wanted, **{field: getattr(current, field)})
            if effective(wanted) == effective(current):
                self._metrics.reloaded("unchanged")
                log.info("The configuration was read again and is unchanged")
                return False
            runners = self._build(wanted)
        except REFUSALS as error:
            self._metrics.reloaded("refused")
            for line in str(error).splitlines():
                log.error("The new configuration is refused: %s", line)  # noqa: TRY400
            return False
        self._take_over(wanted, runners)
        self._metrics.reloaded("applied")
        log.info("The new configuration is in use", extra={"profiles": ",".join(runners)})
        return True

    def _take_over(self, wanted: SchedulerConfiguration, runners: dict[str, Runner]) -> None:
        """Between two turns: nothing else runs meanwhile."""
        machine = self._scheduler.machine
        desk, now_s = machine.desk, self._scheduler.clock.now_s()
        desk.runners = runners
        reprofile(
            desk.queue,
            queue_profiles(runners, desk.observer),
            Backoff(wanted.pod_initial_backoff_s, wanted.pod_max_backoff_s),
            now_s,
        )
        for pod in list(desk.cluster.pods_seen.values()):
            is_waiting = not pod.spec.node_name and pod.uid not in desk.cluster.placed
            is_known = pod.key in desk.queue.places or pod.uid in desk.queue.in_flight
            if is_waiting and not is_known and pod.spec.scheduler_name in runners:
                desk.queue.add(pod, now_s)
        self._inspection.current = wanted
        self._scheduler.wake()

    def _look(self) -> tuple[Version | None, ...]:
        """What tells one state of the files from another; symbolic links are followed."""
        return tuple(_version(file) for file in self._files)


def _version(file: str) -> Version | None:
    try:
        status = Path(file).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size
