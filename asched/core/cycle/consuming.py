"""The place of a pod that consumes a ProvisioningRequest: one of those that are held for it.

A slot is not counted while its pod is tried on it, on this one node, by all filters of the profile.
Pods that are nominated there have no say: whoever was promised room there has it beside the slot.
Where none of the slots fits the pod (it is larger than its template, or asks for other nodes), it
goes where any pod may go.

Bounds  TRIES_MAX slots a pod, each on another node.
"""

from collections.abc import Generator, Iterator
from typing import Final

import numpy as np

from asched.core.cycle.context import Attempt, SchedulerContext
from asched.core.cycle.request_book import Booking, Bookings, Slot, settle_consumers
from asched.core.framework.attempt import Rejection
from asched.core.framework.effects import Effect
from asched.core.framework.placements import Mask, Placement, is_within
from asched.core.framework.results.nominated_filter import ignores_pods
from asched.core.framework.runner import Decision
from asched.core.state.consumers import request_of
from asched.core.state.facts import Answer

TRIES_MAX: Final = 8

Deciding = Generator[Effect, Answer, Decision | Rejection]


def decide(context: SchedulerContext, attempt: Attempt, within: Mask | None = None) -> Deciding:
    """As `Runner.schedule`, for whoever may have a place already. Raises as that does."""
    key = request_of(attempt.pod) if attempt.company is None else ""
    if key:
        rejection = _stopped(context, attempt, within)
        if rejection is not None:
            return rejection
        settle_consumers(context)
        booking = context.cluster.singleton(Bookings).get(key)
        if booking is not None:
            found = yield from _among_slots(context, attempt, booking, within)
            if found is not None:
                return found
    seed = context.seed + attempt.id
    return (yield from attempt.runner.schedule(attempt.info, seed, within))


def _stopped(context: SchedulerContext, attempt: Attempt, within: Mask | None) -> Rejection | None:
    """Gates are asked once more: the request may have been listed after its pods."""
    nodes = context.cluster.nodes
    for plugin in attempt.runner.profile.pre_enqueue:
        status = plugin.pre_enqueue(attempt.pod)
        if not status.is_success:
            none = np.zeros(nodes.height, dtype=np.int32)
            return Rejection(
                attempt.info,
                plugins=(),
                judge=none,
                codes=none,
                live=Placement("", within).mask(nodes),
                pre_filter=status.by(plugin.name),
                pre_filter_plugins=frozenset((plugin.name,)),
            )
    return None


def _among_slots(
    context: SchedulerContext, attempt: Attempt, booking: Booking, within: Mask | None
) -> Generator[Effect, Answer, Decision | None]:
    """The slot stays open after a decision: `settle_consumers` sees what came of it."""
    bookings, uid = context.cluster.singleton(Bookings), attempt.pod.uid
    for slot, row in list(_candidates(context, attempt, booking, within)):
        found: Decision | Rejection | None = None
        if attempt.consults:
            only, seed = _only(row, context), context.seed + attempt.id
            steps = attempt.runner.schedule(attempt.info, seed, only)
            found = yield from _on_open(bookings, uid, booking, slot, steps)
        elif bookings.open(uid, booking, slot):
            found = _on_row(context, attempt, row)
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
        if effect.lets_others:
            bookings.close(uid)
        answer = yield effect
    steps.close()
    return None


def _on_row(context: SchedulerContext, attempt: Attempt, row: int) -> Decision | None:
    """Whether all filters let the pod on a row. The slot is closed by whoever settles, also after
    an exception. Raises as `Runner.schedule` does.
    """
    state, cluster = attempt.runner.cache.state_of(attempt.info), context.cluster
    node = cluster.nodes.node_at[row]
    if state.update(attempt.info).rejection is not None or node is None or not state.fits(row):
        return None
    if row in cluster.refusals.rows(attempt.pod, cluster.wall_clock_s):
        return None
    return Decision(node.name, row, 1, cluster.nodes.count, None, state)


def _candidates(
    context: SchedulerContext, attempt: Attempt, booking: Booking, within: Mask | None
) -> Iterator[tuple[Slot, int]]:
    """Free slots for such a pod with their rows, one a node, as far as the nodes suit it."""
    cluster, seen = context.cluster, set[int]()
    suits: Mask | None = None
    tries = 0
    for pod_set in booking.sets_for(attempt.info):
        for slot in booking.free.get(pod_set, {}).values():
            row = cluster.nodes.row_of.get(slot.node)
            if row is None or row in seen or not is_within(row, within):
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
