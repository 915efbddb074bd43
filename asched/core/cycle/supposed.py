"""Steps of a trial that run as if some placed pods were gone.

    gone ─> steps, up to what they ask of others ─> back ─> others have their turn ─> gone ─> ...

Whoever has a turn meanwhile sees the cluster as it is. What is asked without wanting an answer is
handed on once all are back.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final, NamedTuple

from asched.core.cycle.group import Outcome
from asched.core.framework.effects import Effect
from asched.core.state.budget import SLICE_STEPS
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Answer

#: Steps of the budget for a pod that is supposed gone, and is there again.
MOVE_STEPS: Final = 2.5

Steps = Generator[Effect, Answer, Outcome]


class Leg(NamedTuple):
    """What steps came to in one go: the effect that wants an answer, or their outcome."""

    passing: list[Effect]
    asked: Effect | None
    outcome: Outcome | None


def without(
    cluster: Cluster,
    uids: Sequence[str],
    steps: Steps,
    beside: Callable[[], AbstractContextManager[None]] = nullcontext,
    beside_count: int = 0,
) -> Steps:
    """Run steps without these pods, those of them that are there each time. `beside`: what else is
    supposed, which costs as much as so many pods.
    """
    answer: Answer | None = None
    while True:
        standing = [info for info in map(cluster.placed.get, uids) if info is not None]
        moving = MOVE_STEPS * (len(standing) + beside_count)
        # As much is tried before the next pause as it takes to begin after one.
        cluster.budget.open(max(SLICE_STEPS, int(moving)))
        with cluster.supposing().without(standing), beside():
            leg = _advance(steps, answer)
        cluster.budget.note(moving)
        yield from leg.passing
        if leg.outcome is not None:
            return leg.outcome
        assert leg.asked is not None
        answer = yield leg.asked


def _advance(steps: Steps, answer: Answer | None) -> Leg:
    passing: list[Effect] = []
    try:
        effect = steps.send(answer)  # type: ignore[arg-type]
        while not (effect.answers and effect.wants_answer):
            passing.append(effect)
            effect = next(steps)
    except StopIteration as end:
        return Leg(passing, None, end.value)
    return Leg(passing, effect, None)
