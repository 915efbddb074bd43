"""`asched extender` as a process: what its port answers."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from asched.host.advising import advise
from asched.kube.session import ConnectionOptions
from asched.serve.extender import CERTIFICATE_NEEDED
from asched.serve.options import CannotServeError, ServingOptions
from asched_lab.apiserver.server import ApiServer
from tests.builders import a_node, a_pod
from tests.support import HANG_S
from tests.unit.host.advisers import a_plan, serving
from tests.unit.kube.conftest import Certificates


async def post(url: str, body: Any, tls: ssl.SSLContext | bool = True) -> tuple[int, Any]:
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, json=body, ssl=tls) as answer,
    ):
        text = await answer.text()
        return answer.status, json.loads(text) if answer.content_type.endswith("json") else text


@asynccontextmanager
async def following(folder: Path, **changes: Any) -> AsyncIterator[tuple[str, ApiServer]]:
    server = ApiServer(kubelet=False)
    await server.start()
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(server.kubeconfig())
    server.create("nodes", a_node("n1").allocatable().json)
    server.create("nodes", a_node("n2").allocatable().taints("a=b:NoSchedule").json)
    connection = ConnectionOptions(kubeconfig=str(kubeconfig))
    try:
        async with serving(a_plan(follows=True, connection=connection, **changes)) as address:
            async with asyncio.timeout(HANG_S), aiohttp.ClientSession() as session:
                status = 0
                while status != 200:
                    async with session.get(f"http://{address}/readyz") as answer:
                        status = answer.status
            yield address, server
    finally:
        await server.stop()


async def test_names_are_judged_by_the_cluster_as_it_is_followed(tmp_path: Path) -> None:
    async with following(tmp_path) as (address, _):
        question = {"Pod": a_pod("web").json, "Nodes": None, "NodeNames": ["n1", "n2"]}
        status, answer = await post(f"http://{address}/any/prefix/filter", question)
        assert (status, answer["NodeNames"]) == (200, ["n1"])
        assert answer["FailedAndUnresolvableNodes"] == {"n2": "node(s) had untolerated taint(s)"}
        _, points = await post(f"http://{address}/prioritize", question)
        assert points == [{"Host": "n1", "Score": 10}, {"Host": "n2", "Score": 0}]
        victims = {"n1": {"Pods": [{"UID": "u"}], "NumPDBViolations": 0}}
        asked = {"Pod": a_pod("web").json, "NodeNameToMetaVictims": victims}
        _, left = await post(f"http://{address}/preempt", asked)
        assert left == {"NodeNameToMetaVictims": victims}


async def test_a_pod_is_bound_by_the_bind_plugins(tmp_path: Path) -> None:
    async with following(tmp_path) as (address, server):
        pod = a_pod("web").json
        del pod["metadata"]["uid"]
        made = server.create("pods", pod)
        uid = made["metadata"]["uid"]
        question = {"PodName": "web", "PodNamespace": "default", "PodUID": uid, "Node": "n1"}
        assert await post(f"http://{address}/bind", question) == (200, {"Error": ""})
        (bound,) = server.list("pods")
        assert bound["spec"]["nodeName"] == "n1"
        status, answer = await post(f"http://{address}/bind", {**question, "Node": "n2"})
        assert status == 200
        assert "already assigned" in answer["Error"]


async def test_strangers_cannot_bind(tmp_path: Path) -> None:
    anywhere = ServingOptions(bind_address="0.0.0.0", secure_port=0)
    async with following(tmp_path, serving=anywhere) as (address, _):
        question = {"PodName": "p", "PodNamespace": "d", "PodUID": "u", "Node": "n1"}
        refused = (200, {"Error": CERTIFICATE_NEEDED})
        assert await post(f"http://{address}/bind", question) == refused


async def test_alone_it_judges_the_whole_nodes_of_the_question() -> None:
    nodes = [a_node("small").allocatable(cpu="1").json, a_node("large").allocatable(cpu="9").json]
    question = {"Pod": a_pod("web").requests(cpu="2").json, "Nodes": {"items": nodes}}
    async with serving(a_plan()) as address:
        status, answer = await post(f"http://{address}/filter", question)
        assert (status, answer["NodeNames"], answer["Nodes"]["items"]) == (200, None, nodes[1:])
        named = {"Pod": a_pod("web").json, "NodeNames": ["large"]}
        status, answer = await post(f"http://{address}/filter", named)
        assert status == 200
        assert "nodeCacheCapable: false" in answer["Error"]
        status, answer = await post(f"http://{address}/preempt", {"Pod": a_pod("web").json})
        assert status == 500
        assert "remove the verb" in answer


@pytest.mark.parametrize(
    ("verb", "body", "status", "why"),
    [
        ("filter", [], 400, "filter: json: cannot unmarshal array into Go value of type"),
        ("filter", {"NodeNames": []}, 400, "filter: the request has no Pod"),
        ("preempt", {"Pod": 1}, 400, "preempt: json: cannot unmarshal number into Go struct field"),
        ("dance", {}, 404, "no such verb; the verbs are filter, prioritize, preempt, bind"),
    ],
)
async def test_what_is_no_question_is_refused(verb: str, body: Any, status: int, why: str) -> None:
    async with serving(a_plan()) as address:
        found, text = await post(f"http://{address}/{verb}", body)
    assert (found, text.startswith(why)) == (status, True), text


async def test_with_a_client_ca_only_its_clients_get_in(tmp_path: Path) -> None:
    made = Certificates(tmp_path)
    own = ServingOptions(
        bind_address="127.0.0.1",
        secure_port=0,
        tls_cert_file=str(made.server_file),
        tls_private_key_file=str(made.server_key),
    )
    plan = a_plan(serving=own, tls=True, client_ca_file=str(made.ca_file))
    known = ssl.create_default_context(cafile=str(made.ca_file))
    known.load_cert_chain(*made.issue("scheduler"))
    question = {"Pod": a_pod("web").json, "Nodes": {"items": []}}
    async with serving(plan) as address:
        assert (await post(f"https://{address}/filter", question, known))[0] == 200
        stranger = ssl.create_default_context(cafile=str(made.ca_file))
        with pytest.raises((aiohttp.ClientError, OSError)):
            await post(f"https://{address}/filter", question, stranger)


async def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    async with serving(a_plan()) as address:
        taken = ServingOptions(
            bind_address="127.0.0.1", secure_port=int(address.rpartition(":")[2])
        )
        with pytest.raises(CannotServeError, match="choose another --port"):
            await advise(a_plan(serving=taken))
    with pytest.raises(CannotServeError, match="--client-ca-file /nonexistent cannot be used"):
        await advise(a_plan(tls=True, client_ca_file="/nonexistent"))
