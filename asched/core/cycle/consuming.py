"""The place of a pod that consumes a ProvisioningRequest: one of those that are held for it.

A slot is not counted while its pod is tried on it, on this one node, by all filters of the profile.
Where none of the slots fits the pod (it is larger than its template, or asks for other nodes), it
goes where any pod may go.

Bounds  TRIES_MAX slots a pod, each on another node.
"""

from collections.abc import Generator, Iterator
from typing import Final

import numpy as np

from asched.core.cycle.context import Attempt, SchedulerContext
from asched.core.cycle.request_book import Booking, Bookings, Slot, is_for, settle_consumers
from asched.core.framework.attempt import Rejection
from asched.core.framework.effects import Effect
from asched.core.framework.placements import Mask
from asched.core.framework.results.nominated_filter import ignores_pods
from asched.core.framework.runner import Decision
from asched.core.state.consumers import request_of
from asched.core.state.facts import Answer

TRIES_MAX: Final = 8

Deciding = Generator[Effect, Answer, Decision | Rejection]


def decide(context: SchedulerContext, attempt: Attempt, within: Mask | None = None) -> Deciding:
    """As `Runner.schedule`, for whoever may have a place already. Raises as that does."""
    bookings = context.cluster.singleton(Bookings)
    if len(bookings):
        key = request_of(attempt.pod)
        if key:
            settle_consumers(context)
            booking = bookings.get(key)
            if booking is not None:
                found = yield from _among_slots(context, attempt, booking, within)
                if found is not None:
                    return found
    seed = context.seed + attempt.id
    return (yield from attempt.runner.schedule(attempt.info, seed, within))


def _among_slots(
    context: SchedulerContext, attempt: Attempt, booking: Booking, within: Mask | None
) -> Generator[Effect, Answer, Decision | None]:
    """The slot stays open after a decision: `settle_consumers` sees what came of it."""
    bookings, uid = context.cluster.singleton(Bookings), attempt.pod.uid
    for slot, row in list(_candidates(context, attempt, booking, within)):
        steps = attempt.runner.schedule(
            attempt.info, context.seed + attempt.id, _only(row, context)
        )
        found = yield from _on_open(bookings, uid, booking, slot, steps)
        if isinstance(found, Decision):
            return found
        bookings.close(uid)
    return None


def _on_open(
    bookings: Bookings, uid: str, booking: Booking, slot: Slot, steps: Deciding
) -> Generator[Effect, Answer, Decision | Rejection | None]:
    """Run an attempt without the slot; whenever others may have their turn, it counts. None if it
    went meanwhile.
    """
    answer = None
    while bookings.open(uid, booking, slot):
        try:
            effect = steps.send(answer)  # type: ignore[arg-type]
        except StopIteration as end:
            result: Decision | Rejection = end.value
            return result
        except BaseException:
            bookings.close(uid)
            raise
        if effect.answers and effect.wants_answer:
            bookings.close(uid)
        answer = yield effect
    steps.close()
    return None


def _candidates(
    context: SchedulerContext, attempt: Attempt, booking: Booking, within: Mask | None
) -> Iterator[tuple[Slot, int]]:
    """Free slots for such a pod with their rows, one a node, as far as the nodes suit it."""
    cluster, seen = context.cluster, set[int]()
    suits: Mask | None = None
    tries = 0
    for slots in booking.free.values():
        for slot in slots.values():
            if not is_for(slot, attempt.info):
                break  # those of a pod set are alike
            row = cluster.nodes.row_of.get(slot.node)
            if row is None or row in seen or (within is not None and not within[row]):
                continue
            seen.add(row)
            suits = _suits(context, attempt) if suits is None else suits
            if suits[row]:
                yield slot, row
                tries += 1
                if tries == TRIES_MAX:
                    return


def _suits(context: SchedulerContext, attempt: Attempt) -> Mask:
    """bool[N]: what filters say that look at nodes alone."""
    state = attempt.runner.cache.state_of(attempt.info)
    mask: Mask = np.ones(context.cluster.nodes.height, dtype=np.bool_)
    if state.update(attempt.info).rejection is None:
        for verdict in state.active:
            if ignores_pods(verdict.plugin):
                mask &= verdict.codes[: len(mask)] == 0
    return mask


def _only(row: int, context: SchedulerContext) -> Mask:
    mask: Mask = np.zeros(context.cluster.nodes.height, dtype=np.bool_)
    mask[row] = True
    return mask
