"""Long looks at everything leave the deciding loop its turns: counted, not timed."""

from collections.abc import Coroutine
from typing import Any

import pytest

from asched.core.state.budget import SLICE_STEPS, Budget
from asched.kube.lists import PAGE_SIZE
from tests.bench.worst_crowds import a_world
from tests.bench.worst_looks import WAITS, looks
from tests.builders import a_pod
from tests.core.cycle.playbook import Play


def a_play(nodes: int, pods: int) -> Play:
    play = a_world(nodes, pods)
    play.see(a_pod(WAITS).requests(cpu="1000"))
    return play


def spent_by(look: Coroutine[Any, Any, Any], budget: Budget) -> list[float]:
    """Steps of each slice."""
    spent = []
    while True:
        before = budget.spent
        try:
            look.send(None)
        except StopIteration:
            return [*spent, budget.spent - before]
        spent.append(budget.spent - before)


@pytest.mark.parametrize("look", ["audit: pods, page by page", "audit: the server shows none"])
def test_pods_are_compared_a_page_at_a_time(look: str) -> None:
    play = a_play(10, 5 * PAGE_SIZE)
    slices = spent_by(looks(play)[look](), play.parts.cluster.budget)

    assert len(slices) > 5


def test_whoever_explains_a_pod_lines_pods_up_a_slice_at_a_time() -> None:
    """Who would have to go is asked of all nodes, for the first time maybe."""
    play = a_play(600, 12_000)
    slices = spent_by(looks(play)["a pod and its history"](), play.parts.cluster.budget)

    assert sum(slices) > 2 * SLICE_STEPS
    assert max(slices) < 2 * SLICE_STEPS  # and one part
