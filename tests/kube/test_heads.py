"""What the server holds, name by name: pages of metadata, and single objects."""

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import orjson
import pytest

from asched.core.model.kinds import NODE, POD, Kind
from asched.kube.errors import Expired, Forbidden, ProtocolBroken
from asched.kube.heads import ACCEPT, Heads, ObjectHead
from asched.kube.pace import ReflectorOptions
from asched.kube.transport import JSON, Reply
from asched.kube.watch import POD_FIELD_SELECTOR, Reflector


class Server:
    """Answers in order; a transport of a reflector that does not run."""

    def __init__(self, *answers: Any, status: int = 200) -> None:
        self.answers, self.status = list(answers), status
        self.asked: list[tuple[str, dict[str, str], str]] = []

    async def request(
        self, method: str, path: str, *, accept: str = JSON, timeout_s: float
    ) -> Reply:
        assert (method, timeout_s) == ("GET", 65.0)
        found = urlsplit(path)
        self.asked.append((found.path, dict(parse_qsl(found.query)), accept))
        answer = self.answers.pop(0)
        return Reply(self.status, answer if isinstance(answer, bytes) else orjson.dumps(answer))


def heads_of(server: Any, kind: Kind = POD, **options: Any) -> Heads:
    made = ReflectorOptions(**options) if options else None
    return Heads(Reflector(kind, server, lambda _fact: None, options=made))


def page(*items: dict[str, Any], version: str = "7", token: str = "") -> dict[str, Any]:
    return {"metadata": {"resourceVersion": version, "continue": token}, "items": list(items)}


def item(name: str, version: str = "1", **more: Any) -> dict[str, Any]:
    namespace = more.pop("namespace", "t")
    metadata = {"name": name, "namespace": namespace, "uid": f"u-{name}"}
    return {"metadata": {**metadata, "resourceVersion": version}, **more}


async def pages_of(server: Server) -> list[tuple[list[ObjectHead], str]]:
    return [page async for page in heads_of(server).pages(0.0)]


async def test_pages_hold_who_each_object_is_and_follow_the_server_to_the_last() -> None:
    server = Server(
        page(item("a"), item("b", "3"), token="two"),
        page(token="three"),
        {"metadata": {"resourceVersion": "7"}, "items": None},
    )
    a, b = ObjectHead("a", "t", "u-a", "1"), ObjectHead("b", "t", "u-b", "3")
    assert await pages_of(server) == [([a, b], "7"), ([], "7"), ([], "7")]
    assert [(path, accept) for path, _, accept in server.asked] == [("/api/v1/pods", ACCEPT)] * 3
    limit = {"limit": "500", "fieldSelector": POD_FIELD_SELECTOR}
    assert [query for _, query, _ in server.asked] == [
        limit,
        {**limit, "continue": "two"},
        {**limit, "continue": "three"},
    ]


@pytest.mark.parametrize(
    ("selectors", "asked"),
    [
        ({}, {}),
        ({"label_selector": "a=b"}, {"labelSelector": "a=b"}),
        ({"field_selector": "x=y"}, {"fieldSelector": "x=y"}),
        (
            {"field_selector": "x=y", "label_selector": "a=b"},
            {"fieldSelector": "x=y", "labelSelector": "a=b"},
        ),
    ],
)
async def test_only_what_the_reflector_itself_follows_is_asked_for(
    selectors: dict[str, str], asked: dict[str, str]
) -> None:
    server = Server(page(), page())
    reads = heads_of(server, streaming=True, **selectors)
    assert [version async for _, version in reads.pages(0.0)] == ["7"]
    await reads.one("t/a")
    by_name = [asked.get("fieldSelector"), "metadata.name=a"]
    assert [query for _, query, _ in server.asked] == [
        {"limit": "500", **asked},
        {**asked, "fieldSelector": ",".join(filter(None, by_name))},
    ]


@pytest.mark.parametrize(
    ("kind", "key", "path"),
    [
        (POD, "t/a", "/api/v1/namespaces/t/pods"),
        (NODE, "a", "/api/v1/nodes"),
    ],
)
async def test_one_object_is_read_whole_in_its_own_namespace(
    kind: Kind, key: str, path: str
) -> None:
    namespace = key.rpartition("/")[0]
    server = Server(page(item("a", "5", namespace=namespace), version="9"))
    found = await heads_of(server, kind).one(key)
    assert found.obj is not None
    assert found.obj.metadata.resource_version == "5"  # type: ignore[attr-defined]
    assert (found.version, found.is_odd) == ("9", False)
    ((asked, query, accept),) = server.asked
    assert (asked, accept) == (path, JSON)
    assert query["fieldSelector"].split(",")[-1] == "metadata.name=a"


async def test_an_object_that_is_not_there_and_one_that_cannot_be_read_are_told_apart() -> None:
    odd = {**item("a"), "spec": 5}
    server = Server(page(version="9"), page(item("b"), version="9"), page(odd, version="9"))
    reads = heads_of(server)
    assert [await reads.one("t/a") for _ in range(3)] == [
        (None, "9", False),
        (None, "9", False),
        (None, "9", True),
    ]


async def test_a_page_that_is_no_list_is_a_broken_protocol() -> None:
    for body in (b"<html>", b'{"items": 5}', b'{"metadata": {"continue": 5}}'):
        with pytest.raises(ProtocolBroken, match="the list of pods is malformed"):
            await pages_of(Server(body))


@pytest.mark.parametrize(("status", "error"), [(403, Forbidden), (410, Expired)])
async def test_a_refusal_is_raised(status: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        await pages_of(Server({}, status=status))
    with pytest.raises(error):
        await heads_of(Server({}, status=status)).one("t/a")


def test_a_key_is_the_name_within_its_namespace_if_it_has_one() -> None:
    assert [ObjectHead("a", "t").key, ObjectHead("a").key] == ["t/a", "a"]
