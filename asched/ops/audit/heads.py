"""Identities and versions of all objects of one kind.

The version of an object suffices to tell whether the cached one is current, so pages request
metadata only (PartialObjectMetadata).

Bounds  PAGE_SIZE objects at a time; the server expires the version of a list after five minutes or
        more, which ends the iteration with Expired.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from asched.kube.codec import ObjectHead, head_page
from asched.kube.lists import PAGE_SIZE, PAGE_TIMEOUT_S
from asched.kube.transport import JSON, successful
from asched.kube.watch import Reflector

#: A server that cannot make such lists sends whole objects.
ACCEPT: Final = (
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;q=0.9"
)


class FoundObject(NamedTuple):
    """An object as it is now, or None, and the version of the answer. `is_odd`: the object exists
    and cannot be decoded.
    """

    obj: Any
    version: str
    is_odd: bool


class Heads:
    """Reads the objects of a reflector, with its selectors. Raises ApiError or TransportError.

    RBAC     the right to list is enough
    """

    def __init__(self, reflector: Reflector) -> None:
        self._reflector = reflector

    async def pages(self, pause_s: float) -> AsyncIterator[tuple[list[ObjectHead], str]]:
        """All objects page by page with the list's version; pauses after each page."""
        query = {"limit": str(PAGE_SIZE)}
        while True:
            page = head_page(await self._get(query, ACCEPT), self._reflector.kind)
            yield page.heads, page.metadata.resource_version
            if not page.metadata.continue_token:
                return
            query = {"limit": str(PAGE_SIZE), "continue": page.metadata.continue_token}
            await asyncio.sleep(pause_s)

    async def one(self, key: str) -> FoundObject:
        """The object of this key ("namespace/name", or a bare name) as it is now."""
        namespace, _, name = key.rpartition("/")
        body = await self._get({"fieldSelector": f"metadata.name={name}"}, JSON, namespace)
        page = self._reflector.codec.page(body)
        objects: list[Any] = page.objects
        found = next((obj for obj in objects if obj.metadata.key == key), None)
        return FoundObject(found, page.version, bool(page.malformed_count))

    async def _get(self, query: dict[str, str], accept: str, namespace: str = "") -> bytes:
        reflector, options = self._reflector, self._reflector.options
        selectors = {
            "fieldSelector": options.field_selector,
            "labelSelector": options.label_selector,
        }
        for name, selector in selectors.items():
            query[name] = ",".join(filter(None, (selector, query.get(name, ""))))
        asked = urlencode({name: value for name, value in query.items() if value})
        path = reflector.served_kind.object_path(namespace, "").rstrip("/") if namespace else ""
        path = f"{path or reflector.served_kind.path}?{asked}"
        transport = reflector.transport
        reply = await transport.request("GET", path, accept=accept, timeout_s=PAGE_TIMEOUT_S)
        return successful(reply)
