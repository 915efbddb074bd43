"""`asched run --shadow` as a whole: beside another scheduler, with read rights, to its report."""

import asyncio
import os
import re
import signal
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from asched.cli import flags, run
from asched.cli.flags import UsageError
from asched.core.config.defaults import configuration
from asched.host.assemble import Parts, build_machine, build_runners
from asched.host.loops import Scheduler
from asched.host.process import schedule
from asched.kube.clock import monotonic_s
from asched.kube.session import ConnectionOptions, connect
from asched_lab.apiserver.call import User
from asched_lab.apiserver.server import ApiServer
from tests.deploy.manifests import DEPLOY, documents
from tests.e2e.inside import a_node, a_pod
from tests.support import HANG_S
from tests.unit.host.processes import free_port

Json = dict[str, Any]
POLL_S = 0.02
THEIRS = "default-scheduler"
ACCOUNT = "system:serviceaccount:asched-system:asched"
#: What the onlooker has on its page of metrics once it knows pods that wait.
WAITS = re.compile(r'^scheduler_pending_pods\{queue="active"\} [1-9]', re.MULTILINE)


async def until(holds: Any) -> None:
    async with asyncio.timeout(HANG_S):
        while not holds():  # noqa: ASYNC110 - the store is looked at from outside
            await asyncio.sleep(POLL_S)


def settled(server: ApiServer) -> bool:
    """All pods have a node or a refusal; a scheduler that begins writes conditions of its own."""
    return all(
        pod["spec"].get("nodeName")
        or "PodScheduled" in [one["type"] for one in pod["status"].get("conditions") or ()]
        for pod in server.list("pods")
    )


class Beside:
    """A server that notes what the onlooker asks for, and the other scheduler."""

    def __init__(self, server: ApiServer, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.kubeconfig = folder / "onlooker"
        self.kubeconfig.write_text(server.kubeconfig().replace("administrator", "onlooker"))
        self._port = free_port()

    def options(self) -> flags.RunOptions:
        return flags.parse(
            [
                f"--kubeconfig={self.kubeconfig}",
                f"--shadow={THEIRS}",
                "--bind-address=127.0.0.1",
                f"--secure-port={self._port}",
                "--authorization-always-allow-paths=/metrics",
            ]
        )

    async def their_decisions(self, *pods: Json) -> None:
        """Another scheduler of that name places them all, or says why not."""
        path = self.folder / "administrator"
        path.write_text(self.server.kubeconfig())
        effective = configuration({"profiles": [{"schedulerName": THEIRS}]})
        parts = Parts.fresh()
        machine = build_machine(
            effective, parts, build_runners(effective, parts), monotonic_s=monotonic_s
        )
        theirs = Scheduler(await connect(ConnectionOptions(kubeconfig=str(path))), machine)
        for pod in pods:
            self.server.create("pods", pod)
        # Of two versions that arrive in one turn the onlooker sees the newer one, and a decision
        # about a pod that it has not seen waiting is not compared.
        await self._seen_waiting()
        running = asyncio.ensure_future(theirs.run())
        await until(lambda: settled(self.server))
        theirs.stop()
        await running

    async def _seen_waiting(self) -> None:
        url = f"https://127.0.0.1:{self._port}/metrics"
        async with asyncio.timeout(HANG_S), aiohttp.ClientSession() as session:
            while True:
                async with session.get(url, ssl=False) as answer:
                    if WAITS.search(await answer.text()):
                        return
                await asyncio.sleep(POLL_S)


@pytest.fixture
async def beside(tmp_path: Path) -> Any:
    account = User(ACCOUNT, ("system:serviceaccounts", "system:authenticated"))
    server = ApiServer(users={"onlooker": account}, kubelet=True)
    await server.start(token="administrator")
    namespace, service_account = documents(DEPLOY / "base/namespace.yaml")
    for manifest in (namespace, service_account, *documents(DEPLOY / "overlays/shadow/role.yaml")):
        server.create("", manifest)
    for number in range(3):
        server.create("nodes", a_node(f"node-{number}"))
    try:
        yield Beside(server, tmp_path)
    finally:
        await server.stop()


def theirs(name: str, cpu: str = "100m") -> Json:
    return a_pod(name, cpu, schedulerName=THEIRS)


async def test_the_report_goes_to_standard_output_if_no_file_is_named(
    beside: Beside, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    plan = run.plan_of(beside.options())
    running = asyncio.ensure_future(schedule(plan))
    await until(lambda: "synced" in caplog.messages)
    assert plan.shadow is not None
    await beside.their_decisions(theirs("web"))
    await until(lambda: sum(plan.shadow.tally.decisions.values()) >= 1)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await running == 0
    assert f"{THEIRS}: 1 placed, 100.00 % agree" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--record=f"], "--shadow and --record exclude each other"),
        (["--explain-hint"], "--shadow and --explain-hint exclude each other"),
        (["--bind-concurrency=3"], "--shadow and --bind-concurrency exclude each other"),
        (["--scheduler-name=x"], "--shadow and --scheduler-name exclude each other"),
        (["--leader-elect-resource-name=x"], "--shadow takes no part in leader election"),
        (["--leader-elect"], "--shadow takes no part in leader election"),
    ],
)
def test_what_makes_no_sense_beside_it_is_refused(words: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        flags.parse([f"--shadow={THEIRS}", *words])


def test_a_report_needs_a_shadow_and_a_shadow_needs_names() -> None:
    with pytest.raises(UsageError, match="--shadow-report needs --shadow"):
        flags.parse(["--shadow-report=f"])
    with pytest.raises(UsageError, match="must name schedulers"):
        flags.parse(["--shadow=a,,b"])
    assert flags.parse([f"--shadow={THEIRS}", "--leader-elect=false"]).shadow == (THEIRS,)
