"""An API server with nodes and pods for programs that stand for election."""

import asyncio

from tests.support import HANG_S

CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: asched}]
"""


def a_node(name):
    resources = {"cpu": "64", "memory": "64Gi", "pods": "500"}
    return {
        "metadata": {"name": name},
        "status": {"allocatable": resources, "capacity": resources},
    }


def a_pod(name):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1m"}}}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": "asched", "containers": [container]},
    }


async def until(condition, patience_s=HANG_S):
    async with asyncio.timeout(patience_s):
        while not condition():  # noqa: ASYNC110 - the store rings no bell
            await asyncio.sleep(0.01)


def bound(server):
    return {p["metadata"]["name"] for p in server.list("pods") if p["spec"].get("nodeName")}
