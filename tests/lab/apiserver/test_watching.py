"""Watches over HTTP: what is shared, what is dropped, what a client that comes back sees."""

from asched_lab.apiserver import watching
from asched_lab.apiserver.auth import ADMIN
from asched_lab.apiserver.call import Call
from asched_lab.apiserver.resources import PODS as POD_RESOURCE
from asched_lab.apiserver.server import ApiServer
from tests.lab.apiserver.client import PODS, Client, a_binding, a_pod


def types_and_names(events: list) -> list[tuple[str, str]]:
    return [(e["type"], e["object"]["metadata"].get("name", "")) for e in events]


def open_watch(server: ApiServer, **query: str) -> watching.Watch:
    call = Call("GET", "/api/v1/pods", {"watch": "1", **query}, {}, b"", ADMIN)
    return watching.open_watch(server.ctx, call, POD_RESOURCE, "")


async def test_a_bound_pod_leaves_the_queue_of_unassigned_ones(
    server: ApiServer, client: Client
) -> None:
    version = str(server.store.revision)
    server.create("pods", a_pod("web"))
    await client.post(f"{PODS}/web/binding", a_binding("web", "n1"))

    query = {"resourceVersion": version}
    unassigned = await client.watch(PODS, fieldSelector="spec.nodeName=", **query)
    assigned = await client.watch(PODS, fieldSelector="spec.nodeName!=", **query)

    assert types_and_names(unassigned) == [("ADDED", "web"), ("DELETED", "web")]
    assert "nodeName" not in unassigned[1]["object"]["spec"]
    assert types_and_names(assigned) == [("ADDED", "web")]
    assert (
        unassigned[1]["object"]["metadata"]["resourceVersion"]
        == assigned[0]["object"]["metadata"]["resourceVersion"]
    )


async def test_nothing_is_lost_or_repeated_after_a_restart(
    server: ApiServer, client: Client
) -> None:
    version = str(server.store.revision)
    for index in range(6):
        server.create("pods", a_pod(f"p{index}"))
    everything = await client.watch(PODS, resourceVersion=version)
    for cut, event in enumerate(everything):
        seen = event["object"]["metadata"]["resourceVersion"]
        assert await client.watch(PODS, resourceVersion=seen) == everything[cut + 1 :]


async def test_a_watch_that_falls_behind_is_ended(server: ApiServer, monkeypatch) -> None:
    monkeypatch.setattr(watching, "BEHIND_MAX", 3)
    watch = open_watch(server)
    for index in range(5):
        server.create("pods", a_pod(f"p{index}"))
    assert watch.ended
    assert len(watch.frames) == 4


async def test_a_client_that_leaves_is_forgotten(server: ApiServer, client: Client) -> None:
    table = server.store.table(POD_RESOURCE.storage)
    answer = await client.session.get(server.url + PODS + "?watch=1")
    assert len(table.listeners) == 1
    answer.close()
    for _ in range(1000):
        if not table.listeners:
            break
        await client.get("/healthz")
    assert not table.listeners
