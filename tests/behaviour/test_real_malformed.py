"""Objects with JSON that a real API server keeps as a tenant wrote it: the process goes on and
binds other pods, and those pods, too.

Skipped where KUBEBUILDER_ASSETS names no kube-apiserver.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.behaviour.odd_json import ODD, claim_bytes, managed, nested
from tests.e2e.control_plane import PATIENCE_S, ControlPlane
from tests.e2e.inside import a_node, a_pod
from tests.e2e.outside import Asched, a_process
from tests.e2e.program_flags import flags

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module")]

PODS = "/api/v1/namespaces/default/pods"
RESOURCES = "/apis/resource.k8s.io/v1"
CLAIMS = f"{RESOURCES}/namespaces/default/resourceclaims"
CLASS = {"metadata": {"name": "class"}, "spec": {}}
SLICE = {
    "metadata": {"name": "slice"},
    "spec": {
        "driver": "driver.example.com",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"d{number}"} for number in range(32)],
    },
}
#: A real server reads 10,000 levels, and ends the connection for numbers beyond a double in
#: parameters, which have at most 10 KiB.
FIELDS = {
    "objects": nested(9_990),
    "surrogates": ODD["half a surrogate pair"],
    "bytes": ODD["no UTF-8"],
}
PARAMETERS = {
    "surrogates": ODD["half a surrogate pair"],
    "bytes": ODD["no UTF-8"],
    "nul": ODD["NUL"],
}
UNWRITABLE = {
    "objects": nested(1_200),
    "lists": b'{"a":' + nested(5_000, "list") + b"}",
    "few-hundred": nested(300),
    "numbers": b'{"a":-9223372036854775809}',
}


class Plane(ControlPlane):
    """Bytes in and out: what is asked for here cannot be read with Python's json."""

    async def send(self, path: str, body: bytes) -> None:
        headers = {"Content-Type": "application/json"}
        client = self.client
        async with client.session.post(client.url + path, data=body, headers=headers) as answer:
            assert answer.status == 201, (await answer.read())[:500]

    async def shows(self, path: str, pattern: bytes) -> bytes:
        """Wait until an object's JSON holds this."""
        client, found = self.client, b""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    async with client.session.get(client.url + path) as answer:
                        found = await answer.read()
                    if re.search(pattern, found):
                        return found
                    await asyncio.sleep(0.25)
        except TimeoutError:
            raise AssertionError(f"{path} never shows {pattern!r}: {found[-2000:]!r}") from None

    async def is_bound(self, name: str) -> None:
        await self.shows(f"{PODS}/{name}", b'"nodeName":"n1"')


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane() -> AsyncIterator[Plane]:
    async with Plane.here() as made, made.open_client():
        assert isinstance(made, Plane)
        await made.create("/api/v1/nodes", [a_node("n1", cpu="64")])
        await made.create(f"{RESOURCES}/deviceclasses", [CLASS])
        await made.create(f"{RESOURCES}/resourceslices", [SLICE])
        yield made


def with_fields(name: str, fields: bytes) -> bytes:
    written = json.dumps(a_pod(name)).encode()
    return written.replace(b'"metadata": {', b'"metadata": {' + managed(fields) + b",", 1)


def with_claim(name: str, claim: str) -> dict[str, Any]:
    pod = a_pod(name, resourceClaims=[{"name": "c", "resourceClaimName": claim}])
    pod["spec"]["containers"][0]["resources"]["claims"] = [{"name": "c"}]
    return pod


async def is_alive(process: Asched, plane: Plane, pod: str) -> None:
    """Another pod is bound, and nothing has ended."""
    await plane.create_pods([a_pod(pod)])
    await plane.is_bound(pod)
    assert "Traceback" not in process.words, process.words[-3000:]


async def test_it_goes_on_and_starts_again(plane: Plane, tmp_path: Path) -> None:
    """First the watch shows the objects, then, after another start, the lists."""
    async with a_process(tmp_path, *flags(plane)) as process:
        await process.says("synced")
        for name, fields in FIELDS.items():
            await plane.send(PODS, with_fields(f"pod-{name}", fields))
            await plane.is_bound(f"pod-{name}")
        for name, parameters in (PARAMETERS | UNWRITABLE).items():
            await plane.send(CLAIMS, claim_bytes(f"claim-{name}", parameters, version=""))
            await plane.create_pods([with_claim(f"uses-{name}", f"claim-{name}")])
        for name in PARAMETERS:
            await plane.is_bound(f"uses-{name}")
        for name in UNWRITABLE:
            await plane.shows(f"{PODS}/uses-{name}", b"opaque parameters of more than 64 levels")
        await is_alive(process, plane, "after-the-watch")
    async with a_process(tmp_path, *flags(plane)) as process:
        await process.says("synced")
        await is_alive(process, plane, "after-the-list")
        for name in UNWRITABLE:
            await plane.shows(f"{PODS}/uses-{name}", b'"phase":"Pending"')
