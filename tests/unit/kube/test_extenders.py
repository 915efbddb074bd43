"""HTTP extenders: what is sent, and what counts as an answer."""

import asyncio
import json
from contextlib import asynccontextmanager, suppress

import pytest
from msgspec.structs import replace

from asched.core.cluster.facts import Refused, Replied, Unknown
from asched.core.config.v1 import Extender, ExtenderTLSConfig
from asched.core.framework.effects import AskExtender, Whole, Wholes
from asched.core.model.kinds import NODE, POD
from asched.core.model.meta import ObjectMeta
from asched.core.model.node import Node
from asched.core.model.timestamp import NS_PER_SECOND
from asched.kube.errors import ConnectError
from asched.kube.extenders import Extenders, observe_nothing
from asched.kube.raw_objects import RawObjects
from tests.builders import a_pod
from tests.unit.kube.scripted import reply, scripted


class Asking:
    """One extender and its client; questions go to that one unless they name another."""

    def __init__(self, config, raw_objects, observe):
        self.config = config
        self.client = Extenders([config], raw_objects, observe=observe)

    async def ask(self, effect):
        return await self.client.ask(replace(effect, extender=effect.extender or self.config))


@asynccontextmanager
async def asking(server_or_url, raw_objects=None, observe=observe_nothing, **more):
    url = getattr(server_or_url, "url", server_or_url)
    extender = Extender(**{"url_prefix": f"{url}/sched//", **more})
    extenders = Asking(extender, raw_objects, observe)
    try:
        yield extenders
    finally:
        await extenders.client.close()


def question(verb="filter", to=None, **body):
    return AskExtender(id=3, extender=to, verb=verb, body=body)


async def test_a_redirect_is_followed_as_go_follows_it(server):
    async def answer(seen, _wire):
        if seen.target == "/sched/filter":
            return reply(307, {}, "Location: /elsewhere")
        return reply(200, {"NodeNames": []})

    server.handler = answer
    async with asking(server) as extenders:
        assert await extenders.ask(question()) == Replied(3, {"NodeNames": []})
    assert [(seen.method, seen.target) for seen in server.seen] == [
        ("POST", "/sched/filter"),
        ("POST", "/elsewhere"),
    ]


@pytest.mark.parametrize(
    ("body", "value"),
    [(b"null", None), (b"5", 5), (b"[1]", [1]), (b' {"a": 1} and more', {"a": 1})],
    ids=repr,
)
async def test_the_first_value_is_the_answer_whatever_it_is(server, body, value):
    async def answer(_seen, _wire):
        return reply(200, body)

    server.handler = answer
    async with asking(server) as extenders:
        assert await extenders.ask(question()) == Replied(3, value)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "Expecting value: line 1 column 1 (char 0)"),
        (b"<html>", "Expecting value: line 1 column 1 (char 0)"),
        (b'{"a" 1}', "Expecting ':' delimiter: line 1 column 6 (char 5)"),
        (b'{"a": NaN}', "not a number: line 1 column 1 (char 0)"),
        (b"[" * 200_000, "nested too deeply"),
        (b"9" * 10_000, "a number has too many digits"),
    ],
    ids=lambda shown: repr(shown[:20]),
)
async def test_what_is_no_json_is_refused(server, body, why):
    async def answer(_seen, _wire):
        return reply(200, body)

    server.handler = answer
    async with asking(server) as extenders:
        refused = await extenders.ask(question())
    assert refused == Refused(3, 200, f"the answer of {server.url}/sched/filter is no JSON: {why}")


async def test_whole_objects_are_spliced_in_without_what_nobody_passes_on(server):
    async def answer(_seen, _wire):
        return reply(200, {})

    server.handler = answer
    node, pod = Node(metadata=ObjectMeta(name="n1")), a_pod("p").build()
    raw_objects = RawObjects((NODE, POD))
    fields = {"managedFields": [{}], "name": "n1", "strange": 1}
    line = {"type": "ADDED", "object": {"kind": "Node", "apiVersion": "v1", "metadata": fields}}
    raw_objects.keep(NODE, node, json.dumps(line).encode(), is_line=True)
    raw_objects.keep(POD, pod, b'{"metadata": {"name": "p"}, "spec": {"any": "thing"}}')
    nodes = {"metadata": {}, "items": Wholes(NODE, ("n1", "gone"))}
    async with asking(server, raw_objects=raw_objects) as extenders:
        await extenders.ask(question(Pod=Whole(POD, "default/p", pod.uid), Nodes=nodes))
        gone = await extenders.ask(question(Pod=Whole(POD, "default/p", "another uid")))
    (seen,) = server.seen
    assert seen.json == {
        "Pod": {"metadata": {"name": "p"}, "spec": {"any": "thing"}},
        "Nodes": {"metadata": {}, "items": [{"metadata": {"name": "n1", "strange": 1}}]},
    }
    assert gone == Refused(3, 0, 'pods "p" not found')


async def test_an_answer_without_end_is_refused(server):
    async def babble(_seen, wire):
        await wire.start_stream()
        with suppress(ConnectionError):
            while True:
                await wire.chunk(b" " * 65536)

    server.handler = babble
    async with asking(server) as extenders:
        answer = await extenders.ask(question())
    assert isinstance(answer, Refused)
    assert "too large for its request" in answer.message


async def test_the_timeout_covers_the_whole_question(server):
    async def never(_seen, _wire):
        await asyncio.Event().wait()

    server.handler = never
    async with asking(server, http_timeout_ns=NS_PER_SECOND // 20) as extenders:
        late = await extenders.ask(question("bind"))
    assert late == Unknown(3, f'Post "{server.url}/sched/bind": no answer within 0.05 s')


@pytest.mark.parametrize(
    ("is_late", "why"),
    [
        (False, "the answer is incomplete: "),
        (True, "the answer did not end within 0.05 s"),
    ],
)
async def test_an_answer_that_breaks_off_is_told_otherwise_than_one_that_never_came(
    server, is_late, why
):
    async def half(_seen, wire):
        await wire.send(reply(200, b"[1, 2]")[:-3])
        if is_late:
            await asyncio.Event().wait()
        wire.close()

    server.handler = half
    async with asking(server, http_timeout_ns=NS_PER_SECOND // 20) as extenders:
        answer = await extenders.ask(question("bind"))
    assert isinstance(answer, Unknown)
    assert answer.message.startswith(f'Post "{server.url}/sched/bind": {why}')


@pytest.mark.parametrize(
    ("more", "is_trusted"),
    [
        ({"enable_https": True}, True),
        ({"enable_https": False}, False),
        ({"enable_https": True, "tls_config": "ca"}, True),
        ({"enable_https": True, "tls_config": "other ca"}, False),
        ({"tls_config": "insecure"}, True),
        ({"enable_https": True, "tls_config": "wrong name"}, False),
        ({"enable_https": True, "tls_config": "right name"}, True),
    ],
    ids=str,
)
async def test_https_is_verified_as_upstream_does(certificates, tmp_path, more, is_trusted):
    async def answer(_seen, _wire):
        return reply(200, {})

    ca = certificates.ca_file
    other, _ = certificates.issue("other")
    configs = {
        "ca": ExtenderTLSConfig(ca_file=str(ca)),
        "other ca": ExtenderTLSConfig(ca_file=str(other)),
        "insecure": ExtenderTLSConfig(insecure=True),
        "wrong name": ExtenderTLSConfig(ca_data=ca.read_bytes(), server_name="x.example"),
        "right name": ExtenderTLSConfig(ca_data=ca.read_bytes(), server_name="api.example"),
    }
    if "tls_config" in more:
        more = {**more, "tls_config": configs[more["tls_config"]]}
    async with (
        scripted(answer, certificates.server_context()) as server,
        asking(server, **more) as extenders,
    ):
        assert isinstance(await extenders.ask(question()), Replied if is_trusted else Refused)


@pytest.mark.parametrize("make", [Extenders, Extenders.check])
async def test_files_that_cannot_be_used_are_named(make, tmp_path):
    (tmp_path / "empty").write_bytes(b" \n")
    for name, why in (("/nonexistent/ca", "No such file"), (str(tmp_path / "empty"), "is empty")):
        config = ExtenderTLSConfig(ca_file=name)
        said = f"https://x: its TLS files cannot be used: .*{why}"
        with pytest.raises(ConnectError, match=said):
            make([Extender(url_prefix="https://x", tls_config=config)])
        Extenders.check([Extender(url_prefix="http://x", tls_config=config)])
