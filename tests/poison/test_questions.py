"""Whatever is asked of the extender's port: an answer of the protocol, or one line that says what
is wrong, and no traceback in the log; work grows with the question.
"""

import asyncio
import json
import logging
from random import Random
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asched.core.cluster.facts import Seen
from asched.core.config.defaults import configuration
from asched.core.extender import wire
from asched.core.extender.answer import Advisor
from asched.core.framework.status import PointError
from asched.core.model.kinds import NODE, POD
from asched.host.assemble import Parts, build_runners
from asched.serve.extender import VERBS, ExtenderService, Opinion
from tests.builders import a_node, a_pod
from tests.poison.counted import counted
from tests.poison.made import Maker

#: Calls of functions: for whatever is asked, and for each byte of it. What is made once, classes
#: and results of them, costs some ten thousand.
CALLS, CALLS_PER_BYTE = 100_000, 50
LINE_CHARS_MAX: Final = 2_000
FIELDS: Final = (
    *("Pod", "Nodes", "NodeNames", "pod", "NODES", "NodeNameToVictims", "NodeNameToMetaVictims"),
    *("PodName", "PodNamespace", "PodUID", "Node", "Extra"),
)
VALUES: Final = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.sampled_from(("n0", "n1", "p0", "uid", "items", "\u202e", "a\nb", "a" * 5_000)),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from((*FIELDS, "metadata", "name", "uid", "items", "spec", "Pods", "n0")),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


def written(document: dict[str, Any]) -> bytes:
    return json.dumps(document).encode()


def deep(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


def node(value: bytes) -> bytes:
    return b'{"items":[{"metadata":{"name":"n0"},"x":%s}]}' % value


def asking(cpu: bytes) -> bytes:
    return b'{"spec":{"containers":[{"resources":{"requests":{"cpu":"%s"}}}]}}' % cpu


def question(pod: bytes, **more: bytes) -> bytes:
    rest = b"".join(b',"%s":%s' % (name.encode(), value) for name, value in more.items())
    return b'{"Pod":' + pod + rest + b"}"


ODD: Final = (
    *(b"", b"null", b"[]", b"1", b'"x"', b"{", b"\xff", b"[" * 5_000, deep(2_000), b"9" * 5_000),
    *(b'{"Pod":{},"Pod":1,"pod":[]}', b'{"Pod":' + b"9" * 5_000 + b"}", b'{"NodeNames":[1e999]}'),
    question(b'{"metadata":{"name":"p"}}', NodeNames=b'["n0","n0","' + b"a" * 5_000 + b'"]'),
    question(b'{"metadata":{"name":"p"}}', Nodes=b'{"items":[%s]}' % deep(300)),
    question(b'{"metadata":{"name":"p"}}', Nodes=node(deep(300))),
    question(b'{"metadata":{"name":"p"},"spec":%s}' % deep(900), NodeNames=b'["n0"]'),
    question(b'{"metadata":{"name":"p","uid":"\\ud800"}}', NodeNames=b'["n0"]'),
    question(b'{"spec":{"priority":' + b"9" * 400 + b"}}", NodeNames=b'["n0"]'),
    question(asking(b"9" * 5_000), NodeNames=b'["n0"]'),
    question(asking(b"1e308"), NodeNames=b'["n0"]'),
    question(b'{"metadata":null,"spec":1}', NodeNames=b'["n0"]'),
)  # fmt: skip
#: A pod as the records have it, whose fields say anything.
PODS: Final = st.integers(0, 2**32).map(lambda seed: Maker(Random(seed)).document(POD))
QUESTIONS: Final = st.one_of(
    st.sampled_from(ODD),
    st.binary(max_size=200),
    st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=6).map(written),
    st.tuples(PODS, VALUES).map(
        lambda two: written(
            {"Pod": two[0], "NodeNames": ["n0", "n1", "nowhere"], "NodeNameToMetaVictims": two[1]}
        )
    ),
)


def following() -> ExtenderService:
    parts = Parts.fresh()
    runners = build_runners(configuration({}), parts)
    for number in range(2):
        parts.cluster.apply(Seen(NODE, a_node(f"n{number}").build()))
    placed = a_pod("p0").on("n0").requests(cpu="1").build()
    parts.cluster.apply(Seen(POD, placed))
    return _desk(Advisor(parts.cluster, runners))


def _desk(advisor: Advisor) -> ExtenderService:
    def advisor_for(asked: wire.Arguments | None) -> Advisor:
        if asked is not None and asked.nodes is not None and asked.node_names == ():
            raise PointError("no nodes")
        return advisor

    async def bind(asked: wire.BindingArguments) -> str:
        return f"nobody binds {asked.name} here"

    return ExtenderService(Opinion(advisor_for, bind, lambda: "", may_bind=True))


@pytest.fixture(scope="module")
def desk() -> ExtenderService:
    return following()


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(verb=st.sampled_from(VERBS), body=QUESTIONS)
def test_a_question_is_answered_or_told_what_is_wrong_with_it(
    desk: ExtenderService, caplog: pytest.LogCaptureFixture, verb: str, body: bytes
) -> None:
    caplog.clear()
    caplog.set_level(logging.INFO)
    with counted() as cost:
        reply = asyncio.run(desk._answer(verb, body))
    assert cost.calls <= CALLS + CALLS_PER_BYTE * len(body)
    assert isinstance(reply.body, bytes)
    said = reply.body.decode()
    if reply.status == 200:
        json.loads(said)
    else:
        assert reply.status in (400, 500), said[:300]
        assert len(said) <= LINE_CHARS_MAX
        assert said.endswith("\n")
        assert said[:-1].isprintable(), repr(said[:300])
    told: list[Any] = [record.getMessage() for record in caplog.records if record.exc_info]
    assert not told, (body[:300], caplog.text[-2000:])


@pytest.mark.parametrize("body", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize("verb", VERBS)
def test_odd_questions(
    desk: ExtenderService, caplog: pytest.LogCaptureFixture, verb: str, body: bytes
) -> None:
    test = test_a_question_is_answered_or_told_what_is_wrong_with_it
    test.hypothesis.inner_test(desk, caplog, verb, body)  # type: ignore[attr-defined]
