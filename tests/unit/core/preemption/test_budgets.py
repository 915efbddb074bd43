"""Who would violate a disruption budget."""

from dataclasses import dataclass, field

import pytest

from asched.core.cluster.budget import OutOfTurn
from asched.core.cluster.facts import Gone, Seen
from asched.core.config.gates import default_gates
from asched.core.model.kinds import POD_DISRUPTION_BUDGET
from asched.core.preemption.budgets import Budgets
from tests.builders import a_node
from tests.unit.core.preemption.disruption_budgets import budget
from tests.unit.core.preemption.stage import Stage, a_high, a_low, shown


@dataclass(frozen=True)
class Case:
    name: str
    selector: dict | None
    allowed: int
    violating: list[bool]
    disrupted: tuple[str, ...] = ()
    namespace: str = "default"
    labels: tuple[str, ...] = field(default=("a", "a", "b"))


CASES = [
    Case("nothing allowed", {"matchLabels": {"app": "a"}}, 0, [True, True, False]),
    Case("one allowed goes first", {"matchLabels": {"app": "a"}}, 1, [False, True, False]),
    Case("enough for all", {"matchLabels": {"app": "a"}}, 2, [False, False, False]),
    Case("another namespace", {"matchLabels": {"app": "a"}}, 0, [False] * 3, namespace="team"),
    Case("no selector speaks for nobody", None, 0, [False] * 3),
    Case("an empty selector speaks for nobody", {}, 0, [False] * 3),
    Case(
        "a selector that makes no sense is passed over",
        {"matchExpressions": [{"key": "app", "operator": "Like", "values": ["a"]}]},
        0,
        [False] * 3,
    ),
    Case(
        "whoever is counted as disrupted already takes nothing",
        {"matchLabels": {"app": "a"}},
        1,
        [False, False, False],
        disrupted=("p0",),
    ),
    Case(
        "a pod without labels is never spoken for",
        {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]},
        0,
        [False, False],
        labels=("", ""),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_violations(case: Case) -> None:
    stage = Stage()
    one = budget("one", case.selector, case.allowed, case.namespace, *case.disrupted)
    stage.cluster.apply(Seen(POD_DISRUPTION_BUDGET, one))
    budgets = Budgets(stage.cluster)
    budgets.catch_up()
    pods = []
    for number, app in enumerate(case.labels):
        pod = a_low(f"p{number}", "n1")
        pods.append(stage.info((pod.labels(app=app) if app else pod).build()))
    assert budgets.violations(pods) == case.violating


@pytest.mark.parametrize(
    ("selector", "labels"),
    [
        ({}, {"app": "a"}),
        ({}, {}),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, {}),
    ],
)
@pytest.mark.parametrize(("minor", "violating"), [("1.37", False), ("1.38", True)])
def test_an_empty_selector_by_version(
    selector: dict, labels: dict, minor: str, violating: bool
) -> None:
    stage = Stage()
    stage.cluster.apply(Seen(POD_DISRUPTION_BUDGET, budget("one", selector, 0, "default")))
    budgets = Budgets(stage.cluster)
    budgets.follow(default_gates(minor))
    budgets.catch_up()
    pod = a_low("p", "n1")
    info = stage.info((pod.labels(**labels) if labels else pod).build())
    assert budgets.violations([info]) == [violating]


@pytest.mark.parametrize(("minor", "counts"), [("1.36", [1, 0, 1]), ("1.37", [2, 0, 1])])
def test_units_of_several_pods_by_version(minor: str, counts: list[int]) -> None:
    """Budgets: nothing for a, one disruption for b."""
    stage = Stage()
    stage.budget("none", "default", "a", 0)
    stage.budget("one", "default", "b", 1)
    budgets = Budgets(stage.cluster)
    budgets.follow(default_gates(minor))
    budgets.catch_up()
    pods = {name: a_low(name, "n1").labels(app=name[0]) for name in ("a1", "a2", "b1", "b2", "c")}
    infos = {name: stage.info(pod.build()) for name, pod in pods.items()}
    units = [("a1", "a2"), ("b1", "c"), ("b2",)]
    assert list(budgets.violated_by([[infos[n] for n in unit] for unit in units])) == counts


def test_a_pod_takes_from_every_budget_that_speaks_for_it() -> None:
    stage = Stage()
    stage.budget("wide", "default", "a", 1)
    one = budget("narrow", {"matchLabels": {"app": "a", "tier": "x"}}, 5)
    stage.cluster.apply(Seen(POD_DISRUPTION_BUDGET, one))
    budgets = Budgets(stage.cluster)
    budgets.catch_up()
    first = stage.info(a_low("first", "n1").labels(app="a", tier="x").build())
    second = stage.info(a_low("second", "n1").labels(app="a").build())
    assert budgets.violations([first, second]) == [False, True]
    assert budgets.keys_for([first]) == {"default/wide", "default/narrow"}


@pytest.mark.parametrize("port", [0, 80])
def test_a_search_for_room_goes_on_where_the_budget_of_work_stopped_it(port: int) -> None:
    """By amounts for many rows at once, and by trial for a pod whose ports matter."""
    stage, whole = Stage(), Stage()
    for one in (stage, whole):
        for i in range(40):
            pods = str(3 + i % 7)
            one.nodes(a_node(f"n{i}").allocatable(cpu="2", memory="8Gi", pods=pods))
            for k in range(i % 3):
                one.pod(a_low(f"p{i}-{k}", f"n{i}", priority=i % 5).host_port(80 + k))
            one.pod(a_low(f"q{i}", f"n{i}").host_port(90))
    high = a_high("high")
    pod = (high.host_port(port) if port else high).build()
    for one in (stage, whole):
        one.pod(pod)
    rejection, slices = stage.rejection(pod), 0
    budget = stage.cluster.budget
    while True:
        budget.open(1)
        try:
            found = stage.plugin.candidates(stage.info(pod), rejection, stage.trial(pod))
            break
        except OutOfTurn:
            slices += 1
        finally:
            budget.close()
    assert slices > 2 or not port
    assert shown(found) == shown(whole.candidates(pod))


def test_what_is_asked_twice_is_answered_alike_and_what_moves_in_between_counts() -> None:
    """Asking takes nothing from a budget; numbers, names and other budgets that move do."""
    stage = Stage()
    budgets = Budgets(stage.cluster)
    pods = [stage.info(a_low(f"p{n}", "n1").labels(app="a").build()) for n in range(3)]

    def violating() -> list[bool]:
        budgets.catch_up()
        found = budgets.violations(pods)
        assert budgets.violations(pods) == found
        assert list(budgets.violated_by([[pod] for pod in pods])) == found
        return found

    assert violating() == [False, False, False]
    stage.budget("one", "default", "a", 1)
    assert violating() == [False, True, True]
    stage.budget("one", "default", "a", 1, "p0", "p1")
    assert violating() == [False, False, False]
    stage.budget("two", "default", "a", 0, "p0")
    assert violating() == [False, True, True], "two names p0 as well, and p1 not"
    stage.budget("one", "default", "a", 0)
    assert violating() == [True, True, True]
    stage.budget("two", "default", "b", 0)
    stage.budget("one", "default", "a", 2)
    assert violating() == [False, False, True]
    stage.cluster.apply(Gone(POD_DISRUPTION_BUDGET, budget("one", None, 0)))
    assert violating() == [False, False, False]
