"""Conditions of pods as patches: only changed fields are written."""

from typing import Any

from asched.core.model.pod import PodCondition
from asched.core.model.timestamp import rfc3339


def difference(old: PodCondition | None, new: PodCondition, now_s: float) -> dict[str, Any] | None:
    """The changed fields, with the type; a changed status has the time. None if equal."""
    before = old if old is not None else PodCondition(type=new.type)
    changed: dict[str, Any] = {}
    for field, wire in (
        ("status", "status"),
        ("reason", "reason"),
        ("message", "message"),
        ("observed_generation", "observedGeneration"),
    ):
        value = getattr(new, field)
        if value != getattr(before, field):
            changed[wire] = value
    if not changed:
        return None
    if before.status != new.status:
        changed["lastTransitionTime"] = rfc3339(now_s)
        if old is None:
            changed["lastProbeTime"] = None
    changed["type"] = new.type
    return changed
