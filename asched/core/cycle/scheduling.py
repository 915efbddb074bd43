"""The scheduling cycle: from a popped unit to reserved nodes or rejections.

    skip obsolete pods ─> Unit.place ─┬─> places are reserved ─> the binding cycle takes over
                                      └─> no places ─> additions ─> back to the queue

One cycle runs at a time. It is a generator because it may call an extender, and because an attempt
that costs more than a slice of the budget pauses, and is then made again from the beginning.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/schedule_one.go (ScheduleOne)
"""

from collections.abc import Generator, Iterable

from msgspec.structs import replace

from asched import names
from asched.core.cluster.facts import Answer
from asched.core.cycle.binding import Binding, end_failed
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.extension_points import NOTHING_TO_ADD, Addition
from asched.core.cycle.failure import fail, failure_of, skip
from asched.core.cycle.freed_places import TELL_STEPS
from asched.core.cycle.post_filter import Background, GivingBack
from asched.core.cycle.unit import FollowUp, Tried, Unit
from asched.core.framework.effects import Effect
from asched.core.framework.status import MISTAKES
from asched.core.framework.waiting import Stage


def schedule(context: SchedulerContext, unit: Unit) -> Generator[Effect, Answer, list[FollowUp]]:
    """Try a unit. On every return each of its pods is reserved, queued again or done. An exception
    costs all of its pods this attempt, and keeps no place.
    """
    follows: list[FollowUp] = []
    outcome = None
    try:
        for attempt in tuple(unit.attempts):
            if context.is_obsolete(attempt):
                yield from skip(context, attempt)
                unit.attempts.remove(attempt)
        if not unit.attempts:
            return []
        outcome = yield from unit.place(context)
        added = NOTHING_TO_ADD
        if outcome.is_placed:
            for placed in context.extensions.placed:
                placed(unit.pod)
        elif outcome.takes_additions and context.extensions.rejected:
            added = yield from _additions(context, unit)
        if outcome.background is not None:
            follows.append(outcome.background)
        for tried in outcome.tried:
            if unit.key:  # a group may have thousands of pods to settle
                yield from context.pause_if_due(TELL_STEPS, is_alone=True)
            then = yield from _settle(context, unit, tried, added)
            if then is not None:
                follows.append(then)
        yield from unit.report(context, outcome, added.text)
    except MISTAKES as raised:
        yield from _undo(context, unit, outcome.tried if outcome is not None else (), raised)
        return []
    return follows


def _additions(context: SchedulerContext, unit: Unit) -> Generator[Effect, Answer, Addition]:
    """What extensions add to the condition of a unit that found no place."""
    words, do_not_help = "", False
    for rejected in context.extensions.rejected:
        added = yield from rejected(unit.attempts)
        words += added.text
        do_not_help |= added.new_nodes_do_not_help
    return Addition(words, do_not_help)


def _undo(
    context: SchedulerContext, unit: Unit, tries: Iterable[Tried], raised: BaseException
) -> Generator[Effect, Answer, None]:
    about = unit.key or unit.pod.key
    failure = failure_of(context, raised, about)
    try:
        for tried in tries:
            tried.withdraw_post_filter()
        yield from unit.undo(context)
    except MISTAKES as error:
        context.contain(error, "schedule", about)
    for attempt in unit.attempts:
        yield from end_failed(context, attempt, failure)


def _settle(
    context: SchedulerContext, unit: Unit, tried: Tried, added: Addition
) -> Generator[Effect, Answer, FollowUp | None]:
    """Bind a pod that has its place; return another one to the queue."""
    attempt, failure = tried.attempt, tried.failure
    if tried.history_entry is not None and (failure is None or not unit.key):
        attempt.history_entry = tried.history_entry
        context.histories.add(tried.history_entry)
    if failure is None:
        assert tried.decision is not None
        assert tried.waiting is not None
        if unit.key and not tried.waiting.deadlines:  # its gang has allowed it
            tried.waiting.stage = Stage.BINDING
            context.queue.done(attempt.info.pod.metadata.uid)
        return Binding(context, attempt, tried.decision.node, tried.waiting)
    if context.is_obsolete(attempt):
        tried.withdraw_post_filter()
        yield from skip(context, attempt)
        return None
    if added is not NOTHING_TO_ADD and not failure.is_error:
        reason = names.REASON_NEW_NODES_DO_NOT_HELP
        reason = reason if added.new_nodes_do_not_help else failure.reason
        failure = replace(failure, message=failure.message + added.text, reason=reason)
    room = tried.post_filter
    if room is not None and room.victims:
        context.observer.preempting(len(room.victims), room.violations, room.disruptions)
    if room is not None and room.before_return:
        return GivingBack(context, attempt, room, failure)
    yield from fail(context, attempt, failure)
    if room is None or room.background is None:
        return None
    return Background(context, attempt.pod, room.background)
