"""Changes of the nodes that would help: labels, one more of them, fewer pods on them."""

from typing import Any

from asched.core.cluster.audit import recount
from asched.core.cluster.facts import Seen
from asched.core.model.decode import decode
from asched.core.model.kinds import POD, POD_DISRUPTION_BUDGET
from asched.core.model.workload import PodDisruptionBudget
from asched.insight.explain.deciding import Deciding
from asched.insight.explain.of_nodes import evictions, labels, nodes
from asched.insight.explain.suggestions import SuggestedChange, Way
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.playbook import Play

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


# --- one more ------------------------------------------------------------------------------------


def full(name: str, cpu: int = 4) -> tuple[NodeBuilder, PodBuilder]:
    return room(name, cpu), a_pod(f"on-{name}").requests(cpu=str(cpu)).on(name)


def test_a_gang_needs_as_many_as_it_takes() -> None:
    node, there = full("n1", 2)
    mates = [a_pod(f"m{number}").requests(cpu="1") for number in range(4)]
    found = Scene(wants(), node, placed=(there,), gang=mates, needed=5).change(nodes)
    assert found is not None
    assert found.text == "3 more nodes like n1"
    assert found.details["count"] == 3


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
