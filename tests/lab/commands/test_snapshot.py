"""`asched snapshot`: a cluster's file, by the rights of the user who asks."""

import asyncio
import gzip
import io
import json
from pathlib import Path

import orjson
import pytest
import yaml

from asched.core.model.kinds import POD_GROUP, PROVISIONING_REQUEST
from asched_lab.apiserver.auth import ADMIN
from asched_lab.apiserver.call import User
from asched_lab.apiserver.context import Options
from asched_lab.apiserver.server import ApiServer
from asched_lab.whatif.snapshot import read
from tests.e2e.inside import a_node, a_pod
from tests.lab.whatif.requests import a_request
from tests.unit.cli.programs import asched


async def a_server(folder: Path) -> tuple[ApiServer, str]:
    server = ApiServer()
    await server.start()
    server.create("nodes", a_node("n1"))
    pod = a_pod("web")
    pod["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": "hunter2"}]
    server.create("pods", pod)
    server.create("secrets", {"metadata": {"name": "s", "namespace": "default"}, "data": {}})
    file = folder / "kubeconfig"
    file.write_text(server.kubeconfig(), encoding="utf-8")
    return server, f"--kubeconfig={file}"


@pytest.mark.parametrize("form", ["lines", "yaml"])
async def test_what_was_dumped_can_be_asked(form: str, tmp_path: Path) -> None:
    server, kubeconfig = await a_server(tmp_path)
    file = tmp_path / ("cluster.json.gz" if form == "lines" else f"cluster.{form}")
    try:
        ended, out, err = await asched("snapshot", str(file), kubeconfig, "-o", form)
    finally:
        await server.stop()
    assert (ended, out) == (0, "")
    assert "objects of http://127.0.0.1:" in err

    body = file.read_bytes()
    text = (gzip.decompress(body) if form == "lines" else body).decode()
    assert "hunter2" not in text
    if form == "lines":
        header, *objects = map(json.loads, text.splitlines())
        assert header["resourceVersion"].isdigit()
    else:
        objects = yaml.safe_load(text)["items"]
    kinds = {obj["kind"] for obj in objects}
    assert {"Node", "Pod", "Namespace", "PriorityClass"} <= kinds
    assert "Secret" not in kinds

    ended, out, err = await asched("simulate", "--snapshot", str(file), "-o", "yaml")
    assert (ended, err) == (0, "")
    told = yaml.safe_load(out)
    assert told["pods"] == [{"pod": "default/web", "node": "n1"}]


async def test_kinds_are_read_in_the_version_that_the_server_has(tmp_path: Path) -> None:
    """Here older ones and newer ones than the clients' own; and the file may be of any."""
    served = {"autoscaling.x-k8s.io/v1beta1", "scheduling.k8s.io/v1beta1"}
    server = ApiServer(kubelet=False, options=Options(alpha=frozenset(served)))
    await server.start()
    template, request = a_request("2999-01-01T00:00:00.000000Z")
    request["apiVersion"] = "autoscaling.x-k8s.io/v1beta1"
    group = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup"}
    group |= {"metadata": {"name": "crew"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
    for plural, obj in (
        ("nodes", a_node("n1")),
        ("podtemplates", template),
        ("provisioningrequests", request),
        ("podgroups", group),
    ):
        server.create(plural, obj)
    file = tmp_path / "kubeconfig"
    file.write_text(server.kubeconfig(), encoding="utf-8")
    dump = tmp_path / "cluster.json"
    try:
        ended, _, err = await asched("snapshot", str(dump), f"--kubeconfig={file}", "-o", "json")
    finally:
        await server.stop()
    assert ended == 0
    assert "PodGroup" not in err

    items = json.loads(dump.read_bytes())["items"]
    kept = {obj["kind"]: obj for obj in items}
    assert kept["ProvisioningRequest"]["spec"] == request["spec"]
    assert kept["PodTemplate"]["metadata"]["name"] == "worker"
    assert kept["PodGroup"]["metadata"]["name"] == "crew"
    again = read(io.BytesIO(orjson.dumps({"kind": "List", "items": [request, group]})), "file")
    assert again.of(PROVISIONING_REQUEST)
    assert again.of(POD_GROUP)


async def test_who_may_list_nothing_is_told_so_in_one_line(tmp_path: Path) -> None:
    server = ApiServer(users={"weak": User("weak", ()), "strong": ADMIN})
    await server.start()
    file = tmp_path / "kubeconfig"
    server.token = "weak"
    file.write_text(server.kubeconfig(), encoding="utf-8")
    try:
        ended, _, err = await asched("snapshot", str(tmp_path / "x"), f"--kubeconfig={file}")
    finally:
        await server.stop()
    assert ended == 1
    assert err.startswith("asched snapshot: nodes cannot be listed: ")
    assert err.count("\n") == 1


async def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    server, kubeconfig = await a_server(tmp_path)
    try:
        ended, _, err = await asched("snapshot", str(tmp_path / "no" / "x"), kubeconfig)
    finally:
        await server.stop()
    assert ended == 1
    assert "cannot write" in err


async def test_a_dump_that_is_none_is_told() -> None:
    ended, _, err = await asyncio.wait_for(asched("simulate", "--snapshot", "/nonexistent"), 60)
    assert (ended, err) == (1, "asched simulate: open /nonexistent: no such file or directory\n")
