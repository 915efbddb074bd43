"""Sending answers to the client, with faults applied."""

import asyncio
from typing import Final

import orjson
from aiohttp import web

from asched_lab.apiserver.call import Call, Reply
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.faults import LIST_ACTIONS, Fault
from asched_lab.apiserver.routing import route
from asched_lab.apiserver.statuses import ApiError
from asched_lab.apiserver.watching import Watch

#: Pieces of an answer that is sent slowly.
PIECES: Final = 8


async def instead(request: web.BaseRequest, fault: Fault) -> web.StreamResponse | None:
    """Apply a fault that replaces the handling of a request; None if it does not."""
    match fault.action:
        case "reset_before":
            return reset(request)
        case "black_hole":
            await asyncio.Event().wait()  # until its client leaves
        case "refuse":
            return response(fault.refusal())
    return None


def handled(ctx: Context, call: Call, fault: Fault | None) -> Reply | Watch:
    """The answer to a call, of an older state or version if the fault says so. Raises ApiError."""
    if fault is None or fault.action not in LIST_ACTIONS:
        return route(ctx, call)
    if call.flag("watch"):
        raise ApiError(400, "sendInitialEvents is forbidden for watch unless WatchList is enabled")
    if fault.action == "stale_list":
        past = str(max(1, ctx.store.revision - fault.changes))
        query = {**call.query, "resourceVersion": past, "resourceVersionMatch": "Exact"}
        try:
            old = Call(call.method, call.path, query, call.headers, call.body, call.user)
            return route(ctx, old)
        except ApiError:  # compacted, or a continued list
            return route(ctx, call)
    reply = route(ctx, call)
    if isinstance(reply, Reply) and reply.status == 200:
        shown = orjson.loads(reply.body)
        lowered = max(1, int(shown["metadata"]["resourceVersion"]) - fault.changes)
        shown["metadata"]["resourceVersion"] = str(lowered)
        reply.body = orjson.dumps(shown)
    return reply


def is_list(call: Call) -> bool:
    """Whether a call reads all objects of a kind, as a list or streamed."""
    if call.method != "GET":
        return False
    return not call.flag("watch") or call.flag("sendInitialEvents")


async def delivered(
    request: web.BaseRequest, reply: Reply, fault: Fault | None
) -> web.StreamResponse:
    """Send an answer, or what the fault leaves of it."""
    match fault.action if fault is not None else "":
        case "reset_after":
            return reset(request)
        case "half_open":
            await asyncio.Event().wait()  # until its client leaves
        case "delay":
            assert fault is not None
            await asyncio.sleep(fault.seconds)
        case "cut_answer" | "slow_answer":
            assert fault is not None
            return await _in_pieces(request, reply, fault)
    return response(reply)


async def _in_pieces(request: web.BaseRequest, reply: Reply, fault: Fault) -> web.StreamResponse:
    """Send an answer slowly, or break off in the middle; its length header stays right."""
    headers = {**reply.headers, "Content-Type": reply.content_type}
    stream = web.StreamResponse(status=reply.status, headers=headers)
    stream.content_length = len(reply.body)
    await stream.prepare(request)
    if fault.action == "cut_answer":
        await stream.write(reply.body[: len(reply.body) // 2])
        return reset(request)
    size = len(reply.body) // PIECES + 1
    for start in range(0, len(reply.body), size):
        await asyncio.sleep(fault.seconds / PIECES)
        await stream.write(reply.body[start : start + size])
    await stream.write_eof()
    return stream


def disturbed(frames: list[bytes], fault: Fault) -> list[bytes]:
    """Frames of a watch with the fault applied."""
    if fault.action == "double_event":
        return [*frames, frames[-1]]
    if fault.action == "reorder_events" and not any(
        b'"BOOKMARK"' in frame[:20] for frame in frames
    ):
        return frames[::-1]
    return frames


def reset(request: web.BaseRequest) -> web.StreamResponse:
    """Break the connection without an answer."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)


def response(reply: Reply) -> web.Response:
    headers = reply.headers
    if reply.content_type:
        headers["Content-Type"] = reply.content_type
    made = web.Response(status=reply.status, body=reply.body, headers=headers)
    for warning in reply.warnings:
        made.headers.add("Warning", warning)
    return made
