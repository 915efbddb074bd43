"""Reach the leading replica through the API server, with the user's own credentials.

    kubeconfig ─> Lease ─> Pod ─> a token for a page ─> pods/proxy ─> the page

Without --lease it is the lease of deploy/base, else that of the installation in the cluster.

The API server's proxy does not pass the user's identity on. The user therefore requests a token of
the ServiceAccount that may read the pages, valid for ten minutes and not stored, and sends it in a
header that the proxy passes on. Users who may create such a token may read the pages;
`deploy/components/explain` grants both.

A command that reads pages repeatedly reuses the token while it is valid, and finds the leader again
every FOUND_S.

Bounds  REQUEST_S per request; four requests for the first page, then one for each page; in a
        cluster without that lease, those of `scheduler_workloads` besides.
"""

import argparse
from time import monotonic
from typing import Final, TypeVar

import msgspec
import orjson

from asched.cli.pages import PageError, quoted
from asched.core.leader.pools import is_of_layout, lease_of_pool
from asched.kube.errors import ApiError, ClientError, Forbidden, NotFound, api_error
from asched.kube.fast import FastTransport
from asched.kube.session import ConnectionOptions, Session, connect, read_as
from asched.kube.transport import Reply
from asched.names import DEFAULT_POOL, TOKEN_HEADER

REQUEST_S: Final = 10.0
LEASE: Final = "asched-system/asched"
#: The lease of `asched run` without flags and file, which mostly runs outside the cluster.
OUTSIDE: Final = "kube-system/asched"
#: The ServiceAccount in the lease's namespace whose tokens give access to the pages.
READER: Final = "asched-explain"
TOKEN_S: Final = 600  # the shortest that API servers issue
#: A lease changes its holder after 15 s at the earliest.
FOUND_S: Final = 10.0
NEVER_S: Final = float("-inf")
PORT: Final = 10259
PORT_NAME: Final = "https"
COMPONENT: Final = (
    "the Role asched-explain of deploy/components/explain grants it (docs/operate.md, Ask why)"
)
#: The label of schedulers without a lease.
SELECTOR: Final = "app.kubernetes.io%2Fname%3Dasched"

T = TypeVar("T")


class _Named(msgspec.Struct):
    name: str
    namespace: str = ""


class _Port(msgspec.Struct, rename="camel"):
    container_port: int
    name: str = ""


class _Container(msgspec.Struct):
    ports: list[_Port] | None = None


class _PodSpec(msgspec.Struct):
    containers: list[_Container]


class _PodStatus(msgspec.Struct):
    phase: str = ""


class _Pod(msgspec.Struct):
    metadata: _Named
    spec: _PodSpec
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)


class _Pods(msgspec.Struct):
    items: list[_Pod] | None = None


class _LeaseSpec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None


class _LeaseHolder(msgspec.Struct):
    spec: _LeaseSpec


class _Token(msgspec.Struct):
    token: str


class _TokenRequest(msgspec.Struct):
    status: _Token


def add_cluster_flags(parser: argparse.ArgumentParser) -> None:
    """The flags for the cluster, as in kubectl, and for the scheduler's lease."""
    parser.add_argument("--kubeconfig", default="", metavar="FILE", help="as for kubectl")
    parser.add_argument("--context", default="", metavar="NAME", help="context of the kubeconfig")
    parser.add_argument(
        "--lease",
        default="",
        metavar="NAMESPACE/NAME",
        help=f"lease of the leader (default {LEASE}, else that of the only installation)",
    )


class Leader:
    """The leading replica, found when needed. `namespace` is the context's."""

    def __init__(self, session: Session, lease: str) -> None:
        self._session = session
        self._lease = lease
        self.namespace = session.credentials.namespace
        self.pages = session.credentials.pages
        self._pod: _Pod | None = None
        self._found_s = self._token_s = NEVER_S
        self._transport: FastTransport | None = None

    @classmethod
    async def open(cls, args: argparse.Namespace) -> "Leader":
        """Connect by the flags of `add_cluster_flags`. Raises PageError."""
        namespace, _, name = (args.lease or LEASE).partition("/")
        if not namespace or not name or "/" in name:
            raise PageError(f"--lease {args.lease!r} is not of the form NAMESPACE/NAME")
        try:
            options = ConnectionOptions(kubeconfig=args.kubeconfig, context=args.context)
            return cls(await connect(options, handshake=False), args.lease)
        except ClientError as error:
            raise PageError(str(error)) from error

    async def page(self, path: str) -> Reply:
        """Read a page. After a PageError the next call finds the leader again."""
        session = self._session
        try:
            if self._pod is None or monotonic() - self._found_s >= FOUND_S:
                self._pod = await _leader(session, self._lease)
                self._found_s = monotonic()
            if self._transport is None or monotonic() - self._token_s >= TOKEN_S / 2:
                await self._forget_token()
                headers = {TOKEN_HEADER: await _token(session, self._pod.metadata.namespace)}
                self._token_s = monotonic()
                self._transport = FastTransport(
                    session.credentials, "asched-explain", limit=1, headers=headers
                )
            reply = await _through_proxy(self._transport, self._pod, path)
        except ClientError as error:
            self._found_s = NEVER_S
            raise PageError(f"{session.url}: {error}") from error
        except PageError:
            self._found_s = NEVER_S
            raise
        if reply.status == 401:  # the token was revoked: the next call requests another
            self._token_s = NEVER_S
        return reply

    async def close(self) -> None:
        await self._forget_token()
        await self._session.close()

    async def _forget_token(self) -> None:
        if self._transport is not None:
            await self._transport.close()
            self._transport = None


async def _leader(session: Session, lease: str) -> _Pod:
    """The leading pod; without a lease that of LEASE, else of the only installation. Raises
    PageError, TransportError.
    """
    namespace, _, name = (lease or LEASE).partition("/")
    try:
        return await _holder(session, namespace, name)
    except NotFound:
        refused = None
    except _RefusedLeaseError as error:
        refused = error
    if not lease:
        # Most clusters have that lease, and what reads the others takes long to import.
        from asched.cli.installed_lease import installation

        if (installed := await installation(session)) is not None:
            if installed.lease is not None:
                return await _leader(session, "/".join(installed.lease))
            return await _only_one(session, installed.workload.partition("/")[0], "lease")
    if refused is not None:
        raise refused
    if not lease:
        await _check_outside(session)
    return await _only_one(session, namespace, f"lease {namespace}/{name}")


class _RefusedLeaseError(PageError):
    """The user may not read the lease."""


async def _holder(session: Session, namespace: str, lease: str) -> _Pod:
    """The pod that holds a lease. Raises NotFound without such a lease, _RefusedLeaseError,
    PageError, TransportError.
    """
    what, within = f"lease {namespace}/{lease}", quoted(namespace)
    path = f"/apis/coordination.k8s.io/v1/namespaces/{within}/leases/{quoted(lease)}"
    try:
        found = await _get(session, path, f"read {what}", _LeaseHolder)
    except PageError as error:
        raise _RefusedLeaseError(str(error)) from error
    holder = found.spec.holder_identity or ""
    if is_of_layout(holder):  # each pool has a lease
        return await _leader(session, f"{namespace}/{lease_of_pool(lease, DEFAULT_POOL)}")
    name = holder.rpartition("_")[0]
    if not name:
        raise PageError(f"{what} has no holder at the moment; try again in a few seconds")
    try:
        path = f"/api/v1/namespaces/{within}/pods/{quoted(name)}"
        return await _get(session, path, f"read pod {name}", _Pod)
    except NotFound:
        raise PageError(
            f"{what} is held by {holder!r}, which is not a pod of that namespace; name the process"
            " with --server"
        ) from None


async def _check_outside(session: Session) -> None:
    """Raise PageError with its address if `asched run` runs outside the cluster."""
    namespace, _, lease = OUTSIDE.partition("/")
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{lease}"
    try:
        found = await _get(session, path, f"read lease {OUTSIDE}", _LeaseHolder)
    except (NotFound, PageError):
        return
    if holder := found.spec.holder_identity:
        host = holder.rpartition("_")[0]
        raise PageError(
            f"there is no lease {LEASE}; {OUTSIDE} is held by {holder!r}: ask that process with"
            f" --server https://{host}:{PORT} and --token, or name another --lease"
        )


async def _only_one(session: Session, namespace: str, what: str) -> _Pod:
    """The only scheduler of a namespace without a lease."""
    path = f"/api/v1/namespaces/{quoted(namespace)}/pods?labelSelector={SELECTOR}"
    found = await _get(session, path, f"list the pods of {namespace}", _Pods)
    running = [pod for pod in found.items or () if pod.status.phase == "Running"]
    if len(running) != 1:
        raise PageError(
            f"there is no {what}, and {len(running)} running pods labelled"
            f" app.kubernetes.io/name=asched in {namespace}; name the lease with --lease, or the"
            " process with --server"
        )
    return running[0]


async def _token(session: Session, namespace: str) -> str:
    path = f"/api/v1/namespaces/{quoted(namespace)}/serviceaccounts/{READER}/token"
    asked = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": TOKEN_S},
    }
    what = f"create a token for serviceaccount {namespace}/{READER}"
    reply = await session.general.request("POST", path, orjson.dumps(asked), timeout_s=REQUEST_S)
    try:
        return _read(reply, what, _TokenRequest).status.token
    except NotFound:
        raise PageError(
            f"serviceaccount {namespace}/{READER}, whose token gives access to the page, does not"
            " exist; install deploy/components/explain (docs/operate.md, Ask why)"
        ) from None


async def _through_proxy(transport: FastTransport, pod: _Pod, path: str) -> Reply:
    name, namespace = pod.metadata.name, quoted(pod.metadata.namespace)
    ports = [
        port.container_port
        for container in pod.spec.containers
        for port in container.ports or ()
        if port.name == PORT_NAME
    ]
    where = f"https:{quoted(name)}:{ports[0] if ports else PORT}"
    reply = await transport.request(
        "GET", f"/api/v1/namespaces/{namespace}/pods/{where}/proxy{path}", timeout_s=REQUEST_S
    )
    error = api_error(reply.status, reply.body)
    if reply.status == 403 and "pods" in error.message.partition("forbidden")[0]:
        _read(reply, f"reach pod {name} through the API server", dict)
    if reply.status in (502, 503):
        raise PageError(
            f"the API server cannot reach pod {name} ({error.message}): check network policies, or"
            " use kubectl port-forward and --server"
        )
    return reply


async def _get(session: Session, path: str, what: str, shape: type[T]) -> T:
    return _read(await session.general.request("GET", path, timeout_s=REQUEST_S), what, shape)


def _read(reply: Reply, what: str, shape: type[T]) -> T:
    """The object. Raises NotFound, ProtocolBroken, and PageError for other errors."""
    try:
        return read_as(reply, shape)
    except NotFound:
        raise
    except Forbidden as error:
        raise PageError(f"you may not {what} ({error.message}); {COMPONENT}") from error
    except ApiError as error:
        raise PageError(f"cannot {what}: {error.message}") from error
