"""Derived once for each version of a pod."""

import pytest

from asched.core.model.kinds import POD
from asched.core.model.pod import Pod
from asched.core.plugins import per_pod
from asched.core.plugins.per_pod import PerPod
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Gone, Seen
from tests.topology_world import a_pod


def test_one_version_is_derived_once() -> None:
    derived: list[Pod] = []

    def derive(pod: Pod) -> str:
        derived.append(pod)
        return pod.labels.get("app", "")

    memory = PerPod(Cluster(), derive)
    old, new = a_pod("p", "app=web"), a_pod("p", "app=db")

    assert [memory(old), memory(old), memory(new), memory(new)] == ["web", "web", "db", "db"]
    assert derived == [old, new]


def test_pods_that_went_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(per_pod, "PODS_MIN", 3)
    cluster = Cluster()
    memory = PerPod(cluster, lambda pod: pod.key)
    stays = a_pod("stays")
    cluster.apply(Seen(POD, stays))
    memory(stays)
    for number in range(100):
        pod = a_pod(f"p{number}")
        cluster.apply(Seen(POD, pod))
        assert memory(pod) == f"default/p{number}"
        cluster.apply(Gone(POD, pod))

    assert len(memory._known) <= 4
    assert stays.uid in memory._known
