"""What an error answer to a write means, over HTTP: refused for certain, or perhaps carried out.

kube-apiserver answers a write that a webhook stopped with 500 and a Status; nothing was stored. It
answers one that ran out of time, or that etcd gave up in the middle, with an error, too; that one
may be stored after all.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from asched.core.cluster.facts import Answer, Done, Refused, Unknown
from asched.core.framework.effects import (
    Bind,
    Create,
    DeletePod,
    Effect,
    MarkVictim,
    Patch,
    PodRef,
)
from asched.core.model.kinds import PERSISTENT_VOLUME_CLAIM, POD, RESOURCE_CLAIM
from asched.kube.dispatch import Dispatcher, DispatchOptions
from asched.kube.session import ConnectionOptions, connect
from tests.unit.kube.scripted import Scripted, reply, scripted, status

REF = PodRef(namespace="t", name="a", uid="u", resource_version="1")
BIND = Bind(id=1, pod=REF, node="n")
CLAIM = Patch(
    id=1,
    kind=RESOURCE_CLAIM,
    namespace="t",
    name="c",
    body={"metadata": {"uid": "u", "resourceVersion": "5"}, "status": {"reservedFor": []}},
    subresource="status",
)
VOLUME_CLAIM = Patch(
    id=1,
    kind=PERSISTENT_VOLUME_CLAIM,
    namespace="t",
    name="data",
    body={"metadata": {"annotations": {"a": "b"}, "resourceVersion": "5"}},
)
MADE_CLAIM = Create(id=1, kind=RESOURCE_CLAIM, namespace="t", body={"metadata": {}})
POD_STATUS = Patch(
    id=1, kind=POD, namespace="t", name="a", body={"metadata": {"uid": "u"}}, subresource="status"
)
MARK = MarkVictim(id=1, pod=REF, condition={"type": "DisruptionTarget", "status": "True"})
EVICTION = DeletePod(id=1, pod=REF)

EFFECTS = {
    "bind": BIND,
    "claim status": CLAIM,
    "volume claim": VOLUME_CLAIM,
    "claim made": MADE_CLAIM,
    "pod status": POD_STATUS,
    "eviction, condition": MARK,
    "eviction": EVICTION,
}
#: These may be sent once more when it is unknown what became of the first one.
REPEATED = ("pod status", "eviction, condition", "eviction")

WEBHOOK = (
    'Internal error occurred: failed calling webhook "x.example.com": failed to call webhook: Post'
    ' "https://x.t.svc:443/?timeout=10s": context deadline exceeded'
)
DENIED = 'admission webhook "x.example.com" denied the request: out of order'
FULL = "etcdserver: mvcc: database space exceeded"
BUSY = 'Operation cannot be fulfilled on pods/binding "a": etcdserver: too many requests'

CERTAIN = {
    "webhook is down": (500, "InternalError", WEBHOOK),
    "webhook's own 500": (500, "", DENIED),
    "store is full": (500, "", FULL),
    "not ready": (503, "ServiceUnavailable", "the server is currently unable to handle it"),
    "forbidden": (403, "Forbidden", 'pods "a" is forbidden'),
    "conflict": (409, "Conflict", "the object has been modified"),
    "conflict of the store": (409, "Conflict", BUSY),
}
UNCERTAIN = {
    "timeout": (504, "Timeout", "request did not complete within requested timeout"),
    "server timeout": (500, "ServerTimeout", "The update operation could not be completed"),
    "etcd timeout": (500, "", "etcdserver: request timed out"),
    "etcd leader": (500, "", "etcdserver: leader changed"),
    "connection to etcd": (500, "", "rpc error: code = Unavailable desc = EOF"),
}

Handler = Callable[[Any, Any], Awaitable[bytes | None]]


@asynccontextmanager
async def writing(handler: Handler) -> AsyncIterator[tuple[Scripted, Any]]:
    """A server that answers by the handler, and `ask(effect)` over a connection to it."""
    answers: asyncio.Queue[Answer] = asyncio.Queue()
    async with scripted(handler) as server:
        session = await connect(ConnectionOptions(master=server.url), handshake=False)
        try:
            options = DispatchOptions(attempt_timeout_s=5.0)
            dispatcher = Dispatcher(session, answers.put_nowait, options=options)
            task = asyncio.ensure_future(dispatcher.run())

            async def ask(effect: Effect) -> Answer:
                dispatcher.submit(effect)
                return await asyncio.wait_for(answers.get(), 10.0)

            yield server, ask
            await dispatcher.drain(0.1)
            await task
        finally:
            await session.close()


def failing_once(first: bytes | None) -> Handler:
    """Answers the first request with this, or cuts the connection; every other one with 200."""
    count = 0

    async def handler(_seen: Any, wire: Any) -> bytes | None:
        nonlocal count
        count += 1
        if count > 1:
            return reply(200, {"metadata": {"name": "a"}})
        if first is None:
            wire.reset()
        return first

    return handler


@pytest.mark.parametrize("name", EFFECTS)
@pytest.mark.parametrize("case", CERTAIN)
async def test_an_answer_that_is_no_timeout_is_a_refusal_in_the_servers_words(
    name: str, case: str
) -> None:
    code, reason, message = CERTAIN[case]

    async def always(_seen: Any, _wire: Any) -> bytes:
        return reply(code, status(code, reason, message))

    async with writing(always) as (server, ask):
        assert await ask(EFFECTS[name]) == Refused(1, code, message, reason)
    # kube-scheduler, too, tries a pod's status four times after such errors.
    is_repeated = name == "eviction, condition" and code in (409, 500, 503)
    assert len(server.seen) == (4 if is_repeated else 1)


@pytest.mark.parametrize("name", EFFECTS)
@pytest.mark.parametrize("case", [*UNCERTAIN, "no Status", "bad gateway", "cut"])
async def test_what_may_have_been_carried_out_stays_unknown_or_is_sent_again(
    name: str, case: str
) -> None:
    first: bytes | None = None
    if case in UNCERTAIN:
        code, reason, message = UNCERTAIN[case]
        first = reply(code, status(code, reason, message))
    elif case != "cut":
        first = reply(500 if case == "no Status" else 502, b"<html>out of order</html>")
    async with writing(failing_once(first)) as (server, ask):
        answer = await ask(EFFECTS[name])
    if name in REPEATED:
        assert isinstance(answer, Done)
        assert len(server.seen) == 2
    else:
        assert isinstance(answer, Unknown)
        assert len(server.seen) == 1
        if case in UNCERTAIN:
            assert UNCERTAIN[case][2] in answer.message


async def test_an_error_of_the_store_stays_unknown_for_a_binding_where_it_comes_as_a_conflict() -> (
    None
):
    """kube-apiserver makes a 409 of whatever its store says of a binding."""
    text = 'Operation cannot be fulfilled on pods/binding "a": etcdserver: request timed out'
    answer = reply(409, status(409, "Conflict", text))
    async with writing(failing_once(answer)) as (_, ask):
        assert isinstance(await ask(BIND), Unknown)


async def test_a_refusal_does_not_speak_for_an_attempt_before_it() -> None:
    """The first deletion may be carried out yet, though a webhook stopped the second."""
    count = 0

    async def handler(_seen: Any, wire: Any) -> bytes | None:
        nonlocal count
        count += 1
        if count == 1:
            wire.reset()
            return None
        return reply(500, status(500, "InternalError", WEBHOOK))

    async with writing(handler) as (_, ask):
        assert await ask(EVICTION) == Unknown(1, WEBHOOK)
