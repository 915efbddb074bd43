"""HTTP extenders: what is sent, and what counts as an answer."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from asched.core.config.v1 import NS_PER_SECOND, Extender, ExtenderTLSConfig
from asched.core.framework.effects import AskExtender
from asched.core.state.facts import Done, Refused, Unknown
from asched.edge.client.errors import ConnectError
from asched.edge.client.extenders import Extenders
from tests.edge.client.scripted import reply, scripted


@asynccontextmanager
async def asking(server_or_url, **more):
    url = getattr(server_or_url, "url", server_or_url)
    extenders = Extenders([Extender(**{"url_prefix": f"{url}/sched//", **more})])
    try:
        yield extenders
    finally:
        await extenders.close()


def question(verb="filter", **body):
    return AskExtender(id=3, extender=0, verb=verb, body=body)


async def test_a_question_is_a_plain_post_of_json(server):
    async def answer(_seen, _wire):
        return reply(200, {"NodeNames": ["n1"]})

    server.handler = answer
    async with asking(server) as extenders:
        assert await extenders.ask(question(Pod={}, NodeNames=["n1", "n2"])) == Done(
            3, {"NodeNames": ["n1"]}
        )
    (seen,) = server.seen
    assert (seen.method, seen.target) == ("POST", "/sched/filter")
    assert seen.headers["content-type"] == "application/json"
    assert "accept-encoding" not in seen.headers
    assert seen.json == {"Pod": {}, "NodeNames": ["n1", "n2"]}


async def test_priorities_are_a_list(server):
    async def answer(_seen, _wire):
        return reply(200, [{"Host": "n1", "Score": 7}], "Content-Type: text/plain")

    server.handler = answer
    async with asking(server) as extenders:
        assert await extenders.ask(question("prioritize")) == Done(
            3, {"items": [{"Host": "n1", "Score": 7}]}
        )


@pytest.mark.parametrize("code", [201, 204, 301, 404, 500])
async def test_only_200_counts(server, code):
    async def answer(_seen, _wire):
        return reply(code, {}, "Location: /elsewhere") if code != 204 else b"HTTP/1.1 204 X\r\n\r\n"

    server.handler = answer
    async with asking(server) as extenders:
        refused = await extenders.ask(question())
    url = f"{server.url}/sched/filter"
    assert refused == Refused(3, code, f"failed filter with extender at URL {url}, code {code}")
    assert len(server.seen) == 1


async def test_null_is_an_empty_answer(server):
    async def answer(_seen, _wire):
        return reply(200, b"null")

    server.handler = answer
    async with asking(server) as extenders:
        assert await extenders.ask(question()) == Done(3, {})


@pytest.mark.parametrize("body", [b"", b"oops", b"5", b'"text"'])
async def test_what_is_no_json_object_is_refused(server, body):
    async def answer(_seen, _wire):
        return reply(200, body)

    server.handler = answer
    async with asking(server) as extenders:
        refused = await extenders.ask(question())
    assert isinstance(refused, Refused)
    assert "extender's answer" in refused.message


async def test_the_timeout_covers_the_whole_question(server):
    async def never(_seen, _wire):
        await asyncio.Event().wait()

    server.handler = never
    async with asking(server, http_timeout_ns=NS_PER_SECOND // 20) as extenders:
        assert isinstance(await extenders.ask(question("bind")), Unknown)


async def test_a_refused_connection_is_a_refusal(unused_tcp_port):
    async with asking(f"http://127.0.0.1:{unused_tcp_port}") as extenders:
        refused = await extenders.ask(question())
    assert isinstance(refused, Refused)
    assert refused.code == 0


async def test_a_bad_address_is_a_refusal():
    async with asking("no address at all") as extenders:
        assert isinstance(await extenders.ask(question()), Refused)


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
        assert isinstance(await extenders.ask(question()), Done if is_trusted else Refused)


async def test_a_client_certificate_may_be_given_as_data(certificates):
    async def answer(_seen, _wire):
        return reply(200, {})

    crt, key = certificates.issue("extender-client")
    config = ExtenderTLSConfig(
        ca_file=str(certificates.ca_file), cert_data=crt.read_bytes(), key_data=key.read_bytes()
    )
    context = certificates.server_context(client_ca=True)
    async with (
        scripted(answer, context) as server,
        asking(server, enable_https=True, tls_config=config) as extenders,
    ):
        assert await extenders.ask(question()) == Done(3, {})


async def test_files_that_cannot_be_used_are_named():
    config = ExtenderTLSConfig(ca_file="/nonexistent/ca")
    with pytest.raises(ConnectError, match="https://x: its TLS files cannot be used"):
        Extenders([Extender(url_prefix="https://x", tls_config=config)])
