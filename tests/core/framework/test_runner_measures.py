"""What a runner tells whoever measures: each point once an attempt, its own time and no other's."""

from typing import Any

import pytest

from asched.core.config.defaults import configuration
from asched.core.framework.meter import SAMPLE_EVERY, Meter
from asched.core.framework.points import (
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
)
from asched.core.framework.runner import Runner, run_alone
from asched.core.framework.status import Reason, unresolvable
from asched.core.model.kinds import NODE
from asched.core.plugins import IN_TREE
from asched.core.state.facts import Seen
from asched.host.assemble import build_runners
from tests.builders import PodBuilder, a_node, a_pod, pending
from tests.core.cycle.playbook import known_points
from tests.core.framework.runners import Ears, Table, Watch

WATCH = Watch()


class Slow(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Takes 1, 2, 3 and 4 seconds; what it says is in the labels of the pod."""

    name = "Slow"
    reasons = (Reason("no", resolvable=True),)

    def pre_filter(self, pod: Any) -> PreFilterResult:
        WATCH.now_s += 1
        labels = pod.pod.metadata.labels or {}
        if "never" in labels:
            return PreFilterResult(unresolvable("never"))
        names = frozenset(labels["only"].split(".")) if "only" in labels else None
        return PreFilterResult(node_names=names)

    def filter(self, pod: Any, nodes: Any, data: Any) -> Any:
        WATCH.now_s += 2
        return nodes.live.astype("int32") * ("full" in (pod.pod.metadata.labels or {}))

    def pre_score(self, pod: Any, nodes: Any, feasible: Any) -> PreFilterResult:
        WATCH.now_s += 3
        return PreFilterResult()

    def score(self, pod: Any, nodes: Any, data: Any) -> Any:
        WATCH.now_s += 4
        return nodes.live.astype("int64")


class Also(FilterPlugin):
    """Another filter, without a half before it."""

    name = "Also"

    def filter(self, pod: Any, nodes: Any, data: Any) -> Any:
        return nodes.live.astype("int32") * 0


class Scene:
    def __init__(self, table: Table) -> None:
        self.cluster = table.parts.cluster
        basic = ("PrioritySort", "DefaultBinder", "Slow", "Also")
        everybody = {"enabled": [{"name": n} for n in basic], "disabled": [{"name": "*"}]}
        profile = {"schedulerName": "s", "plugins": {"multiPoint": everybody}}
        self.runner: Runner = build_runners(
            configuration({"profiles": [profile]}),
            table.parts,
            factories={**IN_TREE, "Slow": lambda _a, _c: Slow(), "Also": lambda _a, _c: Also()},
            known=known_points({"Slow": Slow, "Also": Also}),
            extenders=table if table.has_filter or table.has_prioritize else None,  # type: ignore[arg-type]
        )["s"]
        for name in ("n0", "n1", "n2", "n3"):
            self.cluster.apply(Seen(NODE, a_node(name).build()))
        self.ears = Ears()
        self.runner.meter = Meter(self.ears, "s", WATCH)

    def attempt(self, pod: PodBuilder) -> Any:
        return self.runner.schedule(pending(self.cluster, pod), 0)


BOTH = [("PreFilter", "Success", 1.0), ("Filter", "Success", 2.0)]
ALL = [*BOTH, ("PreScore", "Success", 3.0), ("Score", "Success", 4.0)]


def asked(nodes: int, scored: int = 0) -> list[Any]:
    mine = ("Slow",)
    rest = [("PreScore", mine, 1), ("Score", mine, scored)] if scored else []
    return [("PreFilter", mine, 1), ("Filter", ("Slow", "Also"), nodes), *rest]


@pytest.mark.parametrize(
    ("pod", "points", "plugins"),
    [
        (a_pod(), ALL, asked(4, 4)),
        (a_pod().labels(only="n1.n2.gone"), ALL, asked(2, 2)),
        (a_pod().labels(only="n3"), BOTH, asked(1)),
        (a_pod().labels(full="yes"), BOTH, asked(4)),
        (
            a_pod().labels(never="yes"),
            [("PreFilter", "UnschedulableAndUnresolvable", 1.0)],
            [("PreFilter", ("Slow",), 1)],
        ),
    ],
    ids=["all nodes", "some by name", "one by name", "none fits", "PreFilter says no"],
)
@pytest.mark.parametrize("table", [{}, {"keeps": ("n0", "n1", "n2", "n3"), "points": {"n1": 1}}])
def test_each_point_is_told_once_with_its_own_time_and_whom_it_asked(
    table: Any, pod: PodBuilder, points: Any, plugins: Any
) -> None:
    scene = Scene(Table(**table))
    for _ in range(2):
        scene.ears.points, scene.ears.asked = [], []
        for _ in scene.attempt(pod):
            pass
        assert (scene.ears.points, scene.ears.asked) == (points, plugins)
        WATCH.now_s += 50
    assert scene.ears.plugins == [], "none of these attempts is sampled"


def test_neither_what_extenders_take_nor_what_others_do_meanwhile_is_charged_to_it() -> None:
    kept = ("n0", "n1", "n2", "n3")
    table = Table(kept, {"n1": 1}, meets=lambda pod: pod.pod.metadata.name == "web")
    scene = Scene(table)
    for _ in scene.attempt(a_pod("web").status(nominatedNodeName="n9")):
        before = scene.ears.points
        scene.ears.points = []
        run_alone(scene.attempt(a_pod("other")))
        assert scene.ears.points == ALL
        scene.ears.points = before
        WATCH.now_s += 100
    assert scene.ears.points == ALL
    assert [verb for verb, _ in table.asked] == ["filter", "prioritize"]


def test_single_plugins_are_told_of_in_one_attempt_of_ten() -> None:
    scene = Scene(Table())
    for _ in range(SAMPLE_EVERY):
        assert scene.ears.plugins == []
        run_alone(scene.attempt(a_pod()))
    assert scene.ears.plugins == [
        ("Slow", "PreFilter", "Success", 1.0),
        ("Slow", "Filter", "Success", 2.0),
        ("Also", "Filter", "Success", 0.0),
        ("Slow", "PreScore", "Success", 3.0),
        ("Slow", "Score", "Success", 4.0),
    ]
    scene.runner.meter = None
    scene.ears.points = []
    run_alone(scene.attempt(a_pod()))
    assert (scene.runner.meter, scene.ears.points) == (None, [])
