"""What a ProvisioningRequest is told: conditions that Kueue goes on by, and where it has places."""

import pytest

from asched.batch.provisioning.requests import read

DETAILS = {"heldUntil": "2026-01-01T00:10:00.000000Z", "places-0": "0/n1"}


@pytest.mark.parametrize(
    "details",
    [
        None,
        {},
        {"places-0": "0/n1"},
        {"heldUntil": DETAILS["heldUntil"]},
        {"heldUntil": DETAILS["heldUntil"], "places-1": "0/n1"},
        {"heldUntil": "soon", "places-0": "0/n1"},
        {"heldUntil": DETAILS["heldUntil"], "places-0": "first/n1"},
        {"heldUntil": DETAILS["heldUntil"], "places-0": "0/n1*many"},
        {"heldUntil": DETAILS["heldUntil"], "places-0": "0/n1*0"},
        {"heldUntil": DETAILS["heldUntil"], "places-0": "0/n1*1000000000,0/n1*-999999999"},
    ],
)
def test_what_is_not_ours_or_not_whole_is_nothing(details: dict[str, str] | None) -> None:
    assert read(details) is None
