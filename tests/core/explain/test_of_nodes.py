"""Changes of the nodes that would help: labels, one more of them, fewer pods on them."""

from typing import Any

import pytest

from asched.core.model.decode import decode
from asched.core.model.kinds import POD, POD_DISRUPTION_BUDGET
from asched.core.model.workload import PodDisruptionBudget
from asched.core.state.audit import recount
from asched.core.state.facts import Seen
from asched.insight.explain.deciding import Deciding
from asched.insight.explain.of_nodes import another, evictions, labels, looks_around, nodes
from asched.insight.explain.ways import SuggestedChange, Way
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod, term
from tests.core.cycle.playbook import Play

HOST = "kubernetes.io/hostname"


class Scene:
    def __init__(
        self,
        pod: PodBuilder,
        *listed: NodeBuilder,
        placed: Any = (),
        gang: Any = (),
        needed: int = 1,
        play: Play | None = None,
    ) -> None:
        self.play = play or Play(*listed)
        self.play.machine.is_active = False
        self.cluster = self.play.parts.cluster
        self.play.turn(*(Seen(POD, low.build()) for low in placed))
        context = self.play.machine.context
        runner = context.runners["default-scheduler"]
        mates = [mate.build() for mate in gang]
        self.deciding = Deciding(runner, context.nominator, pod.build(), mates, needed)

    def way(self, kind: Any) -> Way | None:
        with self.deciding.within_budget():
            found = next(kind(self.deciding), None)
        assert recount(self.cluster) == []
        return found

    def change(self, kind: Any) -> SuggestedChange | None:
        found = self.way(kind)
        if found is None:
            return None
        with self.deciding.within_budget(), self.cluster.supposing() as suppose:
            found.of_cluster(suppose)
            assert self.deciding.fits(found.of_pod), "the way leads there"
        return found.change


def room(name: str, cpu: int = 4) -> NodeBuilder:
    return a_node(name).allocatable(cpu=str(cpu), memory="8Gi", pods="110").labels({HOST: name})


def wants(cpu: str = "1") -> PodBuilder:
    return a_pod("web").requests(cpu=cpu)


# --- labels --------------------------------------------------------------------------------------


def test_the_node_that_needs_the_fewest_new_labels_is_named() -> None:
    pod = wants().selects(zone="a", disk="ssd")
    near = room("n2").labels(zone="a", disk="hdd")
    found = Scene(pod, room("n1"), near).change(labels)
    assert found is not None
    assert found.text == "label node n2 disk=ssd"
    assert found.details == {"node": "n2", "labels": {"disk": "ssd"}}
    assert (found.nodes, found.node) == (1, "n2")


def test_a_label_may_have_to_go() -> None:
    pod = wants().requires_nodes(term("spot DoesNotExist"))
    found = Scene(pod, room("n1").labels(spot="yes")).change(labels)
    assert found is not None
    assert found.text == "label node n1 spot-"


def test_labels_help_nobody_whom_something_else_keeps_away() -> None:
    pod = wants("9").selects(zone="a")
    assert Scene(pod, room("n1")).change(labels) is None
    tainted = room("n2").taints("a=b:NoSchedule")
    assert Scene(wants().selects(zone="a"), tainted).change(labels) is None
    assert Scene(wants("9"), room("n1")).change(labels) is None, "it asks for none"
    roomy = Scene(pod, room("n1"), room("n2", 16)).change(labels)
    assert roomy is not None
    assert roomy.node == "n2"


# --- one more ------------------------------------------------------------------------------------


def full(name: str, cpu: int = 4) -> tuple[NodeBuilder, PodBuilder]:
    return room(name, cpu), a_pod(f"on-{name}").requests(cpu=str(cpu)).on(name)


def test_an_empty_node_like_the_smallest_that_would_do() -> None:
    (large, on_large), (small, on_small) = full("a-large", 8), full("small", 4)
    scene = Scene(wants("3"), large, small, room("tiny", 2), placed=(on_large, on_small))
    found = scene.change(nodes)
    assert found is not None
    assert found.text == "one more node like small"
    assert (found.details, found.nodes) == ({"like": "small", "count": 1}, 1)


def test_no_node_like_these_would_do() -> None:
    node, there = full("n1")
    assert Scene(wants("9"), node, placed=(there,)).change(nodes) is None
    cordoned = node.cordoned()
    assert Scene(wants(), cordoned, placed=(there,)).change(nodes) is None


def test_a_pod_that_looks_around_may_need_one_all_the_same() -> None:
    near = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": HOST}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}
    there = a_pod("db").labels(app="db").on("n1")
    found = Scene(wants().spec(affinity=apart), room("n1"), placed=(there,)).change(nodes)
    assert found is not None
    assert found.text == "one more node like n1"
    together = {"podAffinity": apart["podAntiAffinity"]}
    assert (
        Scene(wants("9").spec(affinity=together), room("n1"), placed=(there,)).change(nodes) is None
    )


def test_a_gang_needs_as_many_as_it_takes() -> None:
    node, there = full("n1", 2)
    mates = [a_pod(f"m{number}").requests(cpu="1") for number in range(4)]
    found = Scene(wants(), node, placed=(there,), gang=mates, needed=5).change(nodes)
    assert found is not None
    assert found.text == "3 more nodes like n1"
    assert found.details["count"] == 3


def test_another_node_has_a_name_of_its_own() -> None:
    node = room("n1").labels(zone="a").build()
    made = another(node, ["n1", "n1-another"])
    assert made.name == "n1-another-one"
    assert made.labels == {HOST: "n1-another-one", "zone": "a"}
    assert made.metadata.uid == made.name
    bare = a_node("n2").build()
    assert another(bare, []).labels == {}


@pytest.mark.parametrize(
    ("spec", "looks"),
    [
        ({}, False),
        ({"affinity": {"nodeAffinity": {}}}, False),
        ({"affinity": {"podAffinity": {}}}, True),
        ({"affinity": {"podAntiAffinity": {}}}, True),
        ({"topologySpreadConstraints": [{"topologyKey": "zone"}]}, True),
    ],
)
def test_whether_a_node_s_worth_depends_on_the_others(spec: Any, looks: bool) -> None:
    assert looks_around(wants().spec(**spec).build()) == looks


# --- fewer pods ----------------------------------------------------------------------------------


def low(name: str, node: str, cpu: str = "1", priority: int = 0, **labels_: str) -> PodBuilder:
    return a_pod(name).requests(cpu=cpu).priority(priority).on(node).labels(**labels_)


def test_the_lowest_priority_that_does_and_the_fewest_pods() -> None:
    placed = (
        low("a", "n1", "2", priority=5),
        low("b", "n1", "2"),
        low("c", "n2"),
        low("d", "n2"),
        low("e", "n2", "2", priority=9),
    )
    found = Scene(wants("2"), room("n1"), room("n2"), placed=placed).change(evictions)
    assert found is not None
    assert found.text == "evict what has priority 0 or less on node n1 (1 pod)"
    assert found.details == {"node": "n1", "priority": 0, "pods": ["default/b"], "budgets": []}
    more = Scene(wants("4"), room("n1"), room("n2"), placed=placed).change(evictions)
    assert more is not None
    assert (more.details["priority"], more.node) == (5, "n1")


def budget(name: str, allowed: int, gone: Any = None, **labels_: str) -> Any:
    return decode(
        PodDisruptionBudget,
        {
            "metadata": {"namespace": "default", "name": name},
            "spec": {"selector": {"matchLabels": labels_}},
            "status": {"disruptionsAllowed": allowed, "disruptedPods": gone},
        },
    )


def test_a_budget_counts_the_pods_of_its_namespace_that_are_still_there() -> None:
    others = a_pod("stranger", "other").requests(cpu="1").on("n1").labels(app="a").priority(0)
    placed = [
        others,
        *(low(name, "n1", app="a") for name in ("a", "gone")),
        low("c", "n1", app="c"),
    ]
    scene = Scene(wants("4"), room("n1"), placed=placed)
    for one in (
        budget("enough", 1, {"gone": "2026-01-01T00:00:00Z"}, app="a"),
        budget("none", 0, app="c"),
    ):
        scene.cluster.apply(Seen(POD_DISRUPTION_BUDGET, one))
    found = scene.change(evictions)
    assert found is not None
    assert found.details["budgets"] == ["default/none"]
    assert found.nodes == 1
    assert len(found.details["pods"]) == 4


def test_a_node_where_no_budget_is_in_the_way_is_preferred() -> None:
    placed = (low("a", "n1", "4", app="a"), low("b", "n2", "2"), low("c", "n2", "2"))
    scene = Scene(wants("4"), room("n1"), room("n2"), placed=placed)
    scene.cluster.apply(Seen(POD_DISRUPTION_BUDGET, budget("spare", 0, app="a")))
    found = scene.change(evictions)
    assert found is not None
    assert found.node == "n2"


def test_budgets_that_forbid_it_are_named() -> None:
    placed = (low("a", "n1", "4", app="a"),)
    scene = Scene(wants("4"), room("n1"), placed=placed)
    for one in (
        budget("spare", 0, app="a"),
        budget("fine", 1, app="a"),
        budget("else", 0, app="b"),
    ):
        scene.cluster.apply(Seen(POD_DISRUPTION_BUDGET, one))
    found = scene.change(evictions)
    assert found is not None
    assert found.text.endswith("(1 pod), which budget default/spare forbids")
    assert found.details["budgets"] == ["default/spare"]


def test_pods_help_nobody_by_leaving_a_node_that_does_not_suit() -> None:
    placed = (low("a", "n1", "4"),)
    tainted = room("n1").taints("a=b:NoSchedule")
    assert Scene(wants("2"), tainted, placed=placed).change(evictions) is None
    assert Scene(wants("9"), room("n1"), placed=placed).change(evictions) is None
    assert Scene(wants("2").selects(zone="x"), room("n1"), placed=placed).change(evictions) is None


def test_a_gang_is_not_told_to_evict() -> None:
    placed = (low("a", "n1", "4"),)
    mates = [a_pod("m").requests(cpu="1")]
    scene = Scene(wants("2"), room("n1"), placed=placed, gang=mates, needed=2)
    assert scene.change(evictions) is None
