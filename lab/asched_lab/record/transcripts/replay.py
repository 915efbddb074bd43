"""Replay a recorded transcript against a server, embedded or real: its answers, and differences.

A placeholder (`$uid1`, `$rv2`, ...) is bound where it is first met and compared afterwards; events
of a watch bind only after it ended. What the recordings leave open is left open here as well: the
order of keys, extra bookmarks, the wording of Go's decoder errors, the order of causes, which rule
allowed something, and lists whose version is later than the last write.

Bounds  HANG_S for a stream that the server closes.
"""

import asyncio
import base64
import itertools
import json
import re
import ssl
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import aiohttp
from yarl import URL

from asched_lab.apiserver.call import User
from asched_lab.apiserver.context import Options
from asched_lab.apiserver.faults import Fault
from asched_lab.apiserver.server import ApiServer
from asched_lab.measure.real import SCHEDULER_TOKEN, TOKEN, RealServer

Json = Any
#: So long that the server has failed.
HANG_S = 300.0
PLACEHOLDER = re.compile(r"\$[a-zA-Z]+\d*")
#: How fast the server's clockwork runs here; a recorded second lasts this long.
PACE = 0.05
#: How long a watch's last frames may take to arrive.
SETTLE_S = 2.0
DECODER_WORDS = re.compile(
    r"cannot unmarshal|json parse error|looking for beginning of value|unexpected end of JSON"
    r"|cannot parse"
)
USERS = {
    "admin": User("admin", ("system:masters", "system:authenticated"), "1"),
    "scheduler": User("system:kube-scheduler", ("system:authenticated",), "2"),
    "nobody": User("nobody", ("system:authenticated",), "3"),
}
TOKENS = {"admin": "admin", "scheduler": "scheduler", "nobody": "nobody", "badtoken": "unknown"}
#: Marks the path of a list's own version; see `_compare`.
LIST_VERSION = "list.metadata.resourceVersion"
HEADERS_BOTH_WAYS = ("retry-after", "warning")


@dataclass
class Difference:
    """One disagreement: where, what was recorded, what came."""

    scenario: str
    line: int
    path: str
    recorded: Json
    came: Json

    def __str__(self) -> str:
        recorded, came = (json.dumps(value)[:400] for value in (self.recorded, self.came))
        return (
            f"{self.scenario}#{self.line} {self.path}\n    recorded {recorded}\n    came     {came}"
        )


@dataclass
class Answer:
    """What came for one line; `frames` and `is_ended` are those of a watch."""

    status: int
    headers: Mapping[str, str]
    raw: bytes = b""
    frames: list[Json] = field(default_factory=list)
    is_ended: bool = False


@asynccontextmanager
async def server_of(group: str, scenario: str) -> AsyncIterator[ApiServer]:
    """A fresh server set up as the recording's group was. Applies were recorded within a second, by
    which managers are ordered.
    """
    is_applied, now_s = scenario == "server_side_apply", time.time()
    server = ApiServer(
        options=Options(
            service_accounts=group == "admission",
            node_taints=group == "admission",
            managed_fields=is_applied,
        ),
        clock=(lambda: now_s) if is_applied else time.time,
        users={TOKENS[name]: user for name, user in USERS.items()},
        anonymous=group != "noanon",
        pace=PACE,
        seed=1,
    )
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def _present_times() -> dict[str, str]:
    """What is sent for placeholders that are not numbered, and so were not kept apart."""
    now = datetime.now(UTC).isoformat(timespec="seconds").removesuffix("+00:00")
    return {"$time": f"{now}Z", "$microtime": f"{now}.000000Z"}


@dataclass
class Replay:
    """One scenario on one server."""

    scenario: str
    lines: list[Json]
    server: ApiServer | RealServer
    group: str
    context: ssl.SSLContext | None = None
    bound: dict[str, str] = field(default_factory=dict)
    times: dict[str, str] = field(default_factory=_present_times)
    differences: list[Difference] = field(default_factory=list)
    answers: dict[int, Answer] = field(default_factory=dict)
    object_versions: set[str] = field(default_factory=set)
    at: int = 0
    compacted: bool = False

    async def run(self) -> list[Difference]:
        connector = aiohttp.TCPConnector(ssl=self.context or True)
        async with aiohttp.ClientSession(
            auto_decompress=False, connector=connector
        ) as self.session:
            await self._lines(0, len(self.lines))
        return self.differences

    async def version(self) -> str:
        """The server's, such as v1.36.3."""
        connector = aiohttp.TCPConnector(ssl=self.context or True)
        headers = self._credentials("admin")
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.get(f"{self.server.url}/version", headers=headers) as answer,
        ):
            return str((await answer.json())["gitVersion"])

    async def _lines(self, start: int, end: int) -> int:
        index = start
        while index < end:
            index = await self._line(index)
        return index

    async def _line(self, index: int) -> int:
        """Play one line, and those that run while it stays open; returns the next index."""
        line = self.lines[index]
        await self._prepare(line)
        async with self._send(line) as response:
            came = self.answers[index] = Answer(response.status, response.headers)
            if "events" not in line:
                came.raw = await response.read()
                self.at = index
                self._compare(line["response"], came)
                return index + 1
            reader = asyncio.create_task(_read(response, came))
            after = await self._lines(index + 1, index + 1 + line.get("during", 0))
            wanted = sum(event.get("type") != "BOOKMARK" for event in line["events"])
            await self._settle(line, reader, came.frames, wanted)
            self.at = index
            self._compare(line["response"], came, streamed=True)
            self._compare_events(line["events"], came.frames)
        return after

    async def _prepare(self, line: Json) -> None:
        """Bring about what the recording's surroundings did by themselves."""
        if isinstance(self.server, RealServer):
            await asyncio.sleep(line.get("pause_s", 0.0))
            return
        status = line["response"]["status"]
        expired = status == 410 and self.group == "compact"
        if expired and not self.compacted:
            # The real server writes by itself and was compacted every two seconds.
            self.server.create("leases", {"metadata": {"name": "x", "namespace": "kube-system"}})
            self.server.store.begin_history()
            self.compacted = True
        if self.group == "inflight" and status == 429:
            self.server.faults.add(Fault("refuse", count=1))

    async def _settle(
        self, line: Json, reader: "asyncio.Task[None]", frames: list[Json], wanted: int
    ) -> None:
        if line.get("closed_by") == "server":
            await asyncio.wait_for(reader, HANG_S)
            return
        for _ in range(int(SETTLE_S / 0.01)):
            if sum(frame.get("type") != "BOOKMARK" for frame in frames) >= wanted:
                break
            await asyncio.sleep(0.01)
        reader.cancel()

    def _send(self, line: Json) -> Any:
        request = line["request"]
        who = line.get("as", "admin")
        headers = {k: self._filled(v) for k, v in (request.get("headers") or {}).items()}
        headers |= {"Accept-Encoding": "identity", **self._credentials(who)}
        query = {k: self._filled(v) for k, v in (request.get("query") or {}).items()}
        url = URL(self.server.url + self._filled(request["path"]), encoded=True)
        skip = () if "content-type" in headers else ("Content-Type",)
        return self.session.request(
            request["method"],
            url.with_query(query) if query else url,
            headers=headers,
            data=self._body(request.get("body")),
            skip_auto_headers=(*skip, "User-Agent", "Accept"),
        )

    def _credentials(self, who: str) -> dict[str, str]:
        if who == "anonymous":
            return {}
        if not isinstance(self.server, RealServer):
            return {"Authorization": f"Bearer {TOKENS[who]}"}
        tokens = {"scheduler": SCHEDULER_TOKEN, "badtoken": TOKENS["badtoken"]}
        headers = {"Authorization": f"Bearer {tokens.get(who, TOKEN)}"}
        return {**headers, "Impersonate-User": who} if who == "nobody" else headers

    def _body(self, body: Json) -> bytes | None:
        if body is None:
            return None
        if isinstance(body, dict) and "$raw" in body:
            return self._filled(body["$raw"]).encode()
        if isinstance(body, dict) and "$base64" in body:
            return base64.b64decode(body["$base64"])
        return self._filled(json.dumps(body)).encode()

    def _filled(self, text: str) -> str:
        known = {**self.times, **self.bound}
        return PLACEHOLDER.sub(lambda match: known.get(match[0], match[0]), text)

    def _compare(self, recorded: Json, answer: Answer, *, streamed: bool = False) -> None:
        self._check("status", recorded["status"], answer.status)
        kind = (recorded.get("content_type") or "").partition(";")[0]
        came = answer.headers.get("Content-Type", "").partition(";")[0]
        if kind:
            self._check("content_type", kind, came)
        headers = recorded.get("headers") or {}
        for name, value in headers.items():
            self._check(f"headers.{name}", value, answer.headers.get(name))
        for name in HEADERS_BOTH_WAYS:
            if name not in headers:
                self._check(f"headers.{name}", None, answer.headers.get(name))
        body = recorded.get("body")
        if streamed or body is None or (isinstance(body, dict) and "$omitted" in body):
            return
        if isinstance(body, str):
            self._check("body", body, answer.raw.decode())
            return
        try:
            listed = str(body.get("kind", "")).endswith("List") or "rows" in body
            self._check("body.list" if listed else "body", body, json.loads(answer.raw))
        except json.JSONDecodeError:
            self._differ("body", body, answer.raw.decode(errors="replace"))

    def _compare_events(self, recorded: list[Json], came: list[Json]) -> None:
        wanted = [event for event in recorded if not _plain_bookmark(event)]
        seen = [event for event in came if not _plain_bookmark(event)]
        if len(wanted) != len(seen):
            brief = [[(e.get("type"), _name(e)) for e in events] for events in (wanted, seen)]
            self._differ("events", brief[0], brief[1])
        for index, (left, right) in enumerate(zip(wanted, seen, strict=False)):
            mark = "bookmark" if left.get("type") == "BOOKMARK" else ""
            self._check(f"events[{index}]{mark}", left, right)

    def _differ(self, path: str, recorded: Json, came: Json) -> None:
        self.differences.append(Difference(self.scenario, self.at, path, recorded, came))

    def _check(self, path: str, recorded: Json, came: Json) -> None:
        if isinstance(recorded, dict) and isinstance(came, dict):
            self._check_object(path, recorded, came)
        elif isinstance(recorded, list) and isinstance(came, list):
            self._check_list(path, recorded, came)
        elif isinstance(recorded, str) and "$" in recorded and PLACEHOLDER.search(recorded):
            self._check_text(path, recorded, came)
        elif (recorded, type(recorded)) == (came, type(came)):
            return
        elif not _decoder_words(path, recorded, came):
            self._differ(path, recorded, came)

    def _check_object(self, path: str, recorded: Json, came: Json) -> None:
        if self.scenario != "server_side_apply" and path.endswith("metadata"):
            came = {k: v for k, v in came.items() if k != "managedFields"}
        for name in sorted(recorded.keys() | came.keys()):
            here = f"{path}.{name}"
            if path.endswith("body.status") and name == "reason" and "allowed" in recorded:
                continue
            if name not in recorded:
                self._differ(here, None, came[name])
            elif name not in came:
                self._differ(here, recorded[name], None)
            else:
                self._check(here, recorded[name], came[name])

    def _check_list(self, path: str, recorded: Json, came: Json) -> None:
        if path.endswith("causes"):
            recorded, came = (_as_set(causes) for causes in (recorded, came))
        if len(recorded) != len(came):
            self._differ(f"{path}.length", len(recorded), len(came))
        for index, (left, right) in enumerate(zip(recorded, came, strict=False)):
            self._check(f"{path}[{index}]", left, right)

    def _check_text(self, path: str, recorded: str, came: Json) -> None:
        if recorded == "$port" or (recorded.startswith("$") and not isinstance(came, str)):
            return
        names: list[str] = []
        pattern = ""
        last = 0
        for match in PLACEHOLDER.finditer(recorded):
            pattern += re.escape(recorded[last : match.start()])
            name, last = match[0], match.end()
            if name in self.bound and not self._is_later_list(path, name, came):
                pattern += re.escape(self.bound[name])
            elif name in names:
                pattern += f"(?P=g{names.index(name)})"
            else:
                pattern += f"(?P<g{len(names)}>.*?)"
                names.append(name)
        found = re.fullmatch(pattern + re.escape(recorded[last:]), came, re.DOTALL)
        if found is None:
            if not _decoder_words(path, recorded, came):
                self._differ(path, self._filled(recorded), came)
            return
        for index, name in enumerate(names):
            if name[-1].isdigit():
                self._bind(path, name, found[f"g{index}"])

    def _bind(self, path: str, name: str, value: str) -> None:
        taken = [other for other, known in self.bound.items() if known == value]
        same = [other for other in taken if other[:4] == name[:4]]
        if name.startswith("$uid") and same and same != [name]:
            self._differ(path, f"{name} apart from {same}", value)
        self.bound.setdefault(name, value)
        if name.startswith("$rv") and not _is_list_version(path):
            self.object_versions.add(name)

    def _is_later_list(self, path: str, name: str, came: Json) -> bool:
        """A list's version may be later than the last write, so it need not be equal."""
        return (
            name.startswith("$rv")
            and _is_list_version(path)
            and str(came).isdigit()
            and int(came) >= int(self.bound[name])
        )

    def check_order(self, ascending: list[str]) -> None:
        """Versions of the objects that the scenario writes rise as recorded. Those that the server
        writes by itself, beside its requests, only differ from all others. A list's version may be
        any that is late enough.
        """
        known = [name for name in ascending if name in self.object_versions]
        if len({self.bound[name] for name in known}) < len(known):
            self._differ("order", "versions of their own", {n: self.bound[n] for n in known})
        written = written_versions(self.lines)
        for before, after in itertools.pairwise(name for name in known if name in written):
            low, high = int(self.bound[before]), int(self.bound[after])
            if low >= high:
                self._differ("order", f"{before} < {after}", f"{low} {high}")


def written_versions(lines: list[Json]) -> set[str]:
    """Placeholders for versions of objects that are named by writes, or by their answers."""
    writes = [line for line in lines if line["request"]["method"] != "GET"]
    names = {part for line in writes for part in line["request"]["path"].split("/")}
    names |= {_name_in(line["request"]["body"]) for line in writes}
    names |= {_name_in(line["response"].get("body")) for line in writes}
    answers = [line["response"].get("body") for line in lines]
    answers += [event.get("object") for line in lines for event in line.get("events", ())]
    found = [metadata for answer in answers for metadata in _metadata_in(answer)]
    return {
        one["resourceVersion"]
        for one in found
        if {"name", "resourceVersion"} <= one.keys() and one["name"] in names
    }


def _name_in(body: Json) -> str:
    metadata = body.get("metadata") if isinstance(body, dict) else None
    return str((metadata or {}).get("name", ""))


def _metadata_in(value: Json) -> Iterator[Json]:
    """Those of all objects in an answer."""
    if isinstance(value, dict):
        if isinstance(value.get("metadata"), dict):
            yield value["metadata"]
        value = list(value.values())
    if isinstance(value, list):
        for entry in value:
            yield from _metadata_in(entry)


def _is_list_version(path: str) -> bool:
    return path == "body.message" or "bookmark" in path or path.endswith(LIST_VERSION)


def _decoder_words(path: str, recorded: Json, came: Json) -> bool:
    """Whether both complain about the same undecodable thing, in whatever words."""
    if not isinstance(recorded, str) or not isinstance(came, str) or "message" not in path:
        return False
    return DECODER_WORDS.search(recorded) is not None and recorded[:20] == came[:20]


def _plain_bookmark(event: Json) -> bool:
    if event.get("type") != "BOOKMARK":
        return False
    return "initial-events-end" not in json.dumps(event)


def _name(event: Json) -> Json:
    return (event.get("object", {}).get("metadata") or {}).get("name")


def _as_set(causes: Json) -> list[Json]:
    return sorted({json.dumps(cause, sort_keys=True): cause for cause in causes}.values(), key=str)


async def _read(response: aiohttp.ClientResponse, came: Answer) -> None:
    """Collect a stream's documents; a plain answer is one document."""
    if response.status != 200:
        came.raw = await response.read()
        return
    raw = b""
    async for chunk in response.content.iter_any():
        raw += chunk
        *whole, raw = raw.split(b"\n")
        came.frames.extend(json.loads(part) for part in whole if part)
    if raw.strip():
        came.frames.append(json.loads(raw))
    came.is_ended = True
