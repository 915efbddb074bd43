"""The bare client: binds every waiting pod round-robin and writes one event for each. It decides
nothing, so no scheduler of the same client on the same server can be faster.

    python -m tests.bench.bare KUBECONFIG NAMESPACE [COUNT]

With a COUNT it follows the watch and binds so many pods as they come, instead of those that wait.
Same transport as the scheduler's, IN_FLIGHT requests at a time, bodies like the scheduler's.
"""

# ruff: noqa: T201 - a command prints

import asyncio
import sys
import time

import orjson

from asched.core.framework.effects import Bind, PodRef
from asched.edge.client.session import ConnectionOptions, connect, read_json
from asched.edge.client.writes import bind
from asched.edge.host.process import runner
from asched.lab.bench.api import Api

IN_FLIGHT = 64


async def main(kubeconfig: str, namespace: str, count: str = "0") -> int:
    if int(count):
        return await follow(kubeconfig, namespace, int(count))
    session = await connect(ConnectionOptions(kubeconfig=kubeconfig))
    nodes = read_json(await session.general.request("GET", "/api/v1/nodes"))["items"]
    names = [node["metadata"]["name"] for node in nodes]
    path = f"/api/v1/namespaces/{namespace}/pods?fieldSelector=spec.nodeName%3D"
    pods = read_json(await session.general.request("GET", path))["items"]
    pool = session.pool(IN_FLIGHT)
    queue = list(enumerate(pods))
    queue.reverse()
    failed = 0

    async def work() -> None:
        nonlocal failed
        while queue:
            index, pod = queue.pop()
            metadata = pod["metadata"]
            node = names[index % len(names)]
            reference = PodRef(namespace=namespace, name=metadata["name"], uid=metadata["uid"])
            request = bind(Bind(pod=reference, node=node))
            reply = await pool.request(request.method, request.path, request.body)
            failed += reply.status >= 300
            body = event(metadata, namespace, node)
            path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
            reply = await pool.request("POST", path, body)
            failed += reply.status >= 300

    await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))
    await session.close()
    print(f"done, {failed} failed", flush=True)
    return 1 if failed else 0


async def follow(kubeconfig: str, namespace: str, count: int) -> int:
    """Bind each of `count` pods as soon as the watch shows it; `synced` is printed first."""
    session = await connect(ConnectionOptions(kubeconfig=kubeconfig))
    api = Api(session, IN_FLIGHT)
    nodes = read_json(await session.general.request("GET", "/api/v1/nodes"))["items"]
    pool, events = session.pool(IN_FLIGHT), session.pool(IN_FLIGHT)
    failed = 0

    async def bind_one(index: int, metadata: dict[str, str]) -> None:
        nonlocal failed
        node = nodes[index % len(nodes)]["metadata"]["name"]
        reference = PodRef(namespace=namespace, name=metadata["name"], uid=metadata["uid"])
        request = bind(Bind(pod=reference, node=node))
        reply = await pool.request(request.method, request.path, request.body)
        failed += reply.status >= 300
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        reply = await events.request("POST", path, event(metadata, namespace, node))
        failed += reply.status >= 300

    print("synced", flush=True)
    async with asyncio.TaskGroup() as group:
        seen = 0
        async for kind, pod in api.watch_pods():
            if kind == "ADDED" and pod["metadata"]["namespace"] == namespace:
                group.create_task(bind_one(seen, pod["metadata"]))
                seen += 1
                if seen == count:
                    break
    await session.close()
    print(f"done, {failed} failed", flush=True)
    return 1 if failed else 0


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
    sys.exit(runner()(main(*sys.argv[1:4])))
