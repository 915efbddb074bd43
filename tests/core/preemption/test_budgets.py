"""Who would violate a disruption budget."""

from dataclasses import dataclass, field

import pytest

from asched.core.model.decode import decode
from asched.core.model.kinds import POD_DISRUPTION_BUDGET
from asched.core.model.workload import PodDisruptionBudget
from asched.core.preemption.budgets import Budgets
from asched.core.state.facts import Gone, Seen
from tests.core.preemption.stage import Stage, a_low


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


def budget(name: str, selector: dict | None, allowed: int, namespace: str = "default", *gone: str):
    written = {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {} if selector is None else {"selector": selector},
        "status": {
            "disruptionsAllowed": allowed,
            "disruptedPods": dict.fromkeys(gone, "2026-01-01T00:00:00Z"),
        },
    }
    return decode(PodDisruptionBudget, written)


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


def test_numbers_are_logged_and_selectors_start_a_new_generation() -> None:
    stage = Stage()
    budgets = Budgets(stage.cluster)
    stage.budget("one", "default", "a", 1)
    budgets.catch_up()
    generation, seen = budgets.generation, budgets.log.end
    stage.budget("one", "default", "a", 0)
    budgets.catch_up()
    assert [key for _, key in budgets.log.since(seen)] == ["default/one"]
    assert budgets.generation == generation
    stage.budget("one", "default", "b", 0)
    budgets.catch_up()
    assert budgets.generation > generation
    stage.cluster.apply(Gone(POD_DISRUPTION_BUDGET, budget("one", None, 0)))
    budgets.catch_up()
    assert len(budgets) == 0
