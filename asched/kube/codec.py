"""Decode lists and watches to records, one typed parse per object.

A watch line is decoded straight into `{type, object}` of its kind. If that fails, because the line
is an ERROR (whose object is a Status) or the object is malformed, the envelope is decoded first and
then the object. `parsing.read` does all decoding and has one error. A malformed object is skipped,
counted and logged once: `on_malformed` is called again only for another uid. A DELETED event with a
malformed object still names the object.

Bounds  MALFORMED_REMEMBERED uids are stored to log each only once.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from asched.core.model.decode import MalformedError
from asched.core.model.kinds import Kind
from asched.core.model.lru import Lru
from asched.core.model.meta import ObjectMeta, Record
from asched.kube.errors import ApiStatus, ProtocolBroken, read_status
from asched.kube.parsing import read
from asched.kube.raw_objects import RawObjects

T = TypeVar("T")

#: Enough for a cluster in which a whole batch of objects is broken in the same way.
MALFORMED_REMEMBERED: Final = 10_000
#: The bookmark that ends the initial events of a streaming list carries this annotation.
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"
BOOKMARK: Final = "BOOKMARK"
ERROR: Final = "ERROR"


class WatchLine(NamedTuple):
    """One line of a watch. `obj` is None if malformed or a bookmark; `status` only for ERROR."""

    type: str
    obj: Record | None
    version: str
    annotations: dict[str, str] | None = None
    status: ApiStatus | None = None


class ListPage(NamedTuple):
    objects: list[Record]
    version: str
    continue_token: str
    malformed_count: int


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_token: str = msgspec.field(name="continue", default="")


class ObjectHead(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The identity of an object in one of its versions."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class _HeadItem(msgspec.Struct, frozen=True, gc=False):
    metadata: ObjectHead = ObjectHead()


class HeadPage(msgspec.Struct):
    """One page of a list, of which only identities are read."""

    metadata: ListMeta = ListMeta()
    items: list[_HeadItem] | None = None

    @property
    def heads(self) -> list[ObjectHead]:
        return [item.metadata for item in self.items or ()]


class _Envelope(msgspec.Struct):
    type: str = ""
    object: msgspec.Raw = msgspec.Raw(b"{}")


class _RawList(msgspec.Struct):
    metadata: ListMeta = ListMeta()
    items: list[msgspec.Raw] | None = None


class _ListHead(msgspec.Struct):
    metadata: ListMeta = ListMeta()


class _Bookmark(msgspec.Struct):
    metadata: ObjectMeta = ObjectMeta()


class _Id(msgspec.Struct, frozen=True, rename="camel"):
    """The identity of an object that cannot be decoded as its kind."""

    name: Any = ""
    namespace: Any = ""
    uid: Any = ""
    resource_version: Any = ""


class _LooseHead(msgspec.Struct):
    metadata: _Id = _Id()


_envelopes: Final = msgspec.json.Decoder(_Envelope)
_raw_arrays: Final = msgspec.json.Decoder(list[msgspec.Raw])
_raw_lists: Final = msgspec.json.Decoder(_RawList)
_list_heads: Final = msgspec.json.Decoder(_ListHead)
_bookmarks: Final = msgspec.json.Decoder(_Bookmark)
_heads: Final = msgspec.json.Decoder(_LooseHead)
_head_pages: Final = msgspec.json.Decoder(HeadPage)

#: (kind, name of the object, error)
OnMalformed = Callable[[Kind, str, str], None]


class KindCodec:
    """Decodes lists and watches of one kind."""

    def __init__(
        self, kind: Kind, on_malformed: OnMalformed, raw_objects: RawObjects | None = None
    ) -> None:
        self.kind = kind
        self._all_raw_objects = raw_objects
        self.malformed_count = 0
        self._on_malformed = on_malformed
        self._remembered: Lru[str, bool] = Lru(MALFORMED_REMEMBERED)
        record: Any = kind.record
        self._objects = msgspec.json.Decoder(record)
        self._arrays = msgspec.json.Decoder(list[record])
        event = msgspec.defstruct(
            f"{kind.name}WatchEvent", [("type", str), ("object", record)], gc=False
        )
        page = msgspec.defstruct(
            f"{kind.name}List",
            [("metadata", ListMeta, ListMeta()), ("items", list[record] | None, None)],
        )
        self._events: msgspec.json.Decoder[Any] = msgspec.json.Decoder(event)
        self._pages: msgspec.json.Decoder[Any] = msgspec.json.Decoder(page)

    @property
    def keeps_raw_objects(self) -> bool:
        """Whether whole objects of this kind are stored at the moment."""
        return self._raw_objects is not None

    @property
    def _raw_objects(self) -> RawObjects | None:
        """The store of whole objects of this kind, if they are stored at the moment."""
        everywhere = self._all_raw_objects
        return everywhere if everywhere is not None and everywhere.wants(self.kind) else None

    def page(self, body: bytes) -> ListPage:
        """One page of a list. Raises ProtocolBroken if the body is not a list."""
        if self._raw_objects is not None:
            return self._page_object_by_object(body)
        try:
            page = read(self._pages.decode, body)
        except MalformedError:
            return self._page_object_by_object(body)
        return ListPage(
            page.items or [], page.metadata.resource_version, page.metadata.continue_token, 0
        )

    def _page_object_by_object(self, body: bytes) -> ListPage:
        page = _required(_raw_lists.decode, body, f"the list of {self.kind.plural}")
        before = self.malformed_count
        return ListPage(
            self._one_by_one(page.items or ()),
            page.metadata.resource_version,
            page.metadata.continue_token,
            self.malformed_count - before,
        )

    def array(self, body: bytes) -> list[Record] | None:
        """The objects of an array; None if it is not JSON."""
        try:
            if self._raw_objects is None:
                return read(self._arrays.decode, body)
        except MalformedError:
            pass
        try:
            return self._one_by_one(read(_raw_arrays.decode, body))
        except MalformedError:
            return None

    def _one_by_one(self, items: Iterable[msgspec.Raw]) -> list[Record]:
        """Decode item by item and skip malformed objects."""
        objects: list[Record] = []
        for raw in items:
            try:
                obj = read(self._objects.decode, content := bytes(raw))
            except MalformedError as error:
                self._report(content, error)
                continue
            objects.append(obj)
            if self._raw_objects is not None:
                self._raw_objects.keep(self.kind, obj, content)
        return objects

    def events(self, lines: list[bytes]) -> Iterator[WatchLine]:
        """Decode whole lines of a watch, in order. Raises ProtocolBroken for an invalid event."""
        decode = self._events.decode
        raw_objects = self._raw_objects
        for line in lines:
            if not line or line.isspace():
                continue
            try:
                event = read(decode, line)
            except MalformedError as error:
                yield self._open_envelope(line, error)
                continue
            if event.type == ERROR:
                yield self._open_envelope(line, None)
                continue
            meta = event.object.metadata
            if event.type == BOOKMARK:
                yield WatchLine(BOOKMARK, None, meta.resource_version, meta.annotations)
            else:
                if raw_objects is not None and event.type != DELETED:
                    raw_objects.keep(self.kind, event.object, line, is_line=True)
                yield WatchLine(event.type, event.object, meta.resource_version)

    def _open_envelope(self, line: bytes, error: MalformedError | None) -> WatchLine:
        watch = f"the watch of {self.kind.plural}"
        envelope = _required(_envelopes.decode, line, f"a line of {watch}")
        content = bytes(envelope.object)
        if envelope.type == ERROR:
            status = read_status(content) or ApiStatus(
                message=content[:200].decode("utf-8", "replace")
            )
            return WatchLine(ERROR, None, "", status=status)
        if envelope.type == BOOKMARK:  # its object lacks mandatory fields of the kind
            bookmark = _required(_bookmarks.decode, content, f"a bookmark of {watch}").metadata
            return WatchLine(BOOKMARK, None, bookmark.resource_version, bookmark.annotations)
        head = self._report(content, error or MalformedError("unknown"))
        gone = _minimal(self.kind, head) if envelope.type == DELETED else None
        return WatchLine(envelope.type, gone, head.resource_version)

    def _report(self, content: bytes, error: MalformedError) -> ObjectMeta:
        """Count a malformed object, report it if it is new, and return its identity."""
        self.malformed_count += 1
        try:
            found = read(_heads.decode, content).metadata
        except MalformedError:
            found = _Id()
        head = ObjectMeta(
            name=_text(found.name),
            namespace=_text(found.namespace),
            uid=_text(found.uid),
            resource_version=_text(found.resource_version),
        )
        identity = head.uid or head.key
        if self._remembered.get(identity) is None:
            self._remembered.put(identity, True)
            self._on_malformed(self.kind, head.key or "?", str(error))
        return head


def _required(decoder: Callable[[bytes], T], data: bytes, what: str) -> T:
    """Decode what a server has to send. Raises ProtocolBroken."""
    try:
        return read(decoder, data)
    except MalformedError as error:
        raise ProtocolBroken(f"{what} is malformed: {error}") from error


def _minimal(kind: Kind, head: ObjectMeta) -> Record | None:
    """A record that has only the object's identity."""
    if not head.name:
        return None
    record: Any = kind.record
    made: Record = record(metadata=head)
    return made


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def is_initial_end(event: WatchLine) -> bool:
    """Whether this bookmark ends the initial events of a streaming list."""
    return (event.annotations or {}).get(INITIAL_EVENTS_END) == "true"


def head_page(body: bytes, kind: Kind) -> HeadPage:
    """Raises ProtocolBroken."""
    return _required(_head_pages.decode, body, f"a list of {kind.plural}")


def peek_continue(body: bytes) -> str:
    """The continue token of a page, without decoding its items; "" on the last page. Raises
    ProtocolBroken.
    """
    return _required(_list_heads.decode, body, "a list").metadata.continue_token
