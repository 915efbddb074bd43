"""What a runner asks its extenders, and what it makes of answers that come when others had a turn.

The extenders are a table: which nodes they keep, how many points they give, and what happens before
each answer.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from asched.core.config.defaults import configuration
from asched.core.framework.attempt import Rejection
from asched.core.framework.effects import Pause
from asched.core.framework.points import ScorePlugin
from asched.core.framework.runner import Decision
from asched.core.framework.status import PointError
from asched.core.model.kinds import DEVICE_CLASS, NODE, POD, RESOURCE_CLAIM, RESOURCE_SLICE
from asched.core.plugins import IN_TREE
from asched.core.state.facts import Done, Gone, Seen
from asched.host.assemble import Parts, build_runners
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod, pending, term
from tests.core.cycle.playbook import known_points
from tests.core.dra.worlds import DRIVER, a_claim, a_class, a_device, a_slice, asks
from tests.core.framework.runners import Table

ALL = ("n0", "n1", "n2", "n3")
Deed = Callable[[], None]


class Scene:
    """Four nodes of four CPUs with these extenders."""

    def __init__(
        self, table: Table, *nodes: NodeBuilder, own: Any = None, config: Any = None
    ) -> None:
        self.table, self.cluster = table, table.parts.cluster
        profile: dict[str, Any] = {"schedulerName": "s"}
        if own is not None:
            everybody = {"multiPoint": {"enabled": [{"name": own.name}]}}
            profile["plugins"] = everybody | {"score": {"disabled": [{"name": "*"}]}}
            profile["plugins"]["score"]["enabled"] = [
                {"name": "NodeResourcesFit"},
                {"name": own.name},
            ]
        mine = {} if own is None else {own.name: own}
        self.runner = build_runners(
            configuration({"profiles": [profile], **(config or {})}),
            table.parts,
            factories={
                **IN_TREE,
                **{n: (lambda _a, _c, cls=cls: cls()) for n, cls in mine.items()},
            },
            known=known_points(mine),
            extenders=table,  # type: ignore[arg-type]
        )["s"]
        self.see(*(nodes or [a_node(name).allocatable(cpu="4") for name in ALL]))

    def see(self, *objects: PodBuilder | NodeBuilder) -> None:
        for each in objects:
            kind = POD if isinstance(each, PodBuilder) else NODE
            self.cluster.apply(Seen(kind, each.build()))

    def found(
        self, pod: PodBuilder, seed: int = 0, within: Any = None, meanwhile: Deed | None = None
    ) -> Decision | Rejection:
        """`meanwhile` happens before the last answer."""
        steps = self.runner.schedule(pending(self.cluster, pod), seed, within)
        last = len(self.table.asked) + self.table.has_filter + self.table.has_prioritize
        answer: Any = None
        try:
            while True:
                assert isinstance(steps.send(answer), Pause)
                answer = Done(0)
                if meanwhile is not None and len(self.table.asked) == last:
                    meanwhile()
        except StopIteration as done:
            found: Decision | Rejection = done.value
            return found

    def node(self, pod: PodBuilder, seed: int = 0, **more: Any) -> Decision:
        found = self.found(pod, seed, **more)
        assert isinstance(found, Decision), found.message()
        return found

    def refusal(self, pod: PodBuilder, **more: Any) -> Rejection:
        found = self.found(pod, **more)
        assert isinstance(found, Rejection)
        return found

    def rows(self, *names: str) -> Any:
        within = np.zeros(self.cluster.nodes.height, dtype=np.bool_)
        within[[self.cluster.nodes.row_of[name] for name in names]] = True
        return within


def filled(scene: Scene, *names: str) -> Deed:
    """Somebody takes all there is on these nodes."""
    return lambda: scene.see(*(a_pod(f"on-{name}").requests(cpu="4").on(name) for name in names))


WEB = a_pod("web").requests(cpu="2")


def test_they_are_asked_about_nodes_that_plugins_and_promises_leave_and_only_about_these() -> None:
    scene = Scene(Table(keeps=ALL, points={}))
    scene.see(a_pod("large").requests(cpu="3").on("n0"))
    vip = a_pod("vip").requests(cpu="3").priority(9).status(nominatedNodeName="n1")
    scene.see(vip)
    scene.table.parts.nominator.add(vip.build())
    drawn = [scene.node(WEB, seed) for seed in range(20)]
    assert {one.node for one in drawn} == {"n2", "n3"}
    assert {(one.feasible, one.evaluated) for one in drawn} == {(2, 4)}
    assert scene.table.asked[:2] == [("filter", ["n2", "n3"]), ("prioritize", ["n2", "n3"])]
    scene.table.asked.clear()
    assert scene.node(WEB, within=scene.rows("n0", "n1", "n3")).node == "n3"
    assert scene.table.asked == [("filter", ["n3"])], "with one node left there are no points"


@pytest.mark.parametrize(
    ("table", "verbs"),
    [
        (Table(keeps=ALL), ["filter"]),
        (Table(points={}), ["prioritize"]),
        (Table(binds=True), []),
        (Table(keeps=ALL, points={}, meets=lambda _: False), []),
        (Table(keeps=ALL, points={}, meets=lambda pod: pod.pod.metadata.name == "web"), None),
    ],
    ids=["filters", "scores", "binds alone", "is not interested", "is interested"],
)
def test_who_has_nothing_to_say_of_a_pod_is_not_asked(table: Table, verbs: Any) -> None:
    scene = Scene(table)
    assert scene.node(WEB).node in ALL
    assert [verb for verb, _ in table.asked] == (
        ["filter", "prioritize"] if verbs is None else verbs
    )
    assert scene.runner.has_extenders
    assert scene.runner.consults(pending(scene.cluster, WEB)) == table.is_interested(
        pending(scene.cluster, WEB)
    )


def test_without_extenders_nobody_is_consulted_and_only_plugins_bind() -> None:
    parts = Parts.fresh()
    runner = build_runners(configuration({}), parts)["default-scheduler"]
    info = pending(parts.cluster, WEB)
    assert not runner.has_extenders
    assert not runner.consults(info)
    assert [plugin.name for plugin in runner.binders(info)] == ["DefaultBinder"]
    scene = Scene(Table(binds=True))
    info = pending(scene.cluster, WEB)
    assert [one.name for one in scene.runner.binders(info)] == ["TheirBinder", "DefaultBinder"]


def test_one_of_the_nodes_they_keep_is_taken() -> None:
    scene = Scene(Table(keeps=("n1", "n2", "elsewhere")))
    drawn = [scene.node(WEB, seed) for seed in range(30)]
    assert {one.node for one in drawn} == {"n1", "n2"}
    assert {one.feasible for one in drawn} == {2}
    alone = Scene(Table(keeps=("n3",), points={})).node(WEB)
    assert (alone.node, alone.feasible, alone.score) == ("n3", 1, None)


def test_points_of_plugins_are_those_among_the_nodes_that_are_left() -> None:
    """TaintToleration takes 100 for the most soft taints there are, and has a weight of 3: n1 with
    one of them is 150 ahead of n2 with two, and 75 only where another node has four.
    """
    nodes = [
        a_node(f"n{count}").taints(" ".join(f"{k}=v:PreferNoSchedule" for k in "abcd"[:count]))
        for count in (1, 2, 4)
    ]
    assert Scene(Table(keeps=("n1", "n2"), points={"n2": 100}), *nodes).node(WEB).node == "n1"
    assert Scene(Table(points={"n2": 100}), *nodes).node(WEB).node == "n2"


def test_their_points_are_added_to_those_of_the_plugins() -> None:
    (plain,) = {Scene(Table()).node(WEB, seed).score for seed in range(3)}
    assert plain is not None
    best = Scene(Table(points={"n1": 70, "n2": 90})).node(WEB)
    assert (best.node, best.score, best.feasible) == ("n2", plain + 90, 4)
    worse = Scene(Table(points=dict.fromkeys(ALL, -900) | {"n2": -700})).node(WEB)
    assert (worse.node, worse.score) == ("n2", plain - 700)
    kept = Scene(Table(keeps=("n0", "n3"), points={"n1": 70, "n3": 9})).node(WEB)
    assert (kept.node, kept.score) == ("n3", plain + 9)
    scene = Scene(Table(points={}))
    silent = [scene.node(WEB, seed) for seed in range(60)]
    assert {one.node for one in silent} == set(ALL)
    assert {one.score for one in silent} == {plain}


class First(ScorePlugin):
    """Of equals the first is meant."""

    name = "First"
    fixes_ties = True

    def score(self, pod: Any, nodes: Any, data: Any) -> Any:
        return np.zeros(nodes.size, dtype=np.int64)


def test_where_a_plugin_says_that_the_first_of_equals_wins_it_does() -> None:
    for table in (Table(), Table(keeps=ALL)):
        scene = Scene(table, own=First)
        assert {scene.node(WEB, seed).node for seed in range(30)} == {"n0"}
        within = scene.rows("n1", "n2", "n3")
        assert {scene.node(WEB, seed, within=within).node for seed in range(30)} == {"n1"}


def test_who_leaves_no_node_is_to_blame_with_or_without_a_word() -> None:
    scene = Scene(Table(keeps=(), words={"n1": "no such device", "n2": "no such device"}))
    scene.see(a_pod("large").requests(cpu="3").on("n0"))
    found = scene.refusal(WEB)
    assert found.message() == ("0/4 nodes are available: 1 Insufficient cpu, 2 no such device.")
    assert found.unschedulable_plugins == {"Extender", "NodeResourcesFit"}
    speechless = Scene(Table(keeps=())).refusal(WEB)
    assert speechless.unschedulable_plugins == {"Extender"}
    part = Scene(Table(keeps=()))
    assert part.refusal(WEB, within=part.rows("n1", "n2")).node_count == 2


def test_who_was_not_asked_is_not_to_blame() -> None:
    scene = Scene(Table(keeps=(), points={}))
    found = scene.refusal(a_pod().requests(cpu="5"))
    assert scene.table.asked == []
    assert found.unschedulable_plugins == {"NodeResourcesFit"}
    assert found.message() == "0/4 nodes are available: 4 Insufficient cpu."


# --- others have their turn while they think ----------------------------------------------------


@pytest.mark.parametrize("table", [{"keeps": ALL}, {"points": {"n1": 9}}], ids=["filter", "points"])
def test_what_others_took_meanwhile_is_taken(table: Any) -> None:
    for left in (2, 1):
        scene = Scene(Table(**table))
        found = scene.node(WEB, meanwhile=filled(scene, *ALL[left:]))
        assert found.node in ALL[:left]
        assert found.feasible == left
        assert (found.score is None) == (left == 1), "a single node is not ranked"
    scene = Scene(Table(**table))
    found = scene.refusal(WEB, within=scene.rows("n1", "n2"), meanwhile=filled(scene, *ALL))
    assert found.message() == "0/2 nodes are available: 2 Insufficient cpu."
    assert found.unschedulable_plugins == {"NodeResourcesFit"}, "they refused nobody"


@pytest.mark.parametrize("table", [{"keeps": ALL}, {"points": {"n1": 9}}], ids=["filter", "points"])
def test_room_that_is_promised_meanwhile_is_left_alone(table: Any) -> None:
    scene = Scene(Table(**table))

    def promised() -> None:
        for name in ALL[1:]:
            vip = a_pod(f"vip-{name}").requests(cpu="3").priority(9).status(nominatedNodeName=name)
            scene.see(vip)
            scene.table.parts.nominator.add(vip.build())

    assert scene.node(WEB, meanwhile=promised).node == "n0"


def test_points_are_for_the_node_that_was_asked_about_and_not_for_its_row() -> None:
    scene = Scene(Table(points={"n1": 500, "n2": 300}))

    def replaced() -> None:
        scene.cluster.apply(Gone(NODE, a_node("n1").build()))
        scene.see(a_node("new").allocatable(cpu="4"))
        scene.see(a_node("newer").allocatable(cpu="4"))
        scene.see(a_node("n2").labels(fresh="yes").allocatable(cpu="4"))

    found = scene.node(WEB, meanwhile=replaced)
    assert scene.cluster.nodes.row_of["new"] == 1, "it has the row of the one that went"
    assert (found.node, found.feasible) == ("n2", 3), "one that only changed stays"


def test_a_node_that_is_gone_when_the_points_come_is_not_taken() -> None:
    scene = Scene(Table(points={"n1": 500, "n2": 300}))
    gone = Gone(NODE, a_node("n1").build())
    assert scene.node(WEB, meanwhile=lambda: scene.cluster.apply(gone) and None).node == "n2"


TERM = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
HOSTS = [a_node(n).labels({"kubernetes.io/hostname": n}).allocatable(cpu="4") for n in ALL[:2]]
OURS = a_pod("web").labels(app="web").requests(cpu="2")


def speaking(verb: str, rule: Any) -> PodBuilder:
    """A pod with a term that speaks of ours, of whom nobody spoke before."""
    return a_pod(verb).spec(affinity={verb: rule}).requests(cpu="1")


@pytest.mark.parametrize("table", [{"keeps": ALL}, {"points": {"n1": 9}}], ids=["filter", "points"])
def test_a_term_that_speaks_of_the_pod_meanwhile_rules_and_is_told(table: Any) -> None:
    scene = Scene(Table(**table), *HOSTS)
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}
    first, second = (
        speaking("podAntiAffinity", rule).metadata(name=name, uid=name).on(name) for name in ALL[:2]
    )
    found = scene.refusal(OURS, meanwhile=lambda: scene.see(first, second))
    assert found.message() == (
        "0/2 nodes are available: 2 node(s) didn't satisfy existing pods anti-affinity rules."
    )
    assert found.unschedulable_plugins == {"InterPodAffinity"}


@pytest.mark.parametrize("table", [{"keeps": ALL}, {"points": {}}], ids=["filter", "points"])
def test_a_wish_that_speaks_of_the_pod_meanwhile_counts(table: Any) -> None:
    rule = {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "podAffinityTerm": TERM}
        ]
    }
    for seed in range(8):
        scene = Scene(Table(**table), *HOSTS)
        friend = speaking("podAffinity", rule).on("n1").requests()
        found = scene.node(OURS, seed, meanwhile=lambda scene=scene, f=friend: scene.see(f))
        assert found.node == "n1"
        assert found.state is scene.runner.cache.state_of(pending(scene.cluster, OURS))


# --- the node that the pod was nominated to -------------------------------------------------------


NOMINATED = a_pod("web").requests(cpu="2").status(nominatedNodeName="n2")


def test_they_are_asked_about_the_nominated_node_alone_if_they_keep_it() -> None:
    scene = Scene(Table(keeps=ALL, points={"n1": 9}))
    found = scene.node(NOMINATED)
    assert (found.node, found.feasible, found.score) == ("n2", 1, None)
    assert scene.table.asked == [("filter", ["n2"])]
    assert scene.table.in_vain == []


@pytest.mark.parametrize(
    "table", [Table(points={"n1": 9}), Table(keeps=(), meets=lambda _: False)], ids=["points", "no"]
)
def test_who_does_not_filter_has_no_say_about_it(table: Table) -> None:
    assert Scene(table).node(NOMINATED).node == "n2"
    assert table.asked == []


def test_if_they_refuse_it_that_is_noted_and_all_nodes_are_looked_at() -> None:
    scene = Scene(Table(keeps=("n1",)))
    assert scene.node(NOMINATED).node == "n1"
    assert scene.table.asked == [("filter", ["n2"]), ("filter", list(ALL))]
    assert scene.table.in_vain == ["web"]


def test_if_somebody_took_it_meanwhile_all_nodes_are_looked_at_and_nothing_is_noted() -> None:
    scene = Scene(Table(keeps=ALL))
    assert scene.node(NOMINATED, meanwhile=filled(scene, "n0", "n2", "n3")).node == "n1"
    assert scene.table.asked == [("filter", ["n2"]), ("filter", ["n1"])]
    assert scene.table.in_vain == []


def test_a_term_that_speaks_of_it_meanwhile_rules_there_too() -> None:
    scene = Scene(Table(keeps=ALL), *HOSTS)
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}
    foe = speaking("podAntiAffinity", rule).on("n1")
    ours = a_pod("web").labels(app="web").status(nominatedNodeName="n1")
    assert scene.node(ours, meanwhile=lambda: scene.see(foe)).node == "n0"


@pytest.mark.parametrize("points", [None, {"n1": 9}])
def test_errors_elsewhere_count_but_for_the_nominated_node_that_they_keep(points: Any) -> None:
    """Only that node is looked at (schedule_one.go, evaluateNominatedNode)."""
    keeps = None if points else ALL
    scene = Scene(Table(keeps, points), *(a_node(name) for name in ALL))
    cluster = scene.cluster
    cluster.apply(Seen(DEVICE_CLASS, a_class()))
    cluster.apply(
        Seen(RESOURCE_CLAIM, a_claim(asks(f"device.attributes['{DRIVER}'].missing == 1")))
    )
    good = a_device("good", attributes={"missing": 1})
    for name in ("n2", "n3"):
        cluster.apply(Seen(RESOURCE_SLICE, a_slice(good, nodeName=name, pool=name)))
    wanted = [{"name": "c", "resourceClaimName": "c"}]
    picky = a_pod(namespace="d").spec(resourceClaims=wanted)
    bad = Seen(RESOURCE_SLICE, a_slice("bad", nodeName="n1", pool="bad"))
    nominated = a_pod(namespace="d").spec(resourceClaims=wanted).status(nominatedNodeName="n2")
    assert scene.node(nominated, meanwhile=lambda: cluster.apply(bad) and None).node == "n2"
    cluster.apply(Gone(RESOURCE_SLICE, bad.obj))
    with pytest.raises(PointError, match="no such key: missing"):
        scene.found(picky, meanwhile=lambda: cluster.apply(bad) and None)


# --- samples --------------------------------------------------------------------------------------


def test_they_see_no_more_nodes_than_are_to_be_scored() -> None:
    """Never fewer than a hundred, and the next pod's begin behind them (numFeasibleNodesToFind)."""
    names = [f"m{i:03}" for i in range(240)]
    table = Table(keeps=tuple(names))
    scene = Scene(table, *(a_node(name) for name in names), config={"percentageOfNodesToScore": 50})
    found = [scene.node(WEB) for _ in range(2)]
    assert [one.feasible for one in found] == [120, 120]
    assert [asked for _, asked in table.asked] == [names[:120], names[120:]]
    scene.see(*(a_node(name).labels(disk="ssd") for name in names[:130]))
    assert scene.node(a_pod().selects(disk="ssd")).feasible == 120, "half of all, not of these"
    only = a_pod().requires_nodes(*(term(fields=[f"metadata.name In {n}"]) for n in names[:150]))
    narrow = Table(keeps=tuple(names))
    scene = Scene(narrow, *(a_node(n) for n in names), config={"percentageOfNodesToScore": 50})
    assert scene.node(only).feasible == 100
    assert narrow.asked == [("filter", names[:100])], "half of 150 is fewer than a hundred"
