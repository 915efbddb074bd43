"""Read the cluster for `asched doctor`, with the APIs of kubernetes-asyncio.

Bounds  LIST_MAX objects of a list are read; READ_TIMEOUT_S for one request.
"""

from collections.abc import Awaitable
from typing import Any, Final

from kubernetes_asyncio.client import (
    AppsV1Api,
    AuthenticationV1Api,
    AuthorizationV1Api,
    CoordinationV1Api,
    CoreV1Api,
    CustomObjectsApi,
    FlowcontrolApiserverV1Api,
    VersionApi,
)

from asched.core.model.kinds import Kind
from asched.kube.errors import NotFound
from asched.kube.session import Session, read_json
from asched.kube.typed import Lister, client_over, lister

#: Enough for the Deployments of a large cluster.
LIST_MAX: Final = 2000
READ_TIMEOUT_S: Final = 15.0
#: Requests in flight at once; about forty are sent in all.
CONNECTIONS: Final = 8


class ClusterReader:
    """The APIs over one client. Their methods raise ApiError or TransportError."""

    @classmethod
    async def over(cls, session: Session) -> "ClusterReader":
        return cls(await client_over(session.pool(CONNECTIONS, purpose="doctor"), READ_TIMEOUT_S))

    def __init__(self, client: Any) -> None:
        self._client = client
        self.apps = AppsV1Api(client)
        self.authentication = AuthenticationV1Api(client)
        self.authorization = AuthorizationV1Api(client)
        self.coordination = CoordinationV1Api(client)
        self.core = CoreV1Api(client)
        self.custom_objects = CustomObjectsApi(client)
        self.flow_control = FlowcontrolApiserverV1Api(client)
        self.version = VersionApi(client)

    async def items(
        self, list_objects: Lister, *args: str, **selectors: str
    ) -> list[dict[str, Any]]:
        """The first LIST_MAX objects of a list, as JSON: models of 2,000 Deployments take 5 s."""
        reply = await list_objects(*args, limit=LIST_MAX, _preload_content=False, **selectors)
        found = read_json(reply).get("items")
        return found if isinstance(found, list) else []

    async def of_kind(self, kind: Kind) -> list[dict[str, Any]]:
        """The first LIST_MAX objects of a kind, in all namespaces."""
        return await self.items(lister(self._client, kind.group_version, kind.name, kind.plural))


async def or_none(read: Awaitable[Any]) -> Any:
    """The object, or None if it does not exist."""
    try:
        return await read
    except NotFound:
        return None
