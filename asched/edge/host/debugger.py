"""SIGUSR2: compare what is counted here with what the API server holds, and print what is known.

As kube-scheduler's cache debugger, with one difference: the other side of the comparison is the API
server itself, since no second copy of its objects is kept. Pods on their way may be reported. Then
every count that is kept is compared with a fresh one, which stops the deciding loop for as long as
reading the whole cluster takes.

Bounds  LIST_S for each list; TRIAL_S of waiting until nothing is on trial; one comparison at a
        time.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from asched.core.model.meta import ObjectMeta
from asched.core.state.audit import recount
from asched.core.state.cluster import Cluster
from asched.edge.client.errors import ClientError
from asched.edge.host.clock import counter_s
from asched.edge.host.inspection import Inspection
from asched.edge.host.loops import Scheduler

log = logging.getLogger("asched.debugger")

LIST_S: Final = 60.0
#: A question to an extender may keep columns on trial for as long as it takes; a guess.
TRIAL_S: Final = 10.0
LOOK_S: Final = 0.05
UNFINISHED: Final = "status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed"


class _Object(msgspec.Struct):
    metadata: ObjectMeta


class _Listed(msgspec.Struct):
    items: list[_Object] | None


class Debugger:
    def __init__(self, scheduler: Scheduler, inspection: Inspection) -> None:
        self._scheduler = scheduler
        self._inspection = inspection
        self._is_busy = False

    def on_signal(self) -> None:
        """Begin a comparison unless one is under way."""
        if not self._is_busy:
            self._is_busy = True
            self._scheduler.tasks.spawn("debugger", self._run())

    async def _run(self) -> None:
        try:
            await self.compare()
            await self.count_again()
            self.dump()
        except ClientError as error:
            log.error("The cache could not be compared", extra={"err": error})  # noqa: TRY400
        finally:
            self._is_busy = False

    async def compare(self) -> None:
        """Log what is missed here or redundant. Raises ClientError."""
        session, cluster = self._scheduler.session, self._scheduler.machine.context.cluster
        log.info("cache comparer started")
        nodes = await session.get_as("/api/v1/nodes", _Listed, timeout_s=LIST_S)
        unfinished = f"/api/v1/pods?fieldSelector={UNFINISHED}"
        pods = await session.get_as(unfinished, _Listed, timeout_s=LIST_S)
        there = {node.metadata.name for node in nodes.items or ()}
        _tell("Nodes", there, set(cluster.nodes.row_of))
        seen = {f"{p.key}/{p.uid}" for p in cluster.pods_seen.values()}
        _tell("Pods", {_identity(pod.metadata) for pod in pods.items or ()}, seen)
        log.info("cache comparer finished")

    async def count_again(self) -> None:
        """Log where a count that is kept differs from a fresh one."""
        cluster = self._scheduler.machine.context.cluster
        if not await _settled(cluster):
            log.warning("Nothing was recounted: columns are on trial", extra={"waitedS": TRIAL_S})
            return
        started_s = counter_s()
        findings = recount(cluster)
        for finding in findings:
            log.warning("Count mismatch", extra={"found": finding})
        extra = {"mismatches": len(findings), "tookS": round(counter_s() - started_s, 3)}
        log.info("recount finished", extra=extra)

    def dump(self) -> None:
        """Log the columns and the queue."""
        for node in self._inspection.cache_dump()["nodes"]:
            log.info("Dump of cached NodeInfo", extra=_extra(node))
        log.info("Dump of scheduling queue", extra=_extra(self._inspection.queue_dump()))


async def _settled(cluster: Cluster) -> bool:
    """Wait until no pod is there or gone on trial only; False if that does not happen in time."""
    try:
        async with asyncio.timeout(TRIAL_S):
            while cluster.topology.on_trial:  # noqa: ASYNC110 - nothing tells when it ends
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        return False
    return True


def _identity(pod: ObjectMeta) -> str:
    return f"{pod.key}/{pod.uid}"


def _extra(values: Mapping[str, Any]) -> dict[str, Any]:
    """`name` belongs to the log record itself."""
    return {("node" if key == "name" else key): value for key, value in values.items()}


def _tell(what: str, there: set[str], here: set[str]) -> None:
    missed, redundant = sorted(there - here), sorted(here - there)
    if missed or redundant:
        extra = {f"missed{what}": missed, f"redundant{what}": redundant}
        log.warning("Cache mismatch", extra=extra)
