"""The live view: the data of its page and of `asched top`.

Expensive parts (why pods wait, nodes, gangs) are computed in slices, once for all clients, and
cached for AGE_S and for REST times the duration of the computation (AGE_S_MAX at most): they cost
at most a tenth of the loop for any number of clients.

Bounds  those of `waiting.py`, `cells.py` and `pulse.py`; RECENT_MAX steps of the last LOOKED_AT
        lines.
"""

import asyncio
from collections.abc import Callable, Mapping
from time import time
from typing import Any, Final

from asched.core.cycle.history import DecisionStep, HistoryEntry
from asched.kube.clock import monotonic_s
from asched.kube.running import Running
from asched.serve.telemetry.metrics import Metrics
from asched.serve.view.cells import cells, one_node
from asched.serve.view.gangs import one_gang, waiting_gangs
from asched.serve.view.pools import pool_rows
from asched.serve.view.pulse import Pulse
from asched.serve.view.slices import linked
from asched.serve.view.waiting import grouped

AGE_S: Final = 1.0
REST: Final = 10.0
AGE_S_MAX: Final = 15.0
RECENT_MAX: Final = 30
LOOKED_AT: Final = 200
#: Steps that are shown; a chosen node only until its outcome is known.
NODE_STEPS: Final = (DecisionStep.NODE, DecisionStep.BOUND, DecisionStep.NOMINATED)
WORTH_A_LINE: Final = (
    *NODE_STEPS,
    DecisionStep.REJECTED,
    DecisionStep.ERROR,
    DecisionStep.FAILED,
)


class LiveView:
    """`is_leader` queries the election."""

    def __init__(
        self,
        scheduler: Running,
        metrics: Metrics,
        version: str,
        rules: str,
        is_leader: Callable[[], bool],
    ) -> None:
        self._scheduler = scheduler
        self._context = scheduler.machine.context
        self._version, self._rules = version, rules
        self._is_leader = is_leader
        self._started_s = time()
        self.pulse = Pulse(metrics.scheduler, self._context.queue)
        self._looking = asyncio.Lock()
        self._long: dict[str, Any] = {}
        self._due_s = 0.0

    async def view(self, names_of: int, since: int) -> Mapping[str, Any]:
        """All data. `names_of`: the generation of node names that the client has; `since`: the last
        beat of the pulse that it has.
        """
        long = await self._refreshed()
        nodes = dict(long["nodes"])
        if nodes["generation"] == names_of:
            del nodes["names"]
        context, scheduler = self._context, self._scheduler
        pending = context.queue.places.pending()
        return {
            "at": scheduler.clock.now_s(),
            "startedAt": self._started_s,
            "version": self._version,
            "rules": self._rules,
            "leads": self._is_leader(),
            "synced": scheduler.is_synced,
            "profiles": sorted(context.runners),
            "pods": len(context.cluster.pods_seen),
            "placed": len(context.cluster.placed),
            "queues": {
                **pending._asdict(),
                "inFlight": len(context.queue.in_flight),
                "binding": scheduler.machine.bindings,
            },
            "series": self.pulse.columns(since),
            **long,
            "nodes": nodes,
            "recent": self._recent(),
        }

    def node(self, name: str) -> Mapping[str, Any] | None:
        """A node, its usage and its pods; None if there is none."""
        return one_node(self._context.cluster, name)

    def gang(self, key: str) -> Mapping[str, Any] | None:
        """A pod group ("namespace/name") and its pods; None if unknown."""
        return one_gang(self._context, key)

    async def _refreshed(self) -> Mapping[str, Any]:
        async with self._looking:
            begun_s = monotonic_s()
            if begun_s >= self._due_s:
                context = self._context
                now_s, histories = self._scheduler.clock.now_s(), await linked(context.histories)
                self._long = {
                    "waiting": await grouped(context.queue, histories, now_s),
                    "gangs": await waiting_gangs(context),
                    "pools": await pool_rows(context, histories, self._scheduler.pools),
                    "nodes": await cells(context.cluster),
                }
                ended_s = monotonic_s()
                self._due_s = ended_s + min(max(AGE_S, REST * (ended_s - begun_s)), AGE_S_MAX)
            return self._long

    def _recent(self) -> list[dict[str, Any]]:
        """The last steps, newest first."""
        shown, known = list[dict[str, Any]](), set[tuple[str, int]]()
        for key, line in self._context.histories.latest(LOOKED_AT):
            is_over = line.step is DecisionStep.NODE and (key, line.attempt) in known
            known.add((key, line.attempt))
            if line.step in WORTH_A_LINE and not is_over:
                shown.append(_step(key, line))
        return shown[:RECENT_MAX]


def _step(key: str, line: HistoryEntry) -> dict[str, Any]:
    what = "being bound" if line.step is DecisionStep.NODE else line.step.value
    shown: dict[str, Any] = {"pod": key, "at": line.at_s, "what": what}
    if line.step in NODE_STEPS:
        if line.step is DecisionStep.NODE:
            shown["node"] = line.details.node
        else:
            shown["node"] = line.details if line.step is DecisionStep.BOUND else line.details[0]
    return shown
