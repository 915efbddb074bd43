"""GET with watch: what exists or happened since a version, then each change, until the timeout.

The store calls a `Watch` synchronously with each change; it queues only what has not been sent to
its client yet, as encoded frames. Frames of whole objects are made once per change and shared by
all watches. A watch that falls too far behind is ended; its client reconnects with its last
version.

With a selector, an object that starts to match is ADDED, and one that ceases to match is DELETED
with its old content and the new version.
"""

from collections.abc import Callable
from typing import Any, Final

import orjson

from asched_lab.apiserver import bodies, listing, schema, shapes, tables
from asched_lab.apiserver.call import Call
from asched_lab.apiserver.context import (
    ADDED,
    DELETED,
    HISTORY_MAX,
    MODIFIED,
    Change,
    Context,
    Record,
    Table,
)
from asched_lab.apiserver.listing import ListOptions
from asched_lab.apiserver.refusals import expired
from asched_lab.apiserver.resources import Resource
from asched_lab.apiserver.selectors import Selector, selector_of

JsonObject = dict[str, Any]

#: Frames a client may be behind before its watch is ended: the length of the history.
BEHIND_MAX: Final = HISTORY_MAX
#: Default timeout of a watch in seconds: between this and twice as long.
LASTING_S: Final = 1800
BOOKMARK_EVERY_S: Final = 60.0
#: A last bookmark is sent this long before the timeout.
BOOKMARK_BEFORE_END_S: Final = 2.0
INITIAL_END: Final = {"k8s.io/initial-events-end": "true"}


class Watch:
    """One open watch; `frames` wait to be sent, `wake` notifies the sender."""

    def __init__(
        self, ctx: Context, call: Call, res: Resource, namespace: str, options: ListOptions
    ) -> None:
        self.ctx = ctx
        self.res = res
        self.namespace = namespace
        self.options = options
        self.selector: Selector = selector_of(res, call.query)
        self.shape = shapes.wanted_of(call, stream=True).shape
        self.include = shapes.include_of(call)
        self.lasting_s = options.timeout_s or ctx.random.randint(LASTING_S, 2 * LASTING_S)
        self.frames: list[bytes] = []
        self.ended = False
        self.wake: Callable[[], None] = lambda: None
        self._columns_due = True
        #: Initial events do not count as falling behind.
        self._first_frames = 0
        self._after = options.version or 0
        self._sent_revision = 0
        self._table: Table = ctx.store.table(res.storage)

    def begin(self) -> None:
        """Queue past events and follow the store from now on."""
        revision = self.ctx.store.revision
        version = self.options.version
        self._sent_revision = version or revision
        if self.options.send_initial or not version:
            self._existing()
            self._after = revision
            if self.options.send_initial and self.options.bookmarks:
                self._bookmark(INITIAL_END)
        elif self._is_compacted(version):
            return
        else:
            for change in self._since(version):
                self.on_change(change)
        self._first_frames = len(self.frames)
        self._table.listeners.append(self.on_change)

    def end(self) -> None:
        """Stop following the store; queued frames stay."""
        self.ended = True
        if self.on_change in self._table.listeners:
            self._table.listeners.remove(self.on_change)
        self.wake()

    def take(self) -> list[bytes]:
        """Everything that waits to be sent."""
        frames, self.frames = self.frames, []
        return frames

    def fail(self, error: JsonObject) -> None:
        """Send an ERROR and end."""
        self._push(b'{"type":"ERROR","object":' + orjson.dumps(error) + b"}\n")
        self.end()

    def expire(self) -> None:
        """End as if the client's version had been compacted meanwhile."""
        self.fail(
            expired(f"too old resource version: {self._after} ({self._table.floor})").status()
        )

    def bookmark(self) -> None:
        """Queue a bookmark if the client requested them and does not know the version yet."""
        if self.options.bookmarks and self.ctx.store.revision > self._sent_revision:
            self._bookmark({})

    def on_change(self, change: Change) -> None:
        """Called by the store for each change of this kind."""
        if change.revision <= self._after or self.ended:
            return
        if len(self.frames) > self._first_frames + BEHIND_MAX:
            self.end()
            return
        new, old = change.new, change.old
        if self.namespace and new.key[0] != self.namespace:
            return
        if self.selector.empty:
            self._send(change, change.type, new)
            return
        was = old is not None and self.selector.matches(old.obj)
        now = change.type != DELETED and self.selector.matches(new.obj)
        if now:
            self._send(change, MODIFIED if was else ADDED, new)
        elif was and change.type == DELETED:
            self._send(change, DELETED, new)
        elif was:
            assert old is not None
            metadata = {**old.obj["metadata"], "resourceVersion": str(change.revision)}
            self._send(change, "LEFT", Record(new.key, {**old.obj, "metadata": metadata}, 0))

    def _send(self, change: Change, kind: str, record: Record) -> None:
        self._sent_revision = change.revision
        type_ = DELETED if kind == "LEFT" else kind
        if self.shape:
            self._push(self._shaped(type_, record))
            return
        key = (kind, self.res.group)
        frame = change.frames.get(key)
        if frame is None:
            frame = change.frames[key] = self._whole(type_, record)
        self._push(frame)

    def _push(self, frame: bytes) -> None:
        self.frames.append(frame)
        self.wake()

    def _whole(self, type_: str, record: Record) -> bytes:
        encoded = bodies.encoded(self.res, record.obj, record.body)
        return b'{"type":"%s","object":%s}\n' % (type_.encode(), encoded)

    def _shaped(self, type_: str, record: Record) -> bytes:
        obj: JsonObject
        if self.shape == "Table":
            version = record.obj["metadata"].get("resourceVersion", "")
            obj = tables.table(
                self.res,
                [record.obj],
                {"resourceVersion": version},
                self.ctx.clock(),
                include=self.include,
                with_columns=self._columns_due,
            )
            self._columns_due = False
        else:
            obj = shapes.partial(record.obj)
        return orjson.dumps({"type": type_, "object": obj}) + b"\n"

    def _existing(self) -> None:
        for key in self._table.range(self.namespace):
            record = self._table.records[key]
            if self.selector.matches(record.obj):
                self._push(
                    self._shaped(ADDED, record) if self.shape else self._whole(ADDED, record)
                )

    def _bookmark(self, annotations: dict[str, str]) -> None:
        self._sent_revision = self.ctx.store.revision
        obj: JsonObject = schema.reader(schema.type_name(self.res))({}, "", [])
        obj["metadata"] = {"resourceVersion": str(self._sent_revision)}
        if annotations:
            obj["metadata"]["annotations"] = annotations
        record = Record(("", ""), obj, self._sent_revision)
        if self.shape:
            self._push(self._shaped("BOOKMARK", record))
        else:
            self._push(self._whole("BOOKMARK", record))

    def _is_compacted(self, version: int) -> bool:
        """Whether the history no longer reaches back to `version`; if so the watch fails."""
        if version < self._table.floor:
            message = f"too old resource version: {version} ({self._table.floor})"
            self.fail(expired(message).status())
            return True
        return False

    def _since(self, version: int) -> list[Change]:
        """The changes after a version, oldest first."""
        found = []
        for change in reversed(self._table.history):
            if change.revision <= version:
                break
            found.append(change)
        return found[::-1]


def open_watch(ctx: Context, call: Call, res: Resource, namespace: str, name: str = "") -> Watch:
    """A started watch. Raises ApiError for invalid options."""
    shapes.wanted_of(call, stream=True)
    options = listing.read(call.query, watch=True)
    if name:
        fields = call.query.get("fieldSelector", "")
        query = {**call.query, "fieldSelector": f"metadata.name={name},{fields}".rstrip(",")}
        call = Call(call.method, call.path, query, call.headers, call.body, call.user)
    watch = Watch(ctx, call, res, namespace, options)
    watch.begin()
    return watch
