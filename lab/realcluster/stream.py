"""Pods that arrive at a constant rate while something happens."""

import threading
import time
from types import TracebackType
from typing import Self

from realcluster.api import Api, Pods, wait
from realcluster.workloads import stream_pod

PODS_PATH = "/api/v1/namespaces/default/pods"
OWNERS_PATH = "/api/v1/namespaces/default/configmaps"
INTERVAL_S = 0.5
#: Bound pods that stay; a node takes 110.
BOUND_MAX = 60
LIMIT_S = 300.0


class Stream:
    """with Stream(api, "asched", "kill") as stream: two pods a second, until the end of the block.

    Their owner is a ConfigMap, with which they are deleted.
    """

    def __init__(self, api: Api, scheduler: str, name: str) -> None:
        self._api = api
        self._scheduler = scheduler
        self._name = f"stream-{name}"
        self.pods = Pods(api, f"app={self._name}")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._create, daemon=True)

    def __enter__(self) -> Self:
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": self._name}}
        self._owner = self._api.ask("POST", OWNERS_PATH, document)
        self.pods.__enter__()
        self._thread.start()
        wait(lambda: len(self.pods.bound()) >= 3, LIMIT_S, "first pods")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: object, __: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        if kind is None:
            seen = self.pods.seen
            wait(lambda: len(self.pods.bound()) == len(seen), LIMIT_S, "the last pods")
        self.pods.__exit__()
        self._api.ask("DELETE", f"{OWNERS_PATH}/{self._name}")

    def _create(self) -> None:
        number = deleted = 0
        while not self._ended.wait(INTERVAL_S):
            number += 1
            pod = stream_pod(f"{self._name}-{number}", self._scheduler, self._owner)
            self._api.ask("POST", PODS_PATH, pod)
            bound = [name for name, each in list(self.pods.seen.items()) if each.bound]
            for name in bound[deleted : len(bound) - BOUND_MAX]:
                self._api.ask("DELETE", f"{PODS_PATH}/{name}")
                deleted += 1

    def gap_after(self, moment: float) -> float:
        """Seconds until a pod that was created after the moment is bound."""
        wait(lambda: self.pods.first_bound_after(moment), LIMIT_S, "a binding")
        return (self.pods.first_bound_after(moment) or time.monotonic()) - moment

    def longest_wait(self) -> float:
        return self.pods.bound()[-1]
