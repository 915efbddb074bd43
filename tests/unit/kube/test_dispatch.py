"""Effects through the lanes to a scripted server, and their answers back."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from asched.core.cluster.facts import Bound, Done, ReadPlaced, Refused, Unknown
from asched.core.framework.effects import (
    Bind,
    EmitEvent,
    Lane,
    PatchPodStatus,
    PodRef,
    ReadPod,
)
from asched.core.model.meta import ObjectReference
from asched.kube.dispatch import CONCURRENCY, Dispatcher, DispatchOptions
from asched.kube.lanes import QUEUE_MAX
from tests.support import HANG_S
from tests.unit.kube.conftest import session_with
from tests.unit.kube.scripted import reply, scripted, status


def pod(name="a"):
    return PodRef(namespace="t", name=name, uid=f"u-{name}")


def bind(id_, name="a"):
    return Bind(id=id_, pod=pod(name), node="n1")


def event(name="a", version="1"):
    regarding = ObjectReference(
        api_version="v1", kind="Pod", namespace="t", name=name, resource_version=version
    )
    return EmitEvent(
        regarding=regarding,
        type="Normal",
        reason="Scheduled",
        action="Binding",
        note="n",
        reporting_controller="asched",
    )


def patch(id_, name="a", message="m"):
    condition = {"type": "PodScheduled", "status": "False", "message": message}
    return PatchPodStatus(id=id_, pod=pod(name), condition=condition)


class Bench:
    """A running dispatcher, its server and what it answered."""

    def __init__(self, dispatcher, server):
        self.dispatcher = dispatcher
        self.server = server
        self.answers = []
        self._news = asyncio.Event()

    def hear(self, answer):
        self.answers.append(answer)
        self._news.set()

    async def answered(self, count):
        async with asyncio.timeout(HANG_S):
            while len(self.answers) < count:
                self._news.clear()
                await self._news.wait()
        return self.answers

    def submit(self, *effects):
        for effect in effects:
            self.dispatcher.submit(effect)

    def sent(self, part):
        return [seen for seen in self.server.seen if part in seen.path]


@asynccontextmanager
async def bench(handler, session_options=None, extenders=None, **options):
    async with (
        scripted(handler) as server,
        session_with(server, **session_options or {}) as session,
    ):
        made = Bench(None, server)
        made.dispatcher = Dispatcher(
            session, made.hear, options=DispatchOptions(**options), extenders=extenders
        )
        task = asyncio.ensure_future(made.dispatcher.run())
        await asyncio.sleep(0)
        try:
            yield made
        finally:
            await made.dispatcher.drain(0.1)
            await task


async def accept(seen, _wire):
    created = {"kind": "Status", "status": "Success", "code": 201}
    return reply(201 if seen.method == "POST" else 200, created)


@pytest.mark.parametrize("metadata", [{}, {"resourceVersion": "77"}, {"resourceVersion": 7}])
async def test_the_version_of_a_binding_is_reported_where_the_server_has_it(metadata):
    async def answered(_seen, _wire):
        return reply(201, {"kind": "Status", "status": "Success", "metadata": metadata})

    versions = []
    async with bench(answered) as made:
        made.dispatcher.on_bound = versions.append
        made.submit(bind(1))
        assert await made.answered(1) == [Bound(1)]
    assert versions == (["77"] if metadata == {"resourceVersion": "77"} else [])


async def test_a_binding_is_posted_and_answered():
    async with bench(accept) as made:
        made.submit(bind(1))
        assert await made.answered(1) == [Bound(1)]
    (seen,) = made.server.seen
    assert (seen.method, seen.path) == ("POST", "/api/v1/namespaces/t/pods/a/binding")
    assert seen.json["metadata"]["uid"] == "u-a"


async def test_a_refusal_carries_what_the_server_said():
    async def conflict(_seen, _wire):
        return reply(409, status(409, "Conflict", 'pod a is already assigned to node "n2"'))

    async with bench(conflict) as made:
        made.submit(bind(1))
        expected = Refused(1, 409, 'pod a is already assigned to node "n2"', "Conflict")
        assert await made.answered(1) == [expected]


async def test_a_lost_answer_is_unknown_and_the_read_settles_it():
    """1. The binding is stored. 2. Its answer is lost. 3. The pod is read. 4. It has our node."""

    async def lossy(seen, wire):
        if seen.path.endswith("/binding"):
            wire.reset()
            return None
        return reply(200, {"metadata": {"uid": "u-a"}, "spec": {"nodeName": "n1"}})

    async with bench(lossy) as made:
        made.submit(bind(1))
        (first,) = await made.answered(1)
        assert isinstance(first, Unknown)
        made.submit(ReadPod(id=2, pod=pod()))
        assert (await made.answered(2))[1] == ReadPlaced(2, "n1")
    assert len(made.sent("/binding")) == 1


async def test_a_binding_without_an_answer_in_time_is_unknown():
    async def silent(_seen, _wire):
        await asyncio.Event().wait()

    async with bench(silent, attempt_timeout_s=0.05) as made:
        made.submit(bind(1))
        (answer,) = await made.answered(1)
        assert isinstance(answer, Unknown)


async def test_overload_is_obeyed_and_the_binding_repeated():
    async def busy_once(seen, _wire):
        if len(made.server.seen) == 1:
            return reply(429, b"Too many requests", "Retry-After: 0.05")
        return await accept(seen, _wire)

    async with bench(busy_once) as made:
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        made.submit(bind(1))
        assert await made.answered(1) == [Bound(1)]
        assert loop.time() - started_s >= 0.049  # it counts whole milliseconds


async def test_newer_patches_of_a_pod_replace_waiting_ones():
    release = asyncio.Event()

    async def held(seen, wire):
        await release.wait()
        return await accept(seen, wire)

    async with bench(held) as made:
        made.submit(patch(1, message="one"))
        await made.server.has_seen(1)
        made.submit(patch(2, message="two"), patch(3, message="three"))
        release.set()
        assert sorted(answer.effect_id for answer in await made.answered(3)) == [1, 2, 3]
    messages = [seen.json["status"]["conditions"][0]["message"] for seen in made.server.seen]
    assert messages == ["one", "three"]


async def test_a_binding_makes_the_waiting_patch_of_its_pod_pointless():
    async with bench(accept, concurrency={**CONCURRENCY, Lane.STATUS: 1}) as made:
        made.submit(patch(1, "other"), patch(2, "a"), bind(3, "a"))
        answers = {answer.effect_id: answer for answer in await made.answered(3)}
        assert answers[1] == Done(1)
        assert answers[2] == Refused(2, 0, "overtaken by the binding of the pod")
        assert answers[3] == Bound(3)
    assert len(made.sent("/a/status")) == 0


async def test_a_binding_waits_for_the_patch_of_its_pod_that_is_under_way():
    release = asyncio.Event()
    order = []

    async def held(seen, wire):
        if seen.method == "PATCH":
            await release.wait()
        order.append(seen.method)
        return await accept(seen, wire)

    async with bench(held) as made:
        made.submit(patch(1))
        await made.server.has_seen(1)
        made.submit(bind(2), bind(3, "b"))
        assert await made.answered(1) == [Bound(3)]
        release.set()
        assert (await made.answered(3))[1:] == [Done(1), Bound(2)]
    assert order == ["POST", "PATCH", "POST"]


async def test_a_status_patch_is_repeated_after_a_server_error():
    async def fails_twice(seen, wire):
        if len(made.server.seen) <= 2:
            return reply(500, status(500, "InternalError", "m"))
        return await accept(seen, wire)

    async with bench(fails_twice) as made:
        made.submit(patch(1))
        assert await made.answered(1) == [Done(1)]
    assert len(made.server.seen) == 3


async def test_a_full_lane_of_courtesy_gives_up_its_oldest():
    async def never(_seen, _wire):
        await asyncio.Event().wait()

    limits = {**CONCURRENCY, Lane.STATUS: 1}
    async with bench(never, concurrency=limits, queue_max={**QUEUE_MAX, Lane.STATUS: 2}) as made:
        made.submit(*(patch(n, f"p{n}") for n in (1, 2, 3)))
        await made.server.has_seen(1)
        made.submit(patch(4, "p4"))
        answer = Refused(2, 0, "given up under pressure")
        assert await made.answered(1) == [answer]
        assert made.dispatcher.dropped_count(Lane.STATUS) == 1


async def test_repeated_events_become_a_series():
    async with bench(accept) as made:
        made.submit(event())
        await made.server.has_seen(1)
        made.submit(event(), event(), event())
        await made.server.has_seen(2)
    create, amend = made.server.seen
    assert (create.method, amend.method) == ("POST", "PATCH")
    assert amend.path.startswith(create.path + "/a.")
    assert amend.json["series"]["count"] == 4


async def test_a_series_whose_event_has_gone_is_created_anew():
    async def forgets(seen, wire):
        if seen.method == "PATCH":
            return reply(404, status(404, "NotFound", "m"))
        return await accept(seen, wire)

    async with bench(forgets) as made:
        made.submit(event())
        await made.server.has_seen(1)
        made.submit(event())
        await made.server.has_seen(3)
    assert [seen.method for seen in made.server.seen] == ["POST", "PATCH", "POST"]
    assert made.server.seen[2].json["series"]["count"] == 2


async def test_a_refused_event_is_given_up_quietly():
    async def forbidden(_seen, _wire):
        return reply(403, status(403, "Forbidden", "m"))

    async with bench(forbidden) as made:
        made.submit(event("a"), event("b"))
        await made.server.has_seen(2)
    assert made.answers == []
    assert len(made.server.seen) == 2


async def test_draining_answers_what_could_not_be_finished():
    async def never(_seen, _wire):
        await asyncio.Event().wait()

    limits = {**CONCURRENCY, Lane.BINDING: 1}
    async with scripted(never) as server, session_with(server) as session:
        answers = []
        dispatcher = Dispatcher(session, answers.append, options=DispatchOptions(limits))
        task = asyncio.ensure_future(dispatcher.run())
        await asyncio.sleep(0)
        dispatcher.submit(bind(1, "a"))
        dispatcher.submit(bind(2, "b"))
        await server.has_seen(1)
        await dispatcher.drain(0.02)
        async with asyncio.timeout(HANG_S):
            await task
        by_id = {answer.effect_id: type(answer) for answer in answers}
        assert by_id == {1: Unknown, 2: Refused}
