"""Incidents that only a process has: its memory, its threads, its standing still.

The others are lived through in virtual time (`asched chaos`, tests/sim/test_recordings.py).
"""

import asyncio
import signal
from pathlib import Path

from asched.core.framework.effects import Bind, PodRef
from asched.kube.writes import bind
from asched_lab.apiserver.faults import named
from asched_lab.apiserver.resources import PODS
from asched_lab.apiserver.server import ApiServer
from asched_lab.sim.wire import send
from tests.e2e.inside import SCHEDULER, a_node, a_pod
from tests.e2e.outside import Asched, a_process
from tests.support import HANG_S

WAITING = 800
#: Of a pod that waits: the pod, its place in the queue, its last story, its event's series.
PER_POD_KIB = 32
ROUNDS = 8


def flags(server: ApiServer, folder: Path) -> tuple[str, ...]:
    (folder / "kubeconfig").write_text(server.kubeconfig(), encoding="utf-8")
    return (
        f"--kubeconfig={folder / 'kubeconfig'}",
        "--leader-elect=false",
        "--secure-port=0",
        f"--scheduler-name={SCHEDULER}",
    )


def figure(process: Asched, name: str) -> int:
    """A number of /proc/PID/status: kibibytes, or threads."""
    lines = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith(f"{name}:")).split()[1])


async def until_told(server: ApiServer) -> None:
    async with asyncio.timeout(HANG_S):
        while not all(pod["status"].get("conditions") for pod in server.list("pods")):  # noqa: ASYNC110
            await asyncio.sleep(0.2)


async def test_pods_that_wait_take_neither_threads_nor_memory_without_end(tmp_path: Path) -> None:
    """Incident14 and Incident04: events that nobody takes, and pods that change all the time."""
    server = ApiServer()
    await server.start()
    try:
        server.create("nodes", a_node("n1", "4"))
        async with a_process(tmp_path, *flags(server, tmp_path)) as process:
            await process.says("synced")
            server.create("pods", a_pod("first"))
            await asyncio.sleep(1.0)
            base_kib, threads = figure(process, "VmRSS"), figure(process, "Threads")
            server.faults.add(named("server-error", path="/events", rate=0.5))
            for number in range(WAITING):
                server.create("pods", a_pod(f"waits-{number}", "64"))
            await until_told(server)
            with_all_kib = figure(process, "VmRSS")
            for number in range(ROUNDS):
                relabel(server, number)
                await asyncio.sleep(0.2)
            after_kib = figure(process, "VmRSS")

            assert with_all_kib - base_kib <= WAITING * PER_POD_KIB
            assert after_kib - with_all_kib <= WAITING * PER_POD_KIB / 4
            assert figure(process, "Threads") <= threads + 2
            assert "Traceback" not in process.words
    finally:
        await server.stop()


def relabel(server: ApiServer, number: int) -> None:
    """A third of the pods changes."""
    for pod in server.list("pods")[number % 3 :: 3]:
        labels = {"round": str(number)}
        server.ctx.put(PODS, {**pod, "metadata": {**pod["metadata"], "labels": labels}})


async def test_others_live_on_while_it_stands_still(tmp_path: Path) -> None:
    """Incident20a: nothing of theirs asks us."""
    server = ApiServer(kubelet=True)
    await server.start()
    try:
        server.create("nodes", a_node("n1"))
        async with a_process(tmp_path, *flags(server, tmp_path)) as process:
            await process.says("synced")
            process.signal(signal.SIGSTOP)
            try:
                theirs = a_pod("theirs", schedulerName="another")
                made = server.create("pods", theirs)
                ref = PodRef(namespace="default", name="theirs", uid=made["metadata"]["uid"])
                assert send(server.ctx, bind(Bind(pod=ref, node="n1"))).status == 201
                await until_phase(server, "theirs", "Running")
                server.create("pods", a_pod("ours"))
            finally:
                process.signal(signal.SIGCONT)
            await until_phase(server, "ours", "Running")
            assert "Traceback" not in process.words
    finally:
        await server.stop()


async def until_phase(server: ApiServer, name: str, phase: str) -> None:
    async with asyncio.timeout(HANG_S):
        while server.get("pods", "default", name)["status"].get("phase") != phase:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
