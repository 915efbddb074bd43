"""The server as a whole: ways in, ways to load it, and what it hands out."""

import asyncio
import socket
import ssl

import pytest
import uvloop
import yaml

from asched_lab.apiserver.context import Options
from asched_lab.apiserver.resources import POD_GROUPS as POD_GROUPS_SERVED
from asched_lab.apiserver.server import ApiServer
from tests.lab.apiserver.client import MERGE, PODS, STRATEGIC, Client, a_binding, a_node, a_pod


async def test_tls_and_token() -> None:
    server = ApiServer()
    await server.start(tls=True, token="secret")
    try:
        config = yaml.safe_load(server.kubeconfig())
        assert config["clusters"][0]["cluster"]["server"] == server.url
        assert config["users"][0]["user"] == {"token": "secret"}
        trust = ssl.create_default_context(cadata=server.authority.decode())
        async with Client(server.url, "secret", trust) as client:
            assert (await client.get("/api/v1/nodes"))[0] == 200
        async with Client(server.url, "wrong", trust) as client:
            assert (await client.get("/api/v1/nodes"))[0] == 401
        async with Client(server.url, "", trust) as client:
            status, answer = await client.get("/api/v1/nodes")
            assert status == 403
            assert 'User "system:anonymous" cannot list resource "nodes"' in answer["message"]
    finally:
        await server.stop()


async def test_binding_the_whole_queue(server: ApiServer, client: Client) -> None:
    server.create("nodes", a_node("n1", **{"topology.kubernetes.io/zone": "za"}))
    for index in range(20):
        server.create("pods", a_pod(f"p{index}"))
    for index in range(20):
        status, _ = await client.post(f"{PODS}/p{index}/binding", a_binding(f"p{index}", "n1"))
        assert status == 201
    for pod in server.list("pods"):
        assert pod["spec"]["nodeName"] == "n1"
        assert pod["metadata"]["labels"] == {"topology.kubernetes.io/zone": "za"}
        assert pod["status"]["conditions"][0]["status"] == "True"


POD_GROUPS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"


CUSTOM_GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"


@pytest.mark.parametrize(
    ("spec", "kept"),
    [
        ({}, {"priority": 0}),
        ({"priorityClassName": "mid"}, {"priority": 50, "priorityClassName": "mid"}),
        ({"priority": 0}, {"priority": 0}),
        (
            {"priority": 3},
            (
                "priority set in the pod group (3) must match the priority computed (0) based on"
                " the priority class set in the spec"
            ),
        ),
        (
            {"priorityClassName": "mid", "priority": 7},
            (
                "priority set in the pod group (7) must match the priority computed (50) based on"
                " the priority class set in the spec"
            ),
        ),
        ({"priorityClassName": "none"}, "no PriorityClass with name none was found"),
    ],
)
async def test_a_pod_group_has_the_priority_of_its_class(spec, kept) -> None:
    """As kube-apiserver 1.36.2 with WorkloadAwarePreemption=true answers."""
    server = ApiServer(options=Options(alpha=POD_GROUPS_SERVED))
    await server.start()
    try:
        server.create("priorityclasses", {"metadata": {"name": "mid"}, "value": 50})
        group = {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"basic": {}}, **spec}}
        async with Client(server.url) as client:
            status, answer = await client.post(POD_GROUPS, group)
        if isinstance(kept, str):
            assert status == 403
            assert answer["message"] == f'podgroups.scheduling.k8s.io "g" is forbidden: {kept}'
            return
        del answer["spec"]["schedulingPolicy"]
        assert answer["spec"] == {**kept, "disruptionMode": "Pod"}
    finally:
        await server.stop()


@pytest.mark.parametrize(("minor", "has_rules"), [("1.36", False), ("1.37", True), ("1.38", True)])
async def test_the_minor_version_decides_what_is_served(minor: str, has_rules: bool) -> None:
    group_version = "scheduling.k8s.io/v1beta1"
    server = ApiServer(options=Options(minor=minor, alpha=frozenset({group_version})))
    await server.start()
    rule = {"metadata": {"name": "r"}, "spec": {"taint": {"key": "k", "effect": "NoSchedule"}}}
    rules = "/apis/resource.k8s.io/v1/devicetaintrules"
    try:
        async with Client(server.url) as client:
            _, version = await client.get("/version")
            _, document = await client.get("/apis/resource.k8s.io/v1")
            made, _ = await client.post(rules, rule)
            path = f"/apis/{group_version}/namespaces/default/podgroups"
            _, group = await client.post(path, {"metadata": {"name": "g"}, "spec": {}})
            stable, _ = await client.get("/apis/scheduling.k8s.io/v1/podgroups")
    finally:
        await server.stop()
    assert version["gitVersion"].startswith(f"v{minor}.")
    assert f"{version['major']}.{version['minor']}" == minor
    listed = {resource["name"] for resource in document["resources"]}
    assert ("devicetaintrules" in listed) is has_rules
    assert made == (201 if has_rules else 404)
    assert group["spec"] == {"priority": 0}
    assert stable == (200 if minor == "1.38" else 404)


async def test_custom_kinds_are_kept_as_sent_beside_others_of_their_plural() -> None:
    server = ApiServer(options=Options(alpha=POD_GROUPS_SERVED))
    await server.start()
    group = {"metadata": {"name": "crew"}, "spec": {"minMember": 3, "minResources": {"cpu": "3"}}}
    try:
        async with Client(server.url) as client:
            listed, document = await client.get("/apis/scheduling.x-k8s.io/v1alpha1")
            made, stored = await client.post(CUSTOM_GROUPS, group)
            assert (listed, made) == (200, 201)
            assert document["resources"][0]["name"] == "podgroups"
            assert (await client.get(f"{POD_GROUPS}/crew"))[0] == 404
            path, patch = f"{CUSTOM_GROUPS}/crew/status", {"status": {"phase": "Pending"}}
            refused, _ = await client.ask("PATCH", path, patch, media=STRATEGIC)
            status, patched = await client.ask("PATCH", path, patch, media=MERGE)
            assert (refused, status) == (415, 200)
            assert patched["status"] == {"phase": "Pending"}
            assert patched["spec"] == stored["spec"] == group["spec"]
            server.ctx.alpha.clear()
            assert (await client.get(CUSTOM_GROUPS))[0] == 404
    finally:
        await server.stop()


@pytest.mark.parametrize("rounds", range(6))
@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_whoever_comes_while_it_stops_is_not_left_hanging(loop, rounds: int) -> None:
    async def stopped() -> bytes:
        server = ApiServer()
        await server.start()
        port = int(server.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as late:
            late.setblocking(False)
            for _ in range(rounds):
                await asyncio.sleep(0)
            await server.stop()
            await asyncio.sleep(0)
            try:
                return late.recv(1)
            except ConnectionResetError:
                return b""

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(stopped()) == b""


async def test_a_server_that_starts_again_has_the_same_objects() -> None:
    server = ApiServer()
    await server.start()
    try:
        server.create("nodes", a_node("n1"))
        async with Client(server.url) as client:
            _, before = await client.get("/api/v1/nodes")
        await server.stop()
        await server.start()
        async with Client(server.url) as client:
            _, after = await client.get("/api/v1/nodes")
            old = {"resourceVersion": str(int(after["metadata"]["resourceVersion"]) - 1)}
            (event,) = await client.watch("/api/v1/nodes", **old)
    finally:
        await server.stop()
    assert after["items"] == before["items"]
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
