"""Pods that ask for more than 64 bits can sum: nobody is overcommitted, dry runs stay exact."""

import pytest

from asched.core.framework.rejection import Rejection
from asched.core.framework.runner import Decision
from asched.core.model.quantity import INT64_MAX
from tests.builders import a_node, a_pod
from tests.unit.core.preemption.stage import Stage, a_high

HUGE = str(INT64_MAX)


@pytest.mark.parametrize("amount", [HUGE, str(INT64_MAX - 1), "7Ei", "4Ei"])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_pods_placed_by_hand_leave_no_room(amount: str, count: int) -> None:
    stage = Stage()
    stage.nodes(a_node("n1"))
    for number in range(count):
        stage.pod(a_pod(f"hand-{number}").requests(memory=amount, cpu=amount).on("n1"))

    found = stage.rejection(stage.pod(a_pod("web").requests(cpu="1", memory="1Gi")))

    assert isinstance(found, Rejection)


@pytest.mark.parametrize("amount", [HUGE, "5Ei"])
def test_a_node_with_such_pods_scores_as_full(amount: str) -> None:
    stage = Stage()
    stage.nodes(a_node("n1"), a_node("n2"))
    for number in range(2):  # what asks for nothing that is filtered still counts for scores
        stage.pod(a_pod(f"hand-{number}").requests(memory=amount).on("n1"))
    for seed in range(5):
        found = stage.attempt(stage.pod(a_pod("web").requests(cpu="1")), seed)
        assert isinstance(found, Decision)
        assert found.node == "n2"


def test_nominated_pods_of_any_size_leave_no_room() -> None:
    stage = Stage()
    stage.nodes(a_node("n1"))
    stage.pod(a_pod("hand").requests(memory=HUGE).on("n1"))
    for number in range(2):
        stage.wait_for(a_high(f"high-{number}").requests(memory=HUGE, cpu=HUGE), "n1")

    assert isinstance(stage.attempt(stage.pod(a_pod("web").requests(cpu="1"))), Rejection)
