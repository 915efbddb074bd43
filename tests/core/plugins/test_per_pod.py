"""Derived once for each version of a pod."""

from asched.core.model.pod import Pod
from asched.core.plugins.per_pod import PerPod
from asched.core.state.cluster import Cluster
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
