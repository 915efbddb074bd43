"""What a scheduler did, as its clients see it: watches of pods and events, and its metrics.

Bounds  DECIDED_S until a pod is bound or has a condition; EVENT_S until its event is there;
EVICTED_S until the victims of a preemption are being deleted.
"""

import asyncio
import re
import ssl
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Self

from asched_lab.bench.api import EVENTS_PATH, PODS_PATH, Api
from asched_lab.bench.processes import POLL_S, Process

Json = dict[str, Any]

DECIDED_S: Final = 15.0
EVENT_S: Final = 5.0
EVICTED_S: Final = 5.0
#: A scrape of a scheduler that answers at all takes a few milliseconds.
SCRAPE_S: Final = 10.0
WAITING_PODS: Final = re.compile(
    r'^scheduler_unschedulable_pods\{.*?plugin="([^"]+)".*\} (\S+)$', re.MULTILINE
)
VERSION: Final = re.compile(r'^\w*build_info\{.*?version="(v?[0-9][^"]*)"', re.MULTILINE)


class Observer:
    """`async with Observer(api, metrics_url)`; pods and events by the uid of the pod."""

    def __init__(self, api: Api, metrics: str = "") -> None:
        self._api = api
        self._metrics = metrics
        self._tasks: list[asyncio.Task[None]] = []
        self._changed = asyncio.Condition()
        self.pods: dict[str, Json] = {}
        self.deleted: set[str] = set()
        self.events: dict[str, list[Json]] = {}

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._watch(p)) for p in (PODS_PATH, EVENTS_PATH)]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def forget(self) -> None:
        """Before the next case."""
        for found in (self.pods, self.deleted, self.events):
            found.clear()

    async def _watch(self, path: str) -> None:
        async for kind, obj in self._api.watch(path):
            if path == EVENTS_PATH:
                self.events.setdefault(obj.get("regarding", {}).get("uid", ""), []).append(obj)
            else:
                uid = obj["metadata"]["uid"]
                self.pods[uid] = obj
                if kind == "DELETED":
                    self.deleted.add(uid)
            async with self._changed:
                self._changed.notify_all()

    async def until(self, is_enough: Callable[[], bool], within_s: float) -> bool:
        """Wait for something that the watches show; False if it does not come in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s), self._changed:
                await self._changed.wait_for(is_enough)
        return is_enough()

    def condition(self, uid: str) -> Json | None:
        """The pod's condition PodScheduled, if it is False."""
        for condition in self.pods.get(uid, {}).get("status", {}).get("conditions") or ():
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                found: Json = condition
                return found
        return None

    def node(self, uid: str) -> str:
        return str(self.pods.get(uid, {}).get("spec", {}).get("nodeName") or "")

    def is_evicted(self, uid: str) -> bool:
        pod = self.pods.get(uid, {"metadata": {}})
        return uid in self.deleted or "deletionTimestamp" in pod["metadata"]

    async def scrape(self) -> str:
        """The scheduler's metrics; "" without an address of them."""
        return await asyncio.to_thread(_get, self._metrics) if self._metrics else ""


def waiting_by_plugin(metrics: str) -> dict[str, float]:
    """How many pods wait because of each plugin."""
    return {plugin: float(count) for plugin, count in WAITING_PODS.findall(metrics)}


def version(metrics: str) -> str:
    found = VERSION.search(metrics)
    return found.group(1) if found else ""


async def answers(url: str, process: Process) -> None:
    """Wait until a page answers. Raises WorkloadFailedError if the process ends before."""
    while True:
        process.check()
        with suppress(OSError):
            await asyncio.to_thread(_get, url)
            return
        await asyncio.sleep(POLL_S)


def _get(url: str) -> str:
    context = None
    if url.startswith("https:"):  # kube-scheduler signs its certificate itself
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    with urllib.request.urlopen(url, timeout=SCRAPE_S, context=context) as reply:
        text: str = reply.read().decode()
        return text
