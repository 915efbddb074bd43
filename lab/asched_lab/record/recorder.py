"""Records one case: puts its cluster and lets the scheduler place the pod several times.

The first attempt of a pod that fits is decided by the scheduler's own scores. In later ones the
extender gives random points, so that the choice depends on more scores than the highest one. All
attempts must see the same nodes; else the scheduler had not seen the cluster yet, and the case is
run again.

Bounds  ATTEMPTS per pod that fits, TRIES per case.
"""

import asyncio
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from asched_lab.apiserver.resources import find
from asched_lab.bench.api import Api
from asched_lab.record.extender import Extender
from asched_lab.record.inputs import Input
from asched_lab.record.observer import (
    DECIDED_S,
    EVENT_S,
    EVICTED_S,
    Observer,
    version,
    waiting_by_plugin,
)
from asched_lab.record.stage import Stage, shortened

Json = dict[str, Any]

ATTEMPTS: Final = 4
TRIES: Final = 3
POINTS_MAX: Final = 10
FAMILY: Final = "outside"
#: Time for the scheduler's watches before a pod comes; grows with every try.
SETTLE_S: Final = 0.15


class UnsettledError(Exception):
    """Attempts contradict each other, or nothing was decided."""


@dataclass
class Recorder:
    """`record` returns a case. Raises RefusedError, UnsettledError."""

    api: Api
    extender: Extender
    observer: Observer
    scheduler_name: str = "default-scheduler"

    def __post_init__(self) -> None:
        self._stage = Stage(self.api)
        self._placed: dict[str, str] = {}

    async def record(self, case: Input) -> Json:
        for number in range(1, TRIES + 1):
            try:
                return await self._try(case, SETTLE_S * number**2)
            except UnsettledError:
                if number == TRIES:
                    raise
        raise AssertionError(case.name)

    async def _try(self, case: Input, settle_s: float) -> Json:
        self.observer.forget()
        self.extender.asked.clear()
        wanted = {**case.pod, "spec": {**case.pod["spec"], "schedulerName": self.scheduler_name}}
        try:
            await self._stage.put(case.objects)
            self._placed = {_uid(pod): _key(pod) for pod in self._stage.stored.get("pods", ())}
            await asyncio.sleep(settle_s)
            metrics = await self.observer.scrape()
            pod, seen = await self._attempts(case.name, wanted, waiting_by_plugin(metrics))
        finally:
            await self._stage.clear()
        made = {
            "name": case.name,
            "family": FAMILY,
            "scheduler": version(metrics),
            "objects": self._stage.stored,
            "pod": pod,
            "seen": seen,
        }
        return shortened(made)

    async def _attempts(
        self, name: str, wanted: Json, before: dict[str, float]
    ) -> tuple[Json, Json]:
        random = Random(name)
        self.extender.points = {}
        pod, seen = await self._attempt(wanted, before)
        choices = [{"node": seen.pop("node")}] if "node" in seen else []
        nodes = seen.get("feasible", ())
        has_choice = len(nodes) > 1
        repeated = 0 if "nominated" in seen else ATTEMPTS - 1 if has_choice else 1
        for _ in range(repeated):  # not after evictions: they have changed the cluster
            points = {node: random.randint(0, POINTS_MAX) for node in nodes}
            self.extender.points = points
            _, again = await self._attempt(wanted, before)
            node = again.pop("node", "")
            if again != seen:
                raise UnsettledError(f"{seen} and then {again}")
            if has_choice:
                choices.append({"node": node, "points": points})
        if choices:
            seen["choices"] = choices
        return pod, seen

    async def _attempt(self, wanted: Json, before: dict[str, float]) -> tuple[Json, Json]:
        """Create the pod, wait for the decision, remove the pod."""
        pod = await self._stage.create(wanted)
        try:
            return pod, await self._seen(_uid(pod), before)
        finally:
            await self._stage.remove(find("pods"), pod)

    async def _seen(self, uid: str, before: dict[str, float]) -> Json:
        observer, asked = self.observer, self.extender.about(uid)
        if not await observer.until(
            lambda: bool(observer.node(uid) or observer.condition(uid)), DECIDED_S
        ):
            raise UnsettledError(f"no decision in {DECIDED_S:.0f} s")
        condition, node = observer.condition(uid), observer.node(uid)
        await observer.until(lambda: bool(observer.events.get(uid)), EVENT_S)
        events = observer.events.get(uid) or [{}]
        seen: Json = {"event": {field: events[0].get(field) for field in ("reason", "note")}}
        if asked.feasible is not None:
            seen["feasible"] = asked.feasible
        if condition is None:
            if asked.feasible is None:
                raise UnsettledError("the extender was not asked: is it in the configuration?")
            seen["node"] = node
            seen["event"]["note"] = str(seen["event"]["note"]).removesuffix(node)
            return seen
        seen["condition"] = {field: condition.get(field) for field in ("reason", "message")}
        now = waiting_by_plugin(await observer.scrape())
        if now:
            seen["plugins"] = sorted(p for p, count in now.items() if count > before.get(p, 0))
        if asked.candidates is not None:
            seen["candidates"] = self._candidates(asked.candidates)
        nominated = observer.pods[uid]["status"].get("nominatedNodeName")
        if nominated:
            seen["nominated"] = nominated
            seen["victims"] = await self._victims(nominated, seen.get("candidates"))
        return seen

    def _candidates(self, found: Json) -> list[Json]:
        uids = {victim["UID"] for victims in found.values() for victim in victims["Pods"]}
        if not uids <= self._placed.keys():
            raise UnsettledError("the scheduler still sees pods of an earlier case")
        return [
            {
                "node": node,
                "victims": sorted(self._placed[victim["UID"]] for victim in victims["Pods"]),
                "pdb_violations": victims.get("NumPDBViolations", 0),
            }
            for node, victims in sorted(found.items())
        ]

    async def _victims(self, nominated: str, candidates: list[Json] | None) -> list[str]:
        """Pods that are being deleted, but for those that were so at the beginning."""
        known = {
            _uid(pod)
            for pod in self._stage.stored["pods"]
            if "deletionTimestamp" in pod["metadata"]
        }
        expected = 1
        for candidate in candidates or ():
            if candidate["node"] == nominated:
                expected = len(candidate["victims"])

        def evicted() -> list[str]:
            uids = (u for u in self._placed if u not in known and self.observer.is_evicted(u))
            return sorted(self._placed[uid] for uid in uids)

        await self.observer.until(lambda: len(evicted()) >= expected, EVICTED_S)
        return evicted()


def _uid(pod: Json) -> str:
    return str(pod["metadata"]["uid"])


def _key(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
