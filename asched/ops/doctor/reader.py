"""Requests of `asched doctor`. Objects are the JSON of the API.

Bounds  LIST_MAX objects of a list are read; READ_TIMEOUT_S for one request.
"""

from collections.abc import Awaitable
from typing import Final
from urllib.parse import quote, urlencode

import orjson

from asched.core.model.kinds import Kind
from asched.kube.errors import NotFound
from asched.kube.kind_versions import versions_of
from asched.kube.session import Session, read_json
from asched.kube.transport import Reply, Transport
from asched.ops.doctor.notes import JsonObject

#: Enough for the Deployments of a large cluster.
LIST_MAX: Final = 2000
READ_TIMEOUT_S: Final = 15.0
#: Requests in flight at once; about forty are sent in all.
CONNECTIONS: Final = 8


class ClusterReader:
    """Requests over one pool. The methods raise ApiError or TransportError."""

    @classmethod
    def over(cls, session: Session) -> "ClusterReader":
        return cls(session.pool(CONNECTIONS, purpose="doctor"))

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def page(self, path: str) -> Reply:
        """The answer, whatever its status."""
        return await self._transport.request("GET", path, timeout_s=READ_TIMEOUT_S)

    async def get(self, path: str) -> JsonObject:
        return read_json(await self.page(path))

    async def post(self, path: str, body: JsonObject) -> JsonObject:
        encoded = orjson.dumps(body)
        return read_json(
            await self._transport.request("POST", path, encoded, timeout_s=READ_TIMEOUT_S)
        )

    async def items(self, path: str, **selectors: str) -> list[JsonObject]:
        """The first LIST_MAX objects of a list; `selectors` are labelSelector and fieldSelector."""
        found = (await self.get(f"{path}?{urlencode({'limit': LIST_MAX, **selectors})}")).get(
            "items"
        )
        return found if isinstance(found, list) else []

    async def of_kind(self, kind: Kind) -> list[JsonObject]:
        """The first LIST_MAX objects of a kind, in all namespaces."""
        return await self.items(kind.path)

    async def namespaces_with(self, kind: Kind) -> set[str]:
        """The namespaces that have objects of a kind, in whatever version the server has it."""
        for version in versions_of(kind):
            try:
                items = await self.of_kind(version)
            except NotFound:
                continue
            return {item["metadata"]["namespace"] for item in items}
        return set()


def path_of(group_version: str) -> str:
    """Where the API server serves a group and version."""
    return f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}"


def namespaced(group_version: str, namespace: str, *names: str) -> str:
    """The path of a list, or with a name of an object, in a namespace."""
    quoted = "/".join(quote(name, safe="") for name in (namespace, *names))
    return f"{path_of(group_version)}/namespaces/{quoted}"


async def or_none(read: Awaitable[JsonObject]) -> JsonObject | None:
    """The object, or None if it does not exist."""
    try:
        return await read
    except NotFound:
        return None
