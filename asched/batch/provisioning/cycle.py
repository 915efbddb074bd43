"""The cycle of ProvisioningRequests: try them in turn, hold their places, and write their status.

    seen ─> tried ─ no place ─> status written, tried again after a pause (or failed, by NoRetry)
              └─ all places ─> held ─> status written, with the places ─> pods consume them
                                 └─ time is up, all places taken, or lost ─> given back, status

Places are held before the status is written, and written before a client relies on them: Kueue
starts a job once it reads `Provisioned`, which is written together with the places. A process that
dies before the write has promised nothing; after the write, the next leader reads the promise
once it knows all nodes and pods. It adopts all places of the cluster, so the work stops after each
place. Other clients may write the status, too. So places are held no longer than the request
specifies, counted from when the status was read, only once, and within the share of their
namespace; requests that have ended are recorded.

For a lost place (its node was removed, or other pods took it) another one is searched for, as long
as the request has any place, with the pauses of a request that found none; the status has the
places that are held. Once all are lost, the booking ends and Kueue may create a new request.
CapacityRevoked is never written here, because Kueue would not retry the job; it is left to
administrators.

Namespaces have their turns one after the other, each with one request at a time. Requests that were
tried without success come after new requests, but for one in NEW_IN_A_ROW.

Bounds  one attempt at a time, one begun a turn; WRITES_MAX writes at a time; pauses from PAUSE_S,
        doubled up to PAUSE_S_MAX; OPEN_MAX open requests a namespace, further requests fail; one
        entry per open request. PODS_MAX places a request; a status with more is not adopted.
"""

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import Final

import msgspec

from asched.batch.groups.attempt import GroupAttempt, GroupOutcome, Result
from asched.batch.groups.search import proof_text, search_places
from asched.batch.groups.trial import LET_GO_STEPS, let_go, released, seen, try_group
from asched.batch.provisioning import book, hypothetical_pods, placing, requests
from asched.batch.provisioning.book import OWNERS, PODS_MAX, Booking, Bookings, Slot, giving_back
from asched.batch.provisioning.hypothetical_pods import Terms, UnusableRequestError
from asched.batch.provisioning.kept_nodes import KeptNodes
from asched.batch.provisioning.requests import DesiredStatus
from asched.batch.share import NodeShare, why_beyond_share
from asched.core.cluster.change_logs import Reader
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Answer, Done
from asched.core.cluster.pods import PodInfo
from asched.core.config.args import CheckAndHoldArgs
from asched.core.cycle.attempt import Attempt
from asched.core.cycle.binding import give_back
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.extension import Extension, Work
from asched.core.cycle.extension_points import Finding, Placing
from asched.core.cycle.freed_places import notify_of_freed
from asched.core.cycle.hypothetical_gang import HypotheticalGang
from asched.core.framework.effects import Effect
from asched.core.framework.placements import Mask
from asched.core.framework.rejection import Rejection
from asched.core.framework.runner import Runner
from asched.core.framework.status import MISTAKES
from asched.core.model.kinds import POD_TEMPLATE, PROVISIONING_REQUEST
from asched.core.model.pod import Pod
from asched.core.model.provisioning import ProvisioningRequest, RequestStage
from asched.core.model.timestamp import seconds
from asched.core.queue.queued import QueuedPod

WRITES_MAX: Final = 32
#: Open requests of one namespace.
OPEN_MAX: Final = 500
#: New requests that are tried before a request that was tried without success.
NEW_IN_A_ROW: Final = 4
#: Budget steps for a request that is checked, and twice that for a place that is held again.
CONSIDER_STEPS: Final = 1
PLACE_STEPS: Final = 1.25
PAUSE_S: Final = 1.0
PAUSE_S_MAX: Final = 60.0
#: Between two attempts at a write that was refused, or got no answer.
WRITE_PAUSE_S: Final = 0.25
WRITE_PAUSE_S_MAX: Final = 8.0

LOST_PLACES: Final = (requests.LOST, "its places are not known any more")
TIME_IS_UP: Final = (requests.TIME_IS_UP, "Capacity reservation time is expired")
CONSUMED: Final = (requests.CONSUMED, "pods have taken all of its places")

Steps = Generator[Effect, Answer, None]


class Tracked(msgspec.Struct, eq=False):
    """An open request. Times in seconds of turns."""

    key: str
    uid: str
    pause_s: float = PAUSE_S
    try_s: float | None = None
    #: whether it is due; whether it was tried without success before
    is_due: bool = False
    is_retry: bool = False
    write_s: float | None = None
    write_pause_s: float = WRITE_PAUSE_S
    wanted: DesiredStatus | None = None
    is_writing: bool = False
    #: it fails if it has no places by then: `expires_s`, known once its terms were read, while it
    #: is tried for places
    valid_until_s: float = math.inf
    expires_s: float | None = None
    #: versions of the cluster at the last attempt without success
    seen: tuple[int, ...] = ()
    #: key of a missing template
    lacks: str = ""
    #: how many of its held places were lost, and no others found in the last search
    lost: int = 0


class ProvisioningRequests:
    """All open requests. Made by `Cluster.singleton`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.tracked: dict[str, Tracked] = {}
        #: key -> uid of ended requests that still exist: a later status of theirs is not trusted
        self.ended: dict[str, str] = {}
        self._changes = Reader(cluster.object_log)
        self._served: Mapping[str, CheckAndHoldArgs] = {}
        self._tries: list[tuple[float, int, str]] = []
        #: due requests by namespace: new requests, and retries
        self._new: OrderedDict[str, dict[str, None]] = OrderedDict()
        self._retries: OrderedDict[str, dict[str, None]] = OrderedDict()
        self._new_in_a_row = 0
        self._open = Counter[str]()  # by namespace
        self._writes: list[tuple[float, int, str]] = []
        self._order = 0
        #: the key of the request that is being tried
        self.trying = ""
        self.writes = 0

    def begin(self, key: str, uid: str) -> Tracked:
        """Track a request."""
        self._open[_namespace(key)] += 1
        tracked = self.tracked[key] = Tracked(key, uid)
        return tracked

    def has_too_many(self, key: str) -> bool:
        return self._open[_namespace(key)] > OPEN_MAX

    def drop(self, key: str) -> None:
        if self.tracked.pop(key, None) is not None:
            namespace = _namespace(key)
            self._open[namespace] -= 1
            if not self._open[namespace]:
                del self._open[namespace]

    def try_at(self, tracked: Tracked, at_s: float) -> None:
        tracked.try_s = at_s
        self._order += 1
        heappush(self._tries, (at_s, self._order, tracked.key))

    def write_at(self, tracked: Tracked, at_s: float) -> None:
        tracked.write_s = at_s
        self._order += 1
        heappush(self._writes, (at_s, self._order, tracked.key))

    def to_try(self, now_s: float) -> Tracked | None:
        """The next due request, if none is being tried."""
        while self._tries and self._tries[0][0] <= now_s:
            at_s, _, key = heappop(self._tries)
            tracked = self.tracked.get(key)
            if tracked is not None and tracked.try_s == at_s:
                tracked.try_s, tracked.is_due = None, True
                lane = self._retries if tracked.is_retry else self._new
                lane.setdefault(_namespace(key), {})[key] = None
        while not self.trying and (self._new or self._retries):
            tracked = self.tracked.get(self._next_key())
            if tracked is not None and tracked.is_due:
                tracked.is_due, self.trying = False, tracked.key
                return tracked
        return None

    def _next_key(self) -> str:
        """The next request of the namespace that has waited longest, which goes to the end."""
        is_new = bool(self._new) and (self._new_in_a_row < NEW_IN_A_ROW or not self._retries)
        self._new_in_a_row = self._new_in_a_row + 1 if is_new and self._retries else 0
        lane = self._new if is_new else self._retries
        namespace, keys = lane.popitem(last=False)
        key = next(iter(keys))
        del keys[key]
        if keys:
            lane[namespace] = keys
        return key

    def to_write(self, now_s: float) -> Tracked | None:
        """The next due write, of which several may be open."""
        while self.writes < WRITES_MAX and self._writes and self._writes[0][0] <= now_s:
            at_s, _, key = heappop(self._writes)
            tracked = self.tracked.get(key)
            if tracked is not None and tracked.write_s == at_s and not tracked.is_writing:
                tracked.write_s, tracked.is_writing = None, True
                self.writes += 1
                return tracked
        return None

    def next_s(self) -> float | None:
        if (self._new or self._retries) and not self.trying:
            return 0.0
        heads = [] if self.trying else self._tries[:1]
        heads += self._writes[:1] if self.writes < WRITES_MAX else []
        return min((at_s for at_s, _, _ in heads), default=None)

    def changed(self, served: Mapping[str, CheckAndHoldArgs]) -> list[str]:
        """Keys of requests that changed since the last call, or whose templates did."""
        entries, is_same = self._changes.unread(), served == self._served
        self._served = served
        if entries is None or not is_same:
            known: Mapping[str, ProvisioningRequest] = self._cluster.all(PROVISIONING_REQUEST)
            by_age = sorted(known, key=lambda k: (known[k].metadata.creation_timestamp or "", k))
            return list(dict.fromkeys((*self.tracked, *self.ended, *by_age)))
        templates = {key for resource, key in entries if resource == POD_TEMPLATE.resource}
        found = [key for resource, key in entries if resource == PROVISIONING_REQUEST.resource]
        if templates:
            found += [t.key for t in self.tracked.values() if t.lacks in templates]
        return list(dict.fromkeys(found))


def _namespace(key: str) -> str:
    return key.partition("/")[0]


class RequestOutcome(msgspec.Struct, frozen=True):
    """The status to write, and whether the request is tried again later, or once a missing template
    exists.
    """

    wanted: DesiredStatus
    is_tried_again: bool = False
    lacks: str = ""
    #: in seconds of turns; after that the request fails
    valid_until_s: float = math.inf


class HeldPlaces(Extension):
    """CheckAndHold: places are held for accepted ProvisioningRequests."""

    name = "requests"

    def __init__(self, context: SchedulerContext) -> None:
        super().__init__(context)
        self._cluster = context.cluster
        self._requests = context.cluster.singleton(ProvisioningRequests)
        self._bookings = context.cluster.singleton(book.Bookings)
        self._kept_nodes = KeptNodes(context)

    @property
    def _served(self) -> Mapping[str, CheckAndHoldArgs]:
        """The plugin's args by profile."""
        return self.context.args_by_profile(CheckAndHoldArgs)

    @property
    def _version(self) -> tuple[int, ...]:
        return self._cluster.nodes.log.end, self._cluster.epoch

    def is_used(self) -> bool:
        return bool(self._served)

    def place(self, attempt: Attempt, within: Mask | None, otherwise: Placing) -> Finding:
        return placing.find_node(self.context, attempt, within, otherwise)

    def yields_to(self, priority: int) -> bool:
        return self._bookings.priorities.are_below(priority)

    def yields_places(self, pod: PodInfo, rejection: Rejection) -> bool:
        return bool(placing.where_slots_give_way(self._cluster, pod, rejection))

    def refresh(self, *, may_decide: bool) -> None:
        if may_decide:
            book.keep(self.context)
        else:
            book.settle_consumers(self.context)

    def begin_turn(self) -> Iterator[Effect | Work]:
        yield from self._due()
        is_on = any(args.keep_nodes for args in self._served.values())
        yield from self._kept_nodes.due(is_on=is_on)

    def next_deadline_s(self) -> float | None:
        first_end_s = self._bookings.first_end_s
        deadlines = (
            first_end_s,
            self._requests.next_s(),
            self._kept_nodes.next_s,
        )
        return min((at_s for at_s in deadlines if at_s is not None), default=None)

    def _due(self) -> Iterator[Work]:
        """The work to begin now."""
        classes = self._served
        if not classes and not self._requests.tracked and not self._bookings.over:
            return
        if changed := self._requests.changed(classes):
            self.context.queue.sliced_work.do(self._considering(classes, changed))
        if self.context.sliced_work:
            return
        for key in tuple(self._bookings.moved):
            if key == self._requests.trying:
                continue
            self._bookings.moved.pop(key, None)
            try:
                self._check_booking(key)
            except MISTAKES as raised:
                self.context.contain(raised, "requests", key)
                self._forget(key)
        if self._bookings.over and not self._bookings.is_giving_back:
            yield Work(giving_back(self.context), decides=True)
        tracked = self._requests.to_try(self.context.now_s)
        if tracked is not None:
            yield Work(self._try(tracked), decides=True)
        while (tracked := self._requests.to_write(self.context.now_s)) is not None:
            yield Work(self._write(tracked), decides=False)

    def _considering(
        self, classes: Mapping[str, CheckAndHoldArgs], keys: Iterable[str]
    ) -> Iterator[None]:
        """Handle requests that were added, changed or deleted, or whose templates were. A new
        process handles all requests, and holds all their places again before it tries any pod.
        """
        note = self.context.queue.sliced_work.budget.note
        for key in keys:
            note(CONSIDER_STEPS)
            yield
            try:
                for _ in self._consider(classes, key):
                    note(PLACE_STEPS)
                    yield
            except MISTAKES as raised:  # it is skipped until it, or its template, changes again
                self.context.contain(raised, "requests", key)
                self._forget(key)

    def _consider(self, classes: Mapping[str, CheckAndHoldArgs], key: str) -> Iterator[None]:
        """Handle one request. Yields after each of its places."""
        request = self._stored(key)
        tracked = self._requests.tracked.get(key)
        ours = {args.provisioning_class_name for args in classes.values()}
        is_ours = request is not None and request.spec.provisioning_class_name in ours
        if tracked is not None and (
            request is None or not is_ours or tracked.uid != request.metadata.uid
        ):
            self._forget(key)
            tracked = None
        if request is None:
            self._requests.ended.pop(key, None)
            return
        if not is_ours:
            return
        stage, is_over = request.stage, self._requests.ended.get(key) == request.metadata.uid
        if stage is RequestStage.ENDED:
            self._requests.ended[key] = request.metadata.uid
            self._forget(key)
            return
        if tracked is None and is_over:
            return
        if tracked is None:
            tracked = self._requests.begin(key, request.metadata.uid)
            if stage is RequestStage.UNDECIDED and self._requests.has_too_many(key):
                why = f"more than {OPEN_MAX} requests of its namespace have no end yet"
                self._say(tracked, requests.failed(why))
            elif stage is RequestStage.UNDECIDED:
                self._requests.try_at(tracked, self.context.now_s)
        elif tracked.lacks and self._cluster.stored(POD_TEMPLATE, tracked.lacks) is not None:
            tracked.lacks = ""
            self._requests.try_at(tracked, self.context.now_s)
        if tracked.wanted is not None and requests.says(request, tracked.wanted):
            tracked.wanted = tracked.write_s = None
            tracked.write_pause_s = WRITE_PAUSE_S
        is_held = self._bookings.get(key) is not None or self._requests.trying == key
        if stage is RequestStage.HELD and not (is_held or is_over):
            yield from self._adopt(tracked, request)

    def _adopt(self, tracked: Tracked, request: ProvisioningRequest) -> Iterator[None]:
        """Hold the places of an accepted request, promised by an earlier process or by a write of
        this process whose answer was lost.
        """
        tracked.try_s, tracked.is_due = None, False
        name = request.spec.provisioning_class_name
        args = next(a for a in self._served.values() if a.provisioning_class_name == name)
        over = yield from holding_promised(self._cluster, request, args)
        if over is not None:
            self._end(tracked, *over)

    def _end(self, tracked: Tracked, reason: str, message: str) -> None:
        self._requests.ended[tracked.key] = tracked.uid
        self._say(tracked, requests.over(reason, message))

    def _check_booking(self, key: str) -> None:
        """Handle a booking that ended, or whose slots were taken or lost."""
        tracked, booking = self._requests.tracked.get(key), self._bookings.get(key)
        if tracked is None:
            self._bookings.end(key)
            return
        request = self._stored(key)
        if booking is None:
            if request is not None and request.stage is RequestStage.HELD:
                self._end(tracked, *TIME_IS_UP)
            else:  # its status was not written
                tracked.wanted = tracked.write_s = None
                self._pause(tracked)
        elif booking.is_consumed:
            self._end(tracked, *CONSUMED)
        elif len(booking.homeless) > tracked.lost and not tracked.is_due:
            tracked.pause_s = PAUSE_S
            self._requests.try_at(tracked, self.context.now_s)

    def _forget(self, key: str) -> None:
        self._requests.drop(key)
        self._bookings.end(key)

    def _try(self, tracked: Tracked) -> Steps:
        try:
            request = self._stored(tracked.key)
            if request is None or request.metadata.uid != tracked.uid:
                return
            booking = self._bookings.get(tracked.key)
            if booking is not None:
                yield from self._rehouse(tracked, booking)
                return
            if tracked.seen == self._version and self.context.now_s < tracked.valid_until_s:
                self._pause(tracked)
                return
            outcome = yield from self._answer(tracked, request)
            if self._requests.tracked.get(tracked.key) is not tracked:
                self._bookings.end(tracked.key)
                return
            tracked.lacks, tracked.seen = outcome.lacks, self._version
            tracked.valid_until_s, tracked.is_retry = outcome.valid_until_s, outcome.is_tried_again
            if outcome.is_tried_again:
                self._pause(tracked)
            if not requests.says(request, outcome.wanted):
                self._say(tracked, outcome.wanted)
        except MISTAKES as raised:  # no place is held, and it is tried again after a pause
            self.context.contain(raised, "requests", tracked.key)
            self._bookings.end(tracked.key)
            self._pause(tracked)
        finally:
            self._requests.trying = ""

    def _pause(self, tracked: Tracked) -> None:
        remaining_s = max(tracked.valid_until_s - self.context.now_s, 0.0)
        self._requests.try_at(tracked, self.context.now_s + min(tracked.pause_s, remaining_s))
        tracked.pause_s = min(2 * tracked.pause_s, PAUSE_S_MAX)

    def _answer(
        self, tracked: Tracked, request: ProvisioningRequest
    ) -> Generator[Effect, Answer, RequestOutcome]:
        """Find places for all pods of a request, and hold them.

        The pods go through the trial and the search of any gang, by the profile that their
        templates name, without evictions. Each place changes in one step from an assumed
        hypothetical pod to a held slot, so that other pods see it as taken at any time.
        """
        try:
            by_set = hypothetical_pods.examples(self._cluster, request)
            profile = self._profile_of([info for info, _ in by_set])
            args = _args(self._served, profile, request, by_set[0][0].pod)
            terms = hypothetical_pods.terms_of(request, args)
            runner = self.context.runners[profile]
        except UnusableRequestError as error:
            if error.lacks:
                wanted = requests.not_found(str(error), requests.NO_PODS)
                return RequestOutcome(wanted, is_tried_again=True, lacks=error.lacks)
            return RequestOutcome(requests.failed(str(error), requests.NO_PODS))
        until_s = self._expiry_of(tracked, request, terms)
        if self.context.now_s >= until_s:
            parameter = hypothetical_pods.VALID_UNTIL_SECONDS
            why = f"no place was found within {terms.valid_s:.0f} s ({parameter})"
            return RequestOutcome(requests.failed(why, requests.EXPIRED))
        over = why_beyond_share(self._cluster, request.metadata.namespace, by_set, args)
        if over:
            return _not_found(over, terms, until_s)
        if any(runner.consults(info) for info, _ in by_set):
            why = (
                "an extender has a say in its pods' places, and cannot be asked about supposed pods"
            )
            return RequestOutcome(requests.failed(why, requests.NO_PODS))
        sets = [index for index, (_, count) in enumerate(by_set) for _ in range(count)]
        infos = [
            hypothetical_pods.numbered(by_set[index][0], request, index, number)
            for number, index in enumerate(sets)
        ]
        pod_set_of = {info.pod.uid: index for info, index in zip(infos, sets, strict=True)}
        self._cluster.budget.note(LET_GO_STEPS * (len(infos) // 5))
        group = self._supposed(request.metadata.key, infos, runner)
        share = NodeShare(self._cluster, request.metadata.namespace, args)
        outcome = yield from self._trial(group, share)
        if isinstance(outcome, str):
            return _not_found(outcome, terms, until_s)
        until_s = self.context.now_s + terms.hold_s
        key, bookings = request.metadata.key, self._bookings
        booking = bookings.begin(key, request.metadata.uid, until_s, args.priority)
        yield from self._hold(
            booking,
            outcome,
            lambda info, node: bookings.add(booking, pod_set_of[info.pod.uid], info, node),
        )
        if bookings.get(key) is not booking or booking.homeless:
            if bookings.get(key) is booking:
                bookings.end(key)
            why = "nodes went, or others took room on them, while it was tried"
            return RequestOutcome(requests.not_found(why), is_tried_again=True)
        bookings.match(booking)
        return RequestOutcome(_found_status(self._cluster, booking))

    def _profile_of(self, infos: Sequence[PodInfo]) -> str:
        """The profile that decides for all of these pods. Raises UnusableRequestError."""
        profiles = sorted({self.context.profile_of(info.pod) for info in infos})
        if len(profiles) > 1:
            raise UnusableRequestError(f"several profiles decide for it: {', '.join(profiles)}")
        return profiles[0]

    def _expiry_of(self, tracked: Tracked, request: ProvisioningRequest, terms: Terms) -> float:
        """Until when a request is tried, in seconds of turns. Its age is read once."""
        if tracked.expires_s is None:
            wall_s = self._cluster.wall_clock_s
            age_s = max(wall_s - seconds(request.metadata.creation_timestamp, wall_s), 0.0)
            tracked.expires_s = self.context.now_s + terms.valid_s - age_s
        return tracked.expires_s

    def _rehouse(self, tracked: Tracked, booking: Booking) -> Steps:
        """Find other places for slots that lost theirs; again after a pause if there are none."""
        slots = {slot.what.pod.uid: slot for slot in booking.homeless.values()}
        infos = [slot.what for slot in slots.values()]
        profile = self.context.profile_of(infos[0].pod) if infos else ""
        runner, args = self.context.runners.get(profile), self._served.get(profile)
        if runner is not None and args is not None and tracked.seen != self._version:
            share = NodeShare(self._cluster, booking.namespace, args)
            outcome = yield from self._trial(self._supposed(booking.key, infos, runner), share)
            if isinstance(outcome, GroupOutcome):
                yield from self._hold(booking, outcome, lambda info, _: slots[info.pod.uid])
            tracked.seen = self._version
        if self._bookings.get(tracked.key) is not booking:
            return
        tracked.is_retry, tracked.lost = bool(booking.homeless), len(booking.homeless)
        if len(booking.homeless) == len(booking.slots):
            why = "other pods took its places, or nodes went"
            self._say(tracked, requests.over(requests.LOST, why))
            self._pause(tracked)
            return
        if booking.homeless:
            self._pause(tracked)
        else:
            tracked.pause_s = PAUSE_S
        self._say(tracked, _found_status(self._cluster, booking))

    def _hold(
        self, booking: Booking, outcome: GroupOutcome, slot_for: Callable[[PodInfo, str], Slot]
    ) -> Steps:
        """Hold the places that hypothetical pods have, one after the other."""
        for tried in outcome.tried:
            yield from self.context.pause_if_due(LET_GO_STEPS)
            assert tried.decision is not None
            info, node = tried.attempt.info, tried.decision.node
            yield from give_back(self.context, tried.attempt, node)
            if self._bookings.get(booking.key) is booking:
                self._bookings.place(booking, slot_for(info, node), node)

    def _supposed(self, key: str, infos: Sequence[PodInfo], runner: Runner) -> GroupAttempt:
        gang, started_s = HypotheticalGang(self._cluster, len(infos)), self.context.monotonic_s()
        now_s = self.context.now_s
        attempts = [
            Attempt(
                number, QueuedPod(info.pod, now_s), info, runner, started_s, hypothetical_gang=gang
            )
            for number, info in enumerate(infos)
        ]
        return GroupAttempt(attempts[0], attempts, f"{OWNERS}:{key}")

    def _trial(
        self, group: GroupAttempt, share: NodeShare
    ) -> Generator[Effect, Answer, GroupOutcome | str]:
        """Find and assume places for all pods, within the share of nodes; or return why there are
        none.
        """
        steps = self._within_share(group, share)
        found = yield from seen(group, released(self.context, group, steps))
        yield from notify_of_freed(self.context, group.freed)
        return found

    def _within_share(
        self, group: GroupAttempt, share: NodeShare
    ) -> Generator[Effect, Answer, GroupOutcome | str]:
        """If places are on too many nodes, try those of these nodes that take most pods."""
        outcome = yield from self._sought(group)
        if isinstance(outcome, str):
            return outcome
        nodes = [tried.decision.node for tried in outcome.tried if tried.decision is not None]
        beyond = share.why_beyond(nodes)
        if not beyond:
            return outcome
        yield from let_go(self.context, group, outcome)
        rows = share.rows([attempt.info for attempt in group.attempts], nodes)
        outcome = yield from try_group(self.context, group, rows, plan={})
        if outcome.result is Result.SCHEDULED:
            return outcome
        yield from let_go(self.context, group, outcome)
        return beyond

    def _sought(self, group: GroupAttempt) -> Generator[Effect, Answer, GroupOutcome | str]:
        outcome = yield from try_group(self.context, group, plan={})
        if outcome.result is Result.SCHEDULED:
            return outcome
        yield from let_go(self.context, group, outcome)
        failures = [tried.failure for tried in outcome.tried if tried.failure is not None]
        why = failures[0].message if failures else outcome.message
        if failures and failures[0].is_error:
            return why
        found = yield from search_places(self.context, group)
        if isinstance(found, GroupOutcome):
            return found
        return f"{proof_text(found)} (tried one after the other: {why})"

    def _say(self, tracked: Tracked, wanted: DesiredStatus) -> None:
        """Write a status, after the pause of a write that was not successful."""
        tracked.wanted = wanted
        if tracked.write_s is None and not tracked.is_writing:
            self._requests.write_at(tracked, self.context.now_s)

    def _write(self, tracked: Tracked) -> Steps:
        """Send one write. The status stays wanted until the watch shows it: the answer may be lost,
        and the resource version may be outdated.
        """
        try:
            wanted = tracked.wanted
            request = self._stored(tracked.key)
            if request is None or wanted is None or request.metadata.uid != tracked.uid:
                return
            if requests.says(request, wanted):
                tracked.wanted = None
                return
            answer = yield requests.patch_of(self._cluster, request, wanted)
            if self._requests.tracked.get(tracked.key) is not tracked or tracked.wanted is None:
                return
            if isinstance(answer, Done):
                tracked.write_pause_s = WRITE_PAUSE_S
                if tracked.wanted is wanted:
                    tracked.wanted = None
                    return
            self._requests.write_at(tracked, self.context.now_s + tracked.write_pause_s)
            tracked.write_pause_s = min(2 * tracked.write_pause_s, WRITE_PAUSE_S_MAX)
        except MISTAKES as raised:  # the write is given up
            self.context.contain(raised, "requests", tracked.key)
            tracked.wanted = None
        finally:
            self._requests.writes -= 1
            tracked.is_writing = False
            if tracked.wanted is not None and tracked.write_s is None:
                self._requests.write_at(tracked, self.context.now_s + WRITE_PAUSE_S)

    def _stored(self, key: str) -> ProvisioningRequest | None:
        found: ProvisioningRequest | None = self._cluster.stored(PROVISIONING_REQUEST, key)
        return found


def holding_promised(
    cluster: Cluster, request: ProvisioningRequest, args: CheckAndHoldArgs
) -> Generator[None, None, tuple[str, str] | None]:
    """Hold the places in the status of an accepted request; returns (reason, message) if there are
    none any more. Yields after each place.
    """
    bookings = cluster.singleton(Bookings)
    promised = requests.read(request.status.provisioning_class_details)
    if promised is None:
        return LOST_PLACES
    places, end_s = promised
    remaining_s = end_s - cluster.wall_clock_s
    if remaining_s <= 0:
        return TIME_IS_UP
    try:
        hold_s = hypothetical_pods.terms_of(request, args).hold_s
        by_set = hypothetical_pods.examples(cluster, request)
    except UnusableRequestError:
        return LOST_PLACES
    sizes = Counter[int]()
    for place in places:
        sizes[place.pod_set] += place.times
    if not sizes.keys() <= set(range(len(by_set))):
        return LOST_PLACES
    for pod_set, (like, count) in enumerate(by_set):  # the others were lost, and are searched for
        by_set[pod_set] = like, max(count, sizes[pod_set])
        if sizes[pod_set] < count:
            places.append(requests.Where(pod_set, "", count - sizes[pod_set]))
    if sum(count for _, count in by_set) > PODS_MAX:
        return LOST_PLACES
    namespace = request.metadata.namespace
    over = why_beyond_share(cluster, namespace, by_set, args)
    over = over or NodeShare(cluster, namespace, args).why_beyond(_known(cluster, places))
    if over:
        return requests.LOST, over
    until_s = cluster.steady_s + min(remaining_s, hold_s)
    key, uid = request.metadata.key, request.metadata.uid
    booking = bookings.begin(key, uid, until_s, args.priority)
    for place in places:
        for _ in range(place.times):
            number = len(booking.slots)
            what = hypothetical_pods.numbered(
                by_set[place.pod_set][0], request, place.pod_set, number
            )
            bookings.add(booking, place.pod_set, what, place.node)
            yield
    bookings.match(booking)
    for slot in tuple(booking.slots.values()):
        if not slot.taken_by:
            bookings.place(booking, slot, slot.node)
        yield
    return None


def _known(cluster: Cluster, places: Iterable[requests.Where]) -> list[str]:
    """The nodes of places, as far as they exist."""
    return [place.node for place in places if place.node in cluster.nodes.row_of]


def _not_found(why: str, terms: Terms, until_s: float) -> RequestOutcome:
    if terms.is_tried_again:
        wanted = requests.not_found(why)
        return RequestOutcome(wanted, is_tried_again=True, valid_until_s=until_s)
    return RequestOutcome(requests.failed(why))


def _args(
    served: Mapping[str, CheckAndHoldArgs], profile: str, request: ProvisioningRequest, pod: Pod
) -> CheckAndHoldArgs:
    args, class_name = served.get(profile), request.spec.provisioning_class_name
    if args is None or args.provisioning_class_name != class_name:
        is_named = profile == pod.spec.scheduler_name
        which = "its templates name the scheduler" if is_named else "its pool names the profile"
        raise UnusableRequestError(
            f'{which} "{profile}", which does not serve {class_name}: its pods would not get these'
            " places"
        )
    return args


def _found_status(cluster: Cluster, booking: Booking) -> DesiredStatus:
    """The status with the places of a booking, including places that pods have taken."""
    places = Counter((slot.pod_set, slot.node) for slot in booking.slots.values() if slot.node)
    where = [requests.Where(pod_set, node, count) for (pod_set, node), count in places.items()]
    lost = len(booking.homeless), len(booking.slots)
    end_s = booking.until_s + cluster.wall_ahead_s
    return requests.found(requests.details_of(where, end_s), *lost)
