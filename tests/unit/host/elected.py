"""An API server with nodes and pods for programs that stand for election."""

import asyncio
from contextlib import asynccontextmanager

from asched.host.assemble import Parts, build_machine, build_runners
from asched.host.configuration.file import load_config
from asched.host.loops import Scheduler
from asched.kube.clock import monotonic_s
from asched.kube.session import ConnectionOptions, connect
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


@asynccontextmanager
async def a_scheduler(tmp_path, **options):
    configuration = load_config(text=CONFIGURATION).configuration
    parts = Parts.fresh()
    runners = build_runners(configuration, parts)
    machine = build_machine(configuration, parts, runners, monotonic_s=monotonic_s)
    session = await connect(ConnectionOptions(kubeconfig=str(tmp_path / "kubeconfig")))
    scheduler = Scheduler(session, machine, **options)
    task = asyncio.ensure_future(scheduler.run())
    try:
        yield scheduler
    finally:
        scheduler.stop()
        await asyncio.wait([task], timeout=HANG_S)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
