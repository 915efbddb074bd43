"""Ctrl-C and SIGTERM: no pod is popped any more, bindings under way are finished or given back."""

import asyncio
import signal
from pathlib import Path

import pytest

from asched_lab.apiserver.faults import Fault
from asched_lab.apiserver.server import ApiServer
from asched_lab.sim.checker import EndState
from tests.e2e.inside import SCHEDULER, a_node, a_pod
from tests.e2e.outside import a_process
from tests.support import HANG_S

BINDING = r"/binding$"
FLAGS = ("--leader-elect=false", "--secure-port=0", f"--scheduler-name={SCHEDULER}")


async def a_server(folder: Path, *, pods: int, nodes: int = 10) -> tuple[ApiServer, str]:
    server = ApiServer(kubelet=True)
    await server.start()
    for number in range(nodes):
        server.create("nodes", a_node(f"node-{number}"))
    for number in range(pods):
        server.create("pods", a_pod(f"pod-{number}", "50m"))
    path = folder / "kubeconfig"
    path.write_text(server.kubeconfig(), encoding="utf-8")
    return server, str(path)


async def until_some_are_bound(server: ApiServer, number: int) -> None:
    async with asyncio.timeout(HANG_S):
        while sum(1 for pod in server.list("pods") if pod["spec"].get("nodeName")) < number:  # noqa: ASYNC110 - another process does it
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_in_the_middle_of_a_burst(number: signal.Signals, tmp_path: Path) -> None:
    """1. Bindings take their time. 2. A signal. 3. Those under way land; nothing begins anew."""
    server, kubeconfig = await a_server(tmp_path, pods=1000)
    server.faults.add(Fault("delay", BINDING, seconds=0.5))
    try:
        async with a_process(tmp_path, f"--kubeconfig={kubeconfig}", *FLAGS) as process:
            await until_some_are_bound(server, 100)
            process.signal(number)
            status = await process.ended(within_s=HANG_S)
            words = process.words
        bound = sum(1 for pod in server.list("pods") if pod["spec"].get("nodeName"))
    finally:
        await server.stop()

    assert status == 0
    assert "Traceback" not in words
    assert '"bindings_left": 0' in words or "bindings_left=0" in words, words
    assert 100 <= bound < 1000
    assert EndState(server.list("nodes"), server.list("pods")).broken_rules() == []


async def test_bindings_that_never_come_back_do_not_hold_it_up(tmp_path: Path) -> None:
    """1. The server swallows bindings. 2. SIGTERM. 3. It ends before any answer could come."""
    server, kubeconfig = await a_server(tmp_path, pods=200)
    server.faults.add(Fault("delay", BINDING, seconds=2 * HANG_S))
    try:
        async with a_process(tmp_path, f"--kubeconfig={kubeconfig}", *FLAGS) as process:
            await until_some_are_bound(server, 50)
            process.signal(signal.SIGTERM)
            status = await process.ended(within_s=HANG_S)
            words = process.words
    finally:
        server.faults.clear()
        await server.stop()

    assert status == 0
    assert "Traceback" not in words


async def test_a_signal_before_anything_was_listed(tmp_path: Path) -> None:
    server, kubeconfig = await a_server(tmp_path, pods=0)
    server.faults.add(Fault("refuse", r"/nodes$", "GET", retry_after_s=1))
    try:
        async with a_process(tmp_path, f"--kubeconfig={kubeconfig}", *FLAGS) as process:
            await process.says("starting")
            process.signal(signal.SIGTERM)
            status = await process.ended(within_s=HANG_S)
            words = process.words
    finally:
        await server.stop()

    assert status == 0, words
    assert "Traceback" not in words
