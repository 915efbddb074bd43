"""Plain classes as plugins: what every point may answer, and what becomes of it."""

import asyncio
from typing import Any

import pytest

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Gone, Seen
from asched.core.framework.effects import LANDS_WITHIN_S, ReadPod
from asched.core.framework.per_node.adapter import (
    PerNode,
    UnusablePluginError,
    adapt,
)
from asched.core.framework.runner import run_alone
from asched.plugin import (
    SKIP,
    Aspect,
    DeletePod,
    Nomination,
    Patch,
    PodRef,
    Status,
    kinds,
    pending,
    unresolvable,
)
from asched.testing import Outcome, World, given, node, pod
from tests.builders import a_node, a_pod

ONE_NODE = [node("n1")]


def plugin(**methods: Any) -> type[Any]:
    """A class called Mine with these methods."""
    return type("Mine", (), methods)


def outcome_of(cls: type[Any], **pod_fields: Any) -> Outcome:
    return given(ONE_NODE, plugins=[cls]).schedule(pod("web", **pod_fields))


def told(message: str) -> str:
    """What remains of a FitError without its numbers and the words of preemption."""
    return message.removeprefix("0/1 nodes are available: ").split(". ")[0].removeprefix("1 ")


@pytest.mark.parametrize("answer", [None, True])
def test_a_filter_that_agrees_lets_the_pod_go_there(answer: Any) -> None:
    assert outcome_of(plugin(filter=lambda _s, _p, _n: answer)).node == "n1"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("too hot", "too hot"),
        (False, "node(s) were rejected by plugin Mine"),
        (unresolvable("never"), "never"),
        (pending("later"), "later"),
    ],
)
def test_a_filter_that_rejects_says_why(answer: Any, words: str) -> None:
    outcome = outcome_of(plugin(filter=lambda _s, _p, _n: answer))
    assert (outcome.node, outcome.reason) == ("", "Unschedulable")
    assert told(outcome.message) == words


def test_state_lives_as_long_as_the_attempt() -> None:
    seen: list[dict[str, Any]] = []

    class Mine:
        def pre_filter(self, pod: Any) -> None:
            pod.state["at"] = len(seen)

        def filter(self, pod: Any, node: Any) -> None:
            pod.state["filtered"] = node.name

        def reserve(self, pod: Any, node: Any) -> None:
            pod.state["reserved"] = node.name

        async def pre_bind(self, pod: Any, node: Any) -> None:
            pod.state["pre_bound"] = node.name

        def post_bind(self, pod: Any, node: Any) -> None:
            seen.append(dict(pod.state))

    world = given(ONE_NODE, plugins=[Mine])
    world.schedule(pod("a"))
    world.schedule(pod("b"))
    here = {"filtered": "n1", "reserved": "n1", "pre_bound": "n1"}
    assert seen == [{"at": 0, **here}, {"at": 1, **here}]


def test_pre_filter_may_narrow_skip_or_reject() -> None:
    two = [node("n1"), node("n2")]
    narrow = plugin(pre_filter=lambda _s, _p: {"n2"})
    assert given(two, plugins=[narrow]).schedule(pod("web")).node == "n2"

    skipping = plugin(pre_filter=lambda _s, _p: SKIP, filter=lambda _s, _p, _n: "never asked")
    assert outcome_of(skipping).node == "n1"

    rejecting = plugin(pre_filter=lambda _s, _p: unresolvable("no such thing"))
    assert told(outcome_of(rejecting).message) == "no such thing"


def test_scores_decide_and_normalised_ones_are_given_all_raw_scores() -> None:
    given_scores: list[dict[str, int]] = []

    class Mine:
        def score(self, pod: Any, node: Any) -> int:
            return int(node.labels["size"]) * 1000

        def normalize_scores(self, pod: Any, scores: dict[str, int]) -> dict[str, int]:
            given_scores.append(dict(scores))
            return {name: raw // 50 for name, raw in scores.items()}

    nodes = [node(f"n{size}", labels={"size": str(size)}) for size in (1, 5, 3)]
    nodes.append(node("full", cpu=0, labels={"size": "5"}))
    world = given(
        nodes,
        plugins=[Mine],
        profile={"score": {"enabled": [{"name": "Mine"}], "disabled": [{"name": "*"}]}},
    )
    assert world.schedule(pod("web")).node == "n5"
    assert given_scores == [{"n1": 1000, "n5": 5000, "n3": 3000}]


@pytest.mark.parametrize("score", [-1, 101])
def test_a_score_out_of_range_is_told_in_upstreams_words(score: int) -> None:
    world = given([node("a"), node("b")], plugins=[plugin(score=lambda _s, _p, _n: score)])
    outcome = world.schedule(pod("web"))
    assert outcome.reason == "SchedulerError"
    assert outcome.message == (
        'applying score defaultWeights on Score plugins: plugin "Mine" returns an invalid score '
        f"{score}, it should in the range of [0, 100] after normalizing"
    )
    assert [(p, at) for p, at, _ in world.raised] == [("Mine", "score")]


def test_reserve_that_refuses_undoes_itself_and_those_before_it() -> None:
    undone: list[str] = []
    first = type("First", (), {"unreserve": lambda _s, p, _n: undone.append(f"first {p.name}")})
    second = type(
        "Second",
        (),
        {
            "reserve": lambda _s, _p, _n: "no room in the ledger",
            "unreserve": lambda _s, p, _n: undone.append(f"second {p.name}"),
        },
    )
    world = given(ONE_NODE, plugins=[first, second])
    outcome = world.schedule(pod("web"))
    assert told(outcome.message) == "no room in the ledger."
    assert undone == ["second web", "first web"]


def test_permit_may_decide_at_once_or_later() -> None:
    assert told(outcome_of(plugin(permit=lambda _s, _p, _n: "not today")).message) == "not today."

    async def allow(_self: Any, _pod: Any, _node: Any) -> None:
        await asyncio.sleep(0)

    async def refuse(_self: Any, _pod: Any, _node: Any) -> str:
        return "the budget is spent"

    assert outcome_of(plugin(permit=allow)).node == "n1"
    late = outcome_of(plugin(permit=refuse))
    assert (late.node, late.reason) == ("", "Unschedulable")
    assert "the budget is spent" in late.message


def test_permit_waits_no_longer_than_its_patience() -> None:
    class Mine:
        permit_timeout_s = 0.02

        async def permit(self, pod: Any, node: Any) -> None:
            await asyncio.Event().wait()

    outcome = outcome_of(Mine)
    assert (outcome.node, outcome.reason) == ("", "Unschedulable")
    assert "rejected due to timeout after waiting 20ms at plugin Mine" in outcome.message


class Ledger:
    """Notes what it is told; `node` is all it needs of a node."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def reserve(self, pod: Any, node: Any) -> None:
        self.told.append(("reserve", node.name))

    def unreserve(self, pod: Any, node: Any) -> None:
        self.told.append(("unreserve", node.name))

    def post_bind(self, pod: Any, node: Any) -> None:
        self.told.append(("post_bind", node.name))
        assert not node.labels


def test_whoever_cleans_up_is_called_though_the_node_went() -> None:
    cluster, ledger = Cluster(), Ledger()
    cluster.apply(Seen(kinds.NODE, a_node("n1").build()))
    info = cluster.classes.info_of(a_pod("web").build())
    mine: Any = adapt(Ledger, "Mine")(ledger, cluster)
    assert mine.reserve(info, "n1", None).is_success
    cluster.apply(Gone(kinds.NODE, a_node("n1").build()))
    mine.unreserve(info, "n1")
    assert run_alone(mine.post_bind(info, "n1")).is_success
    assert ledger.told == [("reserve", "n1"), ("unreserve", "n1"), ("post_bind", "n1")]


def test_what_a_node_that_went_had_to_offer_is_told_as_gone() -> None:
    with pytest.raises(LookupError, match="node n1 is gone"):
        _ = PerNode(object(), Cluster()).node_or_rest("n1").cpu_free


@pytest.mark.parametrize("point", ["pre_bind", "bind"])
def test_a_coroutine_that_does_not_end_costs_its_pod_an_attempt(point: str) -> None:
    async def forever(_self: Any, _pod: Any, _node: Any) -> None:
        await asyncio.Event().wait()

    mine = plugin(**{point: forever, f"{point}_timeout_s": 0.02})
    binders = [{"name": "Mine"}, {"name": "DefaultBinder"}]
    profile = {"bind": {"enabled": binders, "disabled": [{"name": "*"}]}}
    world = given(ONE_NODE, plugins=[mine], profile=profile if point == "bind" else None)
    outcome = world.schedule(pod("web"))
    if point == "bind":  # it may have sent something: the place is held
        assert outcome == Outcome("", "", "")
        assert len(world.asked(ReadPod)) == 1
        world.wait(LANDS_WITHIN_S)
        outcome = world.outcome("web")
    assert (outcome.node, outcome.reason) == ("", "SchedulerError")
    assert f"{point} took longer than 0.02 s" in outcome.message


def test_a_late_point_may_yield_effects() -> None:
    class Mine:
        def pre_bind(self, pod: Any, node: Any) -> Any:
            body = {"metadata": {"annotations": {"to": node.name}}}
            answer = yield Patch(kind=kinds.POD, namespace=pod.namespace, name=pod.name, body=body)
            assert type(answer).__name__ == "Done"

    world = given(ONE_NODE, plugins=[Mine])
    assert world.schedule(pod("web")).node == "n1"
    assert [patch.name for patch in world.asked(Patch)] == ["web"]


def test_bind_may_skip_and_may_fail() -> None:
    binders = [{"name": "Mine"}, {"name": "DefaultBinder"}]
    profile = {"bind": {"enabled": binders, "disabled": [{"name": "*"}]}}

    def run(answer: Any) -> Outcome:
        async def bind(_self: Any, _pod: Any, _node: Any) -> Any:
            return answer

        world = given(ONE_NODE, plugins=[plugin(bind=bind)], profile=profile)
        return world.schedule(pod("web"))

    assert run(SKIP).node == "n1"
    assert run("somebody else's").message == "somebody else's"


def test_post_filter_may_make_room() -> None:
    class Mine:
        def post_filter(self, pod: Any, rejected: Any) -> Any:
            assert {name: status.message for name, status in rejected.items()} == {
                "n1": "Insufficient cpu"
            }
            ref = PodRef(namespace="default", name="old", uid="pod-default-old")
            yield DeletePod(pod=ref)
            return Nomination("n1")

    world = given(
        ONE_NODE,
        [pod("old", cpu=4, on="n1")],
        plugins=[Mine],
        profile={"postFilter": {"enabled": [{"name": "Mine"}], "disabled": [{"name": "*"}]}},
    )
    world.schedule(pod("web", cpu=4))
    world.wait(15)
    assert world.outcome("web").node == "n1"


def test_pre_enqueue_keeps_a_pod_out_until_it_agrees() -> None:
    class Mine:
        def pre_enqueue(self, pod: Any) -> str | None:
            return None if "ready" in pod.labels else "not ready"

    world = given(ONE_NODE, plugins=[Mine])
    waiting = pod("web")
    assert world.schedule(waiting) == Outcome("", "", "")
    waiting["metadata"]["labels"]["ready"] = "yes"
    world.add(waiting)
    assert world.outcome("web").node == "n1"


def test_queue_sort_decides_who_is_next() -> None:
    bound: list[str] = []

    class Mine:
        def queue_sort(self, pod: Any, timestamp_s: float) -> tuple[str, float]:
            return pod.labels["rank"], timestamp_s

        def post_bind(self, pod: Any, node: Any) -> None:
            bound.append(pod.name)

    profile = {
        "multiPoint": {"enabled": [{"name": "Mine"}], "disabled": [{"name": "PrioritySort"}]}
    }
    world = given([], plugins=[Mine], profile=profile)
    world.add(*(pod(name, labels={"rank": name}) for name in ("c", "a", "b")))
    world.add(node("n1"))
    world.wait(15)
    assert sorted(bound) == ["a", "b", "c"]
    bound.clear()
    world.add(*(pod(f"{name}2", labels={"rank": name}) for name in ("z", "x", "y")))
    assert bound == ["x2", "y2", "z2"]


def test_a_declared_dependency_keeps_answers_until_it_changes() -> None:
    asked: list[str] = []

    class Mine:
        depends_on = Aspect.LABELS

        def filter(self, pod: Any, node: Any) -> str | None:
            asked.append(node.name)
            return None if node.labels.get("open") else "closed"

    shut, opened = node("shut"), node("open", labels={"open": "yes"})
    others = [node(f"other-{i}") for i in range(8)]
    world = given([shut, opened, *others], plugins=[Mine])
    assert [world.schedule(pod(f"web-{i}")).node for i in range(5)] == ["open"] * 5
    assert len(asked) == 10
    world.add(node("shut", labels={"open": "yes"}))
    world.schedule(pod("web-9"))
    assert asked[10:] == ["shut"]


class Unusable:
    def score(self, pod: Any) -> int: ...


class Waiting:
    async def filter(self, pod: Any, node: Any) -> None: ...


class Preparing:
    def pre_score(self, pod: Any, nodes: Any) -> None: ...


class Contradicting:
    depends_on = Aspect.PODS

    def pre_filter(self, pod: Any) -> None: ...

    def filter(self, pod: Any, node: Any) -> None: ...


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        (Unusable, "Unusable.score(self, pod) must take self and 2 argument(s)"),
        (Waiting, "Waiting.filter is async, but only bind, permit, post_bind, pre_bind may be"),
        (Preparing, "Preparing has a pre_score but no score"),
        (Contradicting, "Contradicting declares depends_on and has a pre_filter; remove one:"),
        (Status, "Status has none of the methods queue_sort, pre_enqueue, pre_filter, filter"),
    ],
)
def test_a_class_that_cannot_serve_is_refused_when_it_is_loaded(cls: Any, words: str) -> None:
    with pytest.raises(UnusablePluginError) as refused:
        adapt(cls, "Mine")
    assert str(refused.value).startswith(words)


def test_views_are_friendly() -> None:
    seen: list[Any] = []

    class Mine:
        def filter(self, pod: Any, node: Any) -> None:
            seen.append((pod.cpu, pod.memory, dict(pod.requests), pod.key, pod.annotations["a"]))
            seen.append((node.cpu, node.cpu_requested, node.cpu_free, node.memory_free))
            seen.append((dict(node.allocatable), dict(node.requested), node.pod_count))
            seen.append(([p.name for p in node.pods], [t.key for t in node.taints]))

    world: World = given(
        [node("n1", cpu=4, memory="1Gi", resources={"x/gpu": 2}, taints=["a=b:PreferNoSchedule"])],
        [pod("old", cpu="1500m", memory="256Mi", on="n1")],
        plugins=[Mine],
    )
    world.schedule(pod("web", cpu="250m", memory="64Mi", annotations={"a": "1"}))
    mib = 1 << 20
    assert seen == [
        (0.25, 64 * mib, {"cpu": 250, "memory": 64 * mib}, "default/web", "1"),
        (4.0, 1.5, 2.5, 768 * mib),
        (
            {"cpu": 4000, "memory": 1024 * mib, "x/gpu": 2},
            {"cpu": 1500, "memory": 256 * mib},
            1,
        ),
        (["old"], ["a"]),
    ]
