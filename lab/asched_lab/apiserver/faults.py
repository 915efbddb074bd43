"""Injected faults: rules that make the server drop, delay, refuse, alter or forget.

A rule selects calls and names an action; `count` ends it after so many hits, `rate` lets it hit a
seeded share of the calls. A rule by name (`NAMES`, `asched apiserver --fault NAME=RATE`, and PUT of
`PATH`) is one of these with its method, status and seconds; `sim/faults.py` has the same faults
in virtual time, with the same answers.

Faults of a request, before or instead of its handling:

    reset_before   the connection breaks and nothing was written
    black_hole     nothing is written and nothing is answered; the connection stays
    refuse         answered with `status`, text and Retry-After instead of being handled

after its handling:

    reset_after    the write is done and then the connection breaks without an answer
    half_open      the write is done and the answer never comes; the connection stays
    cut_answer     half of the answer comes and then the connection breaks
    delay          answered `seconds` later (the write itself happens at once)
    slow_answer    the answer is sent slowly, over `seconds`

of a list (a streaming list is refused, as by a server without them, and so becomes a list):

    stale_list     it shows the state of `changes` versions ago
    lower_version  its version is lower by `changes` than its content

of a watch, from its next frame on:

    drop_watch     the connection breaks after the frame
    expire_watch   it ends with an ERROR event with code 410
    mute_watch     it stays open but sends nothing, not even its end
    double_event   the newest event is sent twice
    reorder_events waiting events are sent in reverse; bookmarks stay in place
"""

import asyncio
import random
import re
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import orjson
from aiohttp import web

from asched_lab.apiserver.call import JSON, TEXT, Call, Reply
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.refusals import ApiError
from asched_lab.apiserver.routing import route
from asched_lab.apiserver.watching import Watch

OVERLOADED: Final = "Too many requests, please try again later.\n"
LIST_ACTIONS: Final = frozenset({"stale_list", "lower_version"})
WATCH_ACTIONS: Final = frozenset(
    {"drop_watch", "expire_watch", "mute_watch", "double_event", "reorder_events"}
)
WRITES: Final = "POST PUT PATCH"
#: Where the rules in force are read and replaced; no fault applies to it.
PATH: Final = "/debug/faults"


def _status(code: int, reason: str, message: str) -> str:
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return orjson.dumps(status | {"message": message, "reason": reason, "code": code}).decode()


#: The answer of a server whose own retries failed.
CONFLICT: Final = _status(
    409,
    "Conflict",
    "the object has been modified; please apply your changes to the latest version",
)
GONE: Final = _status(410, "Expired", "too old resource version: 1 (2)")


@dataclass(slots=True)
class Fault:
    """One rule; `path` is a regular expression searched in the path, `method` one or several
    methods, empty for any; `changes` counts versions.
    """

    action: str
    path: str = ""
    method: str = ""
    count: int | None = None
    rate: float = 1.0
    status: int = 429
    retry_after_s: int | None = 1
    text: str = OVERLOADED
    seconds: float = 0.0
    changes: int = 20
    hits: int = field(default=0, init=False)

    def covers(self, method: str, path: str) -> bool:
        if self.count is not None and self.hits >= self.count:
            return False
        if self.method and method not in self.method.split():
            return False
        return re.search(self.path, path) is not None

    def refusal(self) -> Reply:
        headers = {} if self.retry_after_s is None else {"Retry-After": str(self.retry_after_s)}
        media = JSON if self.text.startswith("{") else TEXT
        return Reply(self.status, self.text.encode(), media, headers)


def _refusal(status: int, text: str, method: str = "", path: str = "") -> Fault:
    return Fault("refuse", path, method, status=status, retry_after_s=None, text=text)


#: A collection, in contrast to an object; watches start there, too.
COLLECTION: Final = r"/(v1|namespaces/[^/]+)/[a-z]+$"
#: Every fault by its name, as it applies to a whole server.
NAMES: Final[dict[str, Fault]] = {
    "delay": Fault("delay", seconds=1.0),
    "reset": Fault("reset_before"),
    "half-open": Fault("half_open"),
    "black-hole": Fault("black_hole"),
    "cut-answer": Fault("cut_answer"),
    "lost-answer": Fault("reset_after", method=WRITES),
    "slow-answer": Fault("slow_answer", seconds=1.0),
    "conflict": _refusal(409, CONFLICT, WRITES),
    "gone": _refusal(410, GONE, "GET", COLLECTION),
    "overload": Fault("refuse"),
    "server-error": _refusal(500, "etcdserver: request timed out"),
    "unavailable": _refusal(503, "apiserver is shutting down"),
    "stale-list": Fault("stale_list"),
    "lower-version": Fault("lower_version"),
    "drop-watch": Fault("drop_watch"),
    "expire-watch": Fault("expire_watch"),
    "mute-watch": Fault("mute_watch"),
    "double-event": Fault("double_event"),
    "reorder-events": Fault("reorder_events"),
}


def named(name: str, **changed: Any) -> Fault:
    """A rule by its name, with some of its fields changed. Raises ValueError."""
    if name not in NAMES:
        raise ValueError(f"there is no fault {name!r}; there are {', '.join(NAMES)}")
    unknown = changed.keys() - (asdict(NAMES[name]).keys() - {"action", "hits"})
    if unknown:
        raise ValueError(f"a fault has no {', '.join(sorted(unknown))}")
    fault = replace(NAMES[name], **changed)
    if not isinstance(fault.rate, int | float) or not 0 <= fault.rate <= 1:
        raise ValueError(f"the rate of {name} must be a number from 0 to 1, not {fault.rate!r}")
    return fault


class Faults:
    """The rules in force, checked in the order they were added; the first that hits counts."""

    def __init__(self, seed: int = 0) -> None:
        self.rules: list[Fault] = []
        self._random = random.Random(seed)

    def add(self, fault: Fault) -> Fault:
        self.rules.append(fault)
        return fault

    def clear(self) -> None:
        self.rules.clear()

    def hit(
        self, method: str, path: str, *, watch: bool = False, listing: bool = False
    ) -> Fault | None:
        """The fault that applies to this call, if any; counts as a hit. `watch`: frames of a watch
        are sent, `listing`: the call reads a list.
        """
        for fault in self.rules:
            if (fault.action in WATCH_ACTIONS) != watch or not fault.covers(method, path):
                continue
            if fault.action in LIST_ACTIONS and not listing:
                continue
            if fault.rate >= 1.0 or self._random.random() < fault.rate:
                fault.hits += 1
                return fault
        return None

    def handle(self, method: str, body: bytes) -> Reply:
        """`PATH`: GET returns the rules and their hits; PUT replaces them by a list of names with
        fields, or by an object of names and rates; DELETE removes them. Raises ApiError.
        """
        if method == "PUT":
            try:
                wanted = orjson.loads(body)
                if isinstance(wanted, dict):
                    wanted = [{"name": name, "rate": rate} for name, rate in wanted.items()]
                self.rules = [named(**rule) for rule in wanted]
            except (TypeError, ValueError) as error:
                raise ApiError(400, f"{PATH}: {error}") from None
        elif method == "DELETE":
            self.clear()
        elif method != "GET":
            raise ApiError(405, f"{PATH} supports GET, PUT and DELETE")
        return Reply(200, orjson.dumps([asdict(rule) for rule in self.rules]))


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
