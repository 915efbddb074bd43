"""Events in two groups: stored as core/v1, shown as events.k8s.io/v1 on request."""

from typing import Any, Final

JsonObject = dict[str, Any]

#: core/v1 member, events.k8s.io/v1 member; all other members have the same name in both.
RENAMED: Final = (
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
)
TO_V1: Final = dict(RENAMED)
TO_CORE: Final = {v1: core for core, v1 in RENAMED}
#: Members that the newer group omits when they are empty, and the older one does not.
OMITTED_IN_V1: Final = frozenset({"reportingController", "reportingInstance"})


def to_core(event: JsonObject) -> JsonObject:
    """The stored form of an event that was written through events.k8s.io/v1."""
    core = {TO_CORE.get(name, name): value for name, value in event.items()}
    core.setdefault("reportingComponent", "")
    core.setdefault("reportingInstance", "")
    return core


def to_v1(event: JsonObject) -> JsonObject:
    """A stored event in the form of events.k8s.io/v1."""
    seen = {TO_V1.get(name, name): value for name, value in event.items()}
    return {name: value for name, value in seen.items() if value or name not in OMITTED_IN_V1}
