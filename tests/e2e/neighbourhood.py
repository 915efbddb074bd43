"""A full cluster on a real API server: kubelets that refuse, owners that replace, a random binder.

turnover ─> pods of both sides come, others leave     kubelets ─> Running, or Failed: OutOfcpu
random_binder ─> a node at random, by a list that is a little old
"""

import asyncio
import random
from collections import Counter
from typing import Any, Final

from tests.e2e.control_plane import PODS, Plane
from tests.e2e.inside import SCHEDULER, a_pod
from tests.lab.apiserver.client import MERGE

Json = dict[str, Any]

#: What pods ask for (milli-CPU).
ASKED: Final = (250, 500, 1000, 2000)
#: How often kubelets look for new pods, and how old the binder's list is at most (s).
LOOK_S: Final = 0.1
LATE_S: Final = 0.5
NOW: Final = {"gracePeriodSeconds": 0}
POD: Final = "/api/v1/namespaces/default/pods/"


class Neighbourhood:
    """`counts`: pods made by `ours` and `theirs`, bound, refused and replaced."""

    def __init__(self, plane: Plane, nodes: int, cpu: int, theirs: str, seed: int) -> None:
        self.plane = plane
        self.counts: Counter[str] = Counter()
        self._capacity = nodes * cpu * 1000
        self._theirs = theirs
        self._rng = random.Random(seed)
        self._free = {f"n{number}": cpu * 1000 for number in range(nodes)}
        self._running: dict[str, tuple[str, int]] = {}  # name -> node, what it asks for
        self._waiting: dict[str, int] = {}
        self._serial = 0

    async def make(self, whose: str) -> None:
        """One more pod, and as many leave as there must be no more than 95 %."""
        self._serial += 1
        name, asked = f"{whose}-{self._serial}", self._rng.choice(ASKED)
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "controller": True}
        pod = a_pod(name, f"{asked}m", schedulerName=SCHEDULER if whose == "ours" else self._theirs)
        pod["metadata"]["ownerReferences"] = [{**owner, "uid": name}]
        self._waiting[name] = asked
        await self._make_way()
        await self.plane.create_pods([pod])
        self.counts[whose] += 1

    async def _make_way(self) -> None:
        asked = sum(self._waiting.values()) + sum(a for _, a in self._running.values())
        while asked > self._capacity * 0.95 and self._running:
            name = self._rng.choice(list(self._running))
            node, amount = self._running.pop(name)
            await self.plane.client.ask("DELETE", POD + name, NOW)
            self._free[node] += amount
            asked -= amount

    # --- kubelets --------------------------------------------------------------------------------

    async def kubelets(self) -> None:
        """Admit pods in the order in which they were bound, until cancelled."""
        query = "?fieldSelector=status.phase%3DPending,spec.nodeName%21%3D"
        while True:
            pods = await self.plane.every(PODS + query)
            for pod in sorted(pods, key=lambda p: int(p["metadata"]["resourceVersion"])):
                await self._admit(pod)
            await asyncio.sleep(LOOK_S)

    async def _admit(self, pod: Json) -> None:
        name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
        asked = self._waiting.pop(name, None)
        if asked is None:
            return
        whose = name.partition("-")[0]
        self.counts[f"{whose} bound"] += 1
        if asked <= self._free[node]:
            self._free[node] -= asked
            self._running[name] = node, asked
            status = {"phase": "Running", "startTime": pod["metadata"]["creationTimestamp"]}
            await self._write(name, status)
            return
        self.counts[f"{whose} refused"] += 1
        each = self._capacity // len(self._free)
        short = f"requested: {asked}, used: {each - self._free[node]}, capacity: {each}"
        message = f"Pod was rejected: Node didn't have enough resource: cpu, {short}"
        await self._write(name, {"phase": "Failed", "reason": "OutOfcpu", "message": message})
        await asyncio.sleep(0.2)  # whoever wants to read it
        await self.plane.client.ask("DELETE", POD + name, NOW)
        await self.make(whose)  # its owner replaces it
        self.counts[f"{whose} replaced"] += 1

    async def _write(self, name: str, status: Json) -> None:
        await self.plane.client.ask("PATCH", f"{POD}{name}/status", {"status": status}, media=MERGE)

    # --- a scheduler that knows nothing but amounts ----------------------------------------------

    async def random_binder(self) -> None:
        """Binds pods of `theirs` anywhere where there is room by its list, until cancelled."""
        mine = f"?fieldSelector=spec.schedulerName%3D{self._theirs},spec.nodeName%3D"
        while True:
            waiting = await self.plane.every(PODS + mine)
            free = await self._free_by_list()
            await asyncio.sleep(self._rng.uniform(0.0, LATE_S))
            for pod in waiting:
                asked = _asked(pod)
                fits = [node for node, left in free.items() if left >= asked]
                if fits:
                    node = self._rng.choice(fits)
                    free[node] -= asked
                    await self._bind(pod["metadata"]["name"], node)

    async def _free_by_list(self) -> dict[str, int]:
        free = {node: self._capacity // len(self._free) for node in self._free}
        for pod in await self.plane.every(PODS):
            node = pod["spec"].get("nodeName")
            if node and pod["status"].get("phase") not in ("Failed", "Succeeded"):
                free[node] -= _asked(pod)
        return free

    async def _bind(self, name: str, node: str) -> None:
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"metadata": {"name": name}, "target": target}
        await self.plane.client.ask("POST", f"{POD}{name}/binding", body)

    @property
    def bound(self) -> int:
        return self.counts["ours bound"] + self.counts["theirs bound"]

    @property
    def clash_rate(self) -> float:
        refused = self.counts["ours refused"] + self.counts["theirs refused"]
        return refused / max(self.bound, 1)


def _asked(pod: Json) -> int:
    """Milli-CPU, as kube-apiserver writes them."""
    text: str = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000
