"""Steps of a trial without some placed pods.

    remove pods ─> steps, up to an effect that needs an answer ─> put pods back ─> other pods
        └──────────────────────────────────────────────────────────────────────────────┘

Other pods always see the real cluster. Effects that want no answer are passed on once all pods
are back. Ten thousand pods may have to be removed, which takes longer than a turn may: that is
cut into slices, without other facts or attempts in between (`core/cycle/turn_limit.py`).
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Final, NamedTuple

from asched.batch.groups.attempt import GroupOutcome
from asched.core.cluster.budget import SLICE_STEPS, Budget
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Answer
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.supposition import Supposition
from asched.core.framework.effects import Effect, Pause

#: Budget steps to remove a pod, and to put it back.
MOVE_STEPS: Final = 1.25
#: Pods moved between two checks of the budget.
AT_ONCE: Final = 32

Steps = Generator[Effect, Answer, GroupOutcome]
#: Further changes for the trial, in parts; yields the cost of each part before it.
Preparation = Callable[[Supposition], Iterator[float]]


class Leg(NamedTuple):
    """The result of steps up to a wait: the effect that wants an answer, or their outcome."""

    passing: list[Effect]
    effect: Effect | None
    outcome: GroupOutcome | None


def nothing(_: Supposition) -> Iterator[float]:
    return iter(())


def without(
    cluster: Cluster,
    pods: Sequence[PodInfo],
    steps: Steps,
    prepare: Preparation = nothing,
    back_steps: Callable[[], float] = lambda: MOVE_STEPS,
) -> Steps:
    """Run steps without these pods, as far as they are still placed. `back_steps`: the budget steps
    to undo one change.
    """
    budget = cluster.budget
    answer: Answer | None = None
    while True:
        budget.open()
        spent = budget.spent
        cluster.is_supposed = True
        try:
            with cluster.supposing() as suppose:
                yield from _in_slices(budget, _gone(cluster, suppose, pods, prepare))
                moving = 2 * (budget.spent - spent)
                if moving <= SLICE_STEPS:  # removing and putting back fit into the slice
                    budget.open()
                    leg = yield from _advance(budget, steps, answer, 0)
                    budget.note(sum(_back(suppose, back_steps())))
                else:  # run at least as many steps before a pause as the moves cost
                    leg = yield from _advance(budget, steps, answer, moving)
                    yield from _in_slices(budget, _back(suppose, back_steps()))
        finally:
            cluster.is_supposed = False
        yield from leg.passing
        if leg.outcome is not None:
            return leg.outcome
        assert leg.effect is not None
        answer = yield leg.effect


def _gone(
    cluster: Cluster, suppose: Supposition, pods: Sequence[PodInfo], prepare: Preparation
) -> Iterator[float]:
    for start in range(0, len(pods), AT_ONCE):
        some = [cluster.placed.get(info.pod.uid) for info in pods[start : start + AT_ONCE]]
        standing = [info for info in some if info is not None]
        yield MOVE_STEPS * len(standing)
        suppose.without(standing)
    yield from prepare(suppose)


def _back(suppose: Supposition, steps: float) -> Iterator[float]:
    at_once = max(int(AT_ONCE * MOVE_STEPS / steps), 1)
    while len(suppose):
        count = min(len(suppose), at_once)
        yield steps * count
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
    """Run steps up to an effect that needs an answer; pauses before `least` budget steps are taken
    alone.
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
