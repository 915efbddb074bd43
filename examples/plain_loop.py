"""A minimal scheduler without asched: list, choose, bind.

Most tutorials start like this. Everything that makes a scheduler safe is missing: it ignores
requests, taints and affinity, it overcommits, it binds one pod at a time, and after a lost answer
it tries again without knowing the result. `examples/random_scheduler.py` is the same as a plugin,
with all of that solved.

    pip install kubernetes-asyncio
    asched apiserver --kubeconfig-out /tmp/kubeconfig &    # then create nodes and pods with kubectl
    KUBECONFIG=/tmp/kubeconfig python examples/plain_loop.py my-scheduler
"""

import asyncio
import random
import sys
from typing import Any

from kubernetes_asyncio import client, config, watch

MINE = "my-scheduler"


async def main(scheduler_name: str, count: int = 0) -> None:
    """Bind pods of this scheduler as they appear; `count` of them, or for ever."""
    await config.load_kube_config()
    async with client.ApiClient() as api:
        core = client.CoreV1Api(api)
        pending = f"spec.schedulerName={scheduler_name},spec.nodeName="
        bound = 0
        async with watch.Watch() as seen:
            pods = seen.stream(core.list_pod_for_all_namespaces, field_selector=pending)
            async for event in pods:
                if event["type"] != "ADDED":
                    continue
                await bind(core, event["object"])
                bound += 1
                if bound == count:
                    return


async def bind(core: client.CoreV1Api, pod: Any) -> None:
    """List the nodes, choose one, and bind the pod to it."""
    nodes = (await core.list_node()).items
    ready = [node.metadata.name for node in nodes if not node.spec.unschedulable]
    chosen = random.choice(ready)
    target = client.V1ObjectReference(api_version="v1", kind="Node", name=chosen)
    body = client.V1Binding(metadata=client.V1ObjectMeta(name=pod.metadata.name), target=target)
    # The generated client cannot read the answer to a binding, so it is not asked to.
    await core.create_namespaced_pod_binding(
        pod.metadata.name, pod.metadata.namespace, body, _preload_content=False
    )
    print(f"{pod.metadata.namespace}/{pod.metadata.name} -> {chosen}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else MINE))
