"""A scheduler beside an API server, recorded while it works, and repeated."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from asched.host.assemble import Parts, build_machine, build_runners
from asched.host.configuration.file import load_config
from asched.host.loops import Scheduler
from asched.host.user_plugins.catalogue import Catalogue
from asched.kube.clock import monotonic_s
from asched.kube.session import ConnectionOptions, connect
from asched.ops.audit.auditor import Auditor
from asched.ops.recording.recorder import Recorder, head_of
from asched.serve.inspection import Inspection
from asched_lab.apiserver.server import ApiServer
from asched_lab.replay.lines import Recording
from asched_lab.replay.replay import replay
from tests.support import HANG_S
from tests.unit.host.elected import CONFIGURATION, a_node, a_pod, bound, until


def small(name: str, cpu: str) -> Any:
    pod = a_pod(name)
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    return pod


@pytest.mark.parametrize("asks", [False, True], ids=["", "while somebody asks why"])
async def test_a_run_is_repeated(tmp_path: Path, *, asks: bool) -> None:
    """Bindings, a pod that fits nowhere, and one that is told why in between: asking changes
    nothing.
    """
    server = ApiServer()
    await server.start()
    for number in range(3):
        server.create("nodes", a_node(f"n{number}"))
    configuration = load_config(text=CONFIGURATION).configuration
    parts = Parts.fresh()
    machine = build_machine(
        configuration, parts, build_runners(configuration, parts), monotonic_s=monotonic_s
    )
    recorder = Recorder(machine, head_of(machine, configuration), tmp_path / "r", 1 << 24)
    session = await connect(ConnectionOptions(master=server.url))
    scheduler = Scheduler(session, machine, recorder=recorder)
    auditor = Auditor(scheduler, period_s=0)
    inspection = Inspection(
        machine.context,
        configuration,
        lambda: True,
        auditor.findings,
        auditor.findings_now,
    )
    running = asyncio.ensure_future(scheduler.run())

    await until(lambda: scheduler.is_synced)
    server.create("pods", small("huge", "640"))
    for number in range(40):
        server.create("pods", small(f"p{number}", f"{10 + number}m"))
        if asks and number % 4 == 0:
            await asyncio.sleep(0)
            await inspection.explain("default", "huge")
            await inspection.explain("default", f"p{number // 2}", "n1")
    await until(lambda: len(bound(server)) == 40)
    server.create("nodes", a_node("n3"))
    await until(lambda: machine.context.cluster.nodes.count == 4)
    scheduler.stop()
    await asyncio.wait_for(running, HANG_S)
    recorder.close()
    await server.stop()

    recording = Recording(tmp_path / "r")
    done = replay(recording, Catalogue())

    assert done.is_equal, done.findings
    assert done.bindings == 40
    assert not recording.cut_off
