"""Kinds that servers have in different versions.

A version whose feature gate is off, or that an upgrade removed, is not in its group's document. The
versions of a kind share one record and one store; they differ in where they are read and written,
and in the spelling of their fields.
"""

from typing import Any, Final

import msgspec

from asched.core.model.decode import MalformedError
from asched.core.model.kinds import VERSIONS, Kind
from asched.kube.parsing import read
from asched.kube.transport import Transport, successful

#: Timeout of a discovery request.
DISCOVERY_S: Final = 10.0
_resources: Final = msgspec.json.Decoder(dict[str, Any])


def versions_of(kind: Kind) -> tuple[Kind, ...]:
    """The versions of a kind, preferred first."""
    return VERSIONS.get(kind.resource, (kind,))


async def served_version(transport: Transport, kind: Kind) -> Kind | None:
    """The preferred version that the server has; None if it has none. Raises ApiError,
    TransportError.
    """
    for version in versions_of(kind):
        if await _is_served(transport, version):
            return version
    return None


async def _is_served(transport: Transport, kind: Kind) -> bool:
    """Whether the server's discovery has the kind in this version."""
    reply = await transport.request("GET", f"/apis/{kind.group_version}", timeout_s=DISCOVERY_S)
    if reply.status == 404:
        return False
    try:
        found = read(_resources.decode, successful(reply)).get("resources")
    except MalformedError:
        return True
    names = [r.get("name") for r in found or () if isinstance(r, dict)]
    return kind.plural in names
