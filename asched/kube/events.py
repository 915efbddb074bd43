"""Events of events.k8s.io/v1: which are written and which only counted.

An event equals an earlier one if type, reason, action, reporter, the object it regards (with its
resourceVersion) and the related object are equal; the note does not matter, and the first one is
kept, cut to the permitted size. The first event is created, the second is patched into a series of
two, later ones are only counted. Live series are written every REFRESH_S, and a last time when no
event has come for FINISH_S.

Bounds  SERIES_MAX events, or SERIES_BYTES_MAX of them, are stored for comparison; the oldest are
        dropped first. A note is cut to NOTE_BYTES_MAX.
Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/client-go/tools/events
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from sys import getsizeof
from time import time_ns
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from asched.core.framework.effects import STRATEGIC_MERGE, EmitEvent
from asched.core.model.meta import ObjectReference
from asched.core.model.timestamp import NS_PER_SECOND, micro_time
from asched.kube.transport import WireRequest
from asched.kube.writes import quoted

NOTE_BYTES_MAX: Final = 1024
REFRESH_S: Final = 30 * 60.0
FINISH_S: Final = 6 * 60.0
#: A failing pod has one live series; beyond this number the oldest series are dropped.
SERIES_MAX: Final = 16_384
#: SERIES_MAX of the usual 1.5 KB. Names may have 253 letters, and a note with a few letters beyond
#: Latin takes four bytes for each of its 1,024.
SERIES_BYTES_MAX: Final = 32 << 20
#: Size of a series without its note and names: numbers, tuples, references, uids, namespaces.
_SERIES_BYTES: Final = 1_200
#: Namespace of events about objects without a namespace.
DEFAULT_NAMESPACE: Final = "default"
_encode: Final = msgspec.json.Encoder().encode


class Series:
    """An event and how often it was seen."""

    __slots__ = ("count", "effect", "event_time_ns", "last_seen_ns", "name", "size")

    def __init__(self, effect: EmitEvent, name: str, now_ns: int) -> None:
        note = cut_note(effect.note)
        self.effect = effect if note is effect.note else replace(effect, note=note)
        self.name = name
        related = 0 if effect.related is None else len(effect.related.name)
        self.size = _SERIES_BYTES + getsizeof(note) + 2 * len(name) + related
        self.event_time_ns = now_ns
        self.last_seen_ns = now_ns
        self.count = 1


class EventWrite:
    """A write that is due, encoded when it is sent. `with_series`: a create after a lost one."""

    __slots__ = ("is_patch", "series", "with_series")

    def __init__(self, series: Series, *, is_patch: bool, with_series: bool = False) -> None:
        self.series = series
        self.is_patch = is_patch
        self.with_series = with_series


Key = tuple[str, str, str, str, ObjectReference, ObjectReference | None]


class EventRecorder:
    """Decides for each event whether it is created, patched or counted."""

    def __init__(self, hostname: str, clock_ns: Callable[[], int] = time_ns) -> None:
        self._hostname = hostname
        self._clock_ns = clock_ns
        self._known: OrderedDict[Key, Series] = OrderedDict()
        self._known_bytes = 0
        self._last_name_ns = 0

    def __len__(self) -> int:
        return len(self._known)

    def record(self, effect: EmitEvent) -> EventWrite | None:
        """The write for this event; None if it is only counted."""
        key = _key(effect)
        now_ns = self._clock_ns()
        series = self._known.get(key)
        if series is None:
            # Names must differ even if the clock has not advanced.
            self._last_name_ns = name_ns = max(now_ns, self._last_name_ns + 1)
            series = Series(effect, f"{effect.regarding.name}.{name_ns:016x}", now_ns)
            self._known[key] = series
            self._known_bytes += series.size
            while len(self._known) > SERIES_MAX or self._known_bytes > SERIES_BYTES_MAX:
                self._known_bytes -= self._known.popitem(last=False)[1].size
            return EventWrite(series, is_patch=False)
        series.count += 1
        series.last_seen_ns = now_ns
        return EventWrite(series, is_patch=True) if series.count == 2 else None

    def refresh(self) -> Iterator[EventWrite]:
        """Called every REFRESH_S: writes of the current count of every live series."""
        for series in list(self._known.values()):
            if series.count > 1:
                yield EventWrite(series, is_patch=True)

    def finish(self) -> Iterator[EventWrite]:
        """Called every FINISH_S: the last count of each quiet series; quiet events are dropped."""
        quiet_ns = self._clock_ns() - int(FINISH_S * NS_PER_SECOND)
        for key, series in list(self._known.items()):
            if series.last_seen_ns < quiet_ns:
                del self._known[key]
                self._known_bytes -= series.size
                if series.count > 1:
                    yield EventWrite(series, is_patch=True)

    def request(self, write: EventWrite) -> WireRequest:
        """The request of a write, with the current counts."""
        series = write.series
        effect = series.effect
        namespace = effect.regarding.namespace or DEFAULT_NAMESPACE
        path = f"/apis/events.k8s.io/v1/namespaces/{quoted(namespace)}/events"
        if write.is_patch:
            body = _encode({"series": _counted(series)})
            return WireRequest("PATCH", f"{path}/{quoted(series.name)}", body, STRATEGIC_MERGE)
        event: dict[str, Any] = {
            "kind": "Event",
            "apiVersion": "events.k8s.io/v1",
            "metadata": {"name": series.name, "namespace": namespace},
            "eventTime": micro_time(series.event_time_ns),
            "reportingController": effect.reporting_controller,
            "reportingInstance": f"{effect.reporting_controller}-{self._hostname}",
            "action": effect.action,
            "reason": effect.reason,
            "regarding": effect.regarding,
            "note": effect.note,
            "type": effect.type,
            "deprecatedSource": {},
            "deprecatedFirstTimestamp": None,
            "deprecatedLastTimestamp": None,
        }
        if effect.related is not None:
            event["related"] = effect.related
        if write.with_series:
            event["series"] = _counted(series)
        return WireRequest("POST", path, _encode(event))


def _counted(series: Series) -> dict[str, Any]:
    return {"count": series.count, "lastObservedTime": micro_time(series.last_seen_ns)}


def _key(effect: EmitEvent) -> Key:
    return (
        effect.type,
        effect.action,
        effect.reason,
        effect.reporting_controller,
        effect.regarding,
        effect.related,
    )


def cut_note(note: str) -> str:
    """At most NOTE_BYTES_MAX bytes of UTF-8, never half a character."""
    if len(note) * 4 <= NOTE_BYTES_MAX:
        return note
    raw = note.encode()
    return note if len(raw) <= NOTE_BYTES_MAX else raw[:NOTE_BYTES_MAX].decode(errors="ignore")
