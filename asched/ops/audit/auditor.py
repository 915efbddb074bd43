"""The audit of a running scheduler: who is compared when, what is told of it, and what is healed.

    every period   kind after kind, evenly spread: metadata from the API server, a page at a time
                   (`objects.py`); then places and columns (`places.py`), which ask nobody
    on demand      all of it at once

What is found is logged object by object, counted, kept for the page, and ended: missed objects are
delivered as their watch should have done, pods get their place in the queue, a node's row is
written anew. A standby audits as a leader does. What the server does not answer is tried again in
the next period.

Bounds  one part at a time; those of `objects.py`, `places.py` and `findings.py`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, Protocol

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

#: `--audit-period`. Finds what was missed before most people would, and asks the server for less
#: than one page a second at 100,000 pods.
PERIOD_S: Final = 600.0
#: Of the parts that no kind has its name from.
QUEUE: Final = "queue"
COLUMNS: Final = "columns"
#: What is looked at while the first lists are awaited.
WAIT_S: Final = 1.0

#: Does a part in haste, or at leisure.
Part = Callable[..., Awaitable[Compared]]


class AuditObserver(Protocol):
    """Counts what audits do."""

    def audit_compared(self, part: str, objects: int) -> None:
        """A part was gone through."""

    def audit_failed(self, part: str) -> None:
        """... or could not be."""

    def audit_differed(self, resource: str, what: str) -> None:
        """An object was known otherwise than it is."""


class SilentAudit:
    """Counts nothing."""

    def audit_compared(self, part: str, objects: int) -> None: ...
    def audit_failed(self, part: str) -> None: ...
    def audit_differed(self, resource: str, what: str) -> None: ...


class Auditor:
    """Spawn `run`. `period_s`: how long it takes to compare everything once; 0: only on demand."""

    def __init__(
        self, scheduler: Running, *, period_s: float, observer: AuditObserver | None = None
    ) -> None:
        self.report = Report()
        self._scheduler = scheduler
        self._period_s = period_s
        self._observer = observer or SilentAudit()
        self._places = Places(scheduler)
        self._one_at_a_time = asyncio.Lock()
        self._in_haste: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Slowly, until cancelled."""
        while self._period_s:
            await self._synced()
            parts = list(self._parts())
            for name, part in parts:
                await asyncio.sleep(self._period_s / len(parts))
                await self._do(name, part, hastes=False)

    async def now(self) -> Report:
        """All of it at once; whoever asks while it runs has what comes of it, too."""
        if self._in_haste is None or self._in_haste.done():
            self._in_haste = self._scheduler.tasks.spawn("audit now", self._all())
        await asyncio.shield(self._in_haste)
        return self.report

    def told(self) -> Mapping[str, Any]:
        """The report, for a page."""
        return self.report.told()

    async def told_now(self) -> Mapping[str, Any]:
        """The report, once all of it is compared."""
        return (await self.now()).told()

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
        """One part, and what is told of it."""
        async with self._one_at_a_time:
            now_s = self._scheduler.clock.now_s
            try:
                compared = await part(hastes=hastes)
            except ClientError as error:
                self.report.ended[name] = Ended(now_s(), error=str(error))
                self._observer.audit_failed(name)
                extra = {"what": name, "err": error, "cause": f"audit: {error}"}
                log.info("Could not be compared with the API server", extra=extra)
                return
            self.report.ended[name] = Ended(now_s(), compared.objects, compared.undecided)
            self._observer.audit_compared(name, compared.objects)
            for difference in compared.differences:
                self._tell(difference, now_s())

    def _tell(self, difference: Difference, now_s: float) -> None:
        self.report.found += 1
        self.report.differences.append((now_s, difference._replace(obj=None)))
        self._observer.audit_differed(difference.resource, difference.what.value)
        log.warning("Cache mismatch", extra=_extra(difference))
        if isinstance(difference.obj, Pod) and difference.what in EVENTS:
            self._tell_pod(difference, difference.obj)

    def _tell_pod(self, difference: Difference, pod: Pod) -> None:
        """Whoever wonders why a pod of ours waited so long finds it there."""
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


#: What pods that wait are told in an event.
EVENTS: Final = {
    What.ADDITION: "the scheduler had missed that this pod was made; an audit found it",
    What.CHANGE: "the scheduler had missed a change of this pod; an audit found it",
    What.QUEUE: "the scheduler had lost this pod from its queue; an audit found it",
}


def _extra(difference: Difference) -> dict[str, Any]:
    told = difference.told()
    return {
        "object": f"{told['resource']} {told['key']}",
        "what": told["what"],
        **{name: told[name] for name in ("known", "found") if told[name]},
    }
