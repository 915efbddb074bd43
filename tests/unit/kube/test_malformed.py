"""JSON and YAML that decoders of Python fail at: objects are taken in or left out one by one, and
everything else ends with its own error, in one line.
"""

import asyncio
import gzip
import json
import logging
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from asched.cli.main import main
from asched.core.cluster.facts import Done, ReadPlaced, Refused, Replied
from asched.core.config.v1 import Extender
from asched.core.framework.effects import AskExtender, Patch, PodRef, ReadPod, Whole
from asched.core.model.kinds import NODE, POD, RESOURCE_CLAIM
from asched.hardware.rows import decoded_json
from asched.hardware.sharing.hami import Registered
from asched.host.configuration.file import ConfigError, UnreadableFileError, load_config
from asched.kube.codec import KindCodec, ListPage, peek_continue
from asched.kube.credentials import load_credentials
from asched.kube.errors import ClientError, ConnectError, api_error
from asched.kube.exec_plugins import ExecPlugin
from asched.kube.exec_plugins import run_plugin as run
from asched.kube.extenders import Extenders
from asched.kube.lists import ListParser
from asched.kube.raw_objects import RawObjects
from asched.kube.session import read_json
from asched.kube.transport import JSON, Reply
from asched.kube.watch import Reflector
from asched.kube.writes import answer_for
from asched.ops.audit.heads import Heads
from asched.serve.connections import ConnectionServer, listen
from asched.serve.extender import ExtenderService, Opinion
from tests.behaviour.odd_json import ODD, claim_bytes, pod_bytes
from tests.support import HANG_S
from tests.unit.ops.recording.recorded import record

odd_values = pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
PLAIN = b"{}"


class Told:
    """What is said of malformed objects."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def codec(self, kind: Any = POD, raw_objects: RawObjects | None = None) -> KindCodec:
        return KindCodec(
            kind, lambda _kind, name, why: self.names.append(f"{name}: {why}"), raw_objects
        )


def a_list(*items: bytes) -> bytes:
    head = b'{"kind":"List","metadata":{"resourceVersion":"9","continue":"more"},"items":['
    return head + b",".join(items) + b"]}"


def a_line(kind: str, obj: bytes) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + obj + b"}"


def names_of(page: ListPage) -> list[str]:
    objects: list[Any] = page.objects
    return [obj.metadata.name for obj in objects]


# --- lists and watches ---------------------------------------------------------------------------


@odd_values
def test_a_pod_is_taken_in_whatever_its_managed_fields_are(odd: bytes) -> None:
    told = Told()
    codec = told.codec()
    pods = [
        pod_bytes(name, fields) for name, fields in zip("abc", (PLAIN, odd, PLAIN), strict=True)
    ]
    assert names_of(codec.page(a_list(*pods))) == ["a", "b", "c"]
    assert peek_continue(a_list(*pods)) == "more"
    events = list(codec.events([a_line("ADDED", pod) for pod in pods]))
    assert [event.obj.metadata.name for event in events] == ["a", "b", "c"]  # type: ignore[union-attr]
    assert events[1].version == "5"
    (gone,) = codec.events([a_line("DELETED", pods[1])])
    assert gone.obj is not None
    assert told.names == []


@odd_values
@pytest.mark.parametrize("size", [1 << 10, 1 << 22])
def test_a_list_that_comes_in_pieces_is_taken_in(odd: bytes, size: int) -> None:
    """Plain pods make it larger than a part."""
    plain = [pod_bytes(f"plain-{number}", PLAIN + b" " * 60_000) for number in range(40)]
    body = a_list(*plain[:20], pod_bytes("odd", odd), *plain[20:])
    told = Told()
    parser = ListParser(told.codec())
    found: list[Any] = []
    for start in range(0, len(body), size):
        found += parser.feed(body[start : start + size])
    found += parser.end().objects
    assert {obj.metadata.name for obj in found} == {"odd", *(f"plain-{n}" for n in range(40))}
    assert told.names == []


@odd_values
def test_a_claim_is_taken_in_or_named_once_and_the_others_are_taken_in(odd: bytes) -> None:
    told = Told()
    codec = told.codec(RESOURCE_CLAIM)
    claims = [
        claim_bytes(name, value) for name, value in zip("abc", (PLAIN, odd, PLAIN), strict=True)
    ]
    for _ in range(2):
        names = names_of(codec.page(a_list(*claims)))
        lines = [a_line("MODIFIED", claim) for claim in claims]
        events = [event.obj.metadata.name for event in codec.events(lines) if event.obj]  # type: ignore[attr-defined]
        assert names == events
        assert names in (["a", "b", "c"], ["a", "c"])
        assert len(told.names) == len({"a", "b", "c"} - set(names))
    assert all(name.startswith("default/b: ") and "\n" not in name for name in told.names)


@odd_values
def test_a_malformed_object_is_named_whatever_else_is_in_it(odd: bytes) -> None:
    """Its spec is a number."""
    told = Told()
    codec = told.codec()
    before, _, rest = pod_bytes("bad", odd).partition(b'"spec":')
    bad = before + b'"spec":5,"x":' + rest
    assert names_of(codec.page(a_list(pod_bytes("a", odd), bad))) == ["a"]
    (gone,) = codec.events([a_line("DELETED", bad)])
    assert (gone.obj.metadata.uid, gone.version) == ("uid-bad", "5")  # type: ignore[union-attr]
    assert [name.partition(":")[0] for name in told.names] == ["default/bad"]
    assert codec.malformed_count == 2


@odd_values
def test_parameters_that_are_kept_can_be_written_again(odd: bytes) -> None:
    """Into an allocation, a recording, and the key of a cache."""
    import msgspec
    import orjson

    codec = Told().codec(RESOURCE_CLAIM)
    for claim in codec.page(a_list(claim_bytes("b", odd))).objects:
        plain = msgspec.to_builtins(claim)
        assert msgspec.json.decode(orjson.dumps(plain), type=type(claim)) == claim
        assert msgspec.msgpack.encode(claim)
        assert msgspec.json.decode(msgspec.json.encode(claim), type=type(claim)) == claim


# --- the audit, read-backs, answers --------------------------------------------------------------


class Server:
    """Answers every request with these bytes."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    async def request(
        self, _method: str, _path: str, *, accept: str = JSON, timeout_s: float = 0.0
    ) -> Reply:
        assert accept
        assert timeout_s
        return Reply(200, self.body)


@odd_values
async def test_the_audit_reads_heads_and_single_objects(odd: bytes) -> None:
    body = a_list(pod_bytes("a", PLAIN), pod_bytes("b", odd)).replace(b'"more"', b'""')
    server: Any = Server(body)
    heads = Heads(Reflector(POD, server, lambda _fact: None))
    pages = [page async for page in heads.pages(0.0)]
    assert [head.key for page, _ in pages for head in page] == ["default/a", "default/b"]
    found = await heads.one("default/b")
    assert (found.obj is None, found.is_odd) == (False, False)


@odd_values
def test_a_binding_is_read_back(odd: bytes) -> None:
    pod = PodRef(namespace="default", name="a", uid="uid-a")
    reply = Reply(200, pod_bytes("a", odd, node="n1"))
    assert answer_for(ReadPod(id=3, pod=pod), reply) == ReadPlaced(3, "n1")


@odd_values
def test_a_claim_that_was_written_is_read(odd: bytes) -> None:
    effect = Patch(id=3, kind=RESOURCE_CLAIM, namespace="default", name="a", body={})
    answer = answer_for(effect, Reply(200, claim_bytes("a", odd)))
    assert isinstance(answer, Done)
    if answer.obj is not None:
        assert answer.obj["metadata"]["name"] == "a"


@odd_values
def test_errors_and_other_answers_have_their_own_error(odd: bytes) -> None:
    status = (
        b'{"kind":"Status","status":"Failure","reason":"Conflict","message":"m","more":'
        + odd
        + b"}"
    )
    assert api_error(409, status).message == "m"
    with suppress(ClientError):
        assert read_json(Reply(200, b'{"a":1,"b":' + odd + b"}"))["a"] == 1
    with pytest.raises(ClientError):
        read_json(Reply(200, b'{"a":' + odd))


@odd_values
def test_an_extender_is_sent_the_pod_without_its_managed_fields(odd: bytes) -> None:
    raw_objects = RawObjects((POD, NODE))
    codec = Told().codec(POD, raw_objects)
    list(codec.events([a_line("ADDED", pod_bytes("a", odd))]))
    codec.page(a_list(pod_bytes("b", odd)))
    for name in "ab":
        sent = json.loads(bytes(raw_objects.splice(Whole(POD, f"default/{name}", f"uid-{name}"))))
        assert sent["metadata"] == {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "resourceVersion": "5",
        }
        assert sent["spec"]["schedulerName"] == "asched"


# --- extenders, both ways ------------------------------------------------------------------------


@odd_values
async def test_an_extenders_answer_is_read_or_refused(odd: bytes) -> None:
    for body in (odd, b'{"NodeNames":' + odd + b"}", b'{"Error":"","NodeNames":["n1"],"x":' + odd):

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"  # noqa: B023
            writer.write(head.encode() + body)  # noqa: B023
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        extender = Extender(url_prefix=f"http://127.0.0.1:{port}")
        extenders = Extenders([extender])
        try:
            effect = AskExtender(id=3, extender=extender, verb="filter", body={})
            said = await extenders.ask(effect)
        finally:
            await extenders.close()
            server.close()
        assert isinstance(said, Replied | Refused)
        if isinstance(said, Refused):
            assert said.message
            assert "\n" not in said.message


@odd_values
async def test_a_question_to_our_extender_is_answered_or_refused(
    odd: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)

    def advisor(_question: Any) -> Any:
        raise AssertionError("the pod has no name and is refused")

    async def bind(_arguments: Any) -> str:
        return "not here"

    opinion = Opinion(advisor, bind, lambda: "", may_bind=True)
    door = ConnectionServer(ExtenderService(opinion).handle, None)
    port = door.open(await listen("127.0.0.1", 0, cure="x"))
    try:
        for verb in ("filter", "prioritize", "preempt", "bind"):
            for body in (odd, b'{"Pod":null,"PodName":"a","NodeNames":' + odd + b"}"):
                async with asyncio.timeout(HANG_S):
                    reader, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.write(
                        f"POST /{verb} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                        "Content-Type: application/json\r\n"
                        f"Content-Length: {len(body)}\r\n\r\n".encode()
                        + body
                    )
                    answer = await reader.read()
                    writer.close()
                status = int(answer.split(b" ", 2)[1])
                assert status == 400 or (verb == "bind" and status == 200), answer
    finally:
        await door.close()
    assert "raised" not in caplog.text


# --- files ---------------------------------------------------------------------------------------

YAML = {
    "a tag without its value": b"!!int ''",
    "a tag of another value": b"!!bool x",
    "no time": b"!!timestamp x",
    "no number": b"!!float x",
    "no pairs": b"!!omap x",
    "an object of Python": b"!!python/object/apply:os.system [x]",
    "a list as a key": b"{[a]: b}",
    "itself": b"&a [*a]",
    "deep blocks": b"\n".join(b" " * level + b"-" for level in range(2_000)),
    "deep": b"[" * 10_000,
    "a day too many": b"2001-02-30",
    "sexagesimal": b"1:" * 3_000 + b"1",
    "an exponent": b"1e400",
    "digits": b"9" * 5_000,
    "NUL": b'"\x00"',
    "no UTF-8": b"\xff",
    "an escape": rb'"\ud800"',
}
#: PyYAML's own parser takes seconds for such a file.
LARGE_BYTES = 8_000
#: What is wide is only slow: files are read by people's own commands.
NARROW = {name: odd for name, odd in ODD.items() if "wide" not in name}
FILES = YAML | {name: odd for name, odd in NARROW.items() if name != "deep lists"}
odd_files = pytest.mark.parametrize("odd", FILES.values(), ids=FILES)


@odd_files
async def test_a_kubeconfig_is_read_or_refused_in_one_line(odd: bytes, tmp_path: Path) -> None:
    file = tmp_path / "config"
    places = (b"%s", b"users: %s", b"current-context: %s", b'{"contexts": [{"name": %s}]}')
    for place in places[:1] if len(odd) > LARGE_BYTES else places:
        file.write_bytes(place.replace(b"%s", odd))
        with pytest.raises(ConnectError) as raised:
            await load_credentials(str(file), "", "")
        assert "\n" not in str(raised.value)


@odd_files
def test_a_configuration_is_read_or_refused(odd: bytes, tmp_path: Path) -> None:
    """Every line names the file."""
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    json_head = json.dumps({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "x"})[:-1]
    file = tmp_path / "asched.yaml"
    for text in (
        odd,
        head.encode() + b"parallelism: " + odd,
        head.encode() + b"profiles: [{schedulerName: a, pluginConfig: " + odd + b"}]",
        json_head.encode() + b',"extenders":' + odd + b"}",
    ):
        file.write_bytes(text)
        said = str(file)
        try:
            load_config(file)
        except (ConfigError, UnreadableFileError) as error:
            said = str(error)
        assert all(str(file) in line for line in said.splitlines())


@pytest.mark.parametrize("odd", NARROW.values(), ids=NARROW)
@pytest.mark.parametrize("what", ["replay", "--anonymize"])
def test_a_recording_is_replayed_or_refused_in_one_line(
    odd: bytes, what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = gzip.decompress(record(tmp_path / "made", []).read_bytes()).splitlines()[0]
    options = [] if what == "replay" else ["--anonymize", str(tmp_path / "out")]
    claim, pod = claim_bytes("a", odd), pod_bytes("a", odd)
    for name, lines in {
        "head": [head[:-1] + b',"more":' + odd + b"}"],
        "configuration": [
            head.replace(b'"configuration":{', b'"configuration":{"x":' + odd + b",")
        ],
        "pod": [head, b'{"at":1.0,"facts":[["Seen","Pod",' + pod + b"]]}"],
        "claim": [head, b'{"at":1.0,"facts":[["Seen","ResourceClaim",' + claim + b"]]}"],
        "fact": [head, b'{"at":1.0,"facts":[' + odd + b"]}"],
        "effect": [head, b'{"at":1.0,"effects":[["Create",' + odd + b"]]}"],
        "listed": [
            head,
            b'{"list":0,"resource":"Pod","objects":[' + pod + b"]}",
            b'{"at":1.0,"facts":[["Listed","Pod",0]]}',
        ],
    }.items():
        file = tmp_path / name
        file.write_bytes(gzip.compress(b"\n".join(lines) + b"\n"))
        assert main(["replay", str(file), *options]) in (0, 1, 2)
        said = capsys.readouterr().err
        assert "Traceback" not in said


@odd_values
async def test_what_a_plugin_prints_is_a_credential_or_one_line(odd: bytes, tmp_path: Path) -> None:
    version = "client.authentication.k8s.io/v1"
    written = tmp_path / "printed"
    shown = f"import sys; sys.stdout.buffer.write(open({str(written)!r}, 'rb').read())"
    plugin = ExecPlugin(command=sys.executable, args=["-c", shown], api_version=version)
    head = f'{{"apiVersion":"{version}","kind":"ExecCredential","status":{{"token":'.encode()
    for body in (odd, head + b'"t","x":' + odd + b"}}"):
        written.write_bytes(body)
        said = ""
        try:
            said = (await run(plugin, {})).token
        except ConnectError as error:
            said = str(error)
        assert "\n" not in said
        assert said == "t" or said.startswith("exec plugin ")


@odd_values
def test_an_annotation_that_cannot_be_read_counts_as_none(odd: bytes) -> None:
    """Annotations are text, so that what is no UTF-8 never gets here."""
    text = odd.decode("utf-8", "replace")
    assert decoded_json("[" + text, tuple[Registered, ...]) is None
    assert decoded_json(text[:1].replace("{", "[") + text, tuple[Registered, ...]) in (None, ())
    assert decoded_json('{"gpu":' + text, dict[str, Any]) is None
