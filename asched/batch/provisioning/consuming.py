"""Place pods in held slots: pods that consume a ProvisioningRequest, and pods of higher priority.

A slot is not counted while its pod is tried on this node by all filters of the profile. Nominated
pods of the node do not matter: their room is beside the slot. If the pod fits in no slot (it is
larger than its template, or requires other nodes), it is placed like any pod.

A pod that fits on no node and is above the priority of a booking is tried on nodes with slots of
the booking, which are not counted meanwhile. Slots without room beside it become homeless, and
their request finds other places.

Bounds  TRIES_MAX nodes a pod, selected by amounts.
"""

from collections.abc import Generator, Iterator
from typing import Final, NamedTuple

import numpy as np

from asched.batch.provisioning.book import Booking, Bookings, Slot, settle_consumers
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Answer
from asched.core.cluster.holds import request_of
from asched.core.cluster.pods import PodInfo
from asched.core.cycle.context import Attempt, SchedulerContext
from asched.core.cycle.extension import Finding
from asched.core.framework.attempt import Rejection
from asched.core.framework.effects import Effect
from asched.core.framework.placements import Mask, Placement, is_within
from asched.core.framework.results.nominated import ignores_pods
from asched.core.framework.runner import Decision
from asched.core.model.requests import PODS

TRIES_MAX: Final = 8

#: Budget steps for a slot whose amounts are added up.
SLOT_STEPS: Final = 0.1


class HeldRow(NamedTuple):
    """A row, and the slots on it that give way."""

    row: int
    slots: list[tuple[Booking, Slot]]


def find_node(context: SchedulerContext, attempt: Attempt, within: Mask | None = None) -> Finding:
    """Find a node; a pod that consumes a ProvisioningRequest tries the places held for it first.
    Raises as `Runner.schedule` does.
    """
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
    result = yield from attempt.runner.schedule(attempt.info, seed, within)
    if isinstance(result, Rejection) and attempt.company is None:
        instead = yield from _where_slots_give_way(context, attempt, result, within)
        return result if instead is None else instead
    return result


def where_slots_give_way(cluster: Cluster, info: PodInfo, rejection: Rejection) -> list[HeldRow]:
    """The rows where a rejected pod fits, by amounts, without the slots that give way to it; rows
    with the fewest slots first.
    """
    bookings = cluster.singleton(Bookings)
    if not bookings.priorities.are_below(info.pod.priority):
        return []
    rows = cluster.holds.rows
    found = []
    for row in rejection.candidates.tolist():
        slots = bookings.on(row, info.pod.priority) if row in rows else []
        cluster.budget.note(SLOT_STEPS * len(slots))
        if slots and _has_room(cluster, info, row, slots):
            found.append(HeldRow(row, slots))
    return sorted(found, key=lambda held: len(held.slots))


def _has_room(cluster: Cluster, info: PodInfo, row: int, slots: list[tuple[Booking, Slot]]) -> bool:
    read, nodes = cluster.nodes.columns.read, cluster.nodes
    if read("pod_count")[row] - len(slots) >= read("allowed_pods")[row]:
        return False
    for name, amount in info.cls.accounted.items():
        at = nodes.find_resource(name)
        if at is None or not amount or name == PODS:
            continue
        held = sum(slot.what.cls.accounted.get(name, 0) for _, slot in slots)
        if read("allocatable")[at, row] - read("requested")[at, row] + held < amount:
            return False
    return True


def _where_slots_give_way(
    context: SchedulerContext, attempt: Attempt, rejection: Rejection, within: Mask | None
) -> Generator[Effect, Answer, Decision | None]:
    """Try rows with slots that give way. After a decision the slots stay open, as above."""
    bookings, uid = context.cluster.singleton(Bookings), attempt.pod.uid
    tries = 0
    for row, slots in where_slots_give_way(context.cluster, attempt.info, rejection):
        if not is_within(row, within):
            continue
        if tries == TRIES_MAX:
            break
        tries += 1
        found = yield from _on_open(context, attempt, row, slots)
        if isinstance(found, Decision):
            return found
        bookings.close(uid)
    return None


def _stopped(context: SchedulerContext, attempt: Attempt, within: Mask | None) -> Rejection | None:
    """Run the gates again, since the request may have been listed after its pods."""
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
    """Try the slots of the pod. After a decision the slot stays open until `settle_consumers`."""
    bookings, uid = context.cluster.singleton(Bookings), attempt.pod.uid
    for slot, row in list(_candidates(context, attempt, booking, within)):
        found: Decision | Rejection | None = None
        if attempt.consults:
            found = yield from _on_open(context, attempt, row, [(booking, slot)])
        elif bookings.open(uid, [(booking, slot)]):
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
    steps = attempt.runner.schedule(attempt.info, context.seed + attempt.id, _only(row, context))
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
    if row in cluster.refusals.rows(attempt.pod, cluster.wall_clock_s):
        return None
    return Decision(node.name, row, 1, cluster.nodes.count, None, state)


def _candidates(
    context: SchedulerContext, attempt: Attempt, booking: Booking, within: Mask | None
) -> Iterator[tuple[Slot, int]]:
    """Free slots for the pod with their rows, one for each suitable node."""
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
    """bool[N]: rows that pass the filters which read only nodes."""
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
