"""Steps of a trial that run as if some placed pods were gone.

    gone ─> steps, up to what they ask of others ─> back ─> others have their turn ─> gone ─> ...

Whoever has a turn meanwhile sees the cluster as it is. What is asked without wanting an answer is
handed on once all are back.

Ten thousand may have to go, which takes longer than a turn may: all of it is cut into slices, in
which nothing is taken in or decided (`alone.py`).
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Final, NamedTuple

from asched.batch.groups.attempt import GroupOutcome
from asched.core.framework.effects import Effect, Pause
from asched.core.state.budget import SLICE_STEPS, Budget
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Answer
from asched.core.state.pods import PodInfo
from asched.core.state.supposition import Supposition

#: Steps of the budget for a pod that is supposed gone, and for one that is there again.
MOVE_STEPS: Final = 1.25
#: Moved between two looks at the budget.
AT_ONCE: Final = 32

Steps = Generator[Effect, Answer, GroupOutcome]
#: What else is supposed, in parts; before each of them, how many steps it costs.
Beside = Callable[[Supposition], Iterator[float]]


class Leg(NamedTuple):
    """What steps came to in one go: the effect that wants an answer, or their outcome."""

    passing: list[Effect]
    asked: Effect | None
    outcome: GroupOutcome | None


def nothing(_: Supposition) -> Iterator[float]:
    return iter(())


def without(
    cluster: Cluster, pods: Sequence[PodInfo], steps: Steps, beside: Beside = nothing
) -> Steps:
    """Run steps without these pods, those of them that are there each time."""
    budget = cluster.budget
    answer: Answer | None = None
    while True:
        budget.open()
        spent = budget.spent
        cluster.is_supposed = True
        try:
            with cluster.supposing() as suppose:
                yield from _in_slices(budget, _gone(cluster, suppose, pods, beside))
                moving = 2 * (budget.spent - spent)
                if moving <= SLICE_STEPS:  # it takes no slice of its own to begin and to end
                    budget.open()
                    leg = yield from _advance(budget, steps, answer, 0)
                    budget.note(sum(_back(suppose)))
                else:  # as much is tried before the next pause as it takes to begin after one
                    leg = yield from _advance(budget, steps, answer, moving)
                    yield from _in_slices(budget, _back(suppose))
        finally:
            cluster.is_supposed = False
        yield from leg.passing
        if leg.outcome is not None:
            return leg.outcome
        assert leg.asked is not None
        answer = yield leg.asked


def _gone(
    cluster: Cluster, suppose: Supposition, pods: Sequence[PodInfo], beside: Beside
) -> Iterator[float]:
    for start in range(0, len(pods), AT_ONCE):
        some = [cluster.placed.get(info.pod.uid) for info in pods[start : start + AT_ONCE]]
        standing = [info for info in some if info is not None]
        yield MOVE_STEPS * len(standing)
        suppose.without(standing)
    yield from beside(suppose)


def _back(suppose: Supposition) -> Iterator[float]:
    while len(suppose):
        count = min(len(suppose), AT_ONCE)
        yield MOVE_STEPS * count
        for _ in range(count):
            suppose.back()


def _in_slices(budget: Budget, parts: Iterator[float]) -> Generator[Effect, Answer, None]:
    for cost in parts:
        if budget.is_used_up:
            yield Pause(is_alone=True)
        budget.note(cost)


def _advance(
    budget: Budget, steps: Steps, answer: Answer | None, least: float
) -> Generator[Effect, Answer, Leg]:
    """As far as the steps go without others, and beyond their pauses for `least` steps of the
    budget.
    """
    passing: list[Effect] = []
    spent = budget.spent
    try:
        effect = steps.send(answer)  # type: ignore[arg-type]
        while True:
            is_early = budget.spent - spent < least
            if isinstance(effect, Pause) and (effect.is_alone or is_early):
                effect = steps.send((yield Pause(is_alone=True)))
            elif effect.lets_others:
                return Leg(passing, effect, None)
            else:
                passing.append(effect)
                effect = next(steps)
    except StopIteration as end:
        return Leg(passing, None, end.value)
