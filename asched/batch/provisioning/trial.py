"""The trial of a ProvisioningRequest: try its pods as a hypothetical gang, then hold their places.

The pods go through the trial and the search of any gang, by the profile that their templates name,
without evictions. Each place changes in one step from an assumed hypothetical pod to a held slot,
so that other pods see it as taken at any time.
"""

import math
from collections import Counter
from collections.abc import Generator, Mapping, Sequence

import msgspec

from asched.batch.groups.attempt import GroupAttempt, GroupOutcome, Result
from asched.batch.groups.search import proof_text, search_places
from asched.batch.groups.trial import (
    LET_GO_STEPS,
    announce_freed,
    let_go,
    pause_if_due,
    released,
    seen,
    try_group,
)
from asched.batch.provisioning import requests as request_status
from asched.batch.provisioning.book import OWNERS, Booking, Bookings
from asched.batch.provisioning.requests import (
    VALID_UNTIL_SECONDS,
    DesiredStatus,
    Terms,
    UnusableRequestError,
    Where,
    examples,
    numbered,
    terms_of,
)
from asched.batch.share import why_beyond_share
from asched.core.cluster.facts import Answer
from asched.core.cluster.pods import PodInfo
from asched.core.config.args import CheckAndHoldArgs
from asched.core.cycle.binding import give_back
from asched.core.cycle.context import Attempt, HypotheticalGang, SchedulerContext
from asched.core.framework.effects import Effect
from asched.core.framework.runner import Runner
from asched.core.model.provisioning import ProvisioningRequest
from asched.core.model.timestamp import microseconds
from asched.core.queue.queued import QueuedPod


class RequestOutcome(msgspec.Struct, frozen=True):
    """The status to write, and whether the request is tried again later, or once a missing template
    exists.
    """

    wanted: DesiredStatus
    is_tried_again: bool = False
    lacks: str = ""
    #: since 1970; after that the request fails
    valid_until_s: float = math.inf


def answer(
    context: SchedulerContext, request: ProvisioningRequest, served: Mapping[str, CheckAndHoldArgs]
) -> Generator[Effect, Answer, RequestOutcome]:
    """Find places for all pods of a request, and hold them."""
    try:
        by_set = examples(context.cluster, request)
        scheduler = by_set[0][0].pod.spec.scheduler_name
        args = _args(served, scheduler, request.spec.provisioning_class_name)
        terms = terms_of(request, args)
        runner = context.runners[scheduler]
    except UnusableRequestError as error:
        if error.lacks:
            wanted = request_status.not_found(str(error), request_status.NO_PODS)
            return RequestOutcome(wanted, is_tried_again=True, lacks=error.lacks)
        return RequestOutcome(request_status.failed(str(error), request_status.NO_PODS))
    until_s = _born_s(context, request) + terms.valid_s
    if context.cluster.wall_clock_s >= until_s:
        why = f"no place was found within {terms.valid_s:.0f} s ({VALID_UNTIL_SECONDS})"
        return RequestOutcome(request_status.failed(why, request_status.EXPIRED))
    over = why_beyond_share(context.cluster, request.metadata.namespace, by_set, args)
    if over:
        return _not_found(over, terms, until_s)
    if any(runner.consults(info) for info, _ in by_set):
        why = "an extender has a say in its pods' places, and cannot be asked about supposed pods"
        return RequestOutcome(request_status.failed(why, request_status.NO_PODS))
    infos: list[PodInfo] = []
    pod_set_of: dict[str, int] = {}
    for index, (like, count) in enumerate(by_set):
        for number in range(count):
            infos.append(numbered(like, request, index, len(infos)))
            pod_set_of[infos[-1].pod.uid] = index
            if number % 500 == 499:
                context.cluster.budget.note(LET_GO_STEPS * 100)
    group = _supposed(context, request.metadata.key, infos, runner)
    outcome = yield from _trial(context, group)
    if isinstance(outcome, str):
        return _not_found(outcome, terms, until_s)
    until_s = context.cluster.wall_clock_s + terms.hold_s
    bookings = context.cluster.singleton(Bookings)
    booking = bookings.begin(request.metadata.key, request.metadata.uid, until_s, args.priority)
    return (yield from _book(context, booking, outcome, pod_set_of))


def _not_found(why: str, terms: Terms, until_s: float) -> RequestOutcome:
    if terms.is_tried_again:
        wanted = request_status.not_found(why)
        return RequestOutcome(wanted, is_tried_again=True, valid_until_s=until_s)
    return RequestOutcome(request_status.failed(why))


def rehouse(
    context: SchedulerContext, booking: Booking
) -> Generator[Effect, Answer, DesiredStatus]:
    """Find other places for slots that lost theirs."""
    bookings = context.cluster.singleton(Bookings)
    slots = {slot.what.pod.uid: slot for slot in booking.homeless.values()}
    lost = request_status.over(request_status.LOST, "others took some of its places, or nodes went")
    if not slots:
        return _found(booking)
    whats = [slot.what for slot in slots.values()]
    runner = context.runners.get(whats[0].pod.spec.scheduler_name)
    if runner is None:
        return lost
    group = _supposed(context, booking.key, whats, runner)
    outcome = yield from _trial(context, group)
    if isinstance(outcome, str):
        return lost
    for tried in outcome.tried:
        yield from pause_if_due(context, LET_GO_STEPS)
        assert tried.decision is not None
        node, uid = tried.decision.node, tried.attempt.pod.uid
        yield from give_back(context, tried.attempt, node)
        slot = slots[uid]
        if bookings.get(booking.key) is booking and slot.owner in booking.homeless:
            bookings.place(booking, slot, node)
    return lost if booking.homeless else _found(booking)


def _args(
    served: Mapping[str, CheckAndHoldArgs], scheduler: str, class_name: str
) -> CheckAndHoldArgs:
    args = served.get(scheduler)
    if args is None or args.provisioning_class_name != class_name:
        raise UnusableRequestError(
            f'its templates name the scheduler "{scheduler}", no profile of which serves'
            f" {class_name}: its pods would not get these places"
        )
    return args


def _born_s(context: SchedulerContext, request: ProvisioningRequest) -> float:
    try:
        return microseconds(request.metadata.creation_timestamp or "") / 1e6
    except ValueError:
        return context.cluster.wall_clock_s


def _supposed(
    context: SchedulerContext, key: str, infos: Sequence[PodInfo], runner: Runner
) -> GroupAttempt:
    company, started_s = HypotheticalGang(context.cluster, len(infos)), context.counter_s()
    attempts = [
        Attempt(
            number, QueuedPod(info.pod, context.now_s), info, runner, started_s, company=company
        )
        for number, info in enumerate(infos)
    ]
    return GroupAttempt(f"{OWNERS}:{key}", attempts, 0, infos[0].pod, started_s)


def _trial(
    context: SchedulerContext, group: GroupAttempt
) -> Generator[Effect, Answer, GroupOutcome | str]:
    """Find and assume places for all pods; or return why there are none."""
    found = yield from seen(group, released(context, group, _sought(context, group)))
    yield from announce_freed(context, group)
    return found


def _sought(
    context: SchedulerContext, group: GroupAttempt
) -> Generator[Effect, Answer, GroupOutcome | str]:
    outcome = yield from try_group(context, group, plan={})
    if outcome.result is Result.SCHEDULED:
        return outcome
    yield from let_go(context, group, outcome)
    failures = [tried.failure for tried in outcome.tried if tried.failure is not None]
    why = failures[0].message if failures else outcome.message
    if failures and failures[0].is_error:
        return why
    found = yield from search_places(context, group)
    if isinstance(found, GroupOutcome):
        return found
    return f"{proof_text(found)} (tried one after the other: {why})"


def _book(
    context: SchedulerContext,
    booking: Booking,
    outcome: GroupOutcome,
    pod_set_of: Mapping[str, int],
) -> Generator[Effect, Answer, RequestOutcome]:
    bookings, key = context.cluster.singleton(Bookings), booking.key
    for tried in outcome.tried:
        yield from pause_if_due(context, LET_GO_STEPS)
        assert tried.decision is not None
        info, node = tried.attempt.info, tried.decision.node
        yield from give_back(context, tried.attempt, node)
        if bookings.get(key) is booking:
            slot = bookings.add(booking, pod_set_of[info.pod.uid], info, node)
            bookings.place(booking, slot, node)
    if bookings.get(key) is not booking or booking.homeless:
        if bookings.get(key) is booking:
            bookings.end(key)
        why = "nodes went, or others took room on them, while it was tried"
        return RequestOutcome(request_status.not_found(why), is_tried_again=True)
    bookings.match(booking)
    return RequestOutcome(_found(booking))


def _found(booking: Booking) -> DesiredStatus:
    """The status with all places of a booking, including places that pods have taken."""
    places = Counter((slot.pod_set, slot.node) for slot in booking.slots.values())
    where = [Where(pod_set, node, count) for (pod_set, node), count in places.items()]
    return request_status.found(request_status.details_of(where, booking.until_s))
