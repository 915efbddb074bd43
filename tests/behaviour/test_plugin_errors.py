"""A plugin that raises, or returns a value of a wrong type, is reported with its point, and costs
its pod one attempt; no other pod is affected.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

from asched.core.cluster.facts import Seen
from asched.core.framework.effects import Bind
from asched.core.framework.group_post_filter import GroupPostFilterPlugin
from asched.core.framework.points import PostFilterPlugin
from asched.core.model.kinds import POD, POD_GROUP
from asched.plugin import (
    SKIP,
    SUCCESS,
    BindPlugin,
    Code,
    FilterPlugin,
    PermitPlugin,
    Placement,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    PostBindPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Reason,
    ReservePlugin,
    ScorePlugin,
    Status,
    unschedulable,
)
from asched.testing import Outcome, World, given, node, pod
from tests.builders import a_pod, room
from tests.playbook import Play, a_group, a_member


class AllPoints(
    PreEnqueuePlugin,
    PreFilterPlugin,
    FilterPlugin,
    PostFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    ReservePlugin,
    PermitPlugin,
    PreBindPlugin,
    BindPlugin,
    PostBindPlugin,
):
    """Accepts every pod, except where its label names a method that runs after a rejection."""

    reasons = (Reason("not here", resolvable=True),)
    normalizes = True

    def pre_enqueue(self, pod: Any) -> Any:
        return SUCCESS

    def pre_filter(self, pod: Any) -> Any:
        return PreFilterResult()

    def stamp(self, pod: Any, data: Any) -> Any:
        return 0

    def filter(self, pod: Any, nodes: Any, data: Any) -> Any:
        return np.full(nodes.size, is_for("explain", pod), dtype=np.int32)

    def post_filter(self, pod: Any, rejection: Any, trial: Any) -> Any:
        return PostFilterResult(unschedulable())

    def pre_score(self, pod: Any, nodes: Any, feasible: Any) -> Any:
        return PreFilterResult(data=pod)

    def score(self, pod: Any, nodes: Any, data: Any) -> Any:
        return np.arange(nodes.size)

    def bounds(self, raw: Any, data: Any) -> Any:
        return int(raw.max())

    def reserve(self, pod: Any, node: str, data: Any) -> Any:
        return SUCCESS

    def unreserve(self, pod: Any, node: str) -> Any:
        return None

    def permit(self, pod: Any, node: str) -> Any:
        return (Status(Code.WAIT) if is_for("permit_late", pod) else SUCCESS), 10.0

    def pre_bind_pre_flight(self, pod: Any, node: str) -> Any:
        return SUCCESS

    def pre_bind(self, pod: Any, node: str) -> Any:
        yield from ()
        return unschedulable("not here") if is_for("unreserve", pod) else SUCCESS

    def bind(self, pod: Any, node: str) -> Any:
        yield from ()
        return SKIP

    def post_bind(self, pod: Any, node: str) -> Any:
        return None


def is_for(method: str, *args: Any) -> bool:
    """Whether one of these is a pod whose label names the method."""
    pods = (getattr(arg, "pod", arg) for arg in args)
    return any((getattr(pod, "labels", None) or {}).get("bad") == method for pod in pods)


def with_fault(method: str, fault: Callable[[], Any]) -> type[AllPoints]:
    good = getattr(AllPoints, method)

    def called(self: Any, *args: Any) -> Any:
        return fault() if is_for(method, *args) else good(self, *args)

    return type("Bad", (AllPoints,), {method: called})


class Other(AllPoints):
    pass


def boom() -> Any:
    raise ValueError("boom")


def boom_late() -> Any:
    yield from ()
    raise ValueError("boom")


#: Methods that fail the attempt -> their extension points.
FAILING = {
    "pre_filter": "preFilter",
    "stamp": "preFilter",
    "filter": "filter",
    "filter_one": "filter",  # within DefaultPreemption
    "filter_few": "filter",  # within DefaultPreemption
    "explain": "filter",
    "post_filter": "postFilter",
    "pre_score": "preScore",
    "score": "score",
    "bounds": "score",
    "scaled": "score",
    "normalize": "score",
    "reserve": "reserve",
    "permit": "permit",
    "permit_late": "permit",
    "pre_bind_pre_flight": "preBind",
    "pre_bind": "preBind",
    "bind": "bind",
}
#: The share key is asked for several points.
KEYS = {"share_key": "schedule"}
LATE = ("post_filter", "permit_late", "pre_bind", "bind")
#: Any value is valid.
UNTYPED = ("stamp", "bounds")
WRONG = [method for method in FAILING if method not in UNTYPED]


def run(method: str, fault: Callable[[], Any]) -> tuple[World, Outcome]:
    """A cluster with one node, and the outcome of a pod for which the method fails."""
    plugins = [with_fault(method, fault), Other]
    enabled = [{"name": "Bad"}, {"name": "Other"}]
    binders = [*enabled, {"name": "DefaultBinder"}]
    profile = {
        "multiPoint": {"enabled": enabled},
        "bind": {"disabled": [{"name": "*"}], "enabled": binders},
    }
    world = given([node("n1", cpu=4), node("n2", cpu=4)], plugins=plugins, profile=profile)
    for name in ("one", "two"):
        assert world.schedule(pod(name, cpu=2)).node
    labels = {"bad": method}
    cpu = 4 if method in ("post_filter", "filter_one", "filter_few") else 1
    priority = 10 if method in ("filter_one", "filter_few") else 0
    return world, world.schedule(pod("web", cpu=cpu, labels=labels, priority=priority))


def assert_only_web_is_affected(world: World, point: str) -> None:
    assert world.schedule(pod("next", cpu=1)).node
    assert {(plugin, at) for plugin, at, _ in world.raised} == {("Bad", point)}


@pytest.mark.parametrize(("method", "point"), [*FAILING.items(), *KEYS.items()])
def test_an_exception_costs_the_pod_its_attempt(method: str, point: str) -> None:
    for fault in (boom, boom_late) if method in LATE else (boom,):
        world, web = run(method, fault)
        said = 'plugin "Bad" raised ValueError: boom'
        assert web == Outcome("", said, "SchedulerError")
        assert str(world.raised[0][2]) == "boom"
        assert_only_web_is_affected(world, point)


@pytest.mark.parametrize("method", WRONG)
def test_a_value_of_a_wrong_type_costs_the_pod_its_attempt(method: str) -> None:
    world, web = run(method, object)
    assert (web.node, web.reason) == ("", "SchedulerError")
    assert 'plugin "Bad"' in web.message or '"Bad" filter plugin' in web.message
    assert_only_web_is_affected(world, FAILING[method])


@pytest.mark.parametrize("fault", [boom, object])
def test_at_points_that_cannot_fail_an_attempt_it_is_only_reported(
    fault: Callable[[], Any],
) -> None:
    world, web = run("pre_enqueue", fault)
    assert web == Outcome("", "", ""), "gated"
    assert_only_web_is_affected(world, "preEnqueue")

    world, web = run("unreserve", fault)
    assert "not here" in web.message
    assert_only_web_is_affected(world, "reserve")

    world, web = run("post_bind", fault)
    assert web.node
    assert_only_web_is_affected(world, "postBind")


# --- groups --------------------------------------------------------------------------------------


class GroupPoints(
    PlacementGeneratePlugin, PlacementScorePlugin, PostFilterPlugin, GroupPostFilterPlugin
):
    name = "Bad"
    method: ClassVar[str]
    fault: ClassVar[Callable[[], Any]]

    def _do(self, method: str, good: Any) -> Any:
        return type(self).fault() if method == type(self).method else good

    def generate_placements(self, group: str, parent: Placement) -> Any:
        parts = [Placement(f"p{at}", np.arange(2) == at) for at in range(2)]
        return self._do("generate_placements", parts)

    def score_placement(self, group: str, assignments: Any) -> Any:
        return self._do("score_placement", 1)

    def normalize_placements(self, scores: Any) -> Any:
        return self._do("normalize_placements", scores)

    def post_filter(self, pod: Any, rejection: Any, trial: Any) -> Any:
        return PostFilterResult(unschedulable())

    def group_post_filter(self, trial: Any) -> Any:
        yield from ()
        return self._do("group_post_filter", None)


@pytest.mark.parametrize("fault", [boom, object])
@pytest.mark.parametrize(
    ("method", "point"),
    [
        ("generate_placements", "placementGenerate"),
        ("score_placement", "placementScore"),
        ("normalize_placements", "placementScore"),
    ],
)
def test_at_points_of_placements_it_costs_the_group_its_attempt(
    method: str, point: str, fault: Callable[[], Any]
) -> None:
    assert_costs_the_group_its_attempt(method, fault, point, min_count=2)


def test_an_exception_of_preemption_for_a_group_costs_its_attempt() -> None:
    point = "podGroupPostFilter"
    assert_costs_the_group_its_attempt("group_post_filter", boom, point, min_count=9)


def assert_costs_the_group_its_attempt(
    method: str, fault: Callable[[], Any], point: str, min_count: int
) -> None:
    bad = type("Bad", (GroupPoints,), {"method": method, "fault": staticmethod(fault)})
    own = [{"name": "Bad"}]
    only = {"disabled": [{"name": "*"}], "enabled": own}
    plugins = {
        "multiPoint": {"enabled": [{"name": "GangScheduling"}, *own]},
        "placementScore": only,
        "postFilter": only,
    }
    play = Play(
        room("n1", cpu=4),
        room("n2", cpu=4),
        plugins=[bad],
        gates={"GenericWorkload": True, "GangScheduling": True, "WorkloadAwarePreemption": True},
        profiles=[{"schedulerName": "default-scheduler", "plugins": plugins}],
    )
    play.machine.context.observer = listener = World()
    play.turn(Seen(POD_GROUP, a_group(min_count=min_count)))

    play.turn(*(Seen(POD, a_member(f"m{at}").build()) for at in range(min_count)))
    while play.machine.next_deadline_s() == 0.0:
        play.turn()

    assert {(plugin, at) for plugin, at, _ in listener.raised} == {("Bad", point)}
    assert not play.parts.cluster.placed
    play.see(a_pod("next").requests(cpu="1"))
    assert [bind.pod.name for bind in play.of(Bind)] == ["next"]
