"""Whose event the port's thread serves next, and how much CPU time it may use.

Everything a loop does follows from the events of its selector: accepted connections, handshakes,
reads, answers. `FairSelector` returns one client event at a time, and only when all that followed
from the one before has been done, so that its CPU time can be charged. Events are in three groups,
each with a share of its own; a group that has used more than its share is not polled for a while,
and its bytes wait in the kernel. Events of other files (the API client, calls of other threads)
are returned at once.

    accepting   the listening sockets
    probing     connections of addresses that probe: in practice the kubelet
    other       all other connections

The kubelet's probe decides whether this process is restarted. It is therefore served first, and
clients of other addresses cannot use its share (`probers.py` says who probes).

Among the others each address that was allowed to read a page takes turns; all addresses that were
not share one turn, however many they are. Of these a connection that was just served is finished
first (its next BEGUN_EVENTS events), then the address that was served least recently is next, then
the newest connection: a client that comes for the first time waits for few others.

Bounds  a share for each group, CREDIT_S ahead of it, DEBT_S behind it; ADDRESSES_MAX addresses
        stored.
"""

import selectors
from collections.abc import Callable, Iterator, Mapping
from time import monotonic, process_time, thread_time
from typing import Any, Final, NamedTuple

from asched.core.model.lru import Lru
from asched.serve.probers import Probers


class Share(NamedTuple):
    """Of the CPU time that the process uses, and of the rest of the time of one CPU."""

    busy: float
    idle: float


#: The scheduling loop shares the interpreter lock with this thread, and makes the pages. While it
#: is idle it can spare more.
OTHER_SHARE: Final = Share(0.03, 0.05)
#: Eight probes a second; a kubelet sends one.
PROBE_SHARE: Final = Share(0.02, 0.05)
#: A hundred connections a second and more, before which a probe's may have to wait.
ACCEPT_SHARE: Final = Share(0.03, 0.05)
CREDIT_S: Final = 0.05
#: No event of an ordinary client costs as much; a page for an administrator may exceed it.
DEBT_S: Final = 0.02
#: What a group that is in debt has to save before it is polled again: some events.
SAVED_S: Final = 0.002
ADDRESSES_MAX: Final = 1024
#: A TLS handshake and a request take three events.
BEGUN_EVENTS: Final = 2

Ready = tuple[selectors.SelectorKey, int]


class _Budget:
    """Files with one share of CPU time, in a selector of their own; `choose` picks one event."""

    def __init__(self, share: Share, choose: Callable[[list[Ready]], Ready]) -> None:
        self.files = selectors.DefaultSelector()
        self.is_polled = False
        self._share = share
        self._choose = choose
        self._credit_s = CREDIT_S
        #: The end of the last pause.
        self._until_s = 0.0

    def earn(self, busy_s: float, idle_s: float) -> None:
        earned_s = busy_s * self._share.busy + idle_s * self._share.idle
        self._credit_s = min(self._credit_s + earned_s, CREDIT_S)

    def spend(self, seconds: float) -> None:
        self._credit_s = max(self._credit_s - seconds, -DEBT_S)

    def pause(self, now_s: float) -> float:
        """The seconds until the group may be polled: 0 unless it is, or was lately, in debt."""
        if self._credit_s < 0 and now_s >= self._until_s:
            self._until_s = now_s + (SAVED_S - self._credit_s) / self._share.idle
        return max(self._until_s - now_s, 0.0)

    def next(self) -> Ready | None:
        ready = self.files.select(0)
        return self._choose(ready) if ready else None


class _Source:
    """Connections that take turns as one: those of an address, or of all unknown addresses."""

    __slots__ = ("is_allowed", "last_turn")

    def __init__(self) -> None:
        self.last_turn = 0
        #: Whether it was allowed to read a page.
        self.is_allowed = False


class _Client:
    """A connection: how often and when it was served."""

    __slots__ = ("events", "last_turn", "number", "source")

    def __init__(self, source: _Source, number: int) -> None:
        self.source = source
        self.number = number
        self.events = 0
        self.last_turn = 0


#: A connection that was removed and not closed yet: it waits for its end.
_REMOVED: Final = _Client(_Source(), 0)


class FairSelector(selectors.BaseSelector):
    """For one thread, which creates it. The server reports its listening sockets and connections,
    and which of them got an answer.
    """

    def __init__(self, probers: Probers | None = None) -> None:
        self._probers = probers or Probers()
        self._accepting = _Budget(ACCEPT_SHARE, lambda ready: ready[0])
        self._probing = _Budget(PROBE_SHARE, lambda ready: min(ready, key=self._turn_of_prober))
        self._other = _Budget(OTHER_SHARE, lambda ready: min(ready, key=self._turn_of_other))
        self._groups = self._probing, self._accepting, self._other
        #: All other files, and the selectors of the groups that are polled.
        self._files = selectors.DefaultSelector()
        #: Whose event was returned last, until all that follows from it has been done.
        self._served: _Budget | None = None
        self._now_s = monotonic(), process_time(), thread_time()
        #: Descriptor -> the selector that has it.
        self._files_of: dict[int, selectors.DefaultSelector] = {}
        #: By descriptor.
        self._group_of: dict[int, _Budget] = {}
        self._client_of: dict[int, _Client] = {}
        self._number = self._turn = 0
        #: By address.
        self._sources: Lru[str, _Source] = Lru(ADDRESSES_MAX)
        self._unknown = _Source()

    # --- reports of the server -------------------------------------------------------------------

    def listen(self, descriptor: int) -> None:
        """Count a descriptor as a listening socket."""
        self._group_of[descriptor] = self._accepting

    def is_prober(self, address: str) -> bool:
        return address in self._probers

    def join(self, descriptor: int, address: str) -> None:
        """Count a descriptor as a connection of the address."""
        self._group_of[descriptor] = self._probing if self.is_prober(address) else self._other
        self._number += 1
        self._client_of[descriptor] = _Client(self._source(address), self._number)

    def leave(self, descriptor: int) -> None:
        """Remove the descriptor, before it is closed."""
        self._group_of.pop(descriptor, None)
        self._client_of.pop(descriptor, None)

    def answered(self, address: str, *, is_probe: bool) -> None:
        """A client of the address got a page that it may read."""
        if is_probe:
            self._probers.answered(address, monotonic())
        else:
            self._source(address).is_allowed = True

    # --- the loop's selector ---------------------------------------------------------------------

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        descriptor = _descriptor(fileobj)
        group = self._group_of.get(descriptor)
        files = self._files if group is None else group.files
        key = files.register(fileobj, events, data)
        self._files_of[descriptor] = files
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._files_of.pop(_descriptor(fileobj)).unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._files_of[_descriptor(fileobj)].modify(fileobj, events, data)

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        return self._files_of[_descriptor(fileobj)].get_key(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return _Keys(self)

    def __len__(self) -> int:
        return len(self._files_of)

    def __iter__(self) -> Iterator[int]:
        return iter(self._files_of)

    def close(self) -> None:
        for files in (self._files, *(group.files for group in self._groups)):
            files.close()

    def select(self, timeout: float | None = None) -> list[Ready]:
        self._charge()
        if self._served is not None and timeout is not None and timeout <= 0:
            # The loop has work to do, which may follow from the last event.
            return _without_groups(self._files.select(0))
        self._served = None
        waits_s = [pause_s for group in self._groups if (pause_s := self._poll(group))]
        if timeout is not None:
            waits_s.append(timeout)
        ready = self._files.select(min(waits_s, default=None))
        found = _without_groups(ready)
        awake = {id(key.data) for key, _ in ready}
        for group in self._groups:
            if id(group) in awake and (chosen := group.next()) is not None:
                self._serve(group, chosen[0].fd)
                return [*found, chosen]
        return found

    def _poll(self, group: _Budget) -> float:
        """Poll a group unless it has used more than its share; returns the pause in seconds."""
        pause_s = group.pause(self._now_s[0])
        if group.is_polled and pause_s:
            self._files.unregister(group.files.fileno())
        elif not group.is_polled and not pause_s:
            self._files.register(group.files.fileno(), selectors.EVENT_READ, group)
        group.is_polled = not pause_s
        return pause_s

    def _serve(self, group: _Budget, descriptor: int) -> None:
        self._served = group
        self._turn += 1
        client = self._client_of.get(descriptor)
        if client is not None:
            client.events += 1
            client.last_turn = self._turn
            client.source.last_turn = self._shared(client.source).last_turn = self._turn

    def _charge(self) -> None:
        then_s, self._now_s = self._now_s, (monotonic(), process_time(), thread_time())
        wall_s, process_s, own_s = (
            now - then for now, then in zip(self._now_s, then_s, strict=True)
        )
        for group in self._groups:
            group.earn(process_s, max(wall_s - process_s, 0.0))
        # Deadlines of connections, and what has no event of its own.
        (self._served or self._other).spend(own_s)

    # --- turns -----------------------------------------------------------------------------------

    def _turn_of_prober(self, event: Ready) -> tuple[int, int]:
        client = self._client_of.get(event[0].fd, _REMOVED)
        return client.source.last_turn, client.last_turn

    def _turn_of_other(self, event: Ready) -> tuple[int, bool, int, int, int]:
        client = self._client_of.get(event[0].fd, _REMOVED)
        source = client.source
        return (
            self._shared(source).last_turn,
            not 0 < client.events <= BEGUN_EVENTS,
            source.last_turn,
            client.last_turn,
            -client.number,
        )

    def _source(self, address: str) -> _Source:
        source = self._sources.get(address) or _Source()
        self._sources.put(address, source)
        return source

    def _shared(self, source: _Source) -> _Source:
        """Whose turns a connection of this source takes in the group of all others."""
        return source if source.is_allowed else self._unknown


class _Keys(Mapping[Any, selectors.SelectorKey]):
    """The keys of a selector by file."""

    def __init__(self, files: FairSelector) -> None:
        self._files = files

    def __getitem__(self, fileobj: Any) -> selectors.SelectorKey:
        return self._files.get_key(fileobj)

    def __len__(self) -> int:
        return len(self._files)

    def __iter__(self) -> Iterator[int]:
        return iter(self._files)


def _descriptor(fileobj: Any) -> int:
    descriptor: int = fileobj if isinstance(fileobj, int) else fileobj.fileno()
    return descriptor


def _without_groups(ready: list[Ready]) -> list[Ready]:
    return [event for event in ready if not isinstance(event[0].data, _Budget)]
