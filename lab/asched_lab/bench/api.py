"""Requests of a measurement to an API server: objects by manifest, many at a time, and one watch.

It uses the scheduler's own client, on connections of its own.

Bounds  CREATORS requests at a time, as many as upstream's creators.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

import orjson

from asched.kube.errors import ApiError, TransportError, api_error
from asched.kube.session import ConnectionOptions, Session, connect, read_json
from asched.kube.transport import Reply
from asched_lab.apiserver.resources import BY_KIND, Resource, find
from asched_lab.bench.manifests import JsonObject
from asched_lab.bench.world import CannotRunError, WorkloadFailedError

CREATORS: Final = 30
MERGE_PATCH: Final = "application/merge-patch+json"
#: Lifetime of a watch request; no measurement lasts longer.
WATCH_S: Final = 3600.0
NOT_FOUND: Final = 404
#: An event that only says how far the stream is.
BOOKMARK: Final = "BOOKMARK"


class Api:
    """One API server."""

    def __init__(self, session: Session, limit: int) -> None:
        self.session = session
        self._pool = session.pool(limit, purpose="bench")
        self._limit = asyncio.Semaphore(limit)

    @classmethod
    async def connected(cls, kubeconfig: str, *, limit: int = CREATORS) -> "Api":
        """Raises ConnectError."""
        return cls(await connect(ConnectionOptions(kubeconfig=kubeconfig)), limit)

    async def close(self) -> None:
        await self.session.close()

    async def request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> Reply:
        """Send one request and return the reply of any status. Raises WorkloadFailedError if there
        is none.
        """
        data = orjson.dumps(body) if body is not None else None
        async with self._limit:
            try:
                return await self._pool.request(method, path, data, content_type=content_type)
            except TransportError as error:
                raise WorkloadFailedError(f"{method} {path}: {error}") from error

    async def many(self, steps: Sequence[Callable[[], Awaitable[Any]]]) -> list[Any]:
        """Run all steps, as many at a time as there are creators."""
        return list(await asyncio.gather(*(step() for step in steps)))

    async def create(self, manifest: JsonObject, namespace: str) -> JsonObject:
        """POST an object. Raises CannotRunError for a kind the server does not have."""
        res = resource_of(manifest)
        reply = await self.request("POST", collection(res, namespace), manifest)
        if reply.status == NOT_FOUND:
            raise CannotRunError(
                f"the API server refuses {manifest.get('apiVersion')} {manifest.get('kind')}:"
                f" {api_error(reply.status, reply.body).message}"
            )
        made = self._checked("create", reply)
        made.setdefault("apiVersion", manifest.get("apiVersion"))
        made.setdefault("kind", manifest.get("kind"))
        return made

    async def read(self, res: Resource, namespace: str, name: str) -> JsonObject:
        """GET one object."""
        path = f"{collection(res, namespace)}/{name}"
        return self._checked("read", await self.request("GET", path))

    async def replace(
        self, res: Resource, namespace: str, name: str, body: JsonObject, sub: str
    ) -> None:
        """PUT over any version: no other client writes the objects of a measurement."""
        metadata = {k: v for k, v in body["metadata"].items() if k != "resourceVersion"}
        path = f"{collection(res, namespace)}/{name}" + (f"/{sub}" if sub else "")
        self._checked("update", await self.request("PUT", path, {**body, "metadata": metadata}))

    async def patch(
        self, res: Resource, namespace: str, name: str, body: Any, sub: str = ""
    ) -> None:
        """PATCH with a JSON merge patch."""
        path = f"{collection(res, namespace)}/{name}" + (f"/{sub}" if sub else "")
        self._checked("patch", await self.request("PATCH", path, body, MERGE_PATCH))

    async def delete(self, res: Resource, namespace: str, name: str) -> None:
        """DELETE without a grace period; an object that is gone already is no error."""
        path = f"{collection(res, namespace)}/{name}?gracePeriodSeconds=0"
        reply = await self.request("DELETE", path)
        if reply.status != NOT_FOUND:
            self._checked("delete", reply)

    async def listed(self, res: Resource, namespace: str = "") -> list[JsonObject]:
        """Every object of a kind."""
        try:
            found = read_json(await self.request("GET", collection(res, namespace)))
        except ApiError as error:
            if error.code == NOT_FOUND:
                return []
            raise WorkloadFailedError(f"list {res.plural}: {error.message}") from error
        items: list[JsonObject] = found.get("items") or []
        return items

    def _checked(self, what: str, reply: Reply) -> JsonObject:
        try:
            return read_json(reply)
        except ApiError as error:
            raise WorkloadFailedError(f"{what}: {error.message}") from error

    async def watch(self, collection_path: str) -> AsyncIterator[tuple[str, JsonObject]]:
        """(type, object) of every change from now on; ended streams are reopened."""
        first = read_json(await self.request("GET", f"{collection_path}?limit=1"))
        version = first["metadata"]["resourceVersion"]
        while True:
            query = {
                "watch": "1",
                "resourceVersion": version,
                "timeoutSeconds": f"{WATCH_S:.0f}",
                "allowWatchBookmarks": "true",
            }
            path = f"{collection_path}?{urlencode(query)}"
            try:
                async with self.session.general.stream(path, timeout_s=WATCH_S) as stream:
                    rest = b""
                    async for chunk in stream.chunks():
                        *lines, rest = (rest + chunk).split(b"\n")
                        for line in filter(None, lines):
                            event = orjson.loads(line)
                            found = event["object"]
                            version = found["metadata"]["resourceVersion"]
                            if event["type"] != BOOKMARK:
                                yield event["type"], found
            except TransportError:
                await asyncio.sleep(0.1)


def resource_of(manifest: Mapping[str, Any]) -> Resource:
    """The resource of a manifest's kind. Raises CannotRunError."""
    key = (str(manifest.get("apiVersion", "")), str(manifest.get("kind", "")))
    found = BY_KIND.get(key)
    if found is None:
        raise CannotRunError(f"{key[0]} {key[1]} is not served by default")
    return found


def collection(res: Resource, namespace: str) -> str:
    """The path of a kind's collection, in a namespace if it has one and one is given."""
    root = "/api/v1" if res.api_version == "v1" else f"/apis/{res.api_version}"
    scope = f"/namespaces/{namespace}" if res.namespaced and namespace else ""
    return f"{root}{scope}/{res.plural}"


PODS: Final = find("pods")
PODS_PATH: Final = collection(PODS, "")
EVENTS_PATH: Final = "/apis/events.k8s.io/v1/events"
