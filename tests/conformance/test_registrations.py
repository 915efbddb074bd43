"""What follows from registrations, against the recorded table of the default profile."""

import json

from asched.core.cluster.changes import Action
from asched.core.framework.profile import with_implicit
from tests.conformance.own_registrations import own_registrations
from tests.conformance.registrations import BY_TEXT, compare, split
from tests.support import RECORDINGS

RECORDED = RECORDINGS / "conformance/registrations.json"


def test_the_implicit_registrations_follow_from_the_rule() -> None:
    resolved = {plugin: with_implicit(own) for plugin, own in own_registrations(RECORDED).items()}

    assert compare(RECORDED, resolved) == []


def test_a_difference_is_told_in_one_line() -> None:

    differences = compare(RECORDED, own_registrations(RECORDED))

    assert "NodePorts: missing: Node/UpdateNodeTaint without hint" in differences
    assert all("Node/UpdateNodeTaint" in difference for difference in differences)


def test_the_union_is_what_is_watched() -> None:
    resolved = {plugin: with_implicit(own) for plugin, own in own_registrations(RECORDED).items()}
    recorded = {
        resource: {BY_TEXT[text] for text in texts}
        for resource, texts in json.loads(RECORDED.read_text())["watched"].items()
    }
    union: dict[str, Action] = {}
    for trigger in (registration.trigger for own in resolved.values() for registration in own):
        union[trigger.resource] = union.get(trigger.resource, Action(0)) | trigger.action
    ours = {resource: set(split(action)) for resource, action in union.items()}

    assert ours == recorded
