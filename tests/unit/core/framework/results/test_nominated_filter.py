"""Nominated rows judged in one go and kept, against a trial of each row."""

import numpy as np
import pytest

from asched.core.framework.rejection import Rejection
from asched.core.framework.results.nominated import first_rejection
from asched.core.framework.status import Status
from asched.core.model.pod import Pod
from tests.builders import a_node
from tests.unit.core.preemption.stage import RandomStage, Stage, a_high


def by_trial(stage: Stage, pod: Pod) -> dict[int, Status]:
    """Pass 1 of every row with nominated pods that count, each from scratch."""
    info, state = stage.info(pod), stage.runner.cache.state_of(stage.info(pod))
    refused = {}
    for node, pods in stage.nominator.nodes().items():
        row = stage.cluster.nodes.row_of.get(node)
        others = [
            stage.info(other)
            for other in pods.values()
            if other.uid != pod.uid and other.priority >= pod.priority
        ]
        if row is None or not others:
            continue
        with stage.cluster.supposing().there(others, row):
            status = first_rejection(info, state, stage.cluster, row)
        if status is not None:
            refused[row] = status
    return refused


@pytest.mark.parametrize("seed", range(8))
def test_kept_trials_agree_with_fresh_ones(seed: int) -> None:
    """A class that keeps away from its own kind, many of which are nominated."""
    stage = RandomStage(seed)
    term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "zone"}
    apart = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
    }
    for number, name in enumerate(sorted(stage.cluster.nodes.row_of)):
        stage.nodes(a_node(name).labels(zone=f"z{number % 3}").allocatable(cpu="6"))
    nominated_pods = stage.runner.nominated_pods
    pods = [
        stage.pod(a_high(f"high{i}", cpu="1").labels(app="b").spec(affinity=apart))
        for i in range(3)
    ]
    stage.nominator.add(pods[2], "n0")
    for _ in range(15):
        for pod in pods:
            stage.attempt(pod)
            info, state = stage.info(pod), stage.runner.cache.state_of(stage.info(pod))
            if state.outcome.rejection is None:
                wanted = by_trial(stage, pod)
                empty = np.zeros(stage.cluster.nodes.height, dtype=np.int32)
                if not state.outcome.is_plain(info):
                    assert nominated_pods.explain(info, state, empty, empty.copy()) == wanted
                feasible = {row: s for row, s in wanted.items() if state.feasible[row]}
                assert nominated_pods.statuses(info, state) == feasible
        for change in (stage.promise, stage.promise, stage.change, stage.keep):
            change()


def test_a_less_important_nominated_pod_does_not_count() -> None:
    stage = Stage()
    stage.nodes(a_node("n1").allocatable(cpu="2"))
    stage.wait_for(a_high("less", priority=10), "n1")
    assert stage.attempt(stage.pod(a_high("more"))).node == "n1"
    assert isinstance(stage.attempt(stage.pod(a_high("equal", priority=10))), Rejection)


def test_a_node_that_comes_back_has_its_nominated_pods_again() -> None:
    stage = Stage()
    node = a_node("n1").allocatable(cpu="2")
    stage.wait_for(a_high("first"), "n1")
    stage.nodes(node, a_node("n2").allocatable(cpu="1"))
    pod = stage.pod(a_high("second"))
    layer = stage.runner.nominated_pods.nominated_amounts.layer(1000)
    assert np.flatnonzero(layer.count).tolist() == [stage.cluster.nodes.row_of["n1"]]
    assert isinstance(stage.attempt(pod), Rejection)
    stage.nominator.delete("uid-first")
    assert stage.attempt(pod).node == "n1"
