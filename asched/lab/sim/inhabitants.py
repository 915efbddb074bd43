"""Everybody else in a simulated cluster: kubelets, and the collector of pods on lost nodes.

A bound pod runs after a while; one that terminates is gone after a while; one on a node that does
not exist is deleted. All by the server's own handlers, at random moments of virtual time.
"""

import random
from typing import Any, Final

from asched.lab.apiserver import deletion
from asched.lab.apiserver.kubelet import running
from asched.lab.apiserver.resources import NODES, PODS
from asched.lab.apiserver.server import ApiServer
from asched.lab.apiserver.store import DELETED, Change, Key, Record
from asched.lab.sim.clock import VirtualClock

Json = dict[str, Any]

START_S_MAX: Final = 2.0
GRACE_S_MAX: Final = 5.0
COLLECT_S_MAX: Final = 20.0


class Inhabitants:
    """They follow the store by themselves."""

    def __init__(self, server: ApiServer, clock: VirtualClock, rng: random.Random) -> None:
        self._server = server
        self._ctx = server.ctx
        self._clock = clock
        self._rng = rng
        server.store.table(PODS.storage).listeners.append(self._see_pod)
        server.store.table(NODES.storage).listeners.append(self._see_node)

    def _see_pod(self, change: Change) -> None:
        if change.type == DELETED:
            return
        key, pod = change.new.key, change.new.obj
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
            self._ctx.put(PODS, {**pod, "status": status})

    def _end(self, key: Key) -> None:
        record = self._ctx.get(PODS, *key)
        if record is not None and record.obj["metadata"].get("deletionTimestamp"):
            self._remove(record)

    def _collect(self, key: Key) -> None:
        """Delete a pod whose node does not exist, once and for all."""
        record = self._ctx.get(PODS, *key)
        if record is None:
            return
        node = record.obj["spec"].get("nodeName", "")
        if node and self._ctx.get(NODES, "", node) is None:
            self._remove(record)

    def _remove(self, record: Record) -> None:
        """For good: whoever held it with a finalizer lets go."""
        pod = record.obj
        if pod["metadata"].get("finalizers"):
            metadata = {k: v for k, v in pod["metadata"].items() if k != "finalizers"}
            record = self._ctx.put(PODS, {**pod, "metadata": metadata})
        deletion.delete(self._ctx, PODS, record, {"gracePeriodSeconds": 0})
