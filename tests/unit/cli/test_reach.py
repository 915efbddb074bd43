"""`asched explain POD` with nothing but a kubeconfig: the way to the replica that leads."""

import json
from pathlib import Path
from typing import Any

import pytest

from asched.cli.reach import TOKEN_HEADER
from tests.unit.cli.programs import (
    LEASE,
    PAGE,
    POD,
    TOKEN,
    TOLD,
    World,
    a_kubeconfig,
    a_leader,
    asched,
)
from tests.unit.kube.scripted import scripted, status

PODS = "/api/v1/namespaces/asched-system/pods"


async def test_the_leader_is_found_and_asked_with_a_token_for_the_page_only(tmp_path: Path) -> None:
    async with scripted(World().answer) as server:
        kubeconfig = a_kubeconfig(tmp_path, server.url)
        ended, out, err = await asched("explain", "web", kubeconfig, "-o", "json")

    assert (ended, err) == (0, "")
    assert json.loads(out) == TOLD
    assert [seen.path for seen in server.seen] == [LEASE, POD, TOKEN, PAGE]
    assert {seen.headers["authorization"] for seen in server.seen} == {"Bearer alice"}
    assert [seen.headers.get(TOKEN_HEADER, "") for seen in server.seen] == [
        *("", "", ""),
        "short-lived",
    ]
    assert server.seen[2].json["spec"] == {"expirationSeconds": 600}


@pytest.mark.parametrize(
    ("words", "namespace"),
    [
        (("web",), "team"),
        (("web", "-n", "other"), "other"),
        (("other/web",), "other"),
        (("web", "--context=bare"), "default"),
    ],
)
async def test_the_namespace_is_the_one_kubectl_would_take(
    words: tuple[str, ...], namespace: str, tmp_path: Path
) -> None:
    world = World()
    page = PAGE.replace("/team/", f"/{namespace}/")
    world.answers[page] = (200, TOLD)
    async with scripted(world.answer) as server:
        ended, _, err = await asched("explain", *words, a_kubeconfig(tmp_path, server.url))

    assert (ended, err, server.seen[-1].path) == (0, "", page)


async def test_the_node_to_compare_with_goes_along(tmp_path: Path) -> None:
    async with scripted(World().answer) as server:
        kubeconfig = a_kubeconfig(tmp_path, server.url)
        ended, _, err = await asched("explain", "web", kubeconfig, "--against=n 7")

    assert (ended, err) == (0, "")
    assert server.seen[-1].query == {"against": "n 7"}


async def test_a_scheduler_without_a_lease_is_found_by_its_label(tmp_path: Path) -> None:
    world = World()
    del world.answers[LEASE]
    pending = {**a_leader("asched-7f-y"), "status": {"phase": "Pending"}}
    world.answers[PODS] = (200, {"items": [pending, a_leader()]})
    async with scripted(world.answer) as server:
        kubeconfig = a_kubeconfig(tmp_path, server.url)
        assert (await asched("explain", "web", kubeconfig))[0] == 0

        world.answers[PODS] = (200, {"items": [a_leader("asched-7f-y"), a_leader()]})
        ended, _, err = await asched("explain", "web", kubeconfig)
    assert ended == 1
    assert "there is no lease asched-system/asched, and 2 running pods" in err


FORBIDDEN = (403, status(403, "Forbidden", 'pods "x" is forbidden: User "alice" cannot ...'))
ANONYMOUS = (403, status(403, "Forbidden", 'forbidden: User "x" cannot get path "/debug"'))
CLOSED = (503, status(503, "ServiceUnavailable", "error trying to reach service: timeout"))


@pytest.mark.parametrize(
    ("path", "answer", "text"),
    [
        (LEASE, FORBIDDEN, "you may not read lease asched-system/asched"),
        (LEASE, (200, {"spec": []}), "makes no sense"),
        (LEASE, (200, {}), "makes no sense"),
        (POD, (200, {"metadata": {"name": "x"}, "spec": {}}), "makes no sense"),
        (TOKEN, (201, {"status": None}), "makes no sense"),
        (LEASE, (200, {"spec": {"holderIdentity": "../secrets/s_1"}}), "which is not a pod of"),
        (LEASE, (200, {"spec": {}}), "lease asched-system/asched has no holder at the moment"),
        (LEASE, (200, {"spec": {"holderIdentity": "node-a_1"}}), "is held by 'node-a_1', which is"),
        (POD, FORBIDDEN, "you may not read pod asched-7f-x"),
        (TOKEN, FORBIDDEN, "you may not create a token"),
        (
            TOKEN,
            (404, status(404, "NotFound", "not found")),
            "install deploy/components/explain",
        ),
        (PAGE, FORBIDDEN, "you may not reach pod asched-7f-x through the API server"),
        (PAGE, ANONYMOUS, "denies access to the explanation"),
        (PAGE, CLOSED, "cannot reach pod asched-7f-x (error trying to reach service: timeout)"),
        (
            PAGE,
            (404, b"404 page not found\n"),
            "does not know pod team/web; check",
        ),
        (PAGE, (200, b"<html>"), "the server is not asched"),
    ],
)
async def test_what_is_in_the_way_is_told_in_one_line(
    path: str, answer: tuple[int, Any], text: str, tmp_path: Path
) -> None:
    world = World()
    world.answers[path] = answer
    async with scripted(world.answer) as server:
        ended, out, err = await asched("explain", "web", a_kubeconfig(tmp_path, server.url))

    assert (ended, out) == (1, "")
    assert text in err
    assert len(err.splitlines()) == 1


async def test_no_cluster_is_told_in_one_line(tmp_path: Path) -> None:
    for words in (
        (a_kubeconfig(tmp_path, "http://127.0.0.1:1"),),
        (f"--kubeconfig={tmp_path / 'none'}",),
        (a_kubeconfig(tmp_path, "http://127.0.0.1:1"), "--lease=asched"),
    ):
        ended, _, err = await asched("explain", "web", *words)
        assert (ended, len(err.splitlines())) == (1, 1)


async def test_a_scheduler_outside_the_cluster_is_found_by_its_lease(tmp_path: Path) -> None:
    world = World()
    del world.answers[LEASE]
    outside = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/asched"
    world.answers[outside] = (200, {"spec": {"holderIdentity": "laptop_0b1c"}})
    async with scripted(world.answer) as server:
        ended, _, err = await asched("explain", "web", a_kubeconfig(tmp_path, server.url))
    assert ended == 1
    assert "kube-system/asched is held by 'laptop_0b1c'" in err
    assert "--server https://laptop:10259" in err


@pytest.mark.parametrize(
    ("words", "pods", "chosen"),
    [
        ("deploy/web", {"a": "n1", "b": "", "c": ""}, "b"),
        ("deployment/team/web", {"a": "n1", "b": "n2"}, "b"),
        ("deploy/web", {}, None),
        ("deploy/other", {}, None),
    ],
)
async def test_a_pod_of_a_workload_is_explained(
    words: str, pods: dict[str, str], chosen: str | None, tmp_path: Path
) -> None:
    """A waiting pod, the oldest; else the newest."""
    world, selector = World(), {"matchLabels": {"app": "web"}}
    deployment = "/apis/apps/v1/namespaces/team/deployments/web"
    world.answers[deployment] = (200, {"spec": {"selector": selector}})
    items = [
        {"metadata": {"name": name, "creationTimestamp": name}, "spec": {"nodeName": node}}
        for name, node in pods.items()
    ]
    world.answers["/api/v1/namespaces/team/pods"] = (200, {"items": items})
    page = PAGE.removesuffix("web")
    world.answers |= {f"{page}{name}": (200, {**TOLD, "pod": f"team/{name}"}) for name in pods}
    async with scripted(world.answer) as server:
        ended, out, err = await asched("explain", words, a_kubeconfig(tmp_path, server.url))
    if chosen is None:
        assert ended == 1
        assert "has no pods" in err or "does not exist" in err
    else:
        assert out.startswith(f"pod team/{chosen}:"), err
