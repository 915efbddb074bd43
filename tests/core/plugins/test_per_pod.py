"""Derived once for each version of a pod."""

import pytest

from asched.core.model.pod import Pod
from asched.core.plugins import per_pod
from asched.core.plugins.per_pod import PerPod
from tests.topology_world import a_pod


def test_one_version_is_derived_once() -> None:
    derived: list[Pod] = []

    def derive(pod: Pod) -> str:
        derived.append(pod)
        return pod.labels.get("app", "")

    memory = PerPod(derive)
    old, new = a_pod("p", "app=web"), a_pod("p", "app=db")

    assert [memory(old), memory(old), memory(new), memory(new)] == ["web", "web", "db", "db"]
    assert derived == [old, new]


def test_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(per_pod, "PODS_MAX", 3)
    memory = PerPod(lambda pod: pod.key)
    for number in range(10):
        assert memory(a_pod(f"p{number}")) == f"default/p{number}"

    assert len(memory._known) <= 3
