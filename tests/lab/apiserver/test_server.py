"""The server as a whole: ways in, ways to load it, and what it hands out."""

import asyncio
import socket
import ssl

import pytest
import uvloop
import yaml

from asched_lab.apiserver.call import User
from asched_lab.apiserver.context import Options
from asched_lab.apiserver.resources import POD_GROUPS as POD_GROUPS_SERVED
from asched_lab.apiserver.server import ApiServer
from asched_lab.apiserver.statuses import ApiError
from tests.lab.apiserver.client import MERGE, PODS, STRATEGIC, Client, a_binding, a_node, a_pod

RULES = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"


async def test_objects_made_in_process_are_like_posted_ones(
    server: ApiServer, client: Client
) -> None:
    server.create("pods", a_pod("made"))
    await client.post(PODS, a_pod("posted"))
    _, made = await client.get(f"{PODS}/made")
    _, posted = await client.get(f"{PODS}/posted")
    assert made["spec"] == posted["spec"]
    assert made["status"] == posted["status"]
    assert [pod["metadata"]["name"] for pod in server.list("pods", "default")] == ["made", "posted"]
    assert server.get("pods", "default", "gone") is None


async def test_refusals_in_process_are_errors(server: ApiServer) -> None:
    with pytest.raises(ApiError, match=r"spec\.containers: Required value"):
        server.create("pods", {"metadata": {"name": "a"}})
    with pytest.raises(KeyError, match="no resource is called 'widgets'"):
        server.create("widgets", {})


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


async def test_the_rules_of_one_user_in_one_namespace() -> None:
    known = User("mia", ("system:authenticated",))
    server = ApiServer(users={"mia": known})
    await server.start()
    try:
        rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
        role = {"kind": "Role", "apiGroup": "rbac.authorization.k8s.io", "name": "r"}
        subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "mia"}
        server.create("roles", {"metadata": {"name": "r"}, "rules": [rule]})
        server.create(
            "rolebindings", {"metadata": {"name": "b"}, "subjects": [subject], "roleRef": role}
        )
        async with Client(server.url, "mia") as client:
            found = []
            for namespace in ("default", "kube-system"):
                status, review = await client.post(RULES, {"spec": {"namespace": namespace}})
                assert status == 201
                found.append(rule in review["status"]["resourceRules"])
                paths = [one["nonResourceURLs"] for one in review["status"]["nonResourceRules"]]
                assert any("/healthz" in urls for urls in paths)
            assert found == [True, False]
    finally:
        await server.stop()


async def test_health_in_full(client: Client) -> None:
    assert await client.get("/readyz", verbose="") == (
        200,
        "[+]ping ok\n[+]log ok\n[+]etcd ok\nreadyz check passed\n",
    )
    assert await client.get("/livez") == (200, "ok")
    assert (await client.get("/livez/nothing"))[0] == 404


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


async def test_pages_show_one_version(server: ApiServer, client: Client) -> None:
    for index in range(5):
        server.create("nodes", a_node(f"n{index}"))
    _, first = await client.get("/api/v1/nodes", limit="2")
    server.create("nodes", a_node("n00"))
    names = [node["metadata"]["name"] for node in first["items"]]
    page = first
    while "continue" in page["metadata"]:
        token = page["metadata"]["continue"]
        _, page = await client.get("/api/v1/nodes", limit="2", **{"continue": token})
        names += [node["metadata"]["name"] for node in page["items"]]
    assert names == [f"n{index}" for index in range(5)]


async def test_a_broken_handler_is_a_500_with_words(
    server: ApiServer, client: Client, monkeypatch
) -> None:
    monkeypatch.setattr(server.store, "get", None)
    status, answer = await client.get(f"{PODS}/a")
    assert status == 500
    assert answer["kind"] == "Status"


async def test_kubectl_only_protobuf_is_refused_in_words(client: Client) -> None:
    body = b"k8s\x00\x0a\x0c\x0a\x02v1\x12\x06Widget"
    headers = {"Content-Type": "application/vnd.kubernetes.protobuf"}
    async with client.session.post(client.url + PODS, data=body, headers=headers) as answer:
        assert answer.status == 415
        assert "send JSON or YAML" in (await answer.json())["message"]


@pytest.mark.parametrize(
    "body",
    [
        {"metadata": "x", "target": {"name": "n1"}},
        {"metadata": {"name": "web"}, "target": "n1"},
        {"metadata": {"name": ["web"]}, "target": {"name": "n1"}},
    ],
)
async def test_a_binding_of_wrong_types_is_a_400(server: ApiServer, client: Client, body) -> None:
    server.create("pods", a_pod("web"))
    status, answer = await client.post(f"{PODS}/web/binding", body)
    assert (status, answer["reason"]) == (400, "BadRequest")


POD_GROUPS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"


async def test_alpha_kinds_are_there_only_where_they_are_asked_for() -> None:
    group = {"metadata": {"name": "crew"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}}
    for alpha in (frozenset(), POD_GROUPS_SERVED):
        server = ApiServer(options=Options(alpha=alpha))
        await server.start()
        try:
            async with Client(server.url) as client:
                listed, _ = await client.get("/apis/scheduling.k8s.io/v1alpha2")
                made, stored = await client.post(POD_GROUPS, group)
                assert (listed, made) == ((200, 201) if alpha else (404, 404))
                if alpha:
                    condition = {"type": "PodGroupScheduled", "status": "True"}
                    patch = {"status": {"conditions": [condition]}}
                    path = f"{POD_GROUPS}/crew/status"
                    status, patched = await client.ask("PATCH", path, patch, media=STRATEGIC)
                    assert status == 200, patched
                    assert patched["status"]["conditions"] == [condition]
                    assert stored["spec"] == patched["spec"]
        finally:
            await server.stop()


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
