"""Rules of moved pods, by the API objects alone: what a plan of Rebalance must never do.

At an eviction a place is held for the successor, on another node, and the pod is older than the
pause. In runs without faults the node takes the successor, and what stands then is enough for the
budgets of the pod. A unit for which pods were moved has its room in the end; if not, the cause is
counted.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

from asched.batch.rebalance.places import OWNERS
from asched.batch.rebalance.units import RebalanceUnits
from asched.core.cluster.holds import HeldAmounts
from asched.core.framework.effects import DeletePod, Effect, Evict, NotePod
from asched.core.model.timestamp import seconds
from asched_lab.apiserver.context import Change
from asched_lab.apiserver.controllers import is_ready
from asched_lab.apiserver.resources import PODS
from asched_lab.apiserver.selectors import matches_label_selector
from asched_lab.sim.checker import EndState, is_through
from asched_lab.sim.process import Process
from asched_lab.sim.world import World

Json = dict[str, Any]

#: Counted in the figures of a run.
UNITS: Final = "units with moves"
WITHOUT_ROOM: Final = "without room: "
ABANDONED: Final = "abandoned once: "
NO_ROOM_AT_ALL: Final = "all free room together does not suffice"
_ABANDONED: Final = re.compile(r"was abandoned \((\w+)\)")


class MoveJudge:
    """Follows a world. `is_quiet`: nothing fails, and all units with moves get their room;
    `pause_s`: 0 if pods may be evicted whatever their age.
    """

    def __init__(self, world: World, *, is_quiet: bool, pause_s: float) -> None:
        self._world, self._is_quiet, self._pause_s = world, is_quiet, pause_s
        self.evicted = 0
        #: by name of a pod for whose unit pods were moved: processes that had ended then
        self._noted: dict[str, int] = {}
        #: ... and why its last plan was abandoned
        self._abandoned: dict[str, str] = {}
        world.on_effect.append(self._performed)
        world.server.store.table(PODS.storage).listeners.append(self._saw)

    def count_units(self, *, is_over: bool = False) -> None:
        """Count the units that have their room, and when all is over the others."""
        for name in sorted(self._noted):
            pod = self._world.server.get("pods", "default", name)
            if pod is not None and (is_over or "nodeName" in pod["spec"]):
                self._count(pod)

    def owes_room(self, names: Iterable[str]) -> bool:
        """Whether pods were moved for one of these pods, which has no node yet."""
        pods = [self._world.server.get("pods", "default", name) for name in names]
        waiting = [pod for pod in pods if pod is not None and "nodeName" not in pod["spec"]]
        return any(pod["metadata"]["name"] in self._noted for pod in waiting)

    def check_end(self) -> None:
        """No place is left behind."""
        world = self._world
        units = world.parts.cluster.singleton(RebalanceUnits)
        if units.active is None:
            holds = [hold.owner for hold in world.parts.cluster.holds]
            assert not holds, f"{holds} are left behind"
        self.count_units(is_over=True)
        world.figures["moves"] += self.evicted
        world.note(f"{self.evicted} pods were moved")

    def _saw(self, change: Change) -> None:
        old, new = (change.old.obj if change.old is not None else None), change.new.obj
        if old is None:
            return
        is_gone = change.type == "DELETED"
        if new["metadata"]["name"] in self._noted:
            self._note_abandoned(new)
        if is_gone and old["metadata"]["name"] in self._noted:
            self._count(old)
        began = is_gone or bool(new["metadata"].get("deletionTimestamp"))
        if self._is_quiet and began and not old["metadata"].get("deletionTimestamp"):
            conditions = (new if not is_gone else old)["status"].get("conditions") or ()
            if any(c.get("reason") == "EvictionByEvictionAPI" for c in conditions):
                self._check_budgets(old)

    def _note_abandoned(self, pod: Json) -> None:
        name = pod["metadata"]["name"]
        match = _ABANDONED.search(_messages_of(pod))
        if match is not None and self._abandoned.get(name) != match[1]:
            self._abandoned[name] = match[1]
            self._world.figures[ABANDONED + match[1]] += 1

    def _count(self, pod: Json) -> None:
        """Count a unit that has its room, or ends without it."""
        world, name = self._world, pod["metadata"]["name"]
        ended, abandoned = self._noted.pop(name), self._abandoned.pop(name, "")
        world.figures[UNITS] += 1
        if "nodeName" in pod["spec"]:
            return
        died = "the scheduler died" if len(world.ended) > ended else "its end came first"
        cause = abandoned or died
        if NO_ROOM_AT_ALL in _messages_of(pod):
            cause += ", and all free room together does not suffice"
        world.figures[WITHOUT_ROOM + cause] += 1
        if self._is_quiet:
            world.ledger.complain(f"pods moved for {name}, which got no room ({cause})")

    def _performed(self, process: Process, effect: Effect) -> None:
        world = self._world
        if isinstance(effect, DeletePod) and self._is_quiet:
            world.ledger.complain(f"{effect.pod.name} is deleted, not evicted")
        if isinstance(effect, NotePod):
            self._noted.setdefault(effect.pod.name, len(world.ended))
        if not isinstance(effect, Evict):
            return
        self.evicted += 1
        world.note(f"evict {effect.pod.name}")
        pod = world.server.get("pods", effect.pod.namespace, effect.pod.name)
        if pod is None or pod["metadata"]["uid"] != effect.pod.uid:
            return  # it has gone meanwhile
        places = [
            place
            for hold in process.parts.cluster.holds
            if hold.owner.startswith(OWNERS)
            for place in hold.places
            if not isinstance(place.what, HeldAmounts)
        ]
        own = [p for p in places if p.what.pod.metadata.name == effect.pod.name]  # type: ignore[union-attr]
        if not own or own[0].node_name == pod["spec"].get("nodeName"):
            world.ledger.complain(f"{effect.pod.name} is evicted, and no place is held for it")
            return
        created = process.parts.cluster.pods_seen[effect.pod.key].metadata.creation_timestamp
        seen = world.parts.cluster.placed.get(effect.pod.uid)
        age_s = world.clock.now_s() - seconds(created, 0.0)
        if seen is not None and age_s < self._pause_s:
            world.ledger.complain(f"{effect.pod.name} is evicted after {age_s:.0f} s")
        if self._is_quiet and not self._accepts(pod, own[0].node_name):
            world.ledger.complain(
                f"{effect.pod.name} is evicted, and {own[0].node_name} does not take its successor"
            )

    def _accepts(self, pod: Json, node: str) -> bool:
        """Whether a node would take the successor now, beside all that is there."""
        others = [p for p in self._world.pods() if not is_through(p) and p is not pod]
        bare = {**pod, "spec": {k: v for k, v in pod["spec"].items() if k != "nodeName"}}
        return EndState(self._world.nodes(), others).fits(node, bare)

    def _check_budgets(self, evicted: Json) -> None:
        """What stands without an evicted pod is enough for its budgets."""
        server, name = self._world.server, evicted["metadata"]["name"]
        for budget in server.list("poddisruptionbudgets", "default"):
            selector = budget["spec"]["selector"]
            if not matches_label_selector(selector, evicted["metadata"].get("labels") or {}):
                continue
            standing = [
                pod["metadata"]["name"]
                for pod in server.list("pods", "default")
                if matches_label_selector(selector, pod["metadata"].get("labels") or {})
                and is_ready(pod)
                and not pod["metadata"].get("deletionTimestamp")
                and pod["metadata"]["name"] != name
            ]
            desired = budget["status"]["desiredHealthy"]
            if len(standing) < desired:
                text = f"{name} is evicted: {len(standing)} pods of {desired} that its budget wants"
                self._world.ledger.complain(text)


def _messages_of(pod: Json) -> str:
    return " ".join(c.get("message", "") for c in pod["status"].get("conditions") or ())
