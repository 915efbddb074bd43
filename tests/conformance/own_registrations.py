"""The events that our own plugins register."""

import json
from pathlib import Path

from asched.core.cluster.changes import Action, Trigger
from asched.core.framework.registrations import Hint, Registration
from tests.conformance.registrations import BY_TEXT


def own_registrations(path: Path) -> dict[str, list[Registration]]:
    """What the recorded plugins say themselves, the implicit entries left out."""
    own: dict[str, list[Registration]] = {}
    for entry in json.loads(path.read_text())["plugins"]:
        for event in entry["events"]:
            if not event.get("implicit"):
                actions = Action(0)
                for text in event["actions"]:
                    actions |= BY_TEXT[text]
                hint = (lambda pod, old, new: Hint.QUEUE) if event["hint"] else None
                registration = Registration(Trigger(event["resource"], actions), hint)
                own.setdefault(entry["plugin"], []).append(registration)
    return own
