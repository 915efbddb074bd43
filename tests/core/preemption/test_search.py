"""Three ways to the candidates: kept and vectorised, by trial, and the twin; on random clusters."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from asched.core.framework.attempt import Rejection
from asched.core.preemption.budgets import Budgets
from asched.core.preemption.candidates import ROW_STEPS, TRIAL_STEPS
from asched.core.preemption.search import Limit
from asched.core.preemption.victims import DryRun, dry_run
from tests.builders import PodBuilder, a_node
from tests.core.preemption import twin
from tests.core.preemption.stage import RandomStage, Stage, a_high, a_low, shown

SEEDS = range(40)
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


def test_rows_that_amounts_close_are_told_what_a_trial_would_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert sum(_closed_by_amounts(seed, monkeypatch) for seed in range(12)) > 100


def _closed_by_amounts(seed: int, monkeypatch: pytest.MonkeyPatch) -> int:
    stage, tried = RandomStage(seed), Counter[str]()

    def counting(*asked: Any) -> DryRun:
        run = dry_run(*asked)
        if not asked[0].pod.metadata.name.endswith("-port"):  # ports come before amounts
            tried[run.status.plugin if run.status is not None else ""] += 1
        return run

    monkeypatch.setattr("asched.core.preemption.candidates.dry_run", counting)
    by_amounts = 0
    for change in range(CHANGES):
        for name, wish in (("port", _with_port), ("apart", _kept_from_a), ("spread", _spread)):
            pod = stage.pod(wish(a_high(f"p{change}-{name}", cpu=str(2 + change // 2))))
            found = stage.attempt(pod)
            if isinstance(found, Rejection):
                trial = stage.trial(pod)
                findings = stage.plugin._search.find(stage.info(pod), found, trial)
                told = dict(findings.prospects.rejections(stage.info(pod), findings.tried, trial))
                runs = [
                    dry_run(stage.info(pod), row, trial, stage.plugin._budgets)
                    for row in findings.tried.tolist()
                ]
                assert told == Counter(run.status for run in runs if run.status is not None)
                by_amounts += sum(
                    run.status is not None and run.status.plugin == "NodeResourcesFit"
                    for run in runs
                )
            stage.gone(pod)
        stage.change()
    assert not tried["NodeResourcesFit"]
    return by_amounts


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


def _with_port(pod: PodBuilder) -> PodBuilder:
    return pod.host_port(80)


def _kept_from_a(pod: PodBuilder) -> PodBuilder:
    term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "zone"}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return pod.labels(app="b").spec(affinity={"podAntiAffinity": required})


def _spread(pod: PodBuilder) -> PodBuilder:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
    return pod.labels(app="a").spec(topologySpreadConstraints=[constraint])


def _by_trial(stage: Stage, pod, rows) -> dict[str, tuple[list[str], int]]:
    trial, info = stage.trial(pod), stage.info(pod)
    budgets = stage.cluster.singleton(Budgets)
    budgets.catch_up()
    found = {}
    for row in rows.tolist():
        run = dry_run(info, row, trial, budgets)
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


def test_a_trial_of_a_node_costs_what_its_less_important_pods_cost() -> None:
    """Twenty equal pods on each of ten nodes, and on one of these a pod that may go."""
    stage, port = Stage(), 80
    stage.nodes(*(a_node(f"n{i}").allocatable(cpu="8") for i in range(10)))
    for i in range(10):
        stage.pod(a_low(f"port{i}", f"n{i}", priority=1000, cpu="1m").host_port(port))
        for k in range(20):
            stage.pod(a_low(f"p{i}-{k}", f"n{i}", priority=1000, cpu="1m"))
    stage.pod(a_low("less", "n3", cpu="1m"))
    pod = stage.pod(a_high("pod", cpu="1m").host_port(port))
    before = stage.cluster.budget.spent
    assert stage.post_filter(pod).nomination.node == ""
    assert stage.cluster.budget.spent - before == 10 * ROW_STEPS + TRIAL_STEPS
