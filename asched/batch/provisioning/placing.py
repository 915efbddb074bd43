"""Place pods in held slots: pods that consume a ProvisioningRequest, and pods of higher priority.

A slot is not counted while its pod is tried on this node by all filters of the profile. Nominated
pods of the node do not matter: their room is separate from the slot. If the pod fits in no slot (it
is larger than its template, or requires other nodes), it is placed like any pod.

A pod that fits on no node and is above the priority of a booking is tried on nodes with slots of
the booking, which are not counted meanwhile. Slots that do not fit with it become homeless, and
their request finds other places.

Bounds  TRIES_MAX nodes a pod, selected by amounts.
"""

from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from typing import Final

import numpy as np

from asched.batch.groups.board import accepting
from asched.batch.provisioning.book import SLOT_STEPS, Booking, Bookings, Slot, settle_consumers
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.consumers import request_of
from asched.core.cluster.facts import Answer
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.room import free_amounts, has_room, vector
from asched.core.cycle.attempt import Attempt
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.extension_points import Finding, Placing
from asched.core.framework.effects import Effect
from asched.core.framework.placements import Mask, Placement, is_within
from asched.core.framework.rejection import Rejection
from asched.core.framework.runner import Decision
from asched.core.framework.status import MISTAKES, raise_plugin_error

TRIES_MAX: Final = 8


def find_node(
    context: SchedulerContext, attempt: Attempt, within: Mask | None, otherwise: Placing
) -> Finding:
    """Find a node; a pod that consumes a ProvisioningRequest tries the places held for it first.
    Raises as `Runner.schedule` does.
    """
    key = request_of(attempt.pod) if attempt.hypothetical_gang is None else ""
    if key:
        rejection = _stopped(context, attempt, within)
        if rejection is not None:
            return rejection
        settle_consumers(context)
        booking = context.cluster.singleton(Bookings).get(key)
        if booking is not None:
            places = list(islice(_candidates(context, attempt, booking, within), TRIES_MAX))
            found = yield from _first_place(context, attempt, places, by_filters=True)
            if found is not None:
                return found
    result = yield from otherwise(attempt, within)
    if isinstance(result, Rejection) and attempt.hypothetical_gang is None:
        rows = where_slots_give_way(context.cluster, attempt.info, result)
        held = islice((place for place in rows if is_within(place[0], within)), TRIES_MAX)
        instead = yield from _first_place(context, attempt, held, by_filters=False)
        return result if instead is None else instead
    return result


def where_slots_give_way(
    cluster: Cluster, info: PodInfo, rejection: Rejection
) -> list[tuple[int, list[tuple[Booking, Slot]]]]:
    """The rows where a rejected pod fits, by amounts, without the slots that give way to it, each
    with these slots; rows with the fewest slots first.
    """
    bookings = cluster.singleton(Bookings)
    if not bookings.priorities.are_below(info.pod.priority):
        return []
    rows = cluster.holds.by_row
    found = []
    for row in rejection.candidates.tolist():
        slots = bookings.on(row, info.pod.priority) if row in rows else []
        cluster.budget.note(SLOT_STEPS * len(slots))
        if slots and _has_room(cluster, info, row, slots):
            found.append((row, slots))
    return sorted(found, key=lambda held: len(held[1]))


def _has_room(cluster: Cluster, info: PodInfo, row: int, slots: list[tuple[Booking, Slot]]) -> bool:
    free, need = free_amounts(cluster.nodes, row), vector(cluster.nodes, info.cls.accounted, 1)
    for _, slot in slots:
        free += vector(cluster.nodes, slot.what.cls.accounted, 1)
    return has_room(free, need)


def _stopped(context: SchedulerContext, attempt: Attempt, within: Mask | None) -> Rejection | None:
    """Run the gates again, since the request may have been listed after its pods."""
    nodes = context.cluster.nodes
    try:
        for plugin in attempt.runner.profile.pre_enqueue:
            status = plugin.pre_enqueue(attempt.pod)
            if not status.is_success:
                none = np.zeros(nodes.height, dtype=np.int32)
                return Rejection(
                    attempt.info,
                    plugins=(),
                    first_rejector=none,
                    codes=none,
                    live=Placement("", within).mask(nodes),
                    pre_filter=status.by(plugin.name),
                    pre_filter_plugins=frozenset((plugin.name,)),
                )
    except MISTAKES as raised:
        raise_plugin_error(plugin.name, "preEnqueue", raised)
    return None


def _first_place(
    context: SchedulerContext,
    attempt: Attempt,
    places: Iterable[tuple[int, list[tuple[Booking, Slot]]]],
    *,
    by_filters: bool,
) -> Generator[Effect, Answer, Decision | None]:
    """Try rows without these slots, which stay open after a decision until `settle_consumers`.
    `by_filters`: without extenders, filters alone decide.
    """
    bookings, uid = context.cluster.singleton(Bookings), attempt.pod.uid
    for row, slots in places:
        found: Decision | Rejection | None = None
        if attempt.consults or not by_filters:
            found = yield from _on_open(context, attempt, row, slots)
        elif bookings.open(uid, slots):
            found = _on_row(context, attempt, row)
        if isinstance(found, Decision):
            return found
        bookings.close(uid)
    return None


def _on_open(
    context: SchedulerContext, attempt: Attempt, row: int, slots: list[tuple[Booking, Slot]]
) -> Generator[Effect, Answer, Decision | Rejection | None]:
    """Run an attempt on a row without these slots, which are counted whenever other pods may be
    tried. None if a slot was taken meanwhile.
    """
    bookings, uid = context.cluster.singleton(Bookings), attempt.pod.uid
    only = np.arange(context.cluster.nodes.height) == row
    steps = attempt.runner.schedule(attempt.info, context.seed + attempt.id, only)
    answer, is_open = None, False
    while is_open or bookings.open(uid, slots):
        is_open = True
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
            is_open = False
        answer = yield effect
    steps.close()
    return None


def _on_row(context: SchedulerContext, attempt: Attempt, row: int) -> Decision | None:
    """Run all filters for the pod on a row. `settle_consumers` closes the slot, also after an
    exception. Raises as `Runner.schedule` does.
    """
    state, cluster = attempt.runner.cache.state_of(attempt.info), context.cluster
    node = cluster.nodes.node_at[row]
    if state.update(attempt.info).rejection is not None or node is None or not state.fits(row):
        return None
    if row in cluster.refusals.rows(attempt.pod, cluster.steady_s):
        return None
    return Decision(node.name, row, 1, cluster.nodes.count, None, state)


def _candidates(
    context: SchedulerContext, attempt: Attempt, booking: Booking, within: Mask | None
) -> Iterator[tuple[int, list[tuple[Booking, Slot]]]]:
    """Rows of free slots for the pod, one for each suitable node."""
    cluster, seen = context.cluster, set[int]()
    suits: Mask | None = None
    for pod_set in booking.sets_for(attempt.info):
        for slot in booking.free.get(pod_set, {}).values():
            row = cluster.nodes.row_of.get(slot.node)
            if row is None or row in seen or not is_within(row, within):
                continue
            seen.add(row)
            if suits is None:  # rows that pass the filters which read only nodes
                every = np.ones(cluster.nodes.height, dtype=np.bool_)
                suits = accepting(attempt.runner.cache.state_of(attempt.info), attempt.info, every)
            if suits[row]:
                yield row, [(booking, slot)]
