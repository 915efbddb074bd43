"""Pod groups from outside: asched as a process on the embedded API server, and on a real one, where
kube-scheduler must tell the same histories in the same words.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from asched_lab.apiserver.context import Options
from asched_lab.apiserver.resources import POD_GROUPS
from asched_lab.apiserver.server import ApiServer
from tests.e2e.control_plane import SERVERS, Plane, a_plane, refusal
from tests.e2e.group_plane import (
    GATES,
    GROUP_VERSION,
    Json,
    condition_of,
)
from tests.e2e.group_plane import (
    theirs as kube_scheduler,
)
from tests.e2e.inside import a_node
from tests.e2e.outside import a_process
from tests.unit.cli.programs import asched
from tests.unit.host.processes import free_port

ZONE: Final = "topology.kubernetes.io/zone"
PATIENCE_S: Final = 90.0
POLL_S: Final = 0.1
#: How long histories are left alone before they are compared: a few rounds of backoff where there
#: are two schedulers (s).
LEFT_ALONE_S: Final = {"embedded": 0.5, "real": 6.0}
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

        port = free_port()
        flags = (
            f"--kubeconfig={kubeconfig}",
            "--leader-elect=false",
            f"--secure-port={port}",
            "--authorization-always-allow-paths=/debug/*",
            "--scheduler-name=asched",
            f"--feature-gates={GATES}",
        )
        async with a_process(tmp_path, *flags) as process:
            await until(lambda: bool(told("first")) and bool(told("second")))
            await until(lambda: bound("first") + bound("second") == 3)
            assert {bound("first"), bound("second")} == {0, 3}
            waiting = "first" if bound("second") else "second"
            assert told(waiting)["reason"] == "Unschedulable"
            where = (f"--server=https://127.0.0.1:{port}", "--insecure-skip-tls-verify")
            _, said, _ = await asched("explain", f"default/{waiting}-0", *where)
            assert "its gang still needs room for 3 pods at once: 1 of them finds a node" in said
            assert "1 node   NodeResourcesFit: Insufficient cpu" in said
            server.create("nodes", a_node("node-1", cpu="4"))
            await until(lambda: bound(waiting) == 3)
            await until(lambda: told(waiting).get("reason") == "Scheduled")
            assert "Traceback" not in process.words
    finally:
        await server.stop()


def _is_of(pod: Json, group: str) -> bool:
    name: str = pod["spec"]["schedulingGroup"]["podGroupName"]
    return name == group


#: name -> (nodes as (name, cpu, zone), groups as (name, minCount, pods, by zone), zones of the pods
#: that are placed)
STORIES: Final[dict[str, tuple[Any, Any, str]]] = {
    "one gang fits": ([("n1", 4, "a")], [("crew", 3, 3, False)], "aaa"),
    "one pod too many": ([("n1", 2, "a")], [("crew", 3, 3, False)], ""),
    "more than needed": ([("n1", 2, "a")], [("crew", 2, 3, False)], "aa"),
    "no zone is large enough": (
        [("n1", 2, "a"), ("n2", 2, "b"), ("n3", 9, "")],
        [("crew", 3, 3, True)],
        "",
    ),
    "one zone is": (
        [("n1", 2, "a"), ("n2", 2, "b"), ("n3", 2, "b")],
        [("crew", 3, 3, True)],
        "bbb",
    ),
    "no node has the label": ([("n1", 4, "")], [("crew", 2, 2, True)], ""),
}


async def told(kind: str, plane: Plane, scheduler: str, history: str) -> Json:
    """Live through a history; what became of pods and groups, whichever pod it was."""
    nodes, groups, _ = STORIES[history]
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
    await asyncio.sleep(LEFT_ALONE_S[kind])
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


@pytest.mark.parametrize("kind", SERVERS)
async def test_both_schedulers_tell_the_same_stories(kind: str, tmp_path: Path) -> None:
    theirs, ours = {}, {}
    async with a_plane(kind, gates=GATES, versions=GROUP_VERSION) as plane:
        if kind == "real":
            async with kube_scheduler(tmp_path, plane):
                for history in STORIES:
                    theirs[history] = await told(kind, plane, "theirs", history)
        flags = (
            f"--kubeconfig={plane.kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
            "--scheduler-name=ours",
            f"--feature-gates={GATES}",
        )
        async with a_process(tmp_path, *flags) as process:
            for history in STORIES:
                ours[history] = await told(kind, plane, "ours", history)
            assert "Traceback" not in process.words, process.words[-3000:]

    for history, (_, groups, zones) in STORIES.items():
        found = ours[history]
        assert "".join(found["zones"]) == zones, history
        reasons = {name: condition["reason"] for name, condition in found["groups"].items()}
        assert reasons == {group[0]: "Scheduled" if zones else "Unschedulable" for group in groups}
        assert found == theirs.get(history, found), history
    assert WAITS in ours["one pod too many"]["said"]
