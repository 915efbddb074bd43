"""The extender's port: filter, prioritize, preempt and bind of the protocol, and health.

    POST <anything>/filter        200 with the answer; 400 for what is no question
    GET /healthz /livez /readyz   ok; /readyz is 503 until the cluster is known

The last word of the path picks the verb, so that any urlPrefix will do. An error of ours is told in
the answer's Error where the protocol has one, else by status 500: kube-scheduler then shows it to
the pod, or ignores the extender if it is ignorable.

Binding writes to the cluster with our credentials, for whoever asks. It is served only to clients
with a certificate of the given authority, or on a loopback address.

Bounds  BODY_BYTES_MAX of a question: whole nodes of the largest clusters.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import orjson
from aiohttp import web

from asched.core.extender import wire
from asched.core.extender.answer import Advisor
from asched.core.extender.fields import WireError
from asched.core.framework.status import PointError
from asched.core.model.decode import MalformedObjectError

log = logging.getLogger("asched.extender")

#: 5,000 nodes of 40 kB are 200 MB.
BODY_BYTES_MAX: Final = 512 * 1024 * 1024
VERBS: Final = ("filter", "prioritize", "preempt", "bind")
NO_STRANGERS: Final = (
    "binding is served to clients with a certificate only: start asched extender with"
    " --client-ca-file, or let kube-scheduler bind"
)
_JSON: Final = "application/json"

#: Runs a bind question to its end; the error, empty for success.
BindFunction = Callable[[wire.BindingArguments], Awaitable[str]]


class AdvisorFor(Protocol):
    """Who answers a question: the cluster that is followed, or the nodes the question brings."""

    def __call__(self, question: wire.Arguments | None) -> Advisor: ...


@dataclass(frozen=True, slots=True)
class Opinion:
    """What the port needs: `is_ready` tells what is missing, empty for nothing."""

    advisor_for: AdvisorFor
    bind: BindFunction
    is_ready: Callable[[], str]
    may_bind: bool


class _BadQuestionError(Exception):
    """What was sent is no question of the protocol."""


def application(opinion: Opinion) -> web.Application:
    """The handlers, to be run by whoever owns the port."""

    async def ask(request: web.Request) -> web.Response:
        verb = request.path.rpartition("/")[2]
        if verb not in VERBS:
            told = f"no such verb; there are {', '.join(VERBS)}\n"
            return web.Response(status=404, text=told)
        if trouble := opinion.is_ready():
            return web.Response(status=503, text=f"{trouble}\n")
        try:
            value = orjson.loads(await request.read())
            return _json(await _answered(opinion, verb, value))
        except (orjson.JSONDecodeError, WireError, MalformedObjectError, _BadQuestionError) as bad:
            return web.Response(status=400, text=f"{verb}: {bad}\n")
        except PointError as error:
            return _failed(verb, str(error))
        except Exception as error:
            log.exception("A plugin raised")
            return _failed(verb, f"a plugin raised {type(error).__name__}: {error}")

    async def well(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def ready(_: web.Request) -> web.Response:
        trouble = opinion.is_ready()
        return web.Response(status=503 if trouble else 200, text=trouble or "ok")

    app = web.Application(client_max_size=BODY_BYTES_MAX)
    app.router.add_get("/healthz", well)
    app.router.add_get("/livez", well)
    app.router.add_get("/readyz", ready)
    app.router.add_post("/{path:.*}", ask)
    return app


async def _answered(opinion: Opinion, verb: str, value: Any) -> Any:
    """The JSON of an answer. Raises what is wrong with the question, or PointError."""
    if verb == "bind":
        if not opinion.may_bind:
            return wire.binding_answer(NO_STRANGERS)
        return wire.binding_answer(await opinion.bind(wire.read_binding_arguments(value)))
    if verb == "preempt":
        question = wire.read_preemption_arguments(value)
        _check_pod(question.pod)
        return opinion.advisor_for(None).preempt(question)
    arguments = wire.read_arguments(value)
    _check_pod(arguments.pod)
    advisor = opinion.advisor_for(arguments)
    return advisor.filter(arguments) if verb == "filter" else advisor.prioritize(arguments)


def _failed(verb: str, message: str) -> web.Response:
    """An error of ours, in the answer where it can tell one."""
    log.warning("%s failed: %s", verb, message)
    if verb == "filter":
        return _json(wire.filter_error(message))
    if verb == "bind":
        return _json(wire.binding_answer(message))
    return web.Response(status=500, text=f"{verb}: {message}\n")


def _check_pod(pod: dict[str, Any]) -> None:
    if not pod:
        raise _BadQuestionError("the question has no Pod")


def _json(value: Any) -> web.Response:
    return web.Response(body=orjson.dumps(value), content_type=_JSON)
