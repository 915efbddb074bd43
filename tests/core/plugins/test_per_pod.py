"""Derived once for each version of a pod."""

from typing import Any

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


class Counted(Cluster):
    """Counts how often somebody looks who is still there."""

    looks = 0

    def __getattribute__(self, name: str) -> Any:
        if name == "pods_seen":
            Counted.looks += 1
        return super().__getattribute__(name)


def test_who_went_is_looked_for_when_there_may_be_twice_as_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No more is ever kept than the bound says, and the looks cost but a share of the pods."""
    monkeypatch.setattr(per_pod, "PODS_MIN", 4)
    cluster = Counted()
    memory = PerPod(cluster, lambda pod: pod.key)
    memory._sweep_at = per_pod.PODS_MIN
    stays = [a_pod(f"stays{number}") for number in range(100)]
    for pod in stays:
        cluster.apply(Seen(POD, pod))
    Counted.looks = 0
    for pod in stays:
        memory(pod)
    assert Counted.looks == 5, "at 4, 8, 16, 32 and 64"
    most = 0
    for number in range(300):
        memory(a_pod(f"gone{number}"))
        most = max(most, len(memory._known))
    assert most == 2 * len(stays)
