"""Decoding by the table of types: pruning, unknown fields, canonical values, wrong types."""

import pytest

from asched_lab.apiserver import schema
from asched_lab.apiserver.resources import NODES, PODS, RESOURCES, find


def test_empty_values_are_left_out_and_pointers_kept() -> None:
    pod, unknown = schema.decode(
        PODS,
        {
            "metadata": {"name": "a", "labels": {}, "creationTimestamp": None},
            "spec": {"containers": [], "nodeName": "", "priority": 0, "hostNetwork": False},
        },
    )
    assert pod == {
        "metadata": {"name": "a"},
        "spec": {"containers": None, "priority": 0},
        "status": {},
    }
    assert unknown == []


def test_unknown_fields_are_named_by_path() -> None:
    _, unknown = schema.decode(
        PODS, {"spec": {"containers": [{"name": "c", "x": 1}], "y": 2}, "z": 3}
    )
    assert unknown == ["spec.containers[0].x", "spec.y", "z"]


def test_what_is_always_there_is_there() -> None:
    node, _ = schema.decode(NODES, {"metadata": {"name": "n"}})
    assert node["status"]["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 0}}
    assert node["status"]["nodeInfo"]["kubeletVersion"] == ""


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": "x"},
        {"containers": [{"name": 1}]},
        {"priority": "high"},
        {"priority": 2**31},
        {"nodeSelector": ["a"]},
        {"overhead": {"cpu": "lots"}},
    ],
)
def test_wrong_types_are_refused(spec: dict) -> None:
    with pytest.raises(schema.DecodeError):
        schema.decode(PODS, {"spec": spec})


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("2001-01-01T00:00:00Z", "2001-01-01T00:00:00Z"),
        ("2001-01-01T02:00:00+02:00", "2001-01-01T00:00:00Z"),
        ("2001-01-01T00:00:00.5Z", "2001-01-01T00:00:00Z"),
    ],
)
def test_times_are_whole_seconds_in_utc(sent: str, kept: str) -> None:
    pod, _ = schema.decode(PODS, {"status": {"startTime": sent}})
    assert pod["status"]["startTime"] == kept


@pytest.mark.parametrize("text", ["2001-01-01T00:00:00Z", "2001-01-01T00:00:00.5Z", "yesterday"])
def test_micro_times_need_six_digits(text: str) -> None:
    with pytest.raises(schema.DecodeError, match="parsing time"):
        schema.decode(find("leases"), {"spec": {"renewTime": text}})


def test_decoding_shares_nothing_with_what_was_sent() -> None:
    sent = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}}
    pod, _ = schema.decode(PODS, sent)
    pod["metadata"]["labels"]["a"] = pod["spec"]["containers"][0]["name"] = "changed"
    assert sent["metadata"]["labels"] == {"a": "b"}
    assert sent["spec"]["containers"] == [{"name": "c"}]


def test_every_form_of_the_table_can_be_read() -> None:
    for fields in schema.TYPES.values():
        for field in fields.values():
            assert callable(schema.reader(field.form)), field
    assert {schema.type_name(res) for res in RESOURCES} <= set(schema.TYPES)
