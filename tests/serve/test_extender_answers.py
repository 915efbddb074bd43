"""What the extender's port answers to each verb, and when it cannot."""

import json
import logging
from types import SimpleNamespace

import pytest

from asched.core.extender.wire import BindingArguments, MetaVictims
from asched.core.framework.status import PointError
from asched.core.model.quantity import QuantityError
from asched.serve.extender import (
    NO_STRANGERS,
    SHOWN_CHARS_MAX,
    VERBS,
    Opinion,
    SchedulerContext,
)

POD = {"metadata": {"name": "web"}}
BINDING = {"PodName": "web", "PodNamespace": "default", "PodUID": "u", "Node": "n1"}
QUESTIONS = {
    "filter": {"Pod": POD, "NodeNames": ["n1"]},
    "prioritize": {"Pod": POD, "NodeNames": ["n1"]},
    "preempt": {"Pod": POD, "NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "v"}]}}},
    "bind": BINDING,
}


class Voice:
    """Says what it was asked, or raises `trouble`."""

    def __init__(self, trouble=None) -> None:
        self.asked = []
        self.trouble = trouble
        self.missing = ""

    def _say(self, verb, question):
        self.asked.append((verb, question))
        if self.trouble is not None:
            raise self.trouble
        return {"verb": verb}

    def advisor_for(self, question):
        self.asked.append(("for", question))
        return self

    def filter(self, question):
        return self._say("filter", question)

    def prioritize(self, question):
        return self._say("prioritize", question)

    def preempt(self, question):
        return self._say("preempt", question)

    async def bind(self, question):
        self._say("bind", question)
        return "not today"


def a_context(voice, *, may_bind=True, bytes_max=1000):
    return SchedulerContext(
        Opinion(voice.advisor_for, voice.bind, lambda: voice.missing, may_bind, bytes_max)
    )


async def ask(context, path, *pieces, method="POST"):
    async def in_pieces():
        for piece in pieces:
            yield piece

    headers = {"content-type": "application/json"}
    request = SimpleNamespace(
        method=method, path=path, pieces=in_pieces, header=lambda name: headers.get(name, "")
    )
    answer = await context.handle(request)
    return answer.status, answer.body.decode()


async def put(context, verb, question, prefix=""):
    status, text = await ask(context, f"{prefix}/{verb}", json.dumps(question).encode())
    return status, json.loads(text) if text[:1] in "{[" else text


@pytest.mark.parametrize("prefix", ["", "/scheduler", "/a/b"])
@pytest.mark.parametrize("verb", VERBS)
async def test_each_verb_is_asked_of_whoever_knows(verb, prefix):
    voice = Voice()
    found = await put(a_context(voice), verb, QUESTIONS[verb], prefix)
    if verb == "bind":
        assert found == (200, {"Error": "not today"})
        assert voice.asked == [("bind", BindingArguments("web", "default", "u", "n1"))]
        return
    assert found == (200, {"verb": verb})
    (_, for_whom), (asked, question) = voice.asked
    assert (asked, question.pod) == (verb, POD)
    assert for_whom is (None if verb == "preempt" else question)
    if verb == "preempt":
        assert question.victims == {"n1": MetaVictims(("v",), 0)}
    else:
        assert question.node_names == ("n1",)


async def test_strangers_do_not_bind():
    voice = Voice()
    assert await put(a_context(voice, may_bind=False), "bind", BINDING) == (
        200,
        {"Error": NO_STRANGERS},
    )
    assert voice.asked == []


@pytest.mark.parametrize("path", ["/readyz", "/livez", "/healthz"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_probes(path, method):
    voice = Voice()
    context = a_context(voice)
    assert await ask(context, path, method=method) == (200, "ok")
    voice.missing = "nodes are not seen yet"
    wanted = (503, voice.missing) if path == "/readyz" else (200, "ok")
    assert await ask(context, path, method=method) == wanted
    assert await ask(context, path, method="PUT") == (404, "404 page not found\n")
    assert await ask(context, "/filter", method=method) == (404, "404 page not found\n")


async def test_questions_wait_until_the_cluster_is_known_and_have_a_verb():
    voice = Voice()
    context = a_context(voice)
    assert await ask(context, "/x/other", b"{}") == (
        404,
        "no such verb; there are filter, prioritize, preempt, bind\n",
    )
    voice.missing = "not yet"
    for verb in VERBS:
        assert await put(context, verb, QUESTIONS[verb]) == (503, "not yet\n")
    assert voice.asked == []


@pytest.mark.parametrize("verb", VERBS)
async def test_what_is_no_question_is_told(verb):
    voice = Voice()
    context = a_context(voice)
    status, text = await ask(context, f"/{verb}", b"{")
    assert status == 400
    assert text.startswith(f"{verb}: ")
    for none in ({}, {"Pod": None}, {"Pod": {}}) if verb != "bind" else ():
        assert await put(context, verb, none) == (400, f"{verb}: the question has no Pod\n")
    assert (await put(context, verb, []))[0] == 400
    assert voice.asked == []
    if verb != "bind":
        voice.trouble = QuantityError("x\ny" + "z" * 2 * SHOWN_CHARS_MAX)
        status, text = await put(context, verb, QUESTIONS[verb])
        assert status == 400
        assert text == f"{verb}: x?y" + "z" * (SHOWN_CHARS_MAX - 3) + "\n"


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        (PointError("no\tplace"), "no?place"),
        (RuntimeError("oh"), "a plugin raised RuntimeError: oh"),
    ],
)
@pytest.mark.parametrize("verb", VERBS)
async def test_trouble_of_ours_is_in_the_answer_where_it_can_be(verb, trouble, message, caplog):
    caplog.set_level(logging.WARNING)
    status, told = await put(a_context(Voice(trouble)), verb, QUESTIONS[verb])
    if verb == "filter":
        assert (status, told["Error"], told["NodeNames"]) == (200, message, None)
    elif verb == "bind":
        assert (status, told) == (200, {"Error": message})
    else:
        assert (status, told) == (500, f"{verb}: {message}\n")
    warned = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert warned == [f"{verb} failed: {message}"]
    raised = [r for r in caplog.records if r.exc_info]
    assert len(raised) == (1 if isinstance(trouble, RuntimeError) else 0)


async def test_a_question_may_come_in_pieces_of_a_certain_length_together():
    voice = Voice()
    body = json.dumps(QUESTIONS["filter"]).encode()
    context = a_context(voice, bytes_max=len(body))
    for _ in range(3):
        assert (await ask(context, "/filter", body[:9], body[9:]))[0] == 200
    longer = await ask(context, "/filter", body, b" ")
    assert longer == (
        413,
        f"the question is longer than {len(body)} bytes; set nodeCacheCapable: true\n",
    )
    assert (await ask(context, "/filter", body))[0] == 200, "that one is forgotten"
