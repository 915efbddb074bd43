"""SIGUSR2: compare the cached state with the API server and log it.

As kube-scheduler's cache debugger, with two differences: the cache is compared with the API server
itself, since no second copy of the objects is stored; and differences are repaired, because an
audit (`audit/auditor.py`) does the comparison. Then every count is compared with a fresh one, which
blocks the scheduling loop for as long as reading the whole state takes.

Bounds  TRIAL_S until no tentative change is in place; one comparison at a time.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final

from asched.core.cluster import audit
from asched.core.cluster.cluster import Cluster
from asched.host.loops import Scheduler
from asched.kube.clock import monotonic_s
from asched.ops.audit.auditor import Auditor
from asched.serve.inspection import Inspection

log = logging.getLogger("asched.debugger")

#: A request to an extender may keep tentative changes for as long as it takes; a guess.
TRIAL_S: Final = 10.0
CHECK_S: Final = 0.05


class Debugger:
    def __init__(self, scheduler: Scheduler, inspection: Inspection, auditor: Auditor) -> None:
        self._scheduler = scheduler
        self._auditor = auditor
        self._inspection = inspection
        self._is_busy = False

    def on_signal(self) -> None:
        if not self._is_busy:
            self._is_busy = True
            self._scheduler.tasks.spawn("debugger", self._run())

    async def _run(self) -> None:
        try:
            await self.compare()
            await self.count_again()
            await self.dump()
        finally:
            self._is_busy = False

    async def compare(self) -> None:
        """Log and repair objects that are missing or superfluous in the cache."""
        log.info("cache comparer started")
        report = await self._auditor.now()
        for name, ended in report.ended.items():
            if ended.error:
                log.error(
                    "The cache could not be compared", extra={"what": name, "err": ended.error}
                )
        log.info("cache comparer finished")

    async def count_again(self) -> None:
        """Log counts that differ from fresh ones."""
        cluster = self._scheduler.machine.context.cluster
        if not await _await_no_trial(cluster):
            log.warning(
                "Nothing was recounted: tentative changes are in place", extra={"waitedS": TRIAL_S}
            )
            return
        started_s = monotonic_s()
        findings = audit.recount(cluster)
        for finding in findings:
            log.warning("Count mismatch", extra={"found": finding})
        extra = {"mismatches": len(findings), "tookS": round(monotonic_s() - started_s, 3)}
        log.info("recount finished", extra=extra)

    async def dump(self) -> None:
        async for name, some in self._inspection.cache_dump():
            for node in some if name == "nodes" else ():
                log.info("Dump of cached NodeInfo", extra={**_extra(node), "whole": True})
        async for name, some in self._inspection.queue_dump():
            log.info("Dump of scheduling queue", extra={name: some, "whole": True})


async def _await_no_trial(cluster: Cluster) -> bool:
    """Wait until no tentative change is in place; False if it times out."""
    try:
        async with asyncio.timeout(TRIAL_S):
            while cluster.topology.on_trial or cluster.is_supposed:  # noqa: ASYNC110 - no event
                await asyncio.sleep(CHECK_S)
    except TimeoutError:
        return False
    return True


def _extra(values: Mapping[str, Any]) -> dict[str, Any]:
    """`name` is reserved by the log record."""
    return {("node" if key == "name" else key): value for key, value in values.items()}
