"""State that every handler uses: the store, the clock, the generator of names, the options.

The store is one counter for all writes, objects as immutable versions, and a bounded history. A
write never changes a stored object; it replaces it by a new version and appends a `Change`. Lists
at an old version are made by walking the history backwards; watches follow it forwards. Each
version is encoded once, at its first use, and each change once per event type, so that the cost of
a write does not grow with the number of watches.

Assumption: one event loop owns the store; nothing awaits here, so every write is atomic.
"""

import random
import time
import uuid
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

from asched_lab.apiserver.resources import Resource, resources_of

if TYPE_CHECKING:
    from asched_lab.apiserver.auth import Authenticator

JsonObject = dict[str, Any]
Key = tuple[str, str]

#: Stored changes per kind, some 5 kB each for pods. A guess: a minute at 300 writes per second.
HISTORY_MAX: Final = 20_000
#: Newest changes with stored encoded frames; older ones are encoded again when used.
FRAMES_STORED: Final = 1024

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"


class Record:
    """One version of one object: its content without kind and apiVersion, and its bytes."""

    __slots__ = ("_body", "key", "obj", "revision")

    def __init__(self, key: Key, obj: JsonObject, revision: int) -> None:
        self.key = key
        self.obj = obj
        self.revision = revision
        self._body: bytes | None = None

    @property
    def body(self) -> bytes:
        """The content as JSON; encoded on first use."""
        if self._body is None:
            self._body = orjson.dumps(self.obj)
        return self._body


class Change:
    """One write: the version before and the new one; for a removal the last state."""

    __slots__ = ("frames", "new", "old", "revision", "type")

    def __init__(self, type_: str, old: Record | None, new: Record) -> None:
        self.type = type_
        self.old = old
        self.new = new
        self.revision = new.revision
        #: (event type, group) -> the encoded watch frame, shared by all watchers.
        self.frames: dict[tuple[str, str], bytes] = {}


class Table:
    """All objects of one kind, in list order, and their history."""

    def __init__(self, floor: int) -> None:
        self.records: dict[Key, Record] = {}
        self.order: list[Key] = []
        self.history: deque[Change] = deque()
        #: The oldest revision that a watch may start from.
        self.floor = floor
        self.listeners: list[Callable[[Change], None]] = []

    def range(self, namespace: str) -> list[Key]:
        """Keys of a namespace, or all of them if it is empty, sorted."""
        if not namespace:
            return self.order
        start = bisect_left(self.order, (namespace, ""))
        return self.order[start : bisect_left(self.order, (namespace + "\0", ""))]


class Store:
    """Tables by (group, plural) under one revision counter."""

    def __init__(self, *, history_max: int = HISTORY_MAX) -> None:
        self.revision = 1
        self._history_max = history_max
        self._tables: dict[tuple[str, str], Table] = {}
        self._new_table_floor = 0

    def table(self, storage: tuple[str, str]) -> Table:
        table = self._tables.get(storage)
        if table is None:
            table = self._tables[storage] = Table(self._new_table_floor)
        return table

    def get(self, storage: tuple[str, str], key: Key) -> Record | None:
        return self.table(storage).records.get(key)

    def put(self, storage: tuple[str, str], key: Key, obj: JsonObject) -> Record:
        """Store `obj` as the newest version; its metadata is copied and gets the version."""
        table = self.table(storage)
        record = self._version(key, obj)
        old = table.records.get(key)
        table.records[key] = record
        if old is None:
            insort(table.order, key)
        self._publish(table, Change(ADDED if old is None else MODIFIED, old, record))
        return record

    def remove(self, storage: tuple[str, str], key: Key, last: JsonObject) -> Record:
        """Remove an object with the final state `last`; the removal is a version of its own."""
        table = self.table(storage)
        old = table.records.pop(key)
        del table.order[bisect_left(table.order, key)]
        record = self._version(key, last)
        self._publish(table, Change(DELETED, old, record))
        return record

    def _version(self, key: Key, obj: JsonObject) -> Record:
        self.revision += 1
        metadata = {**obj["metadata"], "resourceVersion": str(self.revision)}
        return Record(key, {**obj, "metadata": metadata}, self.revision)

    def _publish(self, table: Table, change: Change) -> None:
        history = table.history
        if len(history) >= self._history_max:
            table.floor = history.popleft().revision
        history.append(change)
        if len(history) > FRAMES_STORED:
            history[-FRAMES_STORED - 1].frames.clear()
        for listener in tuple(table.listeners):
            listener(change)

    def begin_history(self) -> None:
        """Start the history of every table here; watches from earlier versions get 410."""
        self._new_table_floor = self.revision
        for table in self._tables.values():
            table.floor = self.revision
            table.history.clear()

    def rewind(self, revision: int) -> None:
        """Restore an earlier state, as from a backup. Watches have to start again, without an
        event. Raises ValueError if the history does not reach back so far.
        """
        for table in self._tables.values():
            records = self.records_at(table, "", revision)
            if records is None:
                raise ValueError(f"revision {revision} is not in the history")
            table.records = {record.key: record for record in records}
            table.order = sorted(table.records)
            while table.history and table.history[-1].revision > revision:
                table.history.pop()
        self.revision = revision

    def records_at(self, table: Table, namespace: str, revision: int) -> list[Record] | None:
        """The sorted records of a past revision, or None if the history does not reach back."""
        if revision < table.floor:
            return None
        state = dict(table.records)
        for change in reversed(table.history):
            if change.revision <= revision:
                break
            if change.old is None:
                state.pop(change.new.key, None)
            else:
                state[change.new.key] = change.old
        return [state[key] for key in sorted(state) if not namespace or key[0] == namespace]


#: The letters of generated names; no vowels, so that no words appear.
NAME_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH: Final = 5
#: The base of a generated name is cut so that the whole fits a subdomain.
BASE_LENGTH_MAX: Final = 253 - SUFFIX_LENGTH
#: The first addresses of services; the network does not exist.
SERVICE_NETWORK: Final = "10.96"


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the server; the defaults suit a cluster without controllers.

    service_accounts  pods must have an account, and get its token volume (ServiceAccount admission)
    node_taints       new nodes start with the not-ready taint (TaintNodesByCondition admission)
    alpha             group versions of resources.ALPHA_TABLE that are served
    minor             minor version of Kubernetes that the server plays, of resources.RELEASES
    managed_fields    plain writes are recorded in metadata.managedFields; applied ones always are
    """

    service_accounts: bool = False
    node_taints: bool = False
    managed_fields: bool = False
    alpha: frozenset[str] = frozenset()
    minor: str = "1.36"


class Context:
    """The state of one server."""

    def __init__(
        self,
        *,
        auth: "Authenticator",
        options: Options | None = None,
        clock: Callable[[], float] = time.time,
        seed: int | None = None,
    ) -> None:
        self.store = Store()
        self.auth = auth
        self.options = options or Options()
        #: may change while the server runs, as after an upgrade
        self.alpha = set(self.options.alpha)
        self.resources = resources_of(self.options.minor)
        self.clock = clock
        self.random = random.Random(seed)
        #: Kinds without a controller; creating one gives a warning.
        self.unattended: frozenset[str] = frozenset()
        self._second = -1
        self._second_text = ""
        self._services = 0

    def now(self) -> str:
        """The present in whole seconds, in the format of objects."""
        second = int(self.clock())
        if second != self._second:
            self._second = second
            self._second_text = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))
        return self._second_text

    def later(self, seconds: int) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(self.clock()) + seconds))

    def new_uid(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def new_suffix(self) -> str:
        return "".join(self.random.choices(NAME_LETTERS, k=SUFFIX_LENGTH))

    def generated_name(self, base: str) -> str:
        return base[:BASE_LENGTH_MAX] + self.new_suffix()

    def new_address(self) -> str:
        """An address for a service. Addresses are counted up and not used again."""
        self._services += 1
        return f"{SERVICE_NETWORK}.{self._services >> 8}.{self._services & 255}"

    def get(self, res: Resource, namespace: str, name: str) -> Record | None:
        return self.store.get(res.storage, (namespace, name))

    def put(self, res: Resource, obj: JsonObject) -> Record:
        metadata = obj["metadata"]
        return self.store.put(res.storage, (metadata.get("namespace", ""), metadata["name"]), obj)
