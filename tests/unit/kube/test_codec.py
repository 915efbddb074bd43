"""Bytes to records, malformed objects left out."""

import json

import pytest

from asched.core.framework.effects import Whole
from asched.core.model.kinds import KINDS, POD
from asched.kube.codec import MALFORMED_REMEMBERED, KindCodec, is_initial_end, peek_continue
from asched.kube.errors import ProtocolBroken
from asched.kube.raw_objects import RawObjects
from tests.unit.kube.scripted import status


def pod(name, version="1", **spec):
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "namespace": "t",
            "uid": f"u-{name}",
            "resourceVersion": version,
        },
        "spec": {"containers": [{"name": "c", "image": "x"}], **spec},
        "status": {"phase": "Pending"},
    }


def listed(*items, version="9", token=""):
    metadata = {"resourceVersion": version}
    if token:
        metadata["continue"] = token
    return json.dumps({"kind": "PodList", "metadata": metadata, "items": list(items)}).encode()


def line(type_, obj):
    return json.dumps({"type": type_, "object": obj}).encode()


@pytest.fixture
def complaints():
    return []


@pytest.fixture
def codec(complaints):
    return KindCodec(POD, lambda kind, name, why: complaints.append((kind.name, name, why)))


def test_a_page_becomes_records(codec):
    page = codec.page(listed(pod("a"), pod("b", nodeName="n"), version="77", token="more"))
    assert [obj.key for obj in page.objects] == ["t/a", "t/b"]
    assert page.objects[1].spec.node_name == "n"
    assert (page.version, page.continue_token, page.malformed_count) == ("77", "more", 0)


def test_a_malformed_object_is_left_out_of_a_page(codec, complaints):
    broken = pod("bad", containers="none")
    page = codec.page(listed(pod("a"), broken, pod("b")))
    assert [obj.metadata.name for obj in page.objects] == ["a", "b"]
    assert (page.malformed_count, codec.malformed_count) == (1, 1)
    ((kind, name, why),) = complaints
    assert (kind, name) == ("Pod", "t/bad")
    assert "containers" in why


def test_the_token_of_a_page_is_seen_without_reading_it():
    assert peek_continue(listed(pod("a", containers=5), token="t")) == "t"
    assert peek_continue(listed(pod("a"))) == ""
    with pytest.raises(ProtocolBroken):
        peek_continue(b"nothing")


def test_lines_become_sights(codec):
    lines = [line("ADDED", pod("a", "5")), b"", line("DELETED", pod("a", "6"))]
    events = list(codec.events(lines))
    assert [(event.type, event.obj.metadata.name, event.version) for event in events] == [
        ("ADDED", "a", "5"),
        ("DELETED", "a", "6"),
    ]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_an_error_is_recognised_for_every_kind(kind):
    codec = KindCodec(kind, lambda *_: pytest.fail("an error is no malformed object"))
    (event,) = codec.events([line("ERROR", status(410, "Expired", "too old"))])
    assert (event.type, event.obj) == ("ERROR", None)
    assert (event.status.code, event.status.reason) == (410, "Expired")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_bookmark_moves_the_version_for_every_kind(kind):
    codec = KindCodec(kind, lambda *_: pytest.fail("a bookmark is no malformed object"))
    end = {"k8s.io/initial-events-end": "true"}
    bare = {"metadata": {"resourceVersion": "12"}, "spec": None, "status": None}
    marked = {"metadata": {"resourceVersion": "13", "annotations": end}, "spec": {}, "status": {}}
    first, second = codec.events([line("BOOKMARK", bare), line("BOOKMARK", marked)])
    assert (first.obj, first.version, is_initial_end(first)) == (None, "12", False)
    assert (second.obj, second.version, is_initial_end(second)) == (None, "13", True)


def test_the_recorded_shape_of_a_bookmark_is_understood(codec):
    recorded = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "4"},
        "spec": {"containers": None},
        "status": {},
    }
    (event,) = codec.events([line("BOOKMARK", recorded)])
    assert event.version == "4"


def test_a_malformed_object_is_named_once_and_counted_each_time(codec, complaints):
    broken = line("MODIFIED", pod("bad", "8", containers=7))
    other = line("ADDED", pod("worse", "9", containers=7))
    events = list(codec.events([broken, broken, other]))
    assert [(event.obj, event.version) for event in events] == [
        (None, "8"),
        (None, "8"),
        (None, "9"),
    ]
    assert codec.malformed_count == 3
    assert [name for _, name, _ in complaints] == ["t/bad", "t/worse"]


def test_the_end_of_a_malformed_object_is_still_told(codec):
    (event,) = codec.events([line("DELETED", pod("bad", "8", containers=7))])
    meta = event.obj.metadata
    assert (meta.key, meta.uid, meta.resource_version) == ("t/bad", "u-bad", "8")


def test_metadata_that_is_malformed_itself_does_no_harm(codec, complaints):
    (event,) = codec.events([line("ADDED", {"metadata": {"name": 5, "labels": []}})])
    assert (event.obj, event.version) == (None, "")
    assert len(complaints) == 1


def test_what_is_no_event_ends_the_stream(codec):
    with pytest.raises(ProtocolBroken, match="watch of pods"):
        list(codec.events([b"{not json"]))


def test_memory_of_malformed_objects_is_bounded(codec, complaints):
    for number in range(MALFORMED_REMEMBERED + 5):
        list(codec.events([line("ADDED", pod(f"p{number}", containers=1))]))
    assert len(codec._remembered) == MALFORMED_REMEMBERED
    assert len(complaints) == MALFORMED_REMEMBERED + 5


def test_whole_objects_are_kept_of_a_stream_but_for_what_went_and_marks_nothing(complaints):
    raw_objects = RawObjects((POD,))
    codec = KindCodec(POD, lambda *told: complaints.append(told), raw_objects)
    lines = [line("ADDED", pod("a", "1", any="thing")), line("DELETED", pod("b", "2"))]
    assert [event.type for event in codec.events(lines)] == ["ADDED", "DELETED"]
    assert raw_objects.count(POD) == 1
    sent = json.loads(bytes(raw_objects.splice(Whole(POD, "t/a", "u-a"))))
    assert sent["spec"]["any"] == "thing"


def test_each_malformed_object_is_named_once_told_apart_by_its_uid(codec, complaints):
    def broken(uid):
        made = pod("bad", containers="none")
        made["metadata"]["uid"] = uid
        return made

    for uid in ("1", "1", "2", "", "", "1"):
        assert codec.page(listed(broken(uid))).objects == []
    assert codec.malformed_count == 6
    assert [name for _, name, _ in complaints] == ["t/bad"] * 3
