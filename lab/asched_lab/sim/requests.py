"""Requests as the embedded server's handlers take them, without a network."""

from functools import lru_cache
from urllib.parse import parse_qsl, unquote

import msgspec

from asched.core.framework.effects import Bind, PodRef
from asched.kube.transport import Reply
from asched.kube.writes import WireRequest
from asched_lab.apiserver.auth import ADMIN
from asched_lab.apiserver.call import Call, refusal
from asched_lab.apiserver.call import Reply as ServerReply
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.routing import route
from asched_lab.apiserver.statuses import ApiError
from asched_lab.apiserver.watching import Watch


class _Target(msgspec.Struct):
    name: str


class _Binding(msgspec.Struct):
    metadata: PodRef
    target: _Target


def ask(ctx: Context, request: WireRequest) -> ServerReply | Watch:
    """Let the server answer a request at once."""
    path, query = _read(request.path)
    headers = {"content-type": request.content_type, "accept": request.accept}
    call = Call(request.method, path, dict(query), headers, request.body or b"", ADMIN)
    try:
        return route(ctx, call)
    except ApiError as error:
        return refusal(error)


@lru_cache(maxsize=4096)  # idle streams repeat the same requests
def _read(target: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The path and the query of a request."""
    path, _, query = target.partition("?")
    return unquote(path), tuple(parse_qsl(query, keep_blank_values=True))


def send(ctx: Context, request: WireRequest) -> Reply:
    """The same for requests that are not watches."""
    reply = ask(ctx, request)
    assert isinstance(reply, ServerReply)
    head = b"".join(b"\r\n%s: %s" % (k.encode(), v.encode()) for k, v in reply.headers.items())
    return Reply(reply.status, reply.body, head)


def bind_of(request: WireRequest) -> Bind:
    """The binding in a request."""
    body = msgspec.json.decode(request.body or b"", type=_Binding)
    return Bind(pod=body.metadata, node=body.target.name)
