"""Changes for those that wait together: equal pods, and gangs."""

from typing import Any

import pytest

from asched.core.cluster.facts import Seen
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, POD, POD_DISRUPTION_BUDGET
from asched.insight.explain.changes import changes
from asched.insight.explain.waiting_members import company_of
from tests.builders import a_node, a_pod
from tests.playbook import GANGS, Play, a_member, seen_group


def found(play: Play, pod: Any, others: Any = (), needed: int = 1) -> dict[str, Any]:
    context = play.machine.context
    runner = context.runners["default-scheduler"]
    told = changes(runner, context.nominator, pod, list(others), needed)
    return {change.kind: change for change in told}


def equal_pods(count: int, cpu: str) -> list[Any]:
    return [a_pod(f"web-{number}").requests(cpu=cpu).build() for number in range(count)]


def small(name: str) -> Any:
    return a_node(name).allocatable(cpu="4", memory="4Gi", pods="110")


def test_each_change_tells_how_many_of_those_that_wait_it_helps() -> None:
    """Nodes of four cores, full but for the tainted one; pods of two."""
    play = Play(small("full"), small("tainted").taints("team=a:NoSchedule"))
    play.see(a_pod("big").requests(cpu="4").priority(0).on("full"))
    first, *others = equal_pods(9, "2")
    told = found(play, first, others)

    assert (told["toleration"].takes, told["toleration"].of) == (2, 9)
    assert (told["node"].takes, told["node"].of) == (2, 9)
    assert told["node"].details == {"like": "full", "count": 1}
    assert "eviction" in told
    assert (told["eviction"].takes, told["eviction"].of) == (2, 9)
    cluster = play.machine.context.cluster
    assert set(cluster.nodes.row_of) == {"full", "tainted"}
    assert [info.pod.key for info in cluster.placed.values()] == ["default/big"]


def test_a_budget_in_the_way_is_named_and_a_node_without_one_preferred() -> None:
    play = Play(small("n1"), small("n2"))
    play.see(a_pod("kept").labels(app="kept").requests(cpu="4").on("n1"))
    budget = {
        "metadata": {"name": "all", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "kept"}}},
        "status": {"disruptionsAllowed": 0},
    }
    kind = POD_DISRUPTION_BUDGET
    play.turn(Seen(kind, decode(kind.record, budget)))
    play.see(a_pod("full").labels(app="kept").requests(cpu="4").on("n2"))
    web = a_pod("web").requests(cpu="3").build()
    told = found(play, web)["eviction"]
    assert told.details["budgets"] == ["default/all"]
    assert told.text.endswith("(1 pod), which budget default/all forbids")

    play.see(a_pod("one").requests(cpu="2").on("n3"))
    play.see(a_pod("two").requests(cpu="2").on("n3"))
    play.turn(Seen(NODE, small("n3").build()))
    told = found(play, web)["eviction"]
    assert (told.node, told.details["budgets"], len(told.details["pods"])) == ("n3", [], 2)


# --- gangs ---------------------------------------------------------------------------------------


def a_gang(count: int, needed: int, cpu: str, *nodes: Any) -> tuple[Play, list[Any]]:
    play = Play(*nodes, **GANGS)
    play.machine.is_active = False
    seen_group(play, needed)
    members = [a_member(f"m{number}", cpu=cpu).build() for number in range(count)]
    play.turn(*(Seen(POD, member) for member in members))
    return play, members


@pytest.mark.parametrize(("needed", "more"), [(3, 1), (5, 2), (6, 2), (7, 3)])
def test_a_gang_is_told_of_as_many_nodes_as_it_takes(needed: int, more: int) -> None:
    """Each node takes two of its pods; there is one."""
    play, members = a_gang(8, needed, "2", small("n1"))
    company = company_of(play.machine.context.cluster, members[0], ())
    assert company is not None
    assert company.needed == needed
    assert len(company.others) == 7

    told = found(play, members[0], company.others, company.needed)

    assert told["node"].details == {"like": "n1", "count": more}
    assert told["node"].takes >= needed
    assert "eviction" not in told


def test_a_gang_asks_for_less_until_enough_of_it_fit() -> None:
    play, members = a_gang(5, 5, "1", small("n1"))
    company = company_of(play.machine.context.cluster, members[0], ())
    assert company is not None
    told = found(play, members[0], company.others, company.needed)["request"]
    assert told.details["to"] == "800m"
    assert (told.takes, told.of) == (5, 5)
