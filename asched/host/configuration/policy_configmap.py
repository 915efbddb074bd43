"""Read a legacy Policy from a ConfigMap, once, before the configuration is loaded."""

from typing import Final

from asched.kube.errors import ApiError, ConnectError, TransportError
from asched.kube.session import HANDSHAKE_TIMEOUT_S, ConnectionOptions, connect
from asched.kube.typed import client_over

#: The key that kube-scheduler up to 1.22 read.
KEY: Final = "policy.cfg"


async def fetch_policy(connection: ConnectionOptions, namespace: str, name: str) -> str:
    """The text of the Policy. Raises ConnectError with one line and the fix."""
    from kubernetes_asyncio.client import CoreV1Api  # half a second, rarely needed

    where = f"configmap {namespace}/{name}"
    session = await connect(connection)
    try:
        core = CoreV1Api(await client_over(session.general, HANDSHAKE_TIMEOUT_S))
        found = await core.read_namespaced_config_map(name, namespace)
    except (ApiError, TransportError) as error:
        raise ConnectError(
            f"couldn't get policy config map {namespace}/{name}: {error};"
            " check --policy-configmap and --policy-configmap-namespace, and the right to get it"
        ) from error
    finally:
        await session.close()
    text = (found.data or {}).get(KEY)
    if text is None:
        raise ConnectError(f'{where} has no key "{KEY}"; put the Policy there')
    return text
