"""Read a Policy from a ConfigMap, as kube-scheduler up to 1.22 did."""

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
        config_map = await core.read_namespaced_config_map(name, namespace)
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
