"""The audit of a running scheduler: when each part runs, and what follows from a difference.

    every period   kind by kind, evenly spread: metadata from the API server, page by page
                   (`objects.py`); then places and columns (`places.py`), without requests
    on demand      everything at once

Each difference is logged, counted, stored for the page, and repaired: missed objects are delivered
as their watch should have done, pods are put into the right queue, a node's row is rebuilt. A
standby audits as a leader does. A part that the server does not answer runs again in the next
period.

Bounds  one part at a time; those of `objects.py`, `places.py` and `findings.py`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from asched import names
from asched.core.framework.effects import EmitEvent
from asched.core.model.kinds import POD
from asched.core.model.pod import Pod
from asched.kube.errors import ClientError
from asched.kube.running import Running
from asched.kube.watch import Reflector
from asched.ops.audit.findings import Difference, Ended, Report, What
from asched.ops.audit.objects import Compared, compare
from asched.ops.audit.places import Places

log = logging.getLogger("asched.audit")

#: `--audit-period`. Detects differences before most users would, and needs less than one page per
#: second at 100,000 pods.
PERIOD_S: Final = 600.0
#: Names of the parts that are not kinds.
QUEUE: Final = "queue"
COLUMNS: Final = "columns"
#: Interval of checks during the first lists.
WAIT_S: Final = 1.0

#: Runs a part at once or spread over time.
Part = Callable[..., Awaitable[Compared]]


class Auditor:
    """Spawn `run`. `period_s`: the time for comparing everything once; 0: only on demand. The
    callables count: (part, objects), parts that failed, and (resource, kind of difference).
    """

    def __init__(
        self,
        scheduler: Running,
        *,
        period_s: float,
        compared: Callable[[str, int], None] = lambda _part, _objects: None,
        failed: Callable[[str], None] = lambda _part: None,
        differed: Callable[[str, str], None] = lambda _resource, _what: None,
    ) -> None:
        self.report = Report()
        self._scheduler = scheduler
        self._period_s = period_s
        self._compared, self._failed, self._differed = compared, failed, differed
        self._places = Places(scheduler)
        self._one_at_a_time = asyncio.Lock()
        self._in_haste: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Audit slowly, until cancelled."""
        while self._period_s:
            await self._synced()
            parts = list(self._parts())
            for name, part in parts:
                await asyncio.sleep(self._period_s / len(parts))
                await self._do(name, part, hastes=False)

    async def now(self) -> Report:
        """Audit everything at once; concurrent calls share one audit."""
        if self._in_haste is None or self._in_haste.done():
            self._in_haste = self._scheduler.tasks.spawn("audit now", self._all())
        await asyncio.shield(self._in_haste)
        return self.report

    def findings(self) -> Mapping[str, Any]:
        return self.report.as_json()

    async def findings_now(self) -> Mapping[str, Any]:
        """The report after an audit of everything."""
        return (await self.now()).as_json()

    async def _all(self) -> None:
        for name, part in list(self._parts()):
            await self._do(name, part, hastes=True)

    async def _synced(self) -> None:
        while not self._scheduler.is_synced:  # noqa: ASYNC110 - the first lists may take long
            await asyncio.sleep(WAIT_S)

    def _parts(self) -> Iterator[tuple[str, Part]]:
        for kind, reflector in self._scheduler.reflectors.items():
            yield kind.plural, partial(self._compare, reflector)
        yield QUEUE, self._places.pods
        yield COLUMNS, self._places.columns

    async def _compare(self, reflector: Reflector, *, hastes: bool) -> Compared:
        if reflector.is_absent or not reflector.synced.is_set():
            return Compared()
        return await compare(self._scheduler, reflector, hastes=hastes)

    async def _do(self, name: str, part: Part, *, hastes: bool) -> None:
        """Run one part and report its differences."""
        async with self._one_at_a_time:
            now_s = self._scheduler.clock.now_s
            try:
                compared = await part(hastes=hastes)
            except ClientError as error:
                self.report.ended[name] = Ended(now_s(), error=str(error))
                self._failed(name)
                extra = {"what": name, "err": error, "cause": f"audit: {error}"}
                log.info("Could not be compared with the API server", extra=extra)
                return
            self.report.ended[name] = Ended(now_s(), compared.objects, compared.undecided)
            self._compared(name, compared.objects)
            for difference in compared.differences:
                self._report(difference, now_s())

    def _report(self, difference: Difference, now_s: float) -> None:
        self.report.found += 1
        self.report.differences.append((now_s, difference._replace(obj=None)))
        self._differed(difference.resource, difference.what.value)
        log.warning("Cache mismatch", extra=_extra(difference))
        if isinstance(difference.obj, Pod) and difference.what in EVENTS:
            self._write_event(difference, difference.obj)

    def _write_event(self, difference: Difference, pod: Pod) -> None:
        """Write an event to a pod of ours that has waited because of the difference."""
        scheduler = self._scheduler
        if pod.spec.node_name or not scheduler.machine.context.owns(pod):
            return
        if scheduler.may_act():
            scheduler.dispatcher.submit(
                EmitEvent(
                    regarding=POD.reference(pod.metadata),
                    type="Warning",
                    reason=names.EVENT_FOUND_BY_AUDIT,
                    action="Auditing",
                    note=EVENTS[difference.what],
                    reporting_controller=pod.spec.scheduler_name,
                )
            )


#: Notes of the event on a waiting pod.
EVENTS: Final = {
    What.ADDITION: "the scheduler had missed the creation of this pod; an audit found it",
    What.CHANGE: "the scheduler had missed a change of this pod; an audit found it",
    What.QUEUE: "the scheduler had lost this pod from its queue; an audit found it",
}


def _extra(difference: Difference) -> dict[str, Any]:
    fields = difference.as_json()
    return {
        "object": f"{fields['resource']} {fields['key']}",
        "what": fields["what"],
        **{name: fields[name] for name in ("known", "found") if fields[name]},
    }
