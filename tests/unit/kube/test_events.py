"""Which events are written, which are only counted, and how they look."""

import json

import pytest

from asched.core.framework.effects import EmitEvent
from asched.core.model.meta import ObjectReference
from asched.kube import events
from asched.kube.events import EventRecorder, cut_note
from tests.support import recorded_lines

SECOND_NS = 1_000_000_000


class Clock:
    now_ns = 1_700_000_000 * SECOND_NS

    def __call__(self):
        return self.now_ns


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def recorder(clock):
    return EventRecorder("host", clock)


def failed(name="a", version="5", note="0/1 nodes are available", **more):
    regarding = ObjectReference(
        api_version="v1", kind="Pod", namespace="t", name=name, uid="u", resource_version=version
    )
    fields = {
        "regarding": regarding,
        "type": "Warning",
        "reason": "FailedScheduling",
        "action": "Scheduling",
        "note": note,
        "reporting_controller": "asched",
    }
    return EmitEvent(**{**fields, **more})


def test_the_first_is_created_the_second_patched_the_third_counted(recorder, clock):
    first = recorder.record(failed())
    clock.now_ns += SECOND_NS
    second = recorder.record(failed(note="another note, the same event"))
    clock.now_ns += SECOND_NS
    assert recorder.record(failed()) is None
    assert (first.is_patch, second.is_patch) == (False, True)
    created = recorder.request(first)
    assert (created.method, created.path) == ("POST", "/apis/events.k8s.io/v1/namespaces/t/events")
    body = json.loads(created.body)
    assert body["note"] == "0/1 nodes are available"
    assert "series" not in body
    patched = recorder.request(second)
    assert (patched.method, patched.path) == ("PATCH", f"{created.path}/{body['metadata']['name']}")
    assert json.loads(patched.body) == {
        "series": {"count": 3, "lastObservedTime": "2023-11-14T22:13:22.000000Z"}
    }


@pytest.mark.parametrize(
    "other",
    [
        failed(version="6"),
        failed(name="b"),
        failed(reason="Other"),
        failed(type="Normal"),
        failed(action="Binding"),
        failed(reporting_controller="x"),
        failed(related=ObjectReference(name="r")),
    ],
)
def test_what_differs_in_the_key_is_another_event(recorder, other):
    first, second = recorder.record(failed()), recorder.record(other)
    assert (first.is_patch, second.is_patch) == (False, False)
    assert first.series.name != second.series.name


def test_events_look_like_kube_schedulers():
    count = 0
    for scenario in ("schedule_one", "unschedulable", "preemption", "two_profiles", "updates"):
        for entry in recorded_lines(f"outside/api/{scenario}.jsonl"):
            if entry.get("method") != "POST" or "events.k8s.io" not in entry["path"]:
                continue
            count += 1
            body = entry["body"]
            about = body["regarding"]
            effect = EmitEvent(
                regarding=ObjectReference(
                    api_version=about["apiVersion"],
                    kind=about["kind"],
                    namespace=about["namespace"],
                    name=about["name"],
                    uid=about["uid"],
                    resource_version=about["resourceVersion"],
                ),
                type=body["type"],
                reason=body["reason"],
                action=body["action"],
                note=body["note"],
                reporting_controller=body["reportingController"],
            )
            recorder = EventRecorder("$host")
            request = recorder.request(recorder.record(effect))
            ours = json.loads(request.body)
            assert request.path == entry["path"]
            assert ours.pop("eventTime").endswith("Z")
            name, _, nanos = ours["metadata"].pop("name").rpartition(".")
            assert name == about["name"]
            assert len(nanos) == 16
            int(nanos, 16)
            recorded = {key: value for key, value in body.items() if key != "eventTime"}
            recorded["metadata"].pop("name")
            assert ours == recorded
    assert count > 5


def test_live_series_are_refreshed_and_quiet_ones_finished(recorder, clock):
    recorder.record(failed("single"))
    recorder.record(failed("series"))
    recorder.record(failed("series"))
    assert [write.series.effect.regarding.name for write in recorder.refresh()] == ["series"]
    assert list(recorder.finish()) == []
    clock.now_ns += int(events.FINISH_S * SECOND_NS) + 1
    assert [write.is_patch for write in recorder.finish()] == [True]
    assert len(recorder) == 0
    assert recorder.record(failed("series")).is_patch is False


@pytest.mark.parametrize(
    ("note", "length"), [("a" * 2000, 1024), ("é" * 600, 1024), ("x" + "é" * 600, 1023), ("", 0)]
)
def test_a_note_is_cut_between_characters(note, length):
    cut = cut_note(note)
    assert len(cut.encode()) == length
    assert note.startswith(cut)
