"""Three ways to the candidates: kept and vectorised, by trial, and the twin; on random clusters."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from asched.core.framework.attempt import Rejection
from asched.core.framework.points import FilterPlugin
from asched.core.plugins.volumes.binding import VolumeBinding
from asched.core.plugins.volumes.limits import NodeVolumeLimits
from asched.core.plugins.volumes.zone import VolumeZone
from asched.core.preemption import candidates
from asched.core.preemption.budgets import Budgets
from asched.core.preemption.candidates import ROW_STEPS, TRIAL_STEPS, PlainProspects
from asched.core.preemption.search import Limit
from asched.core.preemption.victims import DryRun, dry_run
from tests.builders import PodBuilder, a_node
from tests.core.preemption import twin
from tests.core.preemption.stage import RandomStage, Stage, a_high, a_low, shown
from tests.volume_builders import ZONE, a_claim, a_csi_node, a_volume, see

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


@pytest.mark.parametrize("seed", range(20))
def test_where_amounts_tell_that_evicting_helps_nowhere_there_is_no_candidate(seed: int) -> None:
    """Also for those to whom more than amounts matters, whose rows are tried one by one."""
    stage = RandomStage(seed)
    wishes = (lambda pod: pod, _with_port, _kept_from_a)
    hopeless = 0
    for change in range(CHANGES):
        for number, wish in enumerate(wishes):
            pod = stage.pod(wish(a_high(f"p{change}-{number}", cpu=str(change))))
            found = stage.attempt(pod)
            search, trial = stage.plugin._search, stage.trial(pod)
            if isinstance(found, Rejection) and search.is_hopeless(stage.info(pod), trial):
                hopeless += 1
                assert not stage.candidates(pod), f"seed {seed}, change {change}"
            stage.gone(pod)
        stage.change()
    assert hopeless


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


@pytest.mark.parametrize("seed", range(30))
def test_kept_trials_agree_with_fresh_ones_where_filters_look_at_pods(seed: int) -> None:
    """Ports, affinity and spread over zones, with the prospects of one class kept over changes."""
    stage = RandomStage(seed)
    for number, row in enumerate(sorted(stage.cluster.nodes.row_of)):
        node = stage.cluster.node_of(row)
        amounts = {name: str(amount) for name, amount in (node.status.allocatable or {}).items()}
        stage.nodes(a_node(row).labels(zone=f"z{number % 3}").allocatable(amounts))
    wish = stage.rng.choice((_with_port, _kept_from_a, _spread))
    for _ in range(3):
        stage.running.append(stage.pod(wish(a_low(f"like{stage._next()}", "n0", cpu="100m"))))
    pods = [stage.pod(wish(a_high(f"high{i}", cpu="1"))) for i in range(2)]
    compared = 0
    for change in range(16):
        for pod in pods:
            found = stage.attempt(pod)
            if isinstance(found, Rejection) and found.pre_filter is None:
                fresh = _by_trial(stage, pod, found.candidates)
                assert shown(stage.candidates(pod)) == fresh, f"seed {seed}, change {change}"
                compared += 1
        stage.change()
        if not compared:
            stage.add_running()


@pytest.mark.parametrize("seed", range(30))
def test_pods_with_volumes_get_what_trials_with_all_filters_find(seed: int, monkeypatch) -> None:
    """Bound claims, some of which say from where they can be reached, or share a disk with other
    pods; in some clusters nodes take so many volumes and no more.
    """
    stage = RandomStage(seed)
    for number, row in enumerate(sorted(stage.cluster.nodes.row_of)):
        node = stage.cluster.node_of(row)
        amounts = {name: str(amount) for name, amount in (node.status.allocatable or {}).items()}
        stage.nodes(a_node(row).labels(**{ZONE: f"z{number % 2}"}).allocatable(amounts))
    for number in range(3):
        reach = {ZONE: ["z0"]} if number == 1 else None
        see(
            stage.cluster,
            a_volume(f"v{number}", csi=("d", f"h{number}"), reach=reach),
            a_claim(f"c{number}", volume=f"v{number}"),
        )
    if stage.rng.random() < 0.4:
        see(stage.cluster, a_csi_node("n0", {"d": 1}), a_csi_node("n1", {"d": 0}))
    for number in range(6):
        low = _with_claim(a_low(f"like{number}", f"n{number % 2}", cpu="100m"), number % 3)
        stage.running.append(stage.pod(low))
    pods = [stage.pod(_with_claim(a_high(f"high{i}", cpu="1"), i % 3)) for i in range(4)]
    for change in range(10):
        for pod in pods:
            found = stage.attempt(pod)
            if isinstance(found, Rejection) and found.pre_filter is None:
                fast = shown(stage.candidates(pod))
                with monkeypatch.context() as patched:
                    for plugin in (VolumeBinding, VolumeZone, NodeVolumeLimits):
                        patched.setattr(plugin, "is_blind_for", FilterPlugin.is_blind_for)
                    fresh = _by_trial(stage, pod, found.candidates)
                assert fast == fresh, f"seed {seed}, change {change}"
        stage.change()


def test_different_preemptors_with_volumes_share_what_is_found_of_amounts(monkeypatch) -> None:
    """Each has a claim of its own, which is bound, and says nothing of pods: no node is tried by
    taking pods away one by one.
    """
    stage = Stage()
    for number in range(20):
        stage.nodes(a_node(f"n{number}").allocatable(cpu="2", memory="8Gi", pods="10"))
        stage.pod(a_low(f"low{number}", f"n{number}", cpu="2"))
        see(
            stage.cluster,
            a_volume(f"v{number}", csi=("d", f"h{number}")),
            a_claim(f"c{number}", volume=f"v{number}"),
        )
    monkeypatch.setattr(candidates, "dry_run", None)
    tried: list[int] = []
    evaluate = PlainProspects._evaluate

    def counting(self, pod, rows, trial):
        tried.extend(rows.tolist())
        return evaluate(self, pod, rows, trial)

    monkeypatch.setattr(PlainProspects, "_evaluate", counting)
    for number in range(10):
        pod = stage.pod(_with_claim(a_high(f"high{number}", cpu="1"), number))
        assert len(stage.candidates(pod)) == 20
    assert len(tried) == 20


def _with_claim(pod: PodBuilder, number: int) -> PodBuilder:
    claim = {"claimName": f"c{number}"}
    return pod.spec(volumes=[{"name": "v", "persistentVolumeClaim": claim}])


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


def test_equal_preemptors_try_the_changed_rows_alone(monkeypatch) -> None:
    from asched.core.preemption import candidates

    rows_tried = []
    real = candidates.suppose

    def counted(pod, rows, *rest):
        rows_tried.append(len(rows))
        return real(pod, rows, *rest)

    monkeypatch.setattr(candidates, "suppose", counted)
    stage = Stage()
    for number in range(50):
        stage.nodes(a_node(f"n{number}").allocatable(cpu="2"))
        stage.pod(a_low(f"a{number}", f"n{number}", cpu="2"))
    for number in range(5):
        pod = stage.pod(a_high(f"high{number}"))
        node = stage.post_filter(pod, number).nomination.node
        assert node
        stage.nominator.add(pod, node)
    assert rows_tried == [50, 1, 1, 1, 1]
    assert len({stage.nominator.node_of(f"uid-high{n}") for n in range(5)}) == 5


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
