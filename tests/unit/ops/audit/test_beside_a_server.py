"""An audit over sockets: against the embedded server, and a real one where its binaries are."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from asched.core.cluster.facts import Gone, Seen
from asched.core.model.kinds import NODE, POD
from asched.host.assemble import Parts, build_machine, build_runners
from asched.host.configuration.file import load_config
from asched.host.loops import Scheduler
from asched.kube.clock import monotonic_s
from asched.kube.session import ConnectionOptions, connect
from asched.ops.audit import objects, places
from asched.ops.audit.auditor import Auditor
from asched.ops.audit.findings import Difference
from tests.builders import a_node, a_pod
from tests.support import HANG_S
from tests.unit.host.elected import CONFIGURATION, until
from tests.unit.kube.real_servers import running

PODS = 700  # more than a page


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.real)])
async def scheduler(request: Any, tmp_path: Path) -> AsyncIterator[Scheduler]:
    """One that knows a cluster with so many pods that nobody places."""
    async with AsyncExitStack() as stack:
        if request.param == "embedded":
            path = (await stack.enter_async_context(running(tmp_path))).path
        else:
            path = request.getfixturevalue("real_kubeconfig")
        yield await stack.enter_async_context(a_scheduler(str(path)))


@asynccontextmanager
async def a_scheduler(kubeconfig: str) -> AsyncIterator[Scheduler]:
    configuration, parts = load_config(text=CONFIGURATION).configuration, Parts.fresh()
    runners = build_runners(configuration, parts)
    machine = build_machine(configuration, parts, runners, monotonic_s=monotonic_s)
    made = Scheduler(await connect(ConnectionOptions(kubeconfig=kubeconfig)), machine)
    post = made.session.general.request
    space = {"metadata": {"generateName": "t-"}}
    reply = await post("POST", "/api/v1/namespaces", json.dumps(space).encode())
    namespace = json.loads(reply.body)["metadata"]["name"]
    for number in range(PODS):
        pod = {
            "metadata": {"name": f"pod-{number}"},
            "spec": {"schedulerName": "nobody", "containers": [{"name": "c", "image": "x"}]},
        }
        path = f"/api/v1/namespaces/{namespace}/pods"
        assert (await post("POST", path, json.dumps(pod).encode())).status == 201
    running = asyncio.ensure_future(made.run())
    cluster = machine.context.cluster
    await until(lambda: made.is_synced and len(cluster.pods_seen) >= PODS)
    try:
        yield made
    finally:
        made.stop()
        await asyncio.wait_for(running, HANG_S)


async def audited(scheduler: Scheduler) -> list[Difference]:
    auditor = Auditor(scheduler, period_s=0.0)
    async with asyncio.timeout(HANG_S):
        await auditor.now()
    ended = auditor.report.ended
    assert not any(one.error or one.undecided for one in ended.values()), ended
    assert ended["pods"].compared >= PODS
    return [difference for _, difference in auditor.report.differences]


async def test_what_is_planted_is_found_and_healed(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (objects, places):  # what is different is looked at again so much later
        monkeypatch.setattr(module, "SETTLE_S", 0.5)
    cluster = scheduler.machine.context.cluster
    assert await audited(scheduler) == []
    keys = sorted(key for key in cluster.pods_seen if "/pod-" in key)
    missed, changed, sound = (cluster.pods_seen[key] for key in (keys[0], keys[-1], keys[5]))

    cluster.apply(Gone(POD, missed))
    cluster.apply(Seen(POD, _earlier(changed)))
    cluster.apply(Seen(POD, a_pod("phantom").build()))
    cluster.apply(Seen(NODE, a_node("phantom").build()))
    found = await audited(scheduler)

    told = {(one.resource, one.key, one.what.value) for one in found}
    assert told == {
        ("pods", missed.key, "missed addition"),
        ("pods", changed.key, "missed change"),
        ("pods", "default/phantom", "missed deletion"),
        ("nodes", "phantom", "missed deletion"),
    }
    assert cluster.pods_seen[missed.key] == missed
    assert cluster.pods_seen[changed.key] == changed
    assert cluster.pods_seen[sound.key] is sound
    assert "default/phantom" not in cluster.pods_seen
    assert await audited(scheduler) == []


def _earlier(pod: Any) -> Any:
    version = str(int(pod.metadata.resource_version) - 1)
    labels = {"long": "ago"}
    return replace(pod, metadata=replace(pod.metadata, resource_version=version, labels=labels))
