"""The bare client: it makes the writes that a scheduler has to make, and decides nothing. So no
scheduler with the same client on the same server can be faster.

    python -m asched_lab.measure.bare KUBECONFIG NAMESPACE [follow 300 | preempt]

Without a mode it binds all waiting pods, with an event; `follow 300` does the same for 300 pods as
they arrive; `preempt` first evicts three pods for each.

Same transport as the scheduler's, IN_FLIGHT requests at a time, bodies like the scheduler's, and
the scheduler's policy for events: bindings go first until the oldest event has waited for SHARE_S,
then both alternate.
"""

# ruff: noqa: T201 - a command prints

import asyncio
import gc
import sys
import time
from collections import defaultdict, deque

import orjson

from asched.core.framework.effects import Bind, DeletePod, Effect, MarkVictim, PodRef
from asched.core.model.pod import PodCondition, difference
from asched.host.event_loop import run_on_loop
from asched.kube.lane_limits import SHARE_S
from asched.kube.session import ConnectionOptions, Session, connect, read_json
from asched.kube.writes import request_for
from asched.names import DISRUPTION_TARGET
from asched_lab.bench.api import PODS_PATH, Api
from asched_lab.measure.crowds import JsonObject

IN_FLIGHT = 64
#: Pods evicted for one preemptor, as many as the scheduler evicts in this row.
VICTIMS = 3


async def main(kubeconfig: str, namespace: str, mode: str = "", count: str = "0") -> int:
    session = await connect(ConnectionOptions(kubeconfig=kubeconfig))
    bare = Bare(session, namespace)
    await bare.learn()
    gc.disable()  # no pauses, as in the scheduler
    match mode:
        case "follow":
            await bare.follow(int(count))
        case "preempt":
            await bare.preempt()
        case _:
            await bare.bind_all()
    await session.close()
    print(f"done, {bare.failed} failed", flush=True)
    return 1 if bare.failed else 0


class Bare:
    """One namespace's pods, bound round-robin; `failed` counts failed requests."""

    def __init__(self, session: Session, namespace: str) -> None:
        self._session = session
        self._namespace = namespace
        self._nodes: list[str] = []
        self._pool = session.pool(IN_FLIGHT)
        self.failed = 0

    async def learn(self) -> None:
        """List the nodes."""
        nodes = read_json(await self._session.general.request("GET", "/api/v1/nodes"))["items"]
        self._nodes = [node["metadata"]["name"] for node in nodes]

    async def bind_all(self) -> None:
        """IN_FLIGHT workers; each binds a pod, or writes an event that waited long enough; when all
        pods are bound, the remaining events.
        """
        queue = deque(enumerate(await self._pods("spec.nodeName%3D")))
        unreported: deque[tuple[float, JsonObject, str]] = deque()
        late = False

        async def work() -> None:
            nonlocal late
            while queue or unreported:
                late = (
                    not late and bool(unreported) and time.monotonic() - unreported[0][0] > SHARE_S
                )
                if unreported and (late or not queue):
                    _, pod, node = unreported.popleft()
                    await self._write_event(pod, node)
                    continue
                index, pod = queue.popleft()
                node = self._nodes[index % len(self._nodes)]
                await self._bind(pod, node)
                unreported.append((time.monotonic(), pod, node))

        await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))

    async def follow(self, count: int) -> None:
        """Bind each of `count` pods as soon as the watch shows it; `synced` is printed first."""
        api = Api(self._session, IN_FLIGHT)
        print("synced", flush=True)
        async with asyncio.TaskGroup() as group:
            seen = 0
            async for kind, pod in api.watch(PODS_PATH):
                if kind == "ADDED" and pod["metadata"]["namespace"] == self._namespace:
                    group.create_task(self._both(pod, self._nodes[seen % len(self._nodes)]))
                    seen += 1
                    if seen == count:
                        break

    async def preempt(self) -> None:
        """For each waiting pod evict VICTIMS pods of a separate node, then bind it there. The
        events follow at the end.
        """
        by_node = defaultdict(list)
        for pod in await self._pods("spec.nodeName%21%3D"):
            by_node[pod["spec"]["nodeName"]].append(pod)
        pairs = list(zip(await self._pods("spec.nodeName%3D"), sorted(by_node), strict=False))
        remaining = list(reversed(pairs))

        async def work() -> None:
            while remaining:
                pod, node = remaining.pop()
                await asyncio.gather(*map(self._evict, by_node[node][:VICTIMS]))
                await self._bind(pod, node)

        await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))
        await asyncio.gather(*(self._write_event(pod, node) for pod, node in pairs))

    async def _pods(self, selector: str) -> list[JsonObject]:
        path = f"/api/v1/namespaces/{self._namespace}/pods?fieldSelector={selector}"
        found: list[JsonObject] = read_json(await self._session.general.request("GET", path))[
            "items"
        ]
        return found

    async def _both(self, pod: JsonObject, node: str) -> None:
        await self._bind(pod, node)
        await self._write_event(pod, node)

    async def _bind(self, pod: JsonObject, node: str) -> None:
        await self._write(Bind(pod=self._reference(pod), node=node))

    async def _evict(self, pod: JsonObject) -> None:
        wanted = PodCondition(
            type=DISRUPTION_TARGET,
            status="True",
            reason="PreemptionByScheduler",
            message="bare-client: preempting to accommodate a higher priority pod",
        )
        condition = difference(None, wanted, time.time()) or {}
        reference = self._reference(pod)
        mark = MarkVictim(pod=reference, condition=condition, condition_types=(DISRUPTION_TARGET,))
        await self._write(mark)
        await self._write(DeletePod(pod=reference))

    async def _write(self, effect: Effect) -> None:
        request = request_for(effect)
        reply = await self._pool.request(
            request.method, request.path, request.body, content_type=request.content_type
        )
        self.failed += reply.status >= 300

    async def _write_event(self, pod: JsonObject, node: str) -> None:
        path = f"/apis/events.k8s.io/v1/namespaces/{self._namespace}/events"
        body = event(pod["metadata"], self._namespace, node)
        reply = await self._pool.request("POST", path, body)
        self.failed += reply.status >= 300

    def _reference(self, pod: JsonObject) -> PodRef:
        metadata = pod["metadata"]
        return PodRef(namespace=self._namespace, name=metadata["name"], uid=metadata["uid"])


def event(metadata: dict[str, str], namespace: str, node: str) -> bytes:
    """A `Scheduled` event of the size the scheduler writes."""
    now_ns = time.time_ns()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now_ns // 10**9))
    name = metadata["name"]
    return orjson.dumps(
        {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"{name}.{now_ns:x}", "namespace": namespace},
            "eventTime": f"{stamp}.{now_ns // 1000 % 10**6:06d}Z",
            "reportingController": "bare-client",
            "reportingInstance": "bare-client-bench",
            "action": "Binding",
            "reason": "Scheduled",
            "type": "Normal",
            "note": f"Successfully assigned {namespace}/{name} to {node}",
            "regarding": {
                "kind": "Pod",
                "apiVersion": "v1",
                "namespace": namespace,
                "name": name,
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
            },
        }
    )


if __name__ == "__main__":
    sys.exit(run_on_loop(main(*sys.argv[1:5])))
