"""Server-side apply: ownership, conflicts, and what goes away when nobody wants it any more."""

from typing import Any

from asched_lab.apiserver.server import ApiServer
from tests.lab.apiserver.client import MERGE, PODS, Client, a_pod

APPLY = "application/apply-patch+yaml"


async def applied(client: Client, manager: str, *, force: bool = False, **labels: str) -> Any:
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": labels}}
    query = {"fieldManager": manager, "force": str(force).lower()}
    return await client.ask("PATCH", f"{PODS}/a", body, media=APPLY, params=query)


async def test_equal_values_are_shared_and_others_are_conflicts(
    server: ApiServer, client: Client
) -> None:
    server.create("pods", a_pod("a"))
    assert (await applied(client, "one", x="1", y="1"))[0] == 200
    assert (await applied(client, "two", x="1"))[0] == 200
    status, answer = await applied(client, "two", x="2", y="2")
    assert status == 409
    assert {cause["field"] for cause in answer["details"]["causes"]} == {
        ".metadata.labels.x",
        ".metadata.labels.y",
    }
    assert server.list("pods")[0]["metadata"]["labels"] == {"x": "1", "y": "1"}


async def test_what_only_its_owner_wanted_goes_when_the_owner_lets_go(
    server: ApiServer, client: Client
) -> None:
    server.create("pods", a_pod("a"))
    await applied(client, "one", x="1", y="1")
    await applied(client, "two", x="1")
    await applied(client, "one")
    assert server.list("pods")[0]["metadata"]["labels"] == {"x": "1"}


async def test_a_plain_write_takes_ownership(server: ApiServer, client: Client) -> None:
    server.create("pods", a_pod("a"))
    await applied(client, "one", x="1")
    await client.ask("PATCH", f"{PODS}/a", {"metadata": {"labels": {"x": "2"}}}, media=MERGE)
    assert (await applied(client, "one", x="1"))[0] == 409
    assert (await applied(client, "one", force=True, x="1"))[0] == 200


async def test_applying_twice_changes_nothing(server: ApiServer, client: Client) -> None:
    server.create("pods", a_pod("a"))
    _, first = await applied(client, "one", x="1")
    _, second = await applied(client, "one", x="1")
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
