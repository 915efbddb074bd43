"""One Lease: read, created, replaced with its version."""

import asyncio

import pytest

from asched.core.leader.election import CreateLease, LeaseRecord, Term, WriteLease
from asched.host.lease_client import LeaseClient
from asched.kube.errors import AlreadyExists, Conflict, DeadlineExceeded, ProtocolBroken
from tests.support import recorded_lines
from tests.unit.kube.scripted import reply, status

PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
RECORD, TERM = LeaseRecord("me", 15), Term(0, ("asched",))
ANNOTATION = {"asched.dev/term": '{"transitions":0,"sealable":["asched"]}'}


@pytest.fixture
async def leases(session):
    return LeaseClient(session, "kube-system", "asched", timeout_s=5.0)


async def test_a_missing_lease_is_none(leases, server):
    async def missing(_seen, _wire):
        return reply(404, status(404, "NotFound", "m"))

    server.handler = missing
    assert await leases.get() is None
    assert server.seen[0].target == f"{PATH}/asched?timeout=5s"


async def test_a_lease_is_created_and_updated_with_its_version(leases, server):
    metadata = {"name": "asched", "resourceVersion": "7", "annotations": {"a": "kept"}}
    stored = {"metadata": metadata, "spec": RECORD.spec()}

    async def store(seen, _wire):
        return reply(201 if seen.method == "POST" else 200, stored)

    server.handler = store
    assert await leases.create(CreateLease(RECORD, TERM)) == stored
    assert await leases.update(WriteLease(stored, LeaseRecord("", 1), TERM)) == stored
    create, update = server.seen
    assert (create.method, create.path) == ("POST", PATH)
    assert create.json == {
        "kind": "Lease",
        "apiVersion": "coordination.k8s.io/v1",
        "metadata": {"name": "asched", "namespace": "kube-system", "annotations": ANNOTATION},
        "spec": RECORD.spec(),
    }
    assert (update.method, update.path) == ("PUT", f"{PATH}/asched")
    assert update.json["metadata"]["resourceVersion"] == "7"
    assert update.json["metadata"]["annotations"] == {"a": "kept", **ANNOTATION}
    assert update.json["spec"]["holderIdentity"] == ""


@pytest.mark.parametrize(
    "lease",
    [
        b"<html>",
        b"{}",
        {"kind": "Status", "metadata": {}, "status": "Success"},
        {"metadata": {"resourceVersion": "7"}, "spec": []},
        {"metadata": {"resourceVersion": "7"}, "spec": {"holderIdentity": 7}},
        {"metadata": {"resourceVersion": "7"}, "spec": {"leaseDurationSeconds": "15"}},
    ],
)
async def test_a_200_that_is_no_lease_is_a_failed_answer(leases, server, lease):
    async def senseless(_seen, _wire):
        return reply(200, lease)

    server.handler = senseless
    for asked in (
        leases.get(),
        leases.create(CreateLease(RECORD, TERM)),
        leases.update(WriteLease({"metadata": {"resourceVersion": "7"}}, RECORD, TERM)),
    ):
        with pytest.raises(ProtocolBroken):
            await asked


async def test_the_event_about_a_new_leader_is_kube_schedulers(leases, server):
    entries = recorded_lines("outside/api/startup.jsonl")
    (recorded,) = [
        entry["body"]
        for entry in entries
        if entry.get("method") == "POST"
        and entry["path"].startswith("/api/v1/")
        and "body" in entry
    ]
    about = recorded["involvedObject"]
    leases.name = about["name"]
    lease = {"metadata": {"uid": about["uid"], "resourceVersion": about["resourceVersion"]}}
    await leases.announce(
        lease, recorded["message"], component=recorded["source"]["component"], now_ns=5_000_000_000
    )
    (seen,) = server.seen
    assert seen.path == "/api/v1/namespaces/kube-system/events"
    ours = seen.json
    assert ours["metadata"].pop("name") == f"{about['name']}.{5_000_000_000:016x}"
    assert ours.pop("firstTimestamp") == ours.pop("lastTimestamp") == "1970-01-01T00:00:05Z"
    recorded["metadata"].pop("name")
    assert ours == {k: v for k, v in recorded.items() if not k.endswith("Timestamp")}


async def test_the_event_of_a_new_leader_names_lease_and_component(session, server):
    """Source: client-go v0.36 tools/record/event.go makeEvent, and what the broadcaster adds."""
    leases = LeaseClient(session, "kube system", "asched", timeout_s=0.3)
    lease = {"metadata": {"uid": "u", "resourceVersion": "7"}}
    await leases.announce(lease, "me became leader", component="mine", now_ns=1_700_000_000_123)
    await leases.announce({"metadata": {}}, "m", component="mine", now_ns=5)
    first, second = server.seen
    assert (first.method, first.target) == (
        "POST",
        "/api/v1/namespaces/kube%20system/events?timeout=1s",
    )
    assert first.json == {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": f"asched.{1_700_000_000_123:016x}", "namespace": "kube system"},
        "involvedObject": {
            "kind": "Lease",
            "apiVersion": "coordination.k8s.io/v1",
            "namespace": "kube system",
            "name": "asched",
            "uid": "u",
            "resourceVersion": "7",
        },
        "reason": "LeaderElection",
        "message": "me became leader",
        "source": {"component": "mine"},
        "firstTimestamp": "1970-01-01T00:28:20Z",
        "lastTimestamp": "1970-01-01T00:28:20Z",
        "count": 1,
        "type": "Normal",
        "eventTime": None,
        "reportingComponent": "mine",
        "reportingInstance": "",
    }
    about = second.json["involvedObject"]
    assert (about["uid"], about["resourceVersion"]) == ("", "")


async def test_whoever_was_slower_hears_of_it(leases, server):
    async def taken(seen, _wire):
        reason = "AlreadyExists" if seen.method == "POST" else "Conflict"
        return reply(409, status(409, reason, "m"))

    server.handler = taken
    with pytest.raises(AlreadyExists):
        await leases.create(CreateLease(RECORD, TERM))
    with pytest.raises(Conflict):
        await leases.update(WriteLease({"metadata": {}}, RECORD, TERM))


async def test_a_frozen_server_is_not_waited_for(session, server):
    async def frozen(_seen, _wire):
        await asyncio.Event().wait()

    server.handler = frozen
    leases = LeaseClient(session, "n", "l", timeout_s=0.05)
    with pytest.raises(DeadlineExceeded):
        await leases.update(WriteLease({"metadata": {}}, RECORD, TERM))
