"""The cycle of ProvisioningRequests: try them in turn, hold their places, and write their status.

    seen ─> tried ─ no place ─> status written, tried again after a pause (or failed, by NoRetry)
              └─ all places ─> held ─> status written, with the places ─> pods consume them
                                 └─ time is up, all places taken, or lost ─> given back, status

Places are held before the status is written, and written before a client relies on them: Kueue
starts a job once it reads `Provisioned`, which is written together with the places. A process that
dies before the write has promised nothing; after the write, the next leader reads the promise
(`adopt`) once it knows all nodes and pods.

For a lost place (its node was removed, or other pods took it) another place is found and written to
the status; if there is none, the booking ends and Kueue may create a new request. CapacityRevoked
is never written here, because Kueue would not retry the job; it is left to administrators.

Namespaces have their turns one after the other, each with one request at a time. Requests that were
tried without success come after new requests, but for one in NEW_IN_A_ROW.

Bounds  one attempt at a time, one begun a turn; WRITES_MAX writes at a time; pauses from PAUSE_S,
        doubled up to PAUSE_S_MAX; OPEN_MAX open requests a namespace, further requests fail; one
        entry per open request.
"""

import math
from collections import Counter, OrderedDict
from collections.abc import Generator, Iterable, Iterator, Mapping
from heapq import heappop, heappush
from typing import Final

import msgspec

from asched.batch.provisioning import status as request_status
from asched.batch.provisioning import trial as request_trial
from asched.batch.provisioning.adoption import TIME_IS_UP, holding_promised
from asched.batch.provisioning.book import Bookings, giving_back
from asched.batch.provisioning.status import DesiredStatus, patch_of, says
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Answer, Done
from asched.core.config.args import CheckAndHoldArgs
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.extension import Work
from asched.core.framework.effects import Effect
from asched.core.framework.status import MISTAKES
from asched.core.model.kinds import POD_TEMPLATE, PROVISIONING_REQUEST
from asched.core.model.provisioning import ProvisioningRequest, RequestStage

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
    #: since 1970: it fails if it has no places by then
    valid_until_s: float = math.inf
    #: versions of the cluster at the last attempt without success
    seen: tuple[int, ...] = ()
    #: key of a missing template
    lacks: str = ""


class ProvisioningRequests:
    """All open requests. Made by `Cluster.singleton`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.tracked: dict[str, Tracked] = {}
        #: key -> uid of ended requests that still exist: a later status of theirs is not trusted
        self.ended: dict[str, str] = {}
        self._cursor = -2
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
        log = self._cluster.object_log
        entries = log.since(self._cursor) if served == self._served else None
        self._cursor, self._served = log.end, served
        if entries is None:
            known: Mapping[str, ProvisioningRequest] = self._cluster.all(PROVISIONING_REQUEST)
            by_age = sorted(known, key=lambda k: (known[k].metadata.creation_timestamp or "", k))
            return list(dict.fromkeys((*self.tracked, *self.ended, *by_age)))
        found: dict[str, None] = {}
        templates = set()
        for resource, key in entries:
            if resource == PROVISIONING_REQUEST.resource:
                found[key] = None
            elif resource == POD_TEMPLATE.resource:
                templates.add(key)
        if templates:
            found.update((t.key, None) for t in self.tracked.values() if t.lacks in templates)
        return list(found)


def _namespace(key: str) -> str:
    return key.partition("/")[0]


def _both(cluster: Cluster) -> tuple[ProvisioningRequests, Bookings]:
    return cluster.singleton(ProvisioningRequests), cluster.singleton(Bookings)


def served(context: SchedulerContext) -> Mapping[str, CheckAndHoldArgs]:
    """The plugin's args by profile."""
    return context.args_by_profile(CheckAndHoldArgs)


def next_s(cluster: Cluster) -> float | None:
    """The time at which `due` has work next; None if a change has to come first."""
    return cluster.singleton(ProvisioningRequests).next_s()


def due(context: SchedulerContext) -> Iterator[Work]:
    """Yield the work to begin now. Called by the leader once all objects are known."""
    requests, bookings = _both(context.cluster)
    classes = served(context)
    if not classes and not requests.tracked and not bookings.over:
        return
    if changed := requests.changed(classes):
        context.queue.sliced.do(_considering(context, classes, changed))
    if context.queue.sliced:
        return
    for key in tuple(bookings.moved):
        bookings.moved.pop(key, None)
        try:
            _look_at_booking(context, key)
        except MISTAKES as raised:
            context.contain(raised, "requests", key)
            _forget(context, key)
    if bookings.over and not bookings.is_giving_back:
        yield Work(giving_back(context), decides=True)
    tracked = requests.to_try(context.now_s)
    if tracked is not None:
        yield Work(_try(context, tracked), decides=True)
    while (tracked := requests.to_write(context.now_s)) is not None:
        yield Work(_write(context, tracked), decides=False)


# --- changes of requests -------------------------------------------------------------------------


def _considering(
    context: SchedulerContext, classes: Mapping[str, CheckAndHoldArgs], keys: Iterable[str]
) -> Iterator[None]:
    """Handle requests that were added, changed or deleted, or whose templates were. A new process
    handles all requests, and holds all their places again before it tries any pod.
    """
    note = context.queue.sliced.budget.note
    for key in keys:
        note(CONSIDER_STEPS)
        yield
        try:
            for _ in _consider(context, classes, key):
                note(PLACE_STEPS)
                yield
        except MISTAKES as raised:  # it is skipped until it, or its template, changes again
            context.contain(raised, "requests", key)
            _forget(context, key)


def _consider(
    context: SchedulerContext, classes: Mapping[str, CheckAndHoldArgs], key: str
) -> Iterator[None]:
    """Handle one request. Yields after each of its places."""
    requests, bookings = _both(context.cluster)
    request: ProvisioningRequest | None = context.cluster.stored(PROVISIONING_REQUEST, key)
    tracked = requests.tracked.get(key)
    ours = {args.provisioning_class_name for args in classes.values()}
    is_ours = request is not None and request.spec.provisioning_class_name in ours
    if tracked is not None and (
        request is None or not is_ours or tracked.uid != request.metadata.uid
    ):
        _forget(context, key)
        tracked = None
    if request is None:
        requests.ended.pop(key, None)
        return
    if not is_ours:
        return
    stage, is_over = request.stage, requests.ended.get(key) == request.metadata.uid
    if stage is RequestStage.ENDED:
        requests.ended[key] = request.metadata.uid
        _forget(context, key)
        return
    if tracked is None and is_over:
        return
    if tracked is None:
        tracked = requests.begin(key, request.metadata.uid)
        if stage is RequestStage.UNDECIDED and requests.has_too_many(key):
            why = f"more than {OPEN_MAX} requests of its namespace have no end yet"
            _say(context, tracked, request_status.failed(why))
        elif stage is RequestStage.UNDECIDED:
            _try_at(context, tracked, context.now_s)
    elif tracked.lacks and context.cluster.stored(POD_TEMPLATE, tracked.lacks) is not None:
        tracked.lacks = ""
        _try_at(context, tracked, context.now_s)
    if tracked.wanted is not None and says(request, tracked.wanted):
        tracked.wanted = tracked.write_s = None
    is_held = bookings.get(key) is not None or requests.trying == key
    if stage is RequestStage.HELD and not (is_held or is_over):
        yield from adopt(context, tracked, request)


def adopt(
    context: SchedulerContext, tracked: Tracked, request: ProvisioningRequest
) -> Iterator[None]:
    """Hold the places of an accepted request, promised by an earlier process or by a write of this
    process whose answer was lost.
    """
    tracked.try_s, tracked.is_due = None, False
    name = request.spec.provisioning_class_name
    args = next(a for a in served(context).values() if a.provisioning_class_name == name)
    over = yield from holding_promised(context.cluster, request, args)
    if over is not None:
        _end(context, tracked, *over)


def _end(context: SchedulerContext, tracked: Tracked, reason: str, message: str) -> None:
    context.cluster.singleton(ProvisioningRequests).ended[tracked.key] = tracked.uid
    _say(context, tracked, request_status.over(reason, message))


CONSUMED: Final = (request_status.CONSUMED, "pods have taken all of its places")


def _look_at_booking(context: SchedulerContext, key: str) -> None:
    """Handle a booking that ended, or whose slots were taken or lost."""
    cluster = context.cluster
    requests, bookings = _both(cluster)
    tracked, booking = requests.tracked.get(key), bookings.get(key)
    if tracked is None:
        bookings.end(key)
        return
    request: ProvisioningRequest | None = cluster.stored(PROVISIONING_REQUEST, key)
    if booking is None:
        if request is not None and request.stage is RequestStage.HELD:
            _end(context, tracked, *TIME_IS_UP)
        else:  # its status was not written
            tracked.wanted = tracked.write_s = None
            _pause(context, tracked)
    elif booking.is_consumed and requests.trying != key:
        _end(context, tracked, *CONSUMED)
    elif booking.homeless and requests.trying != key:
        _try_at(context, tracked, context.now_s)


def _forget(context: SchedulerContext, key: str) -> None:
    requests, bookings = _both(context.cluster)
    requests.drop(key)
    bookings.end(key)


# --- attempts ------------------------------------------------------------------------------------


def _try(context: SchedulerContext, tracked: Tracked) -> Steps:
    cluster = context.cluster
    requests, bookings = _both(cluster)
    try:
        request: ProvisioningRequest | None = cluster.stored(PROVISIONING_REQUEST, tracked.key)
        if request is None or request.metadata.uid != tracked.uid:
            return
        booking = bookings.get(tracked.key)
        if booking is not None:
            wanted = yield from request_trial.rehouse(context, booking)
            if bookings.get(tracked.key) is booking:
                _say(context, tracked, wanted)
            return
        if tracked.seen == _now(cluster) and cluster.wall_clock_s < tracked.valid_until_s:
            _pause(context, tracked)
            return
        found = yield from request_trial.answer(context, request, served(context))
        if requests.tracked.get(tracked.key) is not tracked:
            bookings.end(tracked.key)
            return
        tracked.lacks, tracked.seen = found.lacks, _now(cluster)
        tracked.valid_until_s, tracked.is_retry = found.valid_until_s, found.is_tried_again
        if found.is_tried_again:
            _pause(context, tracked)
        if not says(request, found.wanted):
            _say(context, tracked, found.wanted)
    except MISTAKES as raised:  # no place is held, and it is tried again after a pause
        context.contain(raised, "requests", tracked.key)
        bookings.end(tracked.key)
        _pause(context, tracked)
    finally:
        requests.trying = ""


def _now(cluster: Cluster) -> tuple[int, ...]:
    return cluster.nodes.log.end, cluster.epoch


def _pause(context: SchedulerContext, tracked: Tracked) -> None:
    left_s = max(tracked.valid_until_s - context.cluster.wall_clock_s, 0.0)
    _try_at(context, tracked, context.now_s + min(tracked.pause_s, left_s))
    tracked.pause_s = min(2 * tracked.pause_s, PAUSE_S_MAX)


def _try_at(context: SchedulerContext, tracked: Tracked, at_s: float) -> None:
    context.cluster.singleton(ProvisioningRequests).try_at(tracked, at_s)


# --- writes --------------------------------------------------------------------------------------


def _say(context: SchedulerContext, tracked: Tracked, wanted: DesiredStatus) -> None:
    tracked.wanted, tracked.write_pause_s = wanted, WRITE_PAUSE_S
    _write_at(context, tracked, context.now_s)


def _write_at(context: SchedulerContext, tracked: Tracked, at_s: float) -> None:
    context.cluster.singleton(ProvisioningRequests).write_at(tracked, at_s)


def _write(context: SchedulerContext, tracked: Tracked) -> Steps:
    """Send one write. The status stays wanted until the watch shows it: the answer may be lost, and
    the resource version may be outdated.
    """
    cluster = context.cluster
    requests = cluster.singleton(ProvisioningRequests)
    try:
        wanted = tracked.wanted
        request: ProvisioningRequest | None = cluster.stored(PROVISIONING_REQUEST, tracked.key)
        if request is None or wanted is None or request.metadata.uid != tracked.uid:
            return
        if says(request, wanted):
            tracked.wanted = None
            return
        answer = yield patch_of(cluster, request, wanted)
        if requests.tracked.get(tracked.key) is not tracked or tracked.wanted is None:
            return
        if isinstance(answer, Done) and tracked.wanted is wanted:
            tracked.wanted = None
            return
        _write_at(context, tracked, context.now_s + tracked.write_pause_s)
        tracked.write_pause_s = min(2 * tracked.write_pause_s, WRITE_PAUSE_S_MAX)
    except MISTAKES as raised:  # the write is given up
        context.contain(raised, "requests", tracked.key)
        tracked.wanted = None
    finally:
        requests.writes -= 1
        tracked.is_writing = False
        if tracked.wanted is not None and tracked.write_s is None:
            _write_at(context, tracked, context.now_s + WRITE_PAUSE_S)
