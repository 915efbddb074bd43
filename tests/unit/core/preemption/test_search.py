"""Three ways to the candidates: kept and vectorised, by trial, and the twin; on random clusters."""

import numpy as np
import pytest

from asched.core.framework.rejection import Rejection
from asched.core.preemption.budgets import Budgets
from asched.core.preemption.pods_by_priority import by_importance
from asched.core.preemption.search import Limit
from asched.core.preemption.victims import dry_run
from tests.builders import a_node
from tests.unit.core.preemption import twin
from tests.unit.core.preemption.stage import RandomStage, Stage, a_high, a_low, shown

SEEDS = range(15)
CHANGES = 8


@pytest.mark.parametrize("seed", SEEDS)
def test_kept_prospects_agree_with_trials_and_with_the_twin(seed: int) -> None:
    stage = RandomStage(seed)
    for change in range(CHANGES):
        pod = stage.preemptor()
        found = stage.attempt(pod)
        if isinstance(found, Rejection):
            fast = shown(stage.candidates(pod))
            rows = found.candidates
            assert fast == _by_trial(stage, pod, rows), f"seed {seed}, change {change}"
            names = [stage.cluster.nodes.node_at[row].name for row in rows]
            assert fast == twin.candidates(stage, pod, names), f"seed {seed}, change {change}"
            tied = twin.best(fast, stage)
            chosen = {stage.post_filter(pod, s).nomination.node for s in range(12)}
            assert (chosen <= tied) if tied else (chosen == {""}), f"seed {seed}, change {change}"
        stage.gone(pod)
        stage.change()


@pytest.mark.parametrize("seed", range(10))
def test_a_preemptor_that_is_nominated_itself_stands_in_nobody_elses_way(seed: int) -> None:
    stage = RandomStage(seed)
    for node in sorted(stage.cluster.nodes.row_of):
        pod = stage.preemptor()
        stage.nominator.add(pod, node)
        other = stage.preemptor()
        for one in (pod, other):
            found = stage.attempt(one)
            if isinstance(found, Rejection):
                fast = shown(stage.candidates(one))
                assert fast == _by_trial(stage, one, found.candidates)


def _by_trial(stage: Stage, pod, rows) -> dict[str, tuple[list[str], int]]:
    trial, info = stage.trial(pod), stage.info(pod)
    budgets = stage.cluster.singleton(Budgets)
    budgets.catch_up()
    found = {}
    for row in rows.tolist():
        pods = stage.cluster.pods_on(row).values()
        lower = by_importance(i for i in pods if i.pod.priority < info.pod.priority)
        run = dry_run(info, row, lower, trial, budgets)
        if run.victims:
            name = stage.cluster.nodes.node_at[row].name
            found[name] = ([victim.pod.key for victim in run.victims], run.violations)
    return found


def test_the_message_counts_what_keeps_each_node_from_helping() -> None:
    stage = Stage()
    stage.nodes(
        a_node("empty").allocatable(cpu="1"),
        a_node("equal").allocatable(cpu="2"),
        a_node("mixed").allocatable(cpu="4"),
        a_node("tainted").taints("gpu=yes:NoSchedule"),
    )
    stage.pod(a_low("e", "equal", priority=1000))
    stage.pod(a_low("m1", "mixed", priority=1000, cpu="3"))
    stage.pod(a_low("m2", "mixed"))
    result = stage.post_filter(stage.pod(a_high("pod")))
    assert result.nomination.node == ""
    assert result.status.message == (
        "no new claims to deallocate, preemption: 0/4 nodes are available:"
        " 1 Insufficient cpu, 1 No preemption victims found for incoming pod,"
        " 2 Preemption is not helpful for scheduling."
    )


def test_a_restricted_search_ends_when_there_are_enough_candidates() -> None:
    stage = Stage(minCandidateNodesPercentage=10, minCandidateNodesAbsolute=2)
    for number in range(300):
        stage.nodes(a_node(f"n{number}").allocatable(cpu="2"))
        stage.pod(a_low(f"a{number}", f"n{number}", cpu="2"))
    found = stage.candidates(stage.pod(a_high("high")))
    assert 30 <= len(found) < 100


def test_a_restricted_search_goes_on_while_every_candidate_violates_a_budget() -> None:
    stage = Stage(minCandidateNodesPercentage=0, minCandidateNodesAbsolute=1)
    for number in range(20):
        stage.nodes(a_node(f"n{number}").allocatable(cpu="2"))
        app = "free" if number == 19 else "guarded"
        stage.pod(a_low(f"a{number}", f"n{number}", cpu="2").labels(app=app))
    stage.budget("guard", "default", "guarded", 0)
    pod = stage.pod(a_high("high"))
    assert {stage.post_filter(pod, seed).nomination.node for seed in range(8)} == {"n19"}


@pytest.mark.parametrize(
    ("count", "wanted"), [(50, 50), (100, 100), (500, 100), (2000, 200)], ids=str
)
def test_the_usual_limit_is_a_tenth_and_at_least_a_hundred(count: int, wanted: int) -> None:
    assert Limit(10, 100).of(count) == wanted


def test_a_new_resource_named_by_a_promise_does_no_harm() -> None:
    stage = Stage()
    stage.nodes(a_node("n1").allocatable(cpu="2"))
    stage.pod(a_low("low", "n1", cpu="2"))
    high = stage.pod(a_high("high"))
    assert stage.candidates(high).keys() == {"n1"}
    stage.wait_for(a_high("other").requests({"example.com/gpu": "1"}, cpu="1"), "n1")
    assert stage.candidates(high) == {}
    assert np.array_equal(stage.rejection(high).candidates, [0])


def test_what_was_found_is_forgotten_when_counts_move_that_turn_no_verdict_by_themselves() -> None:
    """The zone is too full either way; but now it stays so without the victim, too."""
    stage = Stage()
    for name, zone in (("n0", "a"), ("n1", "a"), ("n2", "b")):
        stage.nodes(a_node(name).labels(zone=zone).allocatable(cpu="2"))
    stage.pod(a_low("victim", "n0").labels(app="web"))
    stage.pod(a_low("important", "n2", priority=5000, cpu="2"))
    rule = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    pod = a_high("high", cpu="1").labels(app="web").spec(topologySpreadConstraints=[rule])
    built = stage.pod(pod)
    assert set(stage.candidates(built)) == {"n0"}
    stage.pod(a_low("another", "n1", priority=5000).labels(app="web"))
    assert set(stage.candidates(built)) == set()
