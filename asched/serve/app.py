"""The serving port: authenticate, authorize, and answer with a page.

    connection ─TLS─> authenticate ─401─> authorize ─403─> page ─404─> answer

Answers cannot be cached. Authorization precedes the check whether a path exists, so that paths
cannot be probed without rights.

Health probes are exempt from the limit of requests. Only the body of a PUT is read.

Bounds  REQUESTS_MAX requests at a time, BODY_BYTES_MAX of a request's body, BODY_S until it has
        arrived; `ConnectionServer` limits connections.
Source  kubernetes/kubernetes v1.36 cmd/kube-scheduler/app/server.go, and recorded pages
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from asched.serve.auth import Authenticator, Authorizer, RequestCredentials, ReviewError
from asched.serve.auth import UnknownUserError as UnknownUser
from asched.serve.connections import ConnectionServer, Limits, is_probe
from asched.serve.options import ServingOptions
from asched.serve.pages import Page, PageRequest, forbidden, text, unauthorized
from asched.serve.request import BadRequestError, HttpRequest
from asched.serve.tls import Certificates
from asched.serve.turns import FairSelector

if TYPE_CHECKING:
    from cryptography import x509

log = logging.getLogger("asched.serve")

REQUESTS_MAX: Final = 100
BODY_BYTES_MAX: Final = 64 * 1024
BODY_S: Final = 5.0
#: How often certificate files are checked.
REFRESH_S: Final = 10.0


class Server:
    """HTTPS on one port. `start`, then `keep_certificates` as a task, then `stop`.

    `pages` makes the page of an authorized request; `turns` is the selector of the loop.
    """

    def __init__(
        self,
        options: ServingOptions,
        pages: Callable[[PageRequest], Awaitable[Page]],
        authenticator: Authenticator,
        authorizer: Authorizer,
        limits: Limits | None = None,
        turns: FairSelector | None = None,
    ) -> None:
        self._pages = pages
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._busy = 0
        self.certificates = Certificates(options)
        self._connections = ConnectionServer(self._handle, self.certificates.context, limits, turns)
        #: The port number, once started.
        self.port = 0

    def start(self, listening: Sequence[socket.socket]) -> None:
        """Serve on these sockets, which the server then owns."""
        self.port = self._connections.open(listening)
        log.info("Serving securely", extra={"port": self.port})

    @property
    def is_busy(self) -> bool:
        """Whether only probes are still accepted."""
        return self._busy >= REQUESTS_MAX

    async def keep_certificates(self) -> None:
        """Reload changed certificates until cancelled."""
        while True:
            await asyncio.sleep(REFRESH_S)
            await asyncio.to_thread(self.certificates.refresh)

    async def stop(self) -> None:
        await self._connections.close()

    # --- one request -----------------------------------------------------------------------------

    async def _handle(self, request: HttpRequest) -> Page:
        page = await self._page(request)
        return replace(page, headers={"Cache-Control": "no-cache, private", **page.headers})

    async def _page(self, request: HttpRequest) -> Page:
        if not request.path.startswith("/"):  # the target of CONNECT, or "*" of OPTIONS
            return text("Bad Request\n", 400, nosniff=True)
        counts = not is_probe(request)
        if self.is_busy and counts:
            log.warning(
                "Too many requests at a time", extra={"cause": "requests", "path": request.path}
            )
            return text("too many requests, try again\n", 429)
        self._busy += counts
        try:
            return await self._answer(request)
        except BadRequestError as error:
            return text(f"{error}\n", error.status, nosniff=True)
        except ConnectionError as error:
            # The client has disconnected or sent an incomplete request.
            extra = {"v": 4, "path": request.path, "err": error}
            log.info("A request broke off", extra=extra)
            return text("Bad Request\n", 400, nosniff=True)
        except Exception:
            log.exception("A page could not be made", extra={"path": request.path})
            return text("Internal Server Error\n", 500, nosniff=True)
        finally:
            self._busy -= counts

    async def _answer(self, request: HttpRequest) -> Page:
        shown = RequestCredentials(request.headers, _certificate(request.certificate))
        try:
            user = await self._authenticator.user(shown)
        except UnknownUser as error:
            log.info("Unable to authenticate the request", extra={"v": 1, "err": error})
            return unauthorized()
        verb, path = request.method.lower(), request.path
        try:
            is_allowed = await self._authorizer.may(user, verb, path)
        except ReviewError as error:
            return text(f'Internal Server Error: "{path}": {error}\n', 500, nosniff=True)
        if not is_allowed:
            return forbidden(user.name, verb, path)
        try:
            body = await _body(request) if request.method == "PUT" else b""
        except TimeoutError:
            return text("the request's body did not arrive in time\n", 408, nosniff=True)
        accept = request.header("accept")
        return await self._pages(PageRequest(request.method, path, request.query(), accept, body))


async def _body(request: HttpRequest) -> bytes:
    """The body. Raises BadRequestError if it is longer than any page needs, and TimeoutError."""
    if request.content_length > BODY_BYTES_MAX:
        raise BadRequestError(413, "request body too large")
    async with asyncio.timeout(BODY_S):
        return b"".join([piece async for piece in request.pieces()])


def _certificate(der: bytes) -> "x509.Certificate | None":
    if not der:
        return None
    from cryptography import x509  # needed for client certificates only

    return x509.load_der_x509_certificate(der)
