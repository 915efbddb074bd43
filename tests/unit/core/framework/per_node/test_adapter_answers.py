"""Plain classes as plugins, point by point: what they are shown, and which answers make sense."""

import re
from typing import Any

import numpy as np
import pytest

from asched.core.cluster.facts import Done, Gone, Raised, Returned, TimedOut
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.framework.effects import CallPlugin, Pause
from asched.core.framework.per_node.adapter import (
    LATE_TIMEOUT_S,
    UnusablePluginError,
    adapt,
    hint_for_change,
)
from asched.core.framework.points import Nomination
from asched.core.framework.registrations import Hint
from asched.core.framework.runner import run_alone
from asched.core.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    PluginError,
    Status,
    failure,
    pending,
    unresolvable,
    unschedulable,
)
from asched.core.model.kinds import NODE
from tests.builders import PodBuilder, a_cluster, a_node, a_pod
from tests.builders import pending as pending_pod

NODES = ("n0", "gone", "n2", "n3")


class Scene:
    """Four rows, of which the second is dead; `mine` is what becomes of a class with methods."""

    def __init__(self, **methods: Any) -> None:
        self.cluster = a_cluster(*(a_node(name).labels(at=name) for name in NODES))
        self.cluster.apply(Gone(NODE, a_node("gone").build()))
        self.pod: PodInfo = pending_pod(self.cluster, a_pod("web"))
        cls = type("Mine", (), methods)
        self.mine: Any = adapt(cls, "Mine")(cls(), self.cluster)

    @property
    def view(self) -> NodeView:
        return NodeView(self.cluster.nodes)


def says(answer: Any) -> Any:
    """A method that always answers so."""
    return lambda _self, *_: answer


# --- what wakes whom it rejected ------------------------------------------------------------------


def own(**spec: Any) -> PodBuilder:
    return a_pod("web").spec(**spec)


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        (None, a_node("n1"), Hint.QUEUE),
        (a_node("n1"), a_node("n1").labels(a="b"), Hint.QUEUE),
        (a_node("n1"), None, Hint.QUEUE),
        (None, a_pod("other"), Hint.QUEUE),
        (a_pod("other"), None, Hint.QUEUE),
        (a_pod("other"), a_pod("other"), Hint.QUEUE),
        (None, own(), Hint.SKIP),
        (own(), None, Hint.SKIP),
        (own(), own().status(nominatedNodeName="n1"), Hint.SKIP),
        (own(), own().labels(a="b"), Hint.QUEUE),
        (own(), own().metadata(annotations={"a": "b"}), Hint.QUEUE),
        (own(), own(priority=3), Hint.QUEUE),
    ],
)
def test_everything_is_news_but_its_own_place_given_back_and_its_own_status(
    old: Any, new: Any, hint: Hint
) -> None:
    built = [None if one is None else one.build() for one in (old, new)]
    assert hint_for_change(own().build(), *built) is hint


# --- in the queue and before nodes are looked at --------------------------------------------------


@pytest.mark.parametrize("names", [[1], ["n2", 1], [None, "n2"]])
def test_a_node_that_is_not_named_by_a_text_is_nonsense(names: Any) -> None:
    scene = Scene(pre_filter=says(names))
    with pytest.raises(PluginError, match="where a set of node names is expected"):
        scene.mine.pre_filter(scene.pod)


# --- filters and scores ---------------------------------------------------------------------------


@pytest.mark.parametrize("fine", [None, True, SUCCESS, np.True_])
def test_a_filter_is_asked_about_nodes_that_live_and_may_agree_in_many_ways(fine: Any) -> None:
    asked: list[str] = []

    def judge(_self: Any, pod: Any, node: Any) -> Any:
        asked.append(f"{pod.name} {node.name} {node.labels['at']}")
        return "full" if node.name == "n2" else fine

    scene = Scene(filter=judge)
    codes = scene.mine.filter(scene.pod, scene.view, None)
    assert asked == ["web n0 n0", "web n2 n2", "web n3 n3"]
    assert (codes == 0).tolist() == [True, True, False, True]
    told = scene.mine.explain(scene.pod, int(codes[2]))
    assert (told.code, told.message) == (Code.UNSCHEDULABLE, "full")


@pytest.mark.parametrize("said", [unschedulable("a"), unresolvable("a"), pending("a")])
def test_a_filter_may_reject_in_three_ways(said: Status) -> None:
    scene = Scene(filter=says(said))
    codes = scene.mine.filter(scene.pod, scene.view, None)
    assert codes[0] != 0
    assert scene.mine.explain(scene.pod, int(codes[0])) == said


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (failure("broken"), 'running "Mine" filter plugin: broken'),
        (Status(Code.WAIT), 'running "Mine" filter plugin: Wait is not a valid answer here'),
        (SKIP, 'running "Mine" filter plugin: Skip is not a valid answer here'),
        (7, "answered 7 (int) where None, True, False, a reason or a Status is expected"),
    ],
)
def test_any_other_answer_of_a_filter_ends_the_attempt(said: Any, words: str) -> None:
    scene = Scene(filter=says(said))
    with pytest.raises(PluginError, match=re.escape(words)):
        scene.mine.filter(scene.pod, scene.view, None)


@pytest.mark.parametrize(
    ("score", "words"),
    [
        (True, "answered True (bool) where an integer is expected"),
        (1.5, "answered 1.5 (float) where an integer is expected"),
        (None, "answered None (NoneType) where an integer is expected"),
        (2**63, "where a 64-bit integer is expected"),
        (-(2**63) - 1, "where a 64-bit integer is expected"),
        (3**63, "where a 64-bit integer is expected"),
    ],
)
def test_a_score_that_is_no_integer_or_too_large_is_nonsense(score: Any, words: str) -> None:
    scene = Scene(score=says(score))
    with pytest.raises(PluginError, match=re.escape(words)):
        scene.mine.score(scene.pod, scene.view, None)
    largest = Scene(score=says(2**63 - 1))
    assert largest.mine.score(largest.pod, largest.view, None)[0] == 2**63 - 1


def normalized(answer: Any) -> list[int]:
    """Of n0 and n3, with raw scores of 10 and 20."""
    seen: list[Any] = []

    def normalize(_self: Any, pod: Any, scores: Any) -> Any:
        seen.append((pod.name, dict(scores)))
        return answer(scores) if callable(answer) else answer

    scene = Scene(score=says(1), normalize_scores=normalize)
    left = np.array([True, False, False, True])
    scene.mine.score(scene.pod, scene.view, left)
    found: list[int] = scene.mine.normalize(np.array([10, 20]), left).tolist()
    assert seen == [("web", {"n0": 10, "n3": 20})]
    return found


def test_normalised_scores_are_found_by_name() -> None:
    assert normalized(None) == [10, 20]
    assert normalized({"n3": 100, "n0": np.int64(0), "elsewhere": 5}) == [0, 100]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([1, 2], "where a mapping of node names to scores is expected"),
        ({"n0": 1}, "answered None (NoneType) where an integer for every node is expected"),
        ({"n0": 1, "n3": True}, "where an integer for every node is expected"),
        ({"n0": 1, "n3": 1.5}, "where an integer for every node is expected"),
    ],
)
def test_other_normalised_scores_are_nonsense(answer: Any, words: str) -> None:
    with pytest.raises(PluginError, match=re.escape(words)):
        normalized(answer)


# --- room, places and what is late ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "code", "node"),
    [
        (Nomination("n2"), Code.SUCCESS, "n2"),
        (None, Code.UNSCHEDULABLE, None),
        ("no room", Code.UNSCHEDULABLE, None),
        (unresolvable("never"), Code.UNSCHEDULABLE_AND_UNRESOLVABLE, None),
        (True, Code.SUCCESS, None),
    ],
)
def test_who_makes_room_names_a_node_or_says_why_not(
    answer: Any, code: Code, node: str | None
) -> None:
    def asks(_self: Any, pod: Any, _rejected: Any) -> Any:
        assert pod.name == "web"
        return answer

    scene = Scene(post_filter=asks)
    result = run_alone(scene.mine.post_filter(scene.pod, None, None))
    assert (result.status.code, result.nomination.node) == (code, node)


def test_on_a_node_that_went_nothing_is_reserved_permitted_or_bound() -> None:
    def never(*_: Any) -> None:
        raise AssertionError("it is not asked")

    scene = Scene(reserve=never, permit=never, pre_bind=never, bind=never)
    rejected = unschedulable("node(s) were rejected by plugin Mine")
    assert scene.mine.reserve(scene.pod, "gone", None) == rejected
    assert scene.mine.permit(scene.pod, "gone") == (rejected, 0.0)
    for late in (scene.mine.pre_bind, scene.mine.bind):
        assert run_alone(late(scene.pod, "gone")) == failure("node gone is gone")


async def asynchronous(_self: Any, pod: Any, node: Any) -> None: ...


@pytest.mark.parametrize(
    ("point", "answer", "status"),
    [
        ("pre_bind", Returned(0, None), SUCCESS),
        ("pre_bind", Returned(0, "no"), unschedulable("no")),
        ("pre_bind", TimedOut(0), failure("pre_bind took longer than 600 s")),
        ("bind", Returned(0, SKIP), SKIP),
        ("bind", TimedOut(0), failure("bind took longer than 60 s")),
        ("permit", Returned(0, True), SUCCESS),
        ("permit", TimedOut(0), Status(Code.WAIT)),
    ],
)
def test_a_coroutine_runs_in_the_binding_task(point: str, answer: Any, status: Status) -> None:
    scene = Scene(**{point: asynchronous})
    late = {"permit": "permit_late"}.get(point, point)
    steps = getattr(scene.mine, late)(scene.pod, "n2")
    effect = next(steps)
    assert isinstance(effect, CallPlugin)
    assert (effect.plugin, effect.binds) == ("Mine", point == "bind")
    assert effect.timeout_s == LATE_TIMEOUT_S[point]
    with pytest.raises(StopIteration) as ended:
        steps.send(answer)
    assert ended.value.value == status
    steps = getattr(scene.mine, late)(scene.pod, "n2")
    next(steps)
    raised = ZeroDivisionError("by zero")
    with pytest.raises(ZeroDivisionError, match="by zero"):
        steps.send(Raised(0, raised))


def test_an_effect_of_a_late_point_that_is_none_is_told_with_plugin_and_point() -> None:
    def steps(_self: Any, _pod: Any, _node: Any) -> Any:
        assert isinstance((yield Pause()), Done)
        yield 7

    scene = Scene(pre_bind=steps)
    late = scene.mine.pre_bind(scene.pod, "n2")
    assert isinstance(next(late), Pause)
    with pytest.raises(PluginError, match='running preBind plugin "Mine": answered 7') as error:
        late.send(Done(0))
    assert (error.value.plugin, error.value.point) == ("Mine", "preBind")


# --- what is refused when it is loaded ------------------------------------------------------------


async def generating(_self: Any, _pod: Any, _node: Any) -> Any:
    yield None


@pytest.mark.parametrize(
    ("methods", "words"),
    [
        ({}, "Mine has none of the methods"),
        ({"normalize_scores": says(None)}, "Mine has a normalize_scores but no score"),
        ({"pre_score": says(None), "filter": says(None)}, "Mine has a pre_score but no score"),
        ({"filter": generating}, "Mine.filter is async"),
        ({"filter": asynchronous}, "Mine.filter is async"),
    ],
)
def test_what_cannot_be_a_plugin_is_told_in_a_line(methods: Any, words: str) -> None:
    with pytest.raises(UnusablePluginError, match=words):
        adapt(type("Mine", (), methods), "Mine")
