"""What a ProvisioningRequest is told: conditions that Kueue goes on by, and where it has places."""

from typing import Any

import pytest

from asched.core.cycle.request_status import (
    DETAIL_CHARS,
    MESSAGE_CHARS,
    Where,
    details_of,
    failed,
    found,
    not_found,
    over,
    patch_of,
    read,
    says,
)
from asched.core.model.decode import decode
from asched.core.model.provisioning import ProvisioningRequest
from asched.core.state.cluster import Cluster

NOW_S = 1_767_225_600.0  # 2026-01-01T00:00:00Z
EARLIER = "2025-12-31T00:00:00Z"
DETAILS = {"heldUntil": "2026-01-01T00:10:00.000000Z", "places-0": "0/n1"}


def a_request(*conditions: dict[str, Any], **details: str) -> ProvisioningRequest:
    status: dict[str, Any] = {"conditions": list(conditions)}
    if details:
        status["provisioningClassDetails"] = {
            name.replace("_", "-"): text for name, text in details.items()
        }
    metadata = {"name": "job", "namespace": "default", "uid": "u1", "resourceVersion": "7"}
    return decode(
        ProvisioningRequest, {"metadata": {**metadata, "generation": 2}, "status": status}
    )


def condition(type_: str, status: str = "True", **more: Any) -> dict[str, Any]:
    return {"type": type_, "status": status, "lastTransitionTime": EARLIER, **more}


def written(request: ProvisioningRequest, wanted: Any) -> dict[str, Any]:
    cluster = Cluster()
    cluster.wall_clock_s = NOW_S
    return patch_of(cluster, request, wanted).body


def test_places_are_read_as_they_were_told() -> None:
    places = [Where(0, "n1", 2), Where(1, "n1", 1), Where(0, "n2", 11)]
    details = details_of(places, NOW_S + 0.25)
    assert details == {
        "heldUntil": "2026-01-01T00:00:00.250000Z",
        "places-0": "0/n1*2,1/n1,0/n2*11",
    }
    assert read(details) == (places, NOW_S + 0.25)


def test_a_request_without_places_is_read_as_one() -> None:
    assert read(details_of([], NOW_S)) == ([], NOW_S)


def test_many_places_take_several_details_each_within_the_api_s_bound() -> None:
    places = [Where(0, f"node-{number:05}", 1) for number in range(4_500)]
    details = details_of(places, NOW_S)
    assert sorted(details) == ["heldUntil", "places-0", "places-1"]
    assert all(len(text) <= 32_768 for text in details.values())
    assert len(details["places-0"]) > DETAIL_CHARS - 20
    assert read(details) == (places, NOW_S)


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


def test_each_answer_has_cluster_autoscaler_s_conditions() -> None:
    told = {
        name: [(c.type, c.status, c.reason) for c in wanted.conditions]
        for name, wanted in {
            "found": found(DETAILS),
            "not found": not_found("no room"),
            "failed": failed("no room"),
            "over": over("CapacityIsLost", "gone"),
        }.items()
    }
    ours = ("Accepted", "True", "Accepted")
    assert told == {
        "found": [ours, ("Provisioned", "True", "CapacityIsFound")],
        "not found": [ours, ("Provisioned", "False", "CapacityIsNotFound")],
        "failed": [ours, ("Failed", "True", "CapacityIsNotFound")],
        "over": [("BookingExpired", "True", "CapacityIsLost")],
    }
    assert DETAILS["heldUntil"] in found(DETAILS).conditions[1].message


def test_long_reasons_fit_into_a_condition() -> None:
    for wanted in (not_found("x" * 40_000), failed("x" * 40_000)):
        assert len(wanted.conditions[1].message) == MESSAGE_CHARS == 32_768


def test_a_request_says_it_only_if_it_says_all_of_it() -> None:
    lost = {"reason": "CapacityIsLost", "message": "gone"}
    wanted = over("CapacityIsLost", "gone")
    assert says(a_request(condition("BookingExpired", **lost)), wanted)
    assert not says(a_request(), wanted)
    assert not says(a_request(condition("BookingExpired", "False", **lost)), wanted)
    assert not says(a_request(condition("BookingExpired", **{**lost, "reason": "x"})), wanted)
    assert not says(a_request(condition("BookingExpired", **{**lost, "message": "x"})), wanted)
    assert not says(a_request(condition("BookingExpired", **lost), places_0="0/n1"), wanted)


def test_conditions_of_others_stay_and_a_turned_one_has_a_new_time() -> None:
    request = a_request(
        condition("Provisioned", "False", reason="CapacityIsNotFound"),
        condition("Accepted", reason="Accepted"),
        condition("Theirs", "Unknown", message="hm", observedGeneration=1),
    )
    body = written(request, found(DETAILS))
    by_type = {c["type"]: c for c in body["status"]["conditions"]}
    assert list(by_type) == ["Provisioned", "Accepted", "Theirs"]
    assert by_type["Provisioned"]["status"] == "True"
    assert by_type["Provisioned"]["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert by_type["Provisioned"]["observedGeneration"] == 2
    assert by_type["Accepted"]["lastTransitionTime"] == EARLIER
    theirs = by_type["Theirs"]
    assert (theirs["status"], theirs["message"], theirs["observedGeneration"]) == (
        "Unknown",
        "hm",
        1,
    )
    assert theirs["lastTransitionTime"] == EARLIER


def test_conditions_that_nobody_gave_a_time_have_one_from_now_on() -> None:
    others = {"type": "Mine", "status": "True"}
    ours = {"type": "Provisioned", "status": "True"}
    body = written(a_request(others, ours), found(DETAILS))
    times = {c["type"]: c["lastTransitionTime"] for c in body["status"]["conditions"]}
    assert times["Mine"] == times["Provisioned"] == "2026-01-01T00:00:00Z"


def test_a_first_condition_begins_now() -> None:
    body = written(a_request(), failed("no"))
    times = {c["lastTransitionTime"] for c in body["status"]["conditions"]}
    assert times == {"2026-01-01T00:00:00Z"}
    assert "provisioningClassDetails" not in body["status"]


def test_a_write_is_bound_to_this_version_of_this_object() -> None:
    request = a_request()
    cluster = Cluster()
    patch = patch_of(cluster, request, failed("no"))
    assert patch.body["metadata"] == {"uid": "u1", "resourceVersion": "7"}
    assert (patch.namespace, patch.name, patch.subresource) == ("default", "job", "status")


def test_details_that_are_over_are_taken_away() -> None:
    request = a_request(heldUntil="x", places_0="0/n1", places_1="0/n2")
    told = written(request, found(DETAILS))["status"]["provisioningClassDetails"]
    assert told == {**DETAILS, "places-1": None}
    told = written(request, over("CapacityIsLost", "gone"))["status"]["provisioningClassDetails"]
    assert told == {"heldUntil": None, "places-0": None, "places-1": None}
