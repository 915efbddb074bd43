"""What a plugin listens to, in the words of Kubernetes."""

from collections.abc import Iterable
from typing import Any

from asched.core.cluster.changes import ACTION_TEXT
from asched.core.framework.points import Concerns, Registration
from tests.conformance.registrations import split


def heard(registrations: Iterable[Registration] | None) -> dict[str, Any]:
    """`Node: Add, UpdateNodeLabel` and so on -> the hint, None where every such change is worth a
    try; and what it concerns, if that is told.
    """
    found: dict[str, Any] = {}
    for trigger, hint, concerns in registrations or ():
        actions = ", ".join(ACTION_TEXT[action] for action in split(trigger.action))
        assert concerns is None or isinstance(concerns, Concerns)
        told = f"{trigger.resource}: {actions}"
        assert told not in found
        found[told] = hint if concerns is None else (hint, concerns)
    return found
