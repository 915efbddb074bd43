"""Kubelets and the pod garbage collector of a simulated cluster.

A bound pod runs after a while; a terminating one is removed after a while; one on a node that does
not exist is deleted. All with the server's own handlers, at random moments of virtual time.
"""

import random
from typing import Any, Final

from asched_lab.apiserver import crud
from asched_lab.apiserver.context import DELETED, Change, Key, Record
from asched_lab.apiserver.kubelet import running
from asched_lab.apiserver.resources import NODES, PODS
from asched_lab.apiserver.server import ApiServer
from asched_lab.sim.checker import EndState, amount, requests_of
from asched_lab.sim.clock import VirtualClock

Json = dict[str, Any]

START_S_MAX: Final = 2.0
GRACE_S_MAX: Final = 5.0
#: The status that a kubelet writes of a pod that it does not admit.
REFUSED: Final = {"phase": "Failed", "reason": "OutOfcpu"}
SHORT: Final = "Pod was rejected: Node didn't have enough resource: cpu, "
COLLECT_S_MAX: Final = 20.0


class Inhabitants:
    """Follow the store."""

    def __init__(self, server: ApiServer, clock: VirtualClock, rng: random.Random) -> None:
        self._server = server
        self._ctx = server.ctx
        self._clock = clock
        self._rng = rng
        #: Whether kubelets check that an arriving pod fits, and how long ended pods count for them.
        self.refuses = False
        self.holds_s = 0.0
        self._held: dict[Key, tuple[float, Json]] = {}  # until when an ended pod counts
        server.store.table(PODS.storage).listeners.append(self._see_pod)
        server.store.table(NODES.storage).listeners.append(self._see_node)

    def _see_pod(self, change: Change) -> None:
        if change.type != DELETED:
            self.look_at(change.new.obj)

    def look_at(self, pod: Json) -> None:
        """Plan the reactions to the current state of a pod."""
        key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        if self.holds_s and pod["status"].get("phase") == "Succeeded" and key not in self._held:
            held = {**pod, "status": {"phase": "Running"}}
            self._held[key] = (self._clock.now_s() + self.holds_s, held)
        if pod["metadata"].get("deletionTimestamp"):
            self._clock.after(self._rng.uniform(0.0, GRACE_S_MAX), lambda: self._end(key))
        elif pod["spec"].get("nodeName") and pod["status"].get("phase", "Pending") == "Pending":
            if self._ctx.get(NODES, "", pod["spec"]["nodeName"]) is None:
                self._clock.after(self._rng.uniform(0.0, COLLECT_S_MAX), lambda: self._collect(key))
            else:
                self._clock.after(self._rng.uniform(0.0, START_S_MAX), lambda: self._start(key))

    def _see_node(self, change: Change) -> None:
        if change.type != DELETED:
            return
        for pod in self._server.list("pods"):
            if pod["spec"].get("nodeName") == change.new.key[1]:
                key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
                wait_s = self._rng.uniform(0.0, COLLECT_S_MAX)
                self._clock.after(wait_s, lambda key=key: self._collect(key))  # type: ignore[misc]

    def _start(self, key: Key) -> None:
        record = self._ctx.get(PODS, *key)
        if record is None or record.obj["metadata"].get("deletionTimestamp"):
            return
        pod = record.obj
        if pod["status"].get("phase", "Pending") == "Pending" and pod["spec"].get("nodeName"):
            status = {**pod["status"], **running(self._ctx.now(), pod, "10.0.0.1")}
            if self.refuses and (why := self._shortage(pod)):
                status = {**pod["status"], **REFUSED, "message": why}
            self._ctx.put(PODS, {**pod, "status": status})

    def _shortage(self, pod: Json) -> str:
        """Why the node's kubelet does not admit it beside the pods it runs or still counts; empty
        if it does. Only CPU is ever short.
        """
        node = self._ctx.get(NODES, "", pod["spec"]["nodeName"])
        if node is None:
            return ""
        now_s, uid = self._clock.now_s(), pod["metadata"]["uid"]
        self._held = {key: held for key, held in self._held.items() if held[0] > now_s}
        pods = self._server.list("pods")
        running = [other for other in pods if other["status"].get("phase") == "Running"]
        ended = [held for _, held in self._held.values() if held["metadata"]["uid"] != uid]
        end, name = EndState([node.obj], [*running, *ended]), node.obj["metadata"]["name"]
        if end.has_room(name, pod):
            return ""
        capacity, free = amount(node.obj["status"]["allocatable"]["cpu"]), end.free[name]["cpu"]
        milli = [int(cpu * 1000) for cpu in (requests_of(pod)["cpu"], capacity - free, capacity)]
        return SHORT + "requested: {}, used: {}, capacity: {}".format(*milli)

    def _end(self, key: Key) -> None:
        record = self._ctx.get(PODS, *key)
        if record is not None and record.obj["metadata"].get("deletionTimestamp"):
            self.remove(record)

    def _collect(self, key: Key) -> None:
        """Delete a pod whose node does not exist."""
        record = self._ctx.get(PODS, *key)
        if record is None:
            return
        node = record.obj["spec"].get("nodeName", "")
        if node and self._ctx.get(NODES, "", node) is None:
            self.remove(record)

    def remove(self, record: Record) -> None:
        """Remove the pod and its finalizers."""
        pod = record.obj
        if pod["metadata"].get("finalizers"):
            metadata = {k: v for k, v in pod["metadata"].items() if k != "finalizers"}
            record = self._ctx.put(PODS, {**pod, "metadata": metadata})
        crud.delete(self._ctx, PODS, record, {"gracePeriodSeconds": 0})
