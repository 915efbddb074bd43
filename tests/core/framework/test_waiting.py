"""Pods on their way that somebody may still let go, turn away or preempt."""

import pytest

from asched.core.framework.status import Code, failure, unschedulable
from asched.core.framework.waiting import Stage, WaitingPod, WaitingPods
from tests.builders import a_cluster, a_pod, pending


def waiting(stage: Stage = Stage.PERMIT, name: str = "web", **patience: float) -> WaitingPod:
    pod = WaitingPod(pending(a_cluster(), a_pod(name)), "n1", "default-scheduler")
    pod.stage = stage
    pod.deadlines = {plugin: (100.0 + s, s) for plugin, s in patience.items()}
    return pod


def test_it_goes_on_once_all_plugins_allow_it() -> None:
    pod = waiting(A=10, B=5)
    assert not pod.is_settled
    pod.allow("A")
    assert not pod.is_settled
    pod.allow("unknown")
    pod.allow("B")
    assert (pod.is_settled, pod.decision) == (True, None)


def test_the_first_decision_counts() -> None:
    pod = waiting(A=10)
    pod.reject("A", "no")
    pod.reject("B", "never")
    pod.withdraw()
    assert pod.decision == unschedulable("no").by("A")
    assert pod.is_settled
    assert pod.preempt("B")
    assert pod.decision == unschedulable("no").by("A")


@pytest.mark.parametrize(
    ("stage", "rejected", "preempted", "withdrawn"),
    [
        (Stage.PERMIT, True, True, True),
        (Stage.PRE_BIND, False, True, True),
        (Stage.BINDING, False, False, False),
    ],
)
def test_how_far_it_has_come_says_who_may_still_stop_it(
    stage: Stage, rejected: bool, preempted: bool, withdrawn: bool
) -> None:
    one, two, three = (waiting(stage) for _ in range(3))
    one.reject("A", "no")
    assert (one.decision is not None) == rejected
    assert two.preempt("A") == preempted
    words = "preempted" if stage is Stage.PERMIT else "preempted by A"
    assert two.decision == (failure(words) if preempted else None)
    three.withdraw()
    assert three.decision == (unschedulable("removed") if withdrawn else None)


@pytest.mark.parametrize(
    ("patience_s", "words"),
    [
        (0, "0s"),
        (0.02, "20ms"),
        (1, "1s"),
        (1.5, "1.5s"),
        (59, "59s"),
        (60, "1m0s"),
        (90, "1m30s"),
        (3600, "1h0m0s"),
        (3725, "1h2m5s"),
    ],
)
def test_whose_patience_ends_first_turns_it_away(patience_s: float, words: str) -> None:
    pod = waiting(Slow=4000, Hasty=patience_s)
    assert pod.next_deadline_s == 100.0 + patience_s
    pod.expire()
    assert pod.decision is not None
    assert pod.decision.code is Code.UNSCHEDULABLE
    assert (pod.decision.plugin, pod.decision.message) == (
        "Hasty",
        f"rejected due to timeout after waiting {words} at plugin Hasty",
    )


def test_whatever_is_decided_moves_its_topic() -> None:
    pods, pod = WaitingPods(), waiting(A=1)
    pods.add(pod)
    assert pods.moved == []
    pod.allow("A")
    pod.reject("A", "no")
    assert pods.moved == [pod.topic, pod.topic]
    assert pod.topic == ("Pod", "default/web")


def test_pods_are_found_by_uid_and_may_be_dropped_while_one_looks() -> None:
    pods = WaitingPods()
    for name in ("a", "b"):
        pods.add(waiting(name=name))
    assert [pod.info.pod.uid for pod in pods] == ["uid-a", "uid-b"]
    for pod in pods:
        pods.drop(pod.info.pod.uid)
    pods.drop("uid-a")
    assert list(pods) == []
    assert pods.get("uid-a") is None
