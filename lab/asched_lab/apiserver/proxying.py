"""Requests to pods through the server: `pods/[SCHEME:]NAME[:PORT]/proxy/PATH`.

Rules   as in kube-apiserver, the request goes to the pod's IP without the client's credentials, and
        the pod's certificate is not verified. Unlike there, an address of loopback is allowed (the
        pods of this server are processes beside it), and links in pages stay as they are.
Bounds  ANSWER_S for a request.
"""

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

import aiohttp
from aiohttp import web

from asched_lab.apiserver import auth, crud
from asched_lab.apiserver.call import Call
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.refusals import ApiError, bad_request
from asched_lab.apiserver.resources import PODS
from asched_lab.apiserver.routing import VERBS

JsonObject = dict[str, Any]

ANSWER_S: Final = 60.0
PROXIED: Final = re.compile(r"/api/v1/namespaces/([^/]+)/pods/([^/]+)/proxy/(.*)")
#: Headers of one connection.
OF_CONNECTION: Final = frozenset(
    {"connection", "content-length", "host", "keep-alive", "transfer-encoding", "upgrade"}
)
#: How names of headers about the client begin.
OF_CLIENT: Final = ("authorization", "impersonate-")


def destination(ctx: Context, call: Call) -> str | None:
    """The URL that a request to a pod is for; None for every other call. Raises ApiError."""
    found = PROXIED.fullmatch(call.path)
    if found is None:
        return None
    namespace, named, path = found.groups()
    verb = VERBS.get(call.method, call.method.lower())
    auth.check(ctx, call.user, verb, PODS, namespace, named, "proxy")
    scheme, name, port = split(named)
    pod = crud.existing(ctx, PODS, namespace, name).obj
    address = pod["status"].get("podIP")
    if not address:
        raise bad_request("address not allowed")
    shown = f"[{address}]" if ":" in address else address
    port = port or first_port(pod)
    query = f"?{urlencode(call.query)}" if call.query else ""
    return f"{scheme}://{shown}{f':{port}' if port else ''}/{quote(path)}{query}"


def split(text: str) -> tuple[str, str, str]:
    """Scheme, name and port of `[SCHEME:]NAME[:PORT]`. Raises ApiError."""
    match text.split(":"):
        case [name]:
            scheme, port = "", ""
        case [name, port]:
            scheme = ""
        case [scheme, name, port]:
            pass
        case _:
            scheme, name, port = "", "", ""
    if not name or scheme not in ("", "http", "https") or (port and not port.isdecimal()):
        raise bad_request(f'invalid pod request "{text}"')
    return scheme or "http", name, port


def first_port(pod: JsonObject) -> str:
    """The first port that a container declares; empty if none does."""
    ports = [port for one in pod["spec"]["containers"] for port in one.get("ports") or ()]
    return str(ports[0]["containerPort"]) if ports else ""


async def passed_on(request: web.BaseRequest, call: Call, url: str) -> web.StreamResponse:
    """Send a request to a pod, and the answer to the client as it comes. Raises ApiError."""
    sent = {k: v for k, v in _end_to_end(request.headers) if not k.lower().startswith(OF_CLIENT)}
    timeout = aiohttp.ClientTimeout(total=ANSWER_S)
    try:
        async with (
            aiohttp.ClientSession(auto_decompress=False, timeout=timeout) as session,
            session.request(
                call.method, url, data=call.body, headers=sent, ssl=False, allow_redirects=False
            ) as answer,
        ):
            headers = _end_to_end(answer.headers)
            response = web.StreamResponse(status=answer.status, headers=headers)
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
            return response
    except aiohttp.ClientConnectorError as error:
        text = f"error trying to reach service: {error}"
        raise ApiError(503, text, reason="ServiceUnavailable") from error


def _end_to_end(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers.items() if name.lower() not in OF_CONNECTION]
