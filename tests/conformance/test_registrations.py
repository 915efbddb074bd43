"""What follows from registrations, against the recorded table of the default profile."""

import json

import pytest

from asched.core.queue.hints import registered, watched
from tests.conformance.own_registrations import own_registrations
from tests.conformance.registrations import BY_TEXT, compare, split
from tests.shared import shared_path


@pytest.mark.shared
def test_the_implicit_registrations_follow_from_the_rule() -> None:
    path = shared_path("conformance/registrations.json")
    resolved = {plugin: registered(own) for plugin, own in own_registrations(path).items()}

    assert compare(path, resolved) == []


@pytest.mark.shared
def test_a_difference_is_told_in_one_line() -> None:
    path = shared_path("conformance/registrations.json")

    differences = compare(path, own_registrations(path))

    assert "NodePorts: missing: Node/UpdateNodeTaint without hint" in differences
    assert all("Node/UpdateNodeTaint" in difference for difference in differences)


@pytest.mark.shared
def test_the_union_is_what_is_watched() -> None:
    path = shared_path("conformance/registrations.json")
    resolved = {plugin: registered(own) for plugin, own in own_registrations(path).items()}
    recorded = {
        resource: {BY_TEXT[text] for text in texts}
        for resource, texts in json.loads(path.read_text())["watched"].items()
    }
    ours = {resource: set(split(action)) for resource, action in watched([resolved]).items()}

    assert ours == recorded
