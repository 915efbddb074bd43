"""The serving port: who asks, may they, and which page they get.

    connection ─TLS─> authenticate ─401─> authorize ─403─> page ─404─> answer

Every answer is uncacheable. A path that somebody may not see is forbidden before it is missing, so
that nobody learns which paths exist.

Bounds  REQUESTS_MAX requests at a time, BODY_BYTES_MAX of a request's body, HEADER_BYTES_MAX of its
        head, SHUTDOWN_S to finish what is under way.
Source  kubernetes/kubernetes v1.36 cmd/kube-scheduler/app/server.go, and recorded pages
"""

import asyncio
import logging
import ssl
from typing import Final

from aiohttp import web
from cryptography import x509

from asched.edge.serve.auth import Authenticator, Authorizer, Credentials, ReviewError
from asched.edge.serve.auth import UnknownUserError as UnknownUser
from asched.edge.serve.options import CannotServeError, ServingOptions
from asched.edge.serve.pages import Asked, Page, forbidden, text, unauthorized
from asched.edge.serve.routes import Routes
from asched.edge.serve.tls import Certificates

log = logging.getLogger("asched.serve")

REQUESTS_MAX: Final = 100
BODY_BYTES_MAX: Final = 64 * 1024
HEADER_BYTES_MAX: Final = 64 * 1024
SHUTDOWN_S: Final = 5.0
#: As upstream: how long a silent connection is kept.
KEEPALIVE_S: Final = 90.0
#: How often the files of certificates are looked at.
REFRESH_S: Final = 10.0


class Server:
    """HTTPS on one port. `start`, then `keep_certificates` beside everything else, then `stop`."""

    def __init__(
        self,
        options: ServingOptions,
        routes: Routes,
        authenticator: Authenticator,
        authorizer: Authorizer,
    ) -> None:
        self._options = options
        self._routes = routes
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._runner: web.ServerRunner | None = None
        self._busy = 0
        self.certificates = Certificates(options)
        #: The port that is listened on, once started.
        self.port = 0

    async def start(self) -> None:
        """Listen. Raises CannotServeError."""
        server = web.Server(
            self._handle,
            access_log=None,
            keepalive_timeout=KEEPALIVE_S,
            max_line_size=HEADER_BYTES_MAX,
            max_field_size=HEADER_BYTES_MAX,
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=SHUTDOWN_S)
        await self._runner.setup()
        site = web.TCPSite(
            self._runner,
            self._options.bind_address or None,
            self._options.secure_port,
            ssl_context=self.certificates.context,
            reuse_address=True,
            reuse_port=self._options.permit_port_sharing or None,
        )
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            where = f"{self._options.bind_address}:{self._options.secure_port}"
            raise CannotServeError(
                f"cannot listen on {where}: {error.strerror}; choose another --secure-port, or 0"
                " to serve nothing"
            ) from error
        self.port = self._runner.addresses[0][1]
        log.info("Serving securely", extra={"port": self.port})

    async def keep_certificates(self) -> None:
        """Follow rotated certificates until cancelled."""
        while True:
            await asyncio.sleep(REFRESH_S)
            await asyncio.to_thread(self.certificates.refresh)

    async def stop(self) -> None:
        """Finish what is under way, then close."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    # --- one request -----------------------------------------------------------------------------

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._busy >= REQUESTS_MAX:
            return _response(text("too many requests, try again\n", 429))
        self._busy += 1
        try:
            return _response(await self._answer(request))
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("A page could not be made", extra={"path": request.path})
            return _response(text("Internal Server Error\n", 500, nosniff=True))
        finally:
            self._busy -= 1

    async def _answer(self, request: web.BaseRequest) -> Page:
        headers = [(name.lower(), value) for name, value in request.headers.items()]
        try:
            user = await self._authenticator.user(Credentials(headers, _certificate(request)))
        except UnknownUser as error:
            log.info("Unable to authenticate the request", extra={"v": 1, "err": str(error)})
            return unauthorized()
        verb, path = request.method.lower(), request.path
        try:
            is_allowed = await self._authorizer.may(user, verb, path)
        except ReviewError as error:
            return text(f'Internal Server Error: "{path}": {error}\n', 500, nosniff=True)
        if not is_allowed:
            return forbidden(user.name, verb, path)
        query = {name: tuple(request.query.getall(name)) for name in request.query}
        try:
            body = await _body(request)
        except ValueError:
            return text("request body too large\n", 413, nosniff=True)
        accept = ",".join(request.headers.getall("Accept", ()))
        return await self._routes.page(Asked(request.method, path, query, accept, body))


async def _body(request: web.BaseRequest) -> bytes:
    """The body. Raises ValueError if it is longer than anybody needs."""
    body = b""
    async for chunk in request.content.iter_any():
        body += chunk
        if len(body) > BODY_BYTES_MAX:
            raise ValueError("too long")
    return body


def _certificate(request: web.BaseRequest) -> x509.Certificate | None:
    transport = request.transport
    made = transport.get_extra_info("ssl_object") if transport is not None else None
    if not isinstance(made, ssl.SSLObject | ssl.SSLSocket):
        return None
    der = made.getpeercert(binary_form=True)
    return x509.load_der_x509_certificate(der) if der else None


def _response(page: Page) -> web.Response:
    headers = {"Cache-Control": "no-cache, private", "Server": "asched", **page.headers}
    if page.content_type:
        headers["Content-Type"] = page.content_type
    response = web.Response(body=page.body, status=page.status, headers=headers)
    if not page.content_type:
        response.headers.popall("Content-Type", None)
    return response
