"""Check derived state: the places of pods, and the columns of nodes.

No list of the API shows these. They are compared with the objects, a few at a time between two
turns of the scheduling loop; a difference is checked a second time before it is reported.

Bounds  SLICE pods, or rows with ROW_PODS pods, between two turns; nodes with more than ROW_PODS_MAX
        pods are left to the full count on SIGUSR2; WRONG_MAX of each kind are checked twice.
"""

import asyncio
from collections.abc import Callable
from itertools import islice
from typing import Final

from asched.core.cluster import audit
from asched.core.cluster.facts import Gone, Seen
from asched.core.cycle.orders import QueueAmended
from asched.core.cycle.place_faults import OF_QUEUE, Fault, fault_of, fault_of_count
from asched.core.model.kinds import NODE, POD
from asched.kube.running import Running
from asched.ops.audit.findings import Difference, What
from asched.ops.audit.objects import SETTLE_S, Compared, is_taken_in

#: Half a millisecond.
SLICE: Final = 512
#: 33 µs per pod.
ROW_PODS: Final = 100
ROW_PODS_MAX: Final = 1000
PAUSE_S: Final = 0.05
WRONG_MAX: Final = 1000


class Places:
    """Compares derived state. `hastes`: without pauses."""

    def __init__(self, scheduler: Running) -> None:
        self._scheduler = scheduler
        self._context = scheduler.machine.context
        self._cluster = self._context.cluster

    # --- pods ------------------------------------------------------------------------------------

    async def pods(self, *, hastes: bool) -> Compared:
        """Check that each pod is in its queue or on its node, and no other pod is."""
        context, compared = self._context, Compared()
        queued = (queued_pod.key for queued_pod in context.queue.places.all())
        keys = list(dict.fromkeys((*self._cluster.pods_seen, *queued)))
        wrong = await self._wrong(keys, lambda key: fault_of(context, key), compared, hastes)
        uids = list(self._cluster.placed)
        counted = await self._wrong(
            uids, lambda uid: fault_of_count(context, uid), compared, hastes
        )
        if not wrong and not counted:
            return compared
        await asyncio.sleep(SETTLE_S)
        for key, fault in wrong.items():
            if fault_of(context, key) is fault and await self._amend_pod(key, fault):
                pod = self._cluster.pods_seen.get(key)
                compared.differences.append(_of_place(key, fault)._replace(obj=pod))
        for uid, fault in counted.items():
            key = self._key_of(uid)
            if fault_of_count(context, uid) is fault and await self._uncount(uid):
                compared.differences.append(_of_place(key, fault))
        return compared

    async def _wrong(
        self,
        names: list[str],
        look: Callable[[str], Fault | None],
        compared: Compared,
        hastes: bool,
    ) -> dict[str, Fault]:
        """Differences of the first check."""
        wrong: dict[str, Fault] = {}
        rest = iter(names)
        while some := list(islice(rest, SLICE)):
            for name in some:
                fault = look(name)
                if fault is not None and len(wrong) < WRONG_MAX:
                    wrong[name] = fault
            compared.objects += len(some)
            await asyncio.sleep(0.0 if hastes else PAUSE_S)
        return wrong

    async def _amend_pod(self, key: str, fault: Fault) -> bool:
        if fault in OF_QUEUE:
            self._scheduler.inbox.put(QueueAmended((key,)))
            return True
        if not await is_taken_in(self._scheduler, POD, NODE):
            return False
        pod = self._cluster.pods_seen.get(key)
        if pod is None or fault_of(self._context, key) is not fault:
            return False
        self._scheduler.inbox.put(Gone(POD, pod))
        self._scheduler.inbox.put(Seen(POD, pod))
        return True

    async def _uncount(self, uid: str) -> bool:
        """Remove a pod that does not exist: add it and delete it as pods are."""
        if not await is_taken_in(self._scheduler, POD, NODE):
            return False
        info = self._cluster.placed.get(uid)
        if info is None or info.pod.key in self._cluster.pods_seen:
            return False
        self._scheduler.inbox.put(Seen(POD, info.pod))
        self._scheduler.inbox.put(Gone(POD, info.pod))
        return True

    def _key_of(self, uid: str) -> str:
        info = self._cluster.placed.get(uid)
        return "" if info is None else info.pod.key

    # --- nodes -----------------------------------------------------------------------------------

    async def columns(self, *, hastes: bool) -> Compared:
        """Compare each node's row with a fresh count of its pods and holds."""
        compared = Compared()
        wrong: dict[str, list[str]] = {}
        since = 0
        for name in list(self._cluster.nodes.row_of):
            found = self._count_again(name)
            if found and len(wrong) < WRONG_MAX:
                wrong[name] = found
            compared.objects += 1
            since += 1 + self._pods_on(name)
            if since >= ROW_PODS:
                since = 0
                await asyncio.sleep(0.0 if hastes else PAUSE_S)
        if wrong:
            await asyncio.sleep(SETTLE_S)
        for name, before in wrong.items():
            found = self._count_again(name)
            if found and found == before and await self._renew(name):
                compared.differences += (_of_row(name, line) for line in found)
        return compared

    def _pods_on(self, name: str) -> int:
        row = self._cluster.nodes.row_of.get(name)
        return 0 if row is None else len(self._cluster.pods_on(row))

    def _count_again(self, name: str) -> list[str]:
        row = self._cluster.nodes.row_of.get(name)
        is_trial = self._cluster.topology.on_trial or self._cluster.is_supposed
        if row is None or is_trial or self._pods_on(name) > ROW_PODS_MAX:
            return []
        return audit.recount_row(self._cluster, row)

    async def _renew(self, name: str) -> bool:
        """Remove and add the node with its pods: its row is rebuilt."""
        if not await is_taken_in(self._scheduler, POD, NODE):
            return False
        node = self._cluster.node_of(name)
        if node is None:
            return False
        self._scheduler.inbox.put(Gone(NODE, node))
        self._scheduler.inbox.put(Seen(NODE, node))
        return True


def _of_place(key: str, fault: Fault) -> Difference:
    what = What.QUEUE if fault in OF_QUEUE else What.COUNT
    return Difference(POD.plural, key, what, "", fault.value)


def _of_row(name: str, line: str) -> Difference:
    return Difference(NODE.plural, name, What.COUNT, "", line)
