"""Pod groups from outside: asched as a process against the embedded API server, and against a real
one beside kube-scheduler, which must tell the same histories in the same words.
"""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from asched_lab.apiserver.context import Options
from asched_lab.apiserver.resources import POD_GROUPS
from asched_lab.apiserver.server import ApiServer
from tests.bench.real import assets
from tests.e2e.control_plane import ControlPlane, refusal
from tests.e2e.inside import a_node
from tests.e2e.outside import a_process

Json = dict[str, Any]

GATES: Final = "GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true"
GROUP_VERSION: Final = "scheduling.k8s.io/v1alpha2"
ZONE: Final = "topology.kubernetes.io/zone"
PROOF: Final = re.compile(": (there is no place|no place was found) for it: .*")
PATIENCE_S: Final = 90.0
POLL_S: Final = 0.1
#: How long histories are left alone before they are compared: a few rounds of backoff.
LEFT_ALONE_S: Final = 6.0
WAITS: Final = (
    "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, one or more"
    " plugins asked to wait and no plugin rejected pod"
)


def a_group(name: str, min_count: int, *, by_zone: bool = False) -> Json:
    spec: Json = {"schedulingPolicy": {"gang": {"minCount": min_count}}}
    if by_zone:
        spec["schedulingConstraints"] = {"topology": [{"key": ZONE}]}
    return {
        "apiVersion": GROUP_VERSION,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def a_member(name: str, group: str, scheduler: str) -> Json:
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": "1"}}}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedulerName": scheduler,
            "schedulingGroup": {"podGroupName": group},
            "containers": [container],
        },
    }


def condition_of(group: Json | None) -> Json:
    """What the PodGroup was told, without times, and without the proof that only asched adds."""
    for condition in (group or {}).get("status", {}).get("conditions") or ():
        if condition["type"] == "PodGroupScheduled":
            told = {k: v for k, v in condition.items() if k != "lastTransitionTime"}
            told["message"] = PROOF.sub("", told["message"])
            return told
    return {}


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - another process does it when it likes
            await asyncio.sleep(POLL_S)


async def test_gangs_are_bound_whole_or_not_at_all_and_their_groups_are_told(
    tmp_path: Path,
) -> None:
    server = ApiServer(options=Options(alpha=POD_GROUPS))
    await server.start()
    try:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(server.kubeconfig(), encoding="utf-8")
        server.create("nodes", a_node("node-0", cpu="4"))
        for group in ("first", "second"):
            server.create("podgroups", a_group(group, 3))
        for number in range(3):
            for group in ("first", "second"):
                server.create("pods", a_member(f"{group}-{number}", group, "asched"))

        def bound(group: str) -> int:
            pods = server.list("pods")
            return sum(bool(p["spec"].get("nodeName")) for p in pods if _is_of(p, group))

        def told(group: str) -> Json:
            return condition_of(server.get("podgroups", "default", group))

        flags = (
            f"--kubeconfig={kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
            "--scheduler-name=asched",
            f"--feature-gates={GATES}",
        )
        async with a_process(tmp_path, *flags) as process:
            await until(lambda: bool(told("first")) and bool(told("second")))
            await until(lambda: bound("first") + bound("second") == 3)
            assert {bound("first"), bound("second")} == {0, 3}
            waiting = "first" if bound("second") else "second"
            assert told(waiting)["reason"] == "Unschedulable"
            server.create("nodes", a_node("node-1", cpu="4"))
            await until(lambda: bound(waiting) == 3)
            await until(lambda: told(waiting).get("reason") == "Scheduled")
            assert "Traceback" not in process.words
    finally:
        await server.stop()


def _is_of(pod: Json, group: str) -> bool:
    name: str = pod["spec"]["schedulingGroup"]["podGroupName"]
    return name == group


# --- beside kube-scheduler -----------------------------------------------------------------------


class PlaneWithGroups(ControlPlane):
    """A real API server with the alpha kinds."""

    gates = GATES

    async def _spawn(self, name: str, *arguments: str) -> Any:
        if name == "kube-apiserver":
            more = (f"--feature-gates={self.gates}", f"--runtime-config={GROUP_VERSION}=true")
            arguments = (*arguments, *more)
        return await super()._spawn(name, *arguments)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane() -> AsyncIterator[PlaneWithGroups]:
    folder = assets()
    if folder is None:
        pytest.skip("KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")
    async with PlaneWithGroups(folder) as made, made.open_client():
        yield made


@asynccontextmanager
async def kube_scheduler(folder: Path, plane: PlaneWithGroups) -> AsyncIterator[None]:
    """Upstream's own, for pods that name `theirs`."""
    binary = (assets() or Path()) / "kube-scheduler"
    if not binary.exists():
        pytest.skip("KUBEBUILDER_ASSETS has no kube-scheduler")
    config = folder / "theirs.yaml"
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": plane.kubeconfig},
        "profiles": [{"schedulerName": "theirs"}],
    }
    config.write_text(json.dumps(document), encoding="utf-8")
    clean = {k: v for k, v in os.environ.items() if not k.startswith("KUBE")}
    child = await asyncio.create_subprocess_exec(
        str(binary),
        f"--config={config}",
        f"--feature-gates={plane.gates}",
        "--secure-port=0",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env=clean,
    )
    try:
        yield
    finally:
        child.terminate()
        await child.wait()


#: name -> (nodes as (name, cpu, zone), groups as (name, minCount, pods, by zone))
STORIES: Final[dict[str, tuple[Any, Any]]] = {
    "one gang fits": ([("n1", 4, "a")], [("crew", 3, 3, False)]),
    "one pod too many": ([("n1", 2, "a")], [("crew", 3, 3, False)]),
    "more than needed": ([("n1", 2, "a")], [("crew", 2, 3, False)]),
    "no zone is large enough": (
        [("n1", 2, "a"), ("n2", 2, "b"), ("n3", 9, "")],
        [("crew", 3, 3, True)],
    ),
    "one zone is": ([("n1", 2, "a"), ("n2", 2, "b"), ("n3", 2, "b")], [("crew", 3, 3, True)]),
    "no node has the label": ([("n1", 4, "")], [("crew", 2, 2, True)]),
}


async def told(plane: PlaneWithGroups, scheduler: str, history: str) -> Json:
    """Live through a history; what became of pods and groups, whichever pod it was."""
    nodes, groups = STORIES[history]
    made = []
    for name, cpu, zone in nodes:
        node = a_node(name, cpu=str(cpu))
        if zone:
            node["metadata"]["labels"][ZONE] = zone
        made.append(node)
    await plane.create("/api/v1/nodes", made)
    path = f"/apis/{GROUP_VERSION}/namespaces/{{namespace}}/podgroups"
    # Nobody takes the finalizer off a PodGroup here: each history has its own.
    mark = f"{scheduler}-{list(STORIES).index(history)}-"
    await plane.create(path, [a_group(mark + g[0], g[1], by_zone=g[3]) for g in groups])
    for name, _, size, _ in groups:
        pods = [a_member(f"{name}-{n}", mark + name, scheduler) for n in range(size)]
        await plane.create_pods(pods)
    await plane.until(lambda pods: all(pod["spec"].get("nodeName") or refusal(pod) for pod in pods))
    await asyncio.sleep(LEFT_ALONE_S)
    pods = await plane.every("/api/v1/pods")
    listed = await plane.every(f"/apis/{GROUP_VERSION}/podgroups")
    await plane.clear()
    zone_of = {name: zone for name, _, zone in nodes}
    return {
        "zones": sorted(zone_of[p["spec"]["nodeName"]] for p in pods if p["spec"].get("nodeName")),
        "said": sorted(refusal(pod) for pod in pods if refusal(pod)),
        "groups": {
            name.removeprefix(mark): condition_of(group)
            for group in listed
            if (name := group["metadata"]["name"]).startswith(mark)
        },
    }


@pytest.mark.real
@pytest.mark.asyncio(loop_scope="module")
async def test_both_schedulers_tell_the_same_stories(
    plane: PlaneWithGroups, tmp_path: Path
) -> None:
    flags = (
        f"--kubeconfig={plane.kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        "--scheduler-name=ours",
        f"--feature-gates={GATES}",
    )
    theirs, ours = {}, {}
    async with kube_scheduler(tmp_path, plane):
        for history in STORIES:
            theirs[history] = await told(plane, "theirs", history)
    async with a_process(tmp_path, *flags) as process:
        for history in STORIES:
            ours[history] = await told(plane, "ours", history)
        assert "Traceback" not in process.words, process.words[-3000:]

    for history in STORIES:
        assert ours[history] == theirs[history], history
    assert WAITS in theirs["one pod too many"]["said"]
