"""What the embedded API server makes of wrong, unknown and duplicate fields, over HTTP."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from asched_lab.apiserver.context import Options
from asched_lab.apiserver.resources import BY_KIND
from asched_lab.apiserver.server import ApiServer
from tests.lab.apiserver.client import MERGE, PODS, STRATEGIC, Client, a_pod
from tests.lab.whatif import whole_objects as objects
from tests.lab.whatif.clusters import a_deployment

YAML, APPLY = "application/yaml", "application/apply-patch+yaml"
#: Each is wrong for some forms of fields; used alternately.
VALUES = (
    (("x", MERGE), ([], STRATEGIC)),
    ((1, STRATEGIC), ({}, APPLY)),
    ((1, APPLY), ("x", APPLY)),
)
#: A real server answers 500 here too.
UNMERGED = "does not contain declared merge key"


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    versions = frozenset(version for version, _ in objects.KINDS)
    server = ApiServer(kubelet=False, options=Options(alpha=versions))
    await server.start()
    async with Client(server.url) as client:
        yield client
    await server.stop()


def collection(key: tuple[str, str]) -> str:
    res = BY_KIND[key]
    root = f"/apis/{key[0]}" if res.group else "/api/v1"
    return f"{root}/{'namespaces/default/' if res.namespaced else ''}{res.plural}"


@pytest.mark.parametrize("key", objects.KINDS, ids="/".join)
async def test_no_value_is_an_internal_error(key: tuple[str, str], client: Client) -> None:
    await client.post(collection(key), objects.whole(key))
    for number, (path, _) in enumerate(objects.forms(key)):
        if path == ("metadata", "resourceVersion"):
            continue  # with one nothing can be created, which is a 500 of a real server too
        for value, media in VALUES[number % len(VALUES)]:
            obj = objects.only(key, path, value)
            status, answer = await client.post(f"{collection(key)}?dryRun=All", obj)
            assert status < 500, (path, value, answer)
            query = "fieldManager=m&dryRun=All"
            status, answer = await client.ask(
                "PATCH", f"{collection(key)}/x?{query}", obj, media=media
            )
            assert status < 500 or UNMERGED in answer["message"], (path, value, media, answer)


TWICE = b"""
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
     "spec": {"nodeName": "n1", "nodeName": "n2", "containers": [{"name": "c", "image": "i"}]}}
"""


@pytest.mark.parametrize("media", [YAML, "application/json"])
@pytest.mark.parametrize(("mode", "status"), [("Strict", 400), ("Warn", 201), ("Ignore", 201)])
async def test_duplicate_fields(media: str, mode: str, status: int, client: Client) -> None:
    url = f"{client.url}{PODS}?fieldValidation={mode}"
    headers = {"Content-Type": media}
    async with client.session.post(url, data=TWICE, headers=headers) as answer:
        warnings, body = answer.headers.getall("Warning", []), await answer.text()
        assert answer.status == status
    assert ("duplicate field" in body) == (mode == "Strict")
    assert bool(warnings) == (mode == "Warn")


@pytest.mark.parametrize("method", ["POST", "PUT", MERGE, STRATEGIC, APPLY])
@pytest.mark.parametrize(("mode", "is_error"), [("Strict", True), ("Warn", False), ("", False)])
async def test_unknown_fields(method: str, mode: str, is_error: bool, client: Client) -> None:
    if method not in ("POST", APPLY):
        assert (await client.post(PODS, a_pod("p")))[0] == 201
    pod: Any = {"apiVersion": "v1", "kind": "Pod", **a_pod("p"), "nodeSelectors": {"a": "b"}}
    path = PODS if method == "POST" else f"{PODS}/p"
    verb, media = (method, "application/json") if "/" not in method else ("PATCH", method)
    query = f"?fieldManager=m&fieldValidation={mode}"
    status, answer = await client.ask(verb, f"{path}{query}", pod, media=media)
    assert (status >= 400) == is_error, answer
    assert ('unknown field "nodeSelectors"' in str(answer).replace('\\\\"', '"')) == is_error


async def test_a_stateful_set_mounts_its_own_claims(client: Client) -> None:
    """The claim templates count as volumes of the pods, and may have kind and apiVersion."""
    made = {**a_deployment("db", 2), "kind": "StatefulSet"}
    container = made["spec"]["template"]["spec"]["containers"][0]
    container["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    claim = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": {"name": "data"}}
    claim["spec"] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}
    made["spec"] |= {"serviceName": "db", "volumeClaimTemplates": [claim]}
    path = "/apis/apps/v1/namespaces/default/statefulsets"
    status, answer = await client.post(f"{path}?fieldValidation=Strict", made)
    assert status == 201, answer

    container["volumeMounts"][0]["name"] = "other"
    status, answer = await client.post(path, {**made, "metadata": {"name": "second"}})
    assert status == 422
    assert 'volumeMounts[0].name: Not found: "other"' in answer["message"]
