"""Mixed pods for a change of leader, and what a client of the server itself sees of them.

In every round some pods wait when the leader ends, and rivals of a higher priority follow at once:
together they need twice the room that there is, so that every place is used again by the successor.
A binding that arrives late would overcommit a node, bring two pods together that keep apart, or
skew a spread.

Bounds  PATIENCE_S for the pods of a round to be placed; pods are deleted ROUNDS_KEPT rounds later.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from asched_lab.bench.api import PODS, PODS_PATH, Api
from asched_lab.measure.crowds import (
    HOSTNAME,
    ZONE,
    JsonObject,
    affinity,
    node,
    pod,
    pod_group,
    spread,
)
from asched_lab.sim.checker import EndState, apart, skews

NAMESPACE: Final = "default"
#: Of four cores each, in three zones.
NODES: Final = 6
#: Plain pods, pods that keep apart, pods that spread, members of a gang: of those that wait, and of
#: their rivals. Each needs one core.
WAITING: Final = (12, 4, 4, 3)
RIVALS: Final = (12, 3, 3, 3)
HIGH: Final = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 1000,
    "preemptionPolicy": "Never",  # a wrong order would be repaired by evictions
}
PATIENCE_S: Final = 15.0
#: A binding may be on its way for as long: its pod must still be there.
ROUNDS_KEPT: Final = 3
POLL_S: Final = 0.2

OVERCOMMITTED: Final = "nodes overcommitted"
BROKEN: Final = "constraints broken"
ORDER: Final = "priority not kept"
LOST: Final = "pods lost"
SPLIT: Final = "gangs split"


class TakeoverLoad:
    """The pods of all rounds, followed by a watch. `findings`: what was wrong, by kind."""

    def __init__(self, api: Api, profile: str) -> None:
        self.findings: dict[str, set[str]] = defaultdict(set)
        #: When each pod was seen on a node, by name.
        self.bound_s: dict[str, float] = {}
        self._api = api
        self._profile = profile
        self._nodes = [node(index) for index in range(NODES)]
        self._pods: dict[str, JsonObject] = {}
        self._number = 0

    async def begin(self) -> None:
        """Create what all rounds share."""
        await self._api.create(HIGH, "")
        for one in self._nodes:
            await self._api.create(one, "")

    async def follow(self) -> None:
        """Watch pods until cancelled; every binding is checked when it is seen."""
        async for kind, seen in self._api.watch(PODS_PATH):
            if kind not in ("ADDED", "MODIFIED", "DELETED"):
                continue
            name = seen["metadata"]["name"]
            if kind == "DELETED":
                self._pods.pop(name, None)
                continue
            before = self._pods.get(name, {"spec": {}})["spec"].get("nodeName")
            self._pods[name] = seen
            now = seen["spec"].get("nodeName")
            if before and now != before:
                self.findings[BROKEN].add(f"{name} moved from {before} to {now}")
            if now and not before:
                self.bound_s[name] = time.monotonic()
                self._check(seen)

    def _check(self, placed: JsonObject) -> None:
        """Check a pod that was just bound, and its node."""
        state = EndState(self._nodes, list(self._pods.values()))
        for line in state.broken_rules():
            kind = OVERCOMMITTED if "overcommitted" in line else BROKEN
            self.findings[kind].add(f"round {self._number}: {line.partition(':')[0]}")
        for other in state.placed:
            if other is not placed and apart(placed, other, state.nodes):
                pair = " and ".join(sorted(p["metadata"]["name"] for p in (placed, other)))
                self.findings[BROKEN].add(f"{pair} must be apart")

    # --- a round ---------------------------------------------------------------------------------

    async def begin_round(self) -> None:
        """Remove the placed pods of earlier rounds, and create those that wait."""
        self._number += 1
        old = [
            name
            for name, pod_ in self._pods.items()
            if pod_["spec"].get("nodeName") or self._round_of(name) < self._number - ROUNDS_KEPT
        ]
        await asyncio.gather(*(self._api.delete(PODS, NAMESPACE, name) for name in old))
        await self._create(self._batch("low", WAITING))

    async def add_rivals(self) -> None:
        """Create the pods of a higher priority."""
        await self._create(self._batch("high", RIVALS))

    def _batch(self, level: str, counts: tuple[int, int, int, int]) -> Iterator[JsonObject]:
        plain, apart_count, spread_count, gang = counts
        group = f"{level}-{self._number}"
        # Later rounds have other labels: a pod that has gone is counted no more.
        apart_labels, spread_labels = ({key: f"r{self._number}"} for key in ("apart", "spread"))
        keeps_apart = affinity("podAntiAffinity", HOSTNAME, apart_labels)
        spreads = spread(ZONE, spread_labels, 1, is_hard=True)
        for index in range(max(counts)):
            if index < plain:
                yield self._pod(level, "plain", index)
            if index < apart_count:
                yield self._pod(level, "apart", index, apart_labels, affinity=keeps_apart)
            if index < spread_count:
                constraint = {"topologySpreadConstraints": spreads}
                yield self._pod(level, "spread", index, spread_labels, **constraint)
            if index < gang:
                member_of = {"schedulingGroup": {"podGroupName": group}}
                yield self._pod(level, "gang", index, {"gang": group}, **member_of)
        made = pod_group(group, gang)
        made["metadata"]["namespace"] = NAMESPACE
        yield made

    def _pod(
        self, level: str, form: str, index: int, labels: dict[str, str] | None = None, **spec: Any
    ) -> JsonObject:
        if level == "high":
            spec["priorityClassName"] = "high"
        name = f"{level}-{form}-{self._number}-{index}"
        return pod(name, cpu="1", memory="1Mi", labels=labels, schedulerName=self._profile, **spec)

    async def _create(self, objects: Iterator[JsonObject]) -> None:
        await asyncio.gather(*(self._api.create(one, NAMESPACE) for one in objects))

    # --- what must be true -----------------------------------------------------------------------

    async def until_settled(self, patience_s: float = PATIENCE_S) -> bool:
        """Wait until no single pod waits that fits on a node."""
        until_s = time.monotonic() + patience_s
        while self._fitting():
            if time.monotonic() > until_s:
                return False
            await asyncio.sleep(POLL_S)
        return True

    def _fitting(self) -> list[str]:
        single = [p for p in self._pods.values() if "schedulingGroup" not in p["spec"]]
        members = [p for p in self._pods.values() if "schedulingGroup" in p["spec"]]
        placed = [p for p in members if p["spec"].get("nodeName")]
        return EndState(self._nodes, single + placed).could_be_placed()

    def check_round(self, bound: set[str]) -> None:
        """Check spreads and the order of this round. `bound`: pods that the successor has bound."""
        now = [p for name, p in self._pods.items() if self._round_of(name) == self._number]
        placed = [p for p in now if p["spec"].get("nodeName")]
        for line in skews(self._nodes, placed):
            self.findings[BROKEN].add(f"round {self._number}: {line}")
        plain = {name: p for name, p in self._pods.items() if name.split("-")[1] == "plain"}
        waiting = [
            name
            for name, p in plain.items()
            if name.startswith(f"high-plain-{self._number}-") and not p["spec"].get("nodeName")
        ]
        hasty = [
            name
            for name, p in plain.items()
            if name.startswith("low") and name in bound and p["spec"].get("nodeName")
        ]
        if waiting and hasty:
            self.findings[ORDER].add(f"{len(hasty)} of {hasty[0]} .. before {waiting[0]}")

    def check_end(self, refused: set[str]) -> None:
        """Check that no pod is lost and that gangs are placed as a whole or not at all. `refused`:
        pods whose binding by a former leader arrived too late. A gang is split if only some of its
        bindings arrived before their sender ended, and the room of the others was given away.
        """
        for name in self._fitting():
            self.findings[LOST].add(f"{name} waits and fits")
        gangs = defaultdict[str, list[JsonObject]](list)
        for one in self._pods.values():
            if "schedulingGroup" in one["spec"]:
                gangs[one["spec"]["schedulingGroup"]["podGroupName"]].append(one)
        for group, members in gangs.items():
            waiting = [p["metadata"]["name"] for p in members if not p["spec"].get("nodeName")]
            if waiting and len(waiting) < len(members) and len(members) in (WAITING[3], RIVALS[3]):
                what = SPLIT if refused.intersection(waiting) else BROKEN
                self.findings[what].add(f"gang {group}: {', '.join(sorted(waiting))} wait")

    @staticmethod
    def _round_of(name: str) -> int:
        return int(name.split("-")[2])
