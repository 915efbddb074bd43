"""Read a Policy from a ConfigMap, as kube-scheduler up to 1.22 did."""

from typing import Final
from urllib.parse import quote

import msgspec

from asched.kube.errors import ApiError, ConnectError, TransportError
from asched.kube.session import HANDSHAKE_TIMEOUT_S, ConnectionOptions, connect, read_as

#: The key that kube-scheduler up to 1.22 read.
KEY: Final = "policy.cfg"


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] | None = None


async def fetch_policy(connection: ConnectionOptions, namespace: str, name: str) -> str:
    """The text of the Policy. Raises ConnectError with one line and the fix."""
    where = f"configmap {namespace}/{name}"
    session = await connect(connection)
    try:
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/configmaps/{quote(name, safe='')}"
        reply = await session.general.request("GET", path, timeout_s=HANDSHAKE_TIMEOUT_S)
        config_map = read_as(reply, _ConfigMap)
    except (ApiError, TransportError) as error:
        raise ConnectError(
            f"couldn't get policy config map {namespace}/{name}: {error};"
            " check --policy-configmap and --policy-configmap-namespace, and the right to get it"
        ) from error
    finally:
        await session.close()
    text = (config_map.data or {}).get(KEY)
    if text is None:
        raise ConnectError(f'{where} has no key "{KEY}"; put the Policy there')
    return text
