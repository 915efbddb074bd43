"""HTTP extenders: what is sent, and what counts as an answer."""

import asyncio
import json
from contextlib import asynccontextmanager, suppress

import pytest
from msgspec.structs import replace

from asched.core.config.v1 import Extender, ExtenderTLSConfig
from asched.core.framework.effects import AskExtender, Whole, Wholes
from asched.core.model.kinds import NODE, POD
from asched.core.model.meta import ObjectMeta
from asched.core.model.node import Node
from asched.core.model.timestamp import NS_PER_SECOND
from asched.core.state.facts import Refused, Replied, Unknown
from asched.kube.errors import ConnectError
from asched.kube.extenders import Extenders, observe_nothing
from asched.kube.originals import Originals
from tests.builders import a_pod
from tests.kube.scripted import reply, scripted
from tests.patience import HANG_S


class Asking:
    """One extender and its client; questions go to that one unless they name another."""

    def __init__(self, config, originals, observe):
        self.config = config
        self.client = Extenders([config], originals, observe=observe)

    async def ask(self, effect):
        return await self.client.ask(replace(effect, extender=effect.extender or self.config))


@asynccontextmanager
async def asking(server_or_url, originals=None, observe=observe_nothing, **more):
    url = getattr(server_or_url, "url", server_or_url)
    extender = Extender(**{"url_prefix": f"{url}/sched//", **more})
    extenders = Asking(extender, originals, observe)
    try:
        yield extenders
    finally:
        await extenders.client.close()


def question(verb="filter", to=None, **body):
    return AskExtender(id=3, extender=to, verb=verb, body=body)


async def test_a_question_is_a_plain_post_of_json(server):
    async def answer(_seen, _wire):
        return reply(200, {"NodeNames": ["n1"]})

    server.handler = answer
    async with asking(server) as extenders:
        assert await extenders.ask(question(Pod={}, NodeNames=["n1", "n2"])) == Replied(
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
        assert await extenders.ask(question("prioritize")) == Replied(
            3, [{"Host": "n1", "Score": 7}]
        )


@pytest.mark.parametrize("code", [201, 204, 301, 404, 500])
async def test_only_200_counts(server, code):
    async def answer(_seen, _wire):
        return reply(code, {}) if code != 204 else b"HTTP/1.1 204 X\r\n\r\n"

    server.handler = answer
    async with asking(server) as extenders:
        refused = await extenders.ask(question())
    url = f"{server.url}/sched/filter"
    assert refused == Refused(3, code, f"failed filter with extender at URL {url}, code {code}")
    assert len(server.seen) == 1


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
        (b'{"a": NaN}', "no number: line 1 column 1 (char 0)"),
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
    originals = Originals((NODE, POD))
    fields = {"managedFields": [{}], "name": "n1", "strange": 1}
    line = {"type": "ADDED", "object": {"kind": "Node", "apiVersion": "v1", "metadata": fields}}
    originals.keep(NODE, node, json.dumps(line).encode(), is_line=True)
    originals.keep(POD, pod, b'{"metadata": {"name": "p"}, "spec": {"any": "thing"}}')
    nodes = {"metadata": {}, "items": Wholes(NODE, ("n1", "gone"))}
    async with asking(server, originals=originals) as extenders:
        await extenders.ask(question(Pod=Whole(POD, "default/p", pod.uid), Nodes=nodes))
        gone = await extenders.ask(question(Pod=Whole(POD, "default/p", "another uid")))
    (seen,) = server.seen
    assert seen.json == {
        "Pod": {"metadata": {"name": "p"}, "spec": {"any": "thing"}},
        "Nodes": {"metadata": {}, "items": [{"metadata": {"name": "n1", "strange": 1}}]},
    }
    assert gone == Refused(3, 0, 'pods "p" not found')


async def test_a_failure_is_named_once_and_its_end_too(server, caplog):
    codes = [500, 500, 503, 200]

    async def answer(_seen, _wire):
        return reply(codes.pop(0), {})

    server.handler = answer
    caplog.set_level("INFO", "asched.extenders")
    async with asking(server) as extenders:
        for _ in range(4):
            await extenders.ask(question())
    assert [record.getMessage().rpartition(", ")[2] for record in caplog.records] == [
        "code 500",
        "code 503",
        f"extender {server.url}/sched// answers filter again",
    ]


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
    assert "too large for its question" in answer.message


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
        (False, "the answer broke off: "),
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


async def test_a_prefix_arrives_as_it_was_written(server):
    async with asking(f"{server.url}/a%41%2Fb") as extenders:
        await extenders.ask(question())
    assert server.seen[0].target == "/a%41%2Fb/sched/filter"


async def test_each_question_is_counted_with_its_result(server):
    counted = []

    async def answer(seen, _wire):
        if seen.target.endswith("bind"):
            await asyncio.Event().wait()
        return reply(500 if seen.target.endswith("prioritize") else 200, {})

    server.handler = answer
    async with asking(
        server, observe=lambda *told: counted.append(told), http_timeout_ns=NS_PER_SECOND // 20
    ) as extenders:
        for verb in ("filter", "prioritize", "bind"):
            await extenders.ask(question(verb))
    prefix = f"{server.url}/sched//"
    assert [told[:3] for told in counted] == [
        (prefix, "filter", "success"),
        (prefix, "prioritize", "refused"),
        (prefix, "bind", "lost"),
    ]
    assert 0.049 <= counted[2][3] < HANG_S  # a loop counts whole milliseconds


async def test_questions_for_priorities_are_known_while_they_are_under_way(server):
    arrived, go = asyncio.Event(), asyncio.Event()

    async def answer(_seen, _wire):
        arrived.set()
        await go.wait()
        return reply(200, [])

    server.handler = answer
    async with asking(server, prioritize_verb="prio") as extenders:
        assert extenders.client.prioritizing is None
        other = asyncio.ensure_future(extenders.ask(question("filter")))
        await arrived.wait()
        assert extenders.client.prioritizing is None
        arrived.clear()
        asked = asyncio.ensure_future(extenders.ask(question("prio")))
        await arrived.wait()
        assert extenders.client.prioritizing == 1
        go.set()
        await asyncio.gather(asked, other)
        assert extenders.client.prioritizing == 0


async def test_a_refused_connection_is_a_refusal(unused_tcp_port):
    async with asking(f"http://127.0.0.1:{unused_tcp_port}") as extenders:
        refused = await extenders.ask(question())
    url = f"http://127.0.0.1:{unused_tcp_port}"
    assert refused == Refused(3, 0, f'Post "{url}/sched/filter": connection refused')


@pytest.mark.parametrize("prefix", ["://bad", "", "ftp://x", "http://", "10.0.0.1:80"])
async def test_a_bad_address_is_a_refusal(prefix):
    async with asking(prefix) as extenders:
        refused = await extenders.ask(question())
    why = f'Post "{prefix}/sched/filter": no http or https URL; correct urlPrefix'
    assert refused == Refused(3, 0, why)


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
        assert await extenders.ask(question()) == Replied(3, {})


@pytest.mark.parametrize("make", [Extenders, Extenders.check])
async def test_files_that_cannot_be_used_are_named(make, tmp_path):
    (tmp_path / "empty").write_bytes(b" \n")
    for name, why in (("/nonexistent/ca", "No such file"), (str(tmp_path / "empty"), "is empty")):
        config = ExtenderTLSConfig(ca_file=name)
        said = f"https://x: its TLS files cannot be used: .*{why}"
        with pytest.raises(ConnectError, match=said):
            make([Extender(url_prefix="https://x", tls_config=config)])
        Extenders.check([Extender(url_prefix="http://x", tls_config=config)])


async def test_one_that_is_configured_no_more_still_answers_whoever_began_with_it():
    async def answer(_seen, _wire):
        return reply(200, {})

    async with scripted(answer) as old, scripted(answer) as new, asking(old) as extenders:
        other = Extender(url_prefix=new.url)
        extenders.client.adopt([other])
        assert await extenders.ask(question()) == Replied(3, {})
        assert await extenders.ask(question(to=other)) == Replied(3, {})
    assert len(old.seen) == len(new.seen) == 1


async def test_of_one_that_is_configured_no_more_only_what_is_under_way_is_known(server, caplog):
    """1. One is asked for priorities, and fails. 2. Another takes its place while it is asked once
    more. 3. Its second answer has come, and another is configured again. 4. Then it comes back.
    """
    arrived, go = asyncio.Event(), asyncio.Event()

    async def refuse(seen, _wire):
        if seen.connection > 1 or len(server.seen) > 1:
            arrived.set()
            await go.wait()
        return reply(500, {})

    server.handler = refuse
    async with asking(server, prioritize_verb="prio") as extenders:
        client, other = extenders.client, Extender(url_prefix="http://x", prioritize_verb="prio")
        await extenders.ask(question("prio"))
        again = asyncio.ensure_future(extenders.ask(question("prio")))
        await arrived.wait()
        client.adopt([other])
        assert client.prioritizing == 1
        go.set()
        await again
        assert client.prioritizing == 0
        assert len(caplog.records) == 2, "what was said before is forgotten"
        client.adopt([other])
        assert client.prioritizing is None
        client.adopt([extenders.config])
        await extenders.ask(question("prio"))
        assert len(caplog.records) == 3
        client.adopt([extenders.config])
        assert client.prioritizing == 0, "who stays configured stays known"
        await extenders.ask(question("prio"))
    prefix = extenders.config.url_prefix
    said = [record.getMessage().partition(": ")[0] for record in caplog.records]
    assert said == [f"extender {prefix} does not answer prio"] * 3


async def test_files_of_new_ones_that_cannot_be_used_leave_the_old_ones():
    config = ExtenderTLSConfig(ca_file="/nonexistent/ca")

    async def answer(_seen, _wire):
        return reply(200, {})

    async with scripted(answer) as server, asking(server) as extenders:
        with pytest.raises(ConnectError, match="its TLS files cannot be used"):
            extenders.client.adopt([Extender(url_prefix="https://x", tls_config=config)])
        assert await extenders.ask(question()) == Replied(3, {})


async def test_files_of_an_old_one_that_went_fail_its_question_alone():
    config = ExtenderTLSConfig(ca_file="/nonexistent/ca")
    gone = Extender(url_prefix="https://x", tls_config=config)
    async with asking("http://127.0.0.1:1") as extenders:
        answer = await extenders.ask(question(to=gone))
    assert isinstance(answer, Refused)
    assert "its TLS files cannot be used" in answer.message


def test_what_is_kept_whole_may_change_and_what_was_missed_must_be_listed():
    originals = Originals()
    pod, node = a_pod("p").build(), Node(metadata=ObjectMeta(name="n1"))
    placed = a_pod("q").on("n1").build()
    originals.keep(POD, pod, b"{}")
    assert originals.count(POD) == 0
    assert set(originals.want((POD, NODE), with_placed_pods=False)) == {POD, NODE}
    originals.keep(POD, pod, b"{}")
    originals.keep(POD, placed, b"{}")
    originals.keep(NODE, node, b"{}")
    assert (originals.count(POD), originals.count(NODE)) == (1, 1)
    assert originals.want((POD, NODE), with_placed_pods=False) == ()
    assert originals.want((POD, NODE), with_placed_pods=True) == (POD,)
    assert originals.want((POD,), with_placed_pods=True) == ()
    assert (originals.count(POD), originals.count(NODE)) == (1, 0)
