"""The extender's port: filter, prioritize, preempt and bind of the protocol, and health.

    POST <anything>/filter        200 with the answer; 400 for an invalid request
    GET /healthz /livez /readyz   ok; /readyz is 503 until the cluster has been read

The last segment of the path selects the verb, for any urlPrefix. Errors are in the answer's Error
field where the protocol has one, else status 500: kube-scheduler then reports them on the pod, or
ignores the extender if it is ignorable.

Binding writes to the cluster with our credentials. It is served only to clients with a certificate
of the given CA, or on a loopback address; there `Host` must name a loopback address or localhost,
so that no web page reaches it by another name (DNS rebinding). Requests must have a JSON
`Content-Type`, which a page of another origin cannot send without a preflight request.

Bounds  NODES_BYTES_MAX of requests with whole nodes, NAMES_BYTES_MAX where the cluster is watched
        and names suffice: for one request, and for all that are in progress.
        BODY_S until a request has arrived.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from typing import Any, Final

import msgspec
import orjson

from asched.core.extender import wire
from asched.core.extender.answer import Advisor
from asched.core.extender.wire import WireError
from asched.core.framework.status import PluginError, PointError
from asched.core.model.decode import MalformedObjectError
from asched.core.model.quantity import QuantityError
from asched.serve.pages import JSON, NOT_FOUND, Page, text
from asched.serve.request import HttpRequest

log = logging.getLogger("asched.extender")

#: 5,000 nodes of 40 kB are 200 MB.
NODES_BYTES_MAX: Final = 256 * 1024 * 1024
#: The victims on 5,000 nodes, 100 on each, are 25 MB.
NAMES_BYTES_MAX: Final = 64 * 1024 * 1024
#: Twice kube-scheduler's httpTimeout, after which it ignores the answer.
BODY_S: Final = 10.0
#: Length of error messages, which may quote the request.
SHOWN_CHARS_MAX: Final = 1_000
VERBS: Final = ("filter", "prioritize", "preempt", "bind")
CERTIFICATE_NEEDED: Final = (
    "binding needs a client certificate: start asched extender with"
    " --client-ca-file, or let kube-scheduler bind"
)

#: Selects the advisor: of the watched cluster, or of the nodes in the request.
AdvisorFor = Callable[[wire.Arguments | None], Advisor]
#: Performs a bind request; returns the error, empty for success.
BindFunction = Callable[[wire.BindingArguments], Awaitable[str]]


class Opinion(msgspec.Struct, frozen=True):
    """The parts of the port: `is_ready` returns what is missing, empty for nothing."""

    advisor_for: AdvisorFor
    bind: BindFunction
    is_ready: Callable[[], str]
    may_bind: bool
    bytes_max: int = NODES_BYTES_MAX
    #: Whether the port serves this machine only: other host names are refused.
    is_local: bool = False


class _BadQuestionError(Exception):
    """The body is not a request of the protocol."""


_BAD: Final = (
    orjson.JSONDecodeError,
    WireError,
    MalformedObjectError,
    QuantityError,
    _BadQuestionError,
)


class ExtenderService:
    """Answers requests; the owner of the port calls `handle`."""

    def __init__(self, opinion: Opinion) -> None:
        self._opinion = opinion
        #: Bytes of the requests in progress.
        self._held = 0

    async def handle(self, request: HttpRequest) -> Page:
        if request.method == "POST":
            return await self._ask(request)
        if request.method in ("GET", "HEAD") and request.path in ("/healthz", "/livez", "/readyz"):
            problem = self._opinion.is_ready() if request.path == "/readyz" else ""
            return text(problem or "ok", 503 if problem else 200)
        return NOT_FOUND

    async def _ask(self, request: HttpRequest) -> Page:
        if self._opinion.is_local and not is_local_name(request.header("host")):
            return text("this port serves localhost and loopback addresses only\n", 421)
        if request.header("content-type").partition(";")[0].strip().lower() != JSON:
            return text(f"a request needs Content-Type: {JSON}\n", 415)
        verb = request.path.rpartition("/")[2]
        if verb not in VERBS:
            return text(f"no such verb; the verbs are {', '.join(VERBS)}\n", 404)
        if problem := self._opinion.is_ready():
            return text(f"{problem}\n", 503)
        pieces: list[bytes] = []
        try:
            async with asyncio.timeout(BODY_S):
                async for piece in request.pieces():
                    pieces.append(piece)
                    self._held += len(piece)
                    if self._held > self._opinion.bytes_max:
                        return self._too_long(sum(map(len, pieces)))
            return await self._answer(verb, b"".join(pieces))
        except TimeoutError:
            return text("the request did not arrive in time\n", 408)
        finally:
            self._held -= sum(map(len, pieces))

    async def _answer(self, verb: str, body: bytes) -> Page:
        try:
            return _json(await _answered(self._opinion, verb, orjson.loads(body)))
        except Exception as error:
            raised = error.error if isinstance(error, PluginError) else error
            if isinstance(raised, _BAD):
                return text(f"{verb}: {_shown(str(raised))}\n", 400)
            if isinstance(raised, PointError):
                return _failed(verb, str(raised))
            log.exception("A plugin raised")
            return _failed(verb, f"a plugin raised {type(raised).__name__}: {raised}")

    def _too_long(self, own: int) -> Page:
        bound = self._opinion.bytes_max
        if own < self._held:
            log.warning("Too many requests at a time", extra={"bytes": self._held})
            return text("too many requests at a time, try again\n", 503)
        message = f"the request is longer than {bound} bytes; set nodeCacheCapable: true\n"
        return text(message, 413)


def is_local_name(host: str) -> bool:
    """Whether a `Host` header names this machine by a loopback address or as localhost."""
    name = host.rpartition(":")[0] if re.search(r":[0-9]*$", host) else host
    if name.lower() == "localhost":
        return True
    try:
        return ip_address(name.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


async def _answered(opinion: Opinion, verb: str, value: Any) -> Any:
    """The JSON of an answer. Raises errors of the request, or PointError."""
    if verb == "bind":
        if not opinion.may_bind:
            return wire.binding_answer(CERTIFICATE_NEEDED)
        return wire.binding_answer(await opinion.bind(wire.read_binding_arguments(value)))
    if verb == "preempt":
        question = wire.read_preemption_arguments(value)
        _check_pod(question.pod)
        return opinion.advisor_for(None).preempt(question)
    arguments = wire.read_arguments(value)
    _check_pod(arguments.pod)
    advisor = opinion.advisor_for(arguments)
    return advisor.filter(arguments) if verb == "filter" else advisor.prioritize(arguments)


def _failed(verb: str, message: str) -> Page:
    """An internal error, in the answer if its type has an error field."""
    message = _shown(message)
    log.warning("%s failed: %s", verb, message)
    if verb == "filter":
        return _json(wire.filter_error(message))
    if verb == "bind":
        return _json(wire.binding_answer(message))
    return text(f"{verb}: {message}\n", 500)


def _check_pod(pod: dict[str, Any]) -> None:
    if not pod:
        raise _BadQuestionError("the request has no Pod")


def _shown(message: str) -> str:
    """One line of text that may come from the request."""
    return "".join(letter if letter.isprintable() else "?" for letter in message[:SHOWN_CHARS_MAX])


def _json(value: Any) -> Page:
    try:
        return Page(orjson.dumps(value), content_type=JSON)
    except orjson.JSONEncodeError as error:  # nodes are returned unchanged
        raise _BadQuestionError(f"its nodes cannot be encoded: {error}") from error
