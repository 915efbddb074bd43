"""Requests as kube-scheduler makes them, and what their answers mean."""

import json

import pytest

from asched.core.cluster.facts import Bound, ReadGone, ReadPending, ReadPlaced, Refused, Unknown
from asched.core.framework.effects import (
    Bind,
    Create,
    Delete,
    DeletePod,
    Evict,
    Patch,
    PatchPodStatus,
    PodRef,
    ReadPod,
)
from asched.core.model.kinds import NODE, PERSISTENT_VOLUME_CLAIM, RESOURCE_CLAIM
from asched.kube.transport import Reply
from asched.kube.writes import STRATEGIC_MERGE, answer_for, request_for
from tests.support import recorded_lines
from tests.unit.kube.scripted import status

POD = PodRef(namespace="t", name="a", uid="u1")


def recorded(*scenarios):
    """Requests of kube-scheduler, each once."""
    for scenario in scenarios:
        for entry in recorded_lines(f"outside/api/{scenario}.jsonl"):
            if entry.get("kind") == "request" and entry.get("body"):
                yield entry


SCENARIOS = (
    "schedule_one",
    "unschedulable",
    "updates",
    "preemption",
    "nominated",
    "wait_for_first_consumer",
    "resource_claim",
    "bind_conflict",
    "gated",
)


def test_bindings_are_those_of_kube_scheduler():
    count = 0
    for entry in recorded(*SCENARIOS):
        if not entry["path"].endswith("/binding"):
            continue
        count += 1
        body = entry["body"]
        meta = body["metadata"]
        pod = PodRef(namespace=meta["namespace"], name=meta["name"], uid=meta["uid"])
        request = request_for(Bind(id=1, pod=pod, node=body["target"]["name"]))
        path, _, query = request.path.partition("?")
        assert (request.method, path) == (entry["method"], entry["path"])
        assert query == "timeout=30s", "our own: what nobody answers has an end"
        assert json.loads(request.body) == body
    assert count > 5


def test_status_patches_are_those_of_kube_scheduler():
    count = 0
    for entry in recorded(*SCENARIOS):
        if entry["method"] != "PATCH" or not entry["path"].endswith("/status"):
            continue
        count += 1
        written = entry["body"]["status"]
        _, _, _, _, namespace, _, name, _ = entry["path"].split("/")
        (condition,) = written.get("conditions", [None])
        nominated = None
        if "nominatedNodeName" in written:
            nominated = written["nominatedNodeName"] or ""
        order = tuple(part["type"] for part in written.get("$setElementOrder/conditions", ()))
        effect = PatchPodStatus(
            id=1,
            pod=PodRef(namespace=namespace, name=name, uid="u"),
            condition=condition,
            condition_types=order,
            nominated_node_name=nominated,
        )
        request = request_for(effect)
        assert (request.method, request.path) == (entry["method"], entry["path"])
        assert request.content_type == STRATEGIC_MERGE
        assert json.loads(request.body) == {**entry["body"], "metadata": {"uid": "u"}}
    assert count > 10


def test_a_pod_is_deleted_with_its_uid_as_precondition():
    request = request_for(DeletePod(pod=POD))
    assert (request.method, request.path) == ("DELETE", "/api/v1/namespaces/t/pods/a")
    assert json.loads(request.body) == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": {"uid": "u1"},
    }
    bare = request_for(DeletePod(pod=PodRef(namespace="t", name="a", uid="")))
    assert json.loads(bare.body) == {"kind": "DeleteOptions", "apiVersion": "v1"}


def test_an_eviction_has_the_uid_as_precondition():
    request = request_for(Evict(pod=POD))
    assert (request.method, request.path) == ("POST", "/api/v1/namespaces/t/pods/a/eviction")
    assert json.loads(request.body) == {
        "kind": "Eviction",
        "apiVersion": "policy/v1",
        "metadata": {"name": "a", "namespace": "t"},
        "deleteOptions": {"preconditions": {"uid": "u1"}},
    }


def test_other_objects_are_patched_created_and_deleted_where_they_live():
    claim = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n"}}}
    patch = request_for(Patch(kind=PERSISTENT_VOLUME_CLAIM, namespace="t", name="c", body=claim))
    assert (patch.method, patch.path) == ("PATCH", "/api/v1/namespaces/t/persistentvolumeclaims/c")
    assert patch.content_type == "application/merge-patch+json"
    assert json.loads(patch.body) == claim
    part = request_for(
        Patch(kind=RESOURCE_CLAIM, namespace="t", name="c", body={}, subresource="status")
    )
    assert part.path == "/apis/resource.k8s.io/v1/namespaces/t/resourceclaims/c/status"
    create = request_for(Create(kind=RESOURCE_CLAIM, namespace="t", body={"spec": {}}))
    assert (create.method, create.path) == (
        "POST",
        "/apis/resource.k8s.io/v1/namespaces/t/resourceclaims",
    )
    delete = request_for(Delete(kind=NODE, namespace="", name="n", uid="u"))
    assert (delete.method, delete.path) == ("DELETE", "/api/v1/nodes/n")
    assert json.loads(delete.body)["preconditions"] == {"uid": "u"}


def answered(code, body=None):
    return Reply(code, json.dumps(body if body is not None else {}).encode())


def test_the_three_outcomes_of_a_binding():
    effect = Bind(id=7, pod=POD, node="n")
    assert answer_for(effect, answered(201, {"kind": "Status", "status": "Success"})) == Bound(7)
    conflict = status(409, "Conflict", 'pod a is already assigned to node "n1"')
    assert answer_for(effect, answered(409, conflict)) == Refused(
        7, 409, 'pod a is already assigned to node "n1"', "Conflict"
    )
    assert isinstance(answer_for(effect, answered(500, status(500, "", "etcd timeout"))), Unknown)
    assert isinstance(answer_for(effect, Reply(504, b"gateway")), Unknown)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (answered(200, {"metadata": {"uid": "u1"}, "spec": {"nodeName": "n"}}), ReadPlaced(7, "n")),
        (answered(200, {"metadata": {"uid": "u1"}, "spec": {}}), ReadPending(7)),
        (answered(200, {"metadata": {"uid": "u2"}, "spec": {"nodeName": "n"}}), ReadGone(7)),
        (answered(404, status(404, "NotFound", "x")), ReadGone(7)),
        (answered(403, status(403, "Forbidden", "no")), Unknown(7, "no")),
    ],
)
def test_a_pod_read_back_settles_a_binding(reply, expected):
    assert answer_for(ReadPod(id=7, pod=POD), reply) == expected


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"<html>",
        b"{}",
        b'{"metadata": null, "spec": {}}',
        b'{"metadata": {}, "spec": {"nodeName": "n"}}',
        b'{"metadata": {"uid": "u1"}, "spec": []}',
        b'{"metadata": {"uid": "u1"}, "spec": {"nodeName": 7}}',
        b'{"kind": "Status", "metadata": {}, "status": "Success"}',
    ],
)
def test_what_is_no_pod_settles_nothing(body):
    found = answer_for(ReadPod(id=7, pod=POD), Reply(200, body))
    assert isinstance(found, Unknown)
    assert "not a pod" in found.message


@pytest.mark.parametrize(
    ("code", "answer"),
    [(199, Refused), (200, Bound), (299, Bound), (300, Refused), (499, Refused), (500, Unknown)],
)
def test_a_binding_is_known_to_stand_or_not_but_for_a_failing_server(code, answer):
    told = answer_for(Bind(id=1, pod=POD, node="n"), Reply(code, b""))
    assert type(told) is answer
