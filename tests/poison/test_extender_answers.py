"""Whatever an extender answers, the attempt of its own pod may fail, and nothing else does."""

import json
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asched.core.cluster.facts import Answer, Bound, Done, Refused, Replied
from asched.core.framework.effects import AskExtender, Bind, DeletePod, Effect, PatchPodStatus
from asched.kube.extenders import first_value
from asched.kube.writes import request_for
from tests.builders import a_node, a_pod
from tests.poison.made import ODD
from tests.unit.core.extender.playing import ExtendedPlay, an_extender

FOO: Final = "example.com/foo"
#: Questions before we say that they never end.
TURNS_MAX: Final = 60
LEAVES: Final = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from((0, -1, 2**31, 2**63, -(2**63) - 1, 10**30, 1e308, 0.5)),
    st.sampled_from(("n1", "n2", "uid-low", *ODD)),
    st.text(max_size=8),
)
NAMES: Final = st.sampled_from(
    (
        *("Nodes", "NodeNames", "nodenames", "FailedNodes", "FailedAndUnresolvableNodes", "Error"),
        *("items", "metadata", "name", "Host", "Score", "NodeNameToMetaVictims", "Pods", "UID"),
        *("NodeNameToVictims", "NumPDBViolations", "n1", "n2", "no-such-node"),
    )
)
ANSWERS: Final = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=25,
)


class Poisoned:
    """A cluster of two nodes, one full of a pod that may be evicted for the extender's."""

    def __init__(self, answers: list[Any], *, cached: bool) -> None:
        verbs = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "preemptVerb": "preempt"}
        extender = an_extender(
            **verbs,
            bindVerb="bind",
            weight=3,
            managedResources=[{"name": FOO}],
            nodeCacheCapable=cached,
        )
        nodes = (a_node(name).allocatable({FOO: "2"}, cpu="4") for name in ("n1", "n2"))
        self.play = ExtendedPlay(*nodes, extenders=[extender])
        self._answers = answers
        self.asked = 0
        self.bound: dict[str, str] = {}
        self.evicted: list[str] = []

    def show(self, *pods: Any) -> None:
        for pod in pods:
            self.play.see(pod)
            self._go()
        for _ in range(3):
            self.play.turn(after_s=20.0)
            self._go()

    def _go(self) -> None:
        for _ in range(TURNS_MAX):
            answers = [answer for effect in self.play.effects for answer in self._answer(effect)]
            if not answers:
                return
            self.play.turn(*answers)
        raise AssertionError("questions do not end")

    def _answer(self, effect: Effect) -> list[Answer]:
        if isinstance(effect, AskExtender):
            said = self._answers[self.asked % len(self._answers)]
            self.asked += 1
            return [Replied(effect.id, said)]
        if isinstance(effect, Bind):
            self.bound[effect.pod.name] = effect.node
            return [Bound(effect.id)]
        if isinstance(effect, DeletePod):
            self.evicted.append(effect.pod.name)
            return [Refused(effect.id, 404, "gone")] if effect.answers else []
        if isinstance(effect, PatchPodStatus):
            request_for(effect)  # whatever was said can be written
        return [Done(effect.id)] if effect.answers else []


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(answers=st.lists(ANSWERS, min_size=1, max_size=6), cached=st.booleans())
def test_others_go_on_whatever_is_answered(answers: list[Any], *, cached: bool) -> None:
    life = Poisoned(answers, cached=cached)
    low = a_pod("low").requests({FOO: "2"}, cpu="1").priority(-5).on("n1")
    theirs = [a_pod(f"foo{n}").requests({FOO: "1"}, cpu="1").priority(n) for n in range(2)]
    ours = [a_pod(f"plain{n}").requests(cpu="1") for n in range(3)]

    life.show(low, theirs[0], ours[0], theirs[1], *ours[1:])

    assert {pod.json["metadata"]["name"] for pod in ours} <= life.bound.keys()
    assert set(life.evicted) <= {"low"}
    assert set(life.bound.values()) <= {"n1", "n2"}
    assert life.asked


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
        b'[{"Host":"n1","Score":' + b"9" * 100_000 + b"}]",
        b'{"Error":"\\ud800"}',
        b'{"Error":"\xff\xfe\x00"}',
        b'{"FailedNodes":{"n1":"\\udfff"},"NodeNames":["n2"]}',
    ],
    ids=["deep lists", "deep objects", "digits", "half a letter", "no UTF-8", "half a reason"],
)
def test_bytes_are_read_or_refused_in_words_that_can_be_written(content: bytes) -> None:
    try:
        said = first_value(content)
    except ValueError as error:
        text = str(error)
        assert "sys." not in text
        text.encode()
        return
    json.dumps(said, ensure_ascii=False).encode()
    life = Poisoned([said], cached=True)
    life.show(a_pod("foo").requests({FOO: "1"}), a_pod("plain"))
    assert "plain" in life.bound
