"""Leader election on a Lease, as a state machine: input are answers and times, output is the next
action.

    acquiring ──try: written──> leading ──a try succeeds every retry period──> leading
        └─held: wait retry x (1 … 1.2), or its end     └─none did for the renew deadline──> LOST

A try of the leader writes at once, guarded by the version it saw last; if that fails, or while the
lease is free, it reads first. Whether a holder is alive is evaluated by local time since its record
was last seen to change; times inside the record are never compared with the local clock.

A candidate whose cache of the cluster is not complete yet (`is_fit`) watches the lease without
taking it; once complete, it takes a lease that it saw free without reading again.

A leader may act until `fence_s`, which lies before the moment at which another candidate could take
the lease over, and moves only when a renewal succeeded. It counts from the sending of that renewal,
so clocks may run at rates that differ by the part of the lease that retry period and renew deadline
leave: a fifth with the default times. LOST is final: the process ends, and its
successor starts from the beginning.

An annotation of the Lease (`Term`) says what its spec cannot: whether all writes of the last holder
were answered when it released the Lease, whose bindings carry a version, when leaders ended without
releasing it, and what is sealed already while none has decided yet (`host/seal.py`). A holder that
does not write it, as kube-scheduler, leaves the annotation of an earlier term, which does not
count.

Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/client-go/tools/leaderelection, and recorded
        requests
"""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from math import floor
from typing import Any, ClassVar, Final

import msgspec
from msgspec.structs import replace

from asched import names
from asched.core.cluster.pool_tenure import NEVER, number_of
from asched.core.config.layout import LeaseNs
from asched.core.model.kinds import POD, Kind
from asched.core.model.timestamp import NS_PER_SECOND, micro_time

#: A follower waits between one retry period and this many more. Upstream waits up to 1.2 more and
#: does not wake when the lease ends, so that a take-over may come a third of a lease late.
FOLLOWER_JITTER: Final = 0.2
#: Lease duration that a resigning leader writes, in seconds.
RELEASED_DURATION_S: Final = 1
#: Unclean ends of leaders are counted within this time.
UNCLEAN_S: Final = 600


class LeaseTimes(msgspec.Struct, frozen=True):
    """Times in seconds. `lease_s` > `renew_s` > 1.2 `retry_s`."""

    identity: str
    lease_s: float
    renew_s: float
    retry_s: float

    @classmethod
    def of(cls, identity: str, times: LeaseNs) -> "LeaseTimes":
        return cls(identity, *(time_ns / NS_PER_SECOND for time_ns in times))

    @property
    def duration_s(self) -> int:
        """Lease duration as other candidates read it: whole seconds."""
        return max(int(self.lease_s), 1)


#: The fields of a LeaseRecord as the API spells them.
SPELT: Final = {
    "holder": "holderIdentity",
    "duration_s": "leaseDurationSeconds",
    "acquire_time": "acquireTime",
    "renew_time": "renewTime",
    "transitions": "leaseTransitions",
}


class LeaseRecord(msgspec.Struct, frozen=True):
    """A Lease's spec, as far as the election reads or writes it; times as the API spells them."""

    holder: str = ""
    duration_s: int = 0
    acquire_time: str = ""
    renew_time: str = ""
    transitions: int = 0

    @classmethod
    def of(cls, lease: Mapping[str, Any]) -> "LeaseRecord":
        """Read a Lease; missing fields count as empty."""
        spec = lease.get("spec") or {}
        return cls(**{field: spec[key] for field, key in SPELT.items() if spec.get(key)})

    def spec(self) -> dict[str, Any]:
        """The Lease's spec to be written."""
        return {key: getattr(self, field) for field, key in SPELT.items()}


class OpenSeal(msgspec.Struct, frozen=True):
    """The versions of pods and claims when a seal began. As long as the Lease says so, no holder
    has decided since: late writes cannot reach what has a newer version.
    """

    pods: int
    claims: int

    def is_before(self, kind: Kind, version: str) -> bool:
        """Whether a pod or a claim has changed since."""
        return (self.pods if kind is POD else self.claims) < number_of(version) < NEVER


class Term(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a holder says about its time on the Lease, in an annotation. `transitions`: those of the
    Lease in that time.
    """

    transitions: int
    #: Names of the schedulers whose bindings carry the version of their pod; None while bindings
    #: without a version may be under way.
    sealable: tuple[str, ...] | None = ()
    #: All writes were answered, and the Lease was released after that.
    is_handed_on: bool = False
    #: When leaders ended without releasing the Lease: seconds since 1970.
    unclean_ends: tuple[int, ...] = ()
    #: Of a holder that has decided nothing yet.
    open_seal: OpenSeal | None = None

    @classmethod
    def of(cls, lease: Mapping[str, Any] | None) -> "Term | None":
        """The term of the Lease's last holder; None if it has said nothing."""
        annotations = ((lease or {}).get("metadata") or {}).get("annotations") or {}
        try:
            term = msgspec.json.decode(annotations.get(names.LEASE_TERM) or b"", type=cls)
        except (msgspec.MsgspecError, UnicodeError, TypeError):
            return None
        return term if lease and term.transitions == LeaseRecord.of(lease).transitions else None

    @property
    def annotations(self) -> dict[str, str]:
        return {names.LEASE_TERM: msgspec.json.encode(self).decode()}


class Predecessor(msgspec.Struct, frozen=True):
    """The leader before this one, which did not hand the Lease on: its writes may still be carried
    out.
    """

    #: The transitions of the Lease since we hold it.
    transitions: int = 0
    #: The names of schedulers whose late bindings can be refused; None if it did not say so.
    sealable: tuple[str, ...] | None = ()
    #: Leaders that ended without releasing the Lease within UNCLEAN_S, if the last one did.
    unclean_ends: int = 0
    #: The seal that it had not ended; None if it may have decided.
    open_seal: OpenSeal | None = None

    def may_reach(self, kind: Kind, version: str) -> bool:
        """Whether its late writes may meet a pod or a claim of this version."""
        return self.open_seal is None or not self.open_seal.is_before(kind, version)


# --- what is asked of the outside -----------------------------------------------------------------


class Read(msgspec.Struct, frozen=True):
    """GET the lease; answer with `lease_read` or `failed`."""


class CreateLease(msgspec.Struct, frozen=True):
    """POST the lease; answer with `written` or `failed`. `notes`: annotations beside the term."""

    record: LeaseRecord
    term: Term
    notes: Mapping[str, str] = {}

    @property
    def annotations(self) -> dict[str, str]:
        return {**self.term.annotations, **self.notes}


class WriteLease(msgspec.Struct, frozen=True):
    """PUT over `lease`, whose version guards; answer with `written` or `failed`."""

    lease: Mapping[str, Any]
    record: LeaseRecord
    term: Term
    notes: Mapping[str, str] = {}

    @property
    def annotations(self) -> dict[str, str]:
        return {**self.term.annotations, **self.notes}


class Wait(msgspec.Struct, frozen=True):
    """Call `woke` at this time."""

    until_s: float


class Lost(msgspec.Struct, frozen=True):
    """Leadership is over for this process."""


Act = Read | CreateLease | WriteLease | Wait | Lost


class ElectionPhase(Enum):
    ACQUIRING = "acquiring"
    LEADING = "leading"
    LOST = "lost"


class Election:
    """One candidate. `draw` returns a number in [0, 1) for the pauses of followers. `schedulers`:
    the names that it schedules for; more may be added at any time.
    """

    #: Whether several processes hold the lease together.
    is_shared: ClassVar[bool] = False

    def __init__(
        self, rules: LeaseTimes, draw: Callable[[], float], schedulers: Iterable[str] = ()
    ) -> None:
        self.rules = rules
        #: The shortest pause of a follower.
        self.follows_s = rules.retry_s
        self.schedulers = frozenset(schedulers)
        #: Whether renewals write over the version seen last, without a read.
        self.writes_unread = True
        self.phase = ElectionPhase.ACQUIRING
        #: Renewals that had to read first, so far.
        self.slow_renewals = 0
        #: The leader before us, unless it handed the lease on or is sealed.
        self.predecessor: Predecessor | None = None
        #: What the Lease is to say of our seal; None once we decide.
        self.open_seal: OpenSeal | None = None
        #: Whether the Lease may say, now or later, that we have not decided.
        self.may_say_undecided = False
        self._written_seal: OpenSeal | None = None  # in the write under way
        self._unclean_ends: tuple[int, ...] = ()
        #: Whether it may take the lease, or only watches it.
        self.is_fit = True
        #: How far the wall clock is ahead of the times passed in; for the record's own times.
        self.wall_ahead_s = 0.0
        self._draw = draw
        #: The lease as last seen.
        self.lease: Mapping[str, Any] | None = None
        self._seen = LeaseRecord()
        self._seen_s = 0.0
        self._tried_s = 0.0  # when the try under way began
        self._sent_s = 0.0  # when the last record of ours was made to be sent
        #: When the last successful write was sent.
        self.renewed_s = 0.0
        #: Until when a leader may act without another renewal.
        self.fence_s = 0.0
        self._is_fast = False
        #: The lease was found free while this candidate was not fit.
        self._is_offered = False

    @property
    def is_leader(self) -> bool:
        return self.phase is ElectionPhase.LEADING

    @property
    def holder(self) -> str:
        """The holder of the lease as last seen; empty if none."""
        return self._seen.holder

    @property
    def ends_s(self) -> float:
        """When the lease runs out for a candidate that saw the last write of ours that may have
        arrived.
        """
        return self._sent_s + self.rules.duration_s

    # --- answers ---------------------------------------------------------------------------------

    def woke(self, now_s: float) -> Act:
        """Begin a try, at the start and after every Wait."""
        if self.is_leader and now_s >= self.fence_s:
            return self._lost()
        self._tried_s = now_s
        is_offered, self._is_offered = self._is_offered and self.is_fit, False
        self._is_fast = is_offered or (
            self.writes_unread and self.is_leader and self._holds() and self._is_valid(now_s)
        )
        if is_offered:
            return self._take(now_s)
        if self._is_fast:
            assert self.lease is not None
            return self._write(self.lease, self._cached(now_s))
        return Read()

    def lease_read(self, lease: Mapping[str, Any] | None, now_s: float) -> Act:
        """The lease as read, None if there is none."""
        if lease is None:
            self.lease = None
            return self._take(now_s)
        record = LeaseRecord.of(lease)
        if record != self._seen or self.lease is None:
            self._seen, self._seen_s = record, now_s
        self.lease = lease
        if record.holder and not self._holds() and self._is_valid(now_s):
            again = self._again(now_s)
            end_s = self._seen_s + record.duration_s
            return Wait(min(again.until_s, end_s)) if isinstance(again, Wait) else again
        if self._holds():
            self.slow_renewals += 1
            return self._write(lease, self._cached(now_s))
        return self._take(now_s)

    def written(self, lease: Mapping[str, Any], now_s: float) -> Act:
        """Our write succeeded."""
        self.lease = lease
        self.may_say_undecided = self._written_seal is not None
        self._seen, self._seen_s = LeaseRecord.of(lease), now_s
        self._renewed(self._tried_s)
        if not self.is_leader:
            self.phase = ElectionPhase.LEADING
            return self.woke(now_s)
        return Wait(now_s + self.rules.retry_s)

    def _renewed(self, sent_s: float) -> None:
        """The lease was renewed by what was sent at this time, or later."""
        rules = self.rules
        self.renewed_s = sent_s
        self.fence_s = min(sent_s + rules.retry_s + rules.renew_s, sent_s + rules.duration_s)

    def failed(self, now_s: float) -> Act:
        """The request under way failed, for any reason."""
        if self._is_fast:
            self._is_fast = False
            return Read()
        return self._again(now_s)

    def seals(self, begun: OpenSeal) -> None:
        """We seal from now on, or continue the seal of the leader before us."""
        self.open_seal = self.open_seal or begun

    def decides(self) -> None:
        """The next write says no longer that we have not decided. We may decide once
        `may_say_undecided` is false. Another thread than that of the election may call this.
        """
        self.open_seal = None

    def sealed(self) -> None:
        """The writes of the leader before us can do no harm any more."""
        self.predecessor = None

    def resign(self) -> None:
        """Stop leading now."""
        self.phase = ElectionPhase.LOST

    @property
    def announced(self) -> frozenset[str]:
        """The names of schedulers on the Lease, as we wrote it last."""
        term = Term.of(self.lease)
        return frozenset((term.sealable if term is not None and self._holds() else None) or ())

    def release(
        self,
        lease: Mapping[str, Any],
        now_s: float,
        *,
        is_handed_on: bool,
        is_dying: bool = False,
    ) -> WriteLease | None:
        """The spec that releases `lease` (as just read) to other candidates; None if it is not
        ours.

        `is_handed_on`: all our writes are answered; those of the leader before us may still be
        under way until it is sealed. `is_dying`: our name stays in it, as if the lease had run out.
        """
        record = LeaseRecord.of(lease)
        if record.holder != self.rules.identity:
            return None
        stamp = self._stamp(now_s)
        gone = replace(
            record,
            holder=record.holder if is_dying else "",
            duration_s=RELEASED_DURATION_S,
            acquire_time=stamp,
            renew_time=stamp,
        )
        is_clean = is_handed_on and self.predecessor is None and not is_dying
        term = replace(self._term(gone), is_handed_on=is_clean)
        return WriteLease(lease, gone, term, self._notes(now_s))

    # --- inside ----------------------------------------------------------------------------------

    def _take(self, now_s: float) -> Act:
        """The lease is free: take it, if we are fit."""
        if not self.is_fit:
            self._is_offered = True
            return self._again(now_s)
        before, term = self._seen, Term.of(self.lease)
        if self.lease is None:
            record = self._fresh(now_s, 0)
            self._follow(self._predecessor(Predecessor(), is_clean=False))
            return CreateLease(record, self._term(record), self._notes(now_s))
        record = self._fresh(now_s, before.transitions + 1)
        since_s = floor(now_s + self.wall_ahead_s) - UNCLEAN_S
        ends = [at_s for at_s in term.unclean_ends if at_s > since_s] if term is not None else []
        if before.holder:
            ends.append(since_s + UNCLEAN_S)
        self._unclean_ends = tuple(ends)
        is_new = before == LeaseRecord()  # made by hand, and never held
        sealable = () if is_new else None if term is None else term.sealable
        unclean = len(ends) if before.holder else 0
        open_seal = None if term is None else term.open_seal
        was_last = Predecessor(record.transitions, sealable, unclean, open_seal)
        is_clean = not before.holder and term is not None and term.is_handed_on
        self._follow(self._predecessor(was_last, is_clean=is_clean))
        return self._write(self.lease, record)

    def _follow(self, last: Predecessor | None) -> None:
        self.predecessor = last
        self.open_seal = None if last is None else last.open_seal

    def _predecessor(self, last: Predecessor, *, is_clean: bool) -> Predecessor | None:
        """The leader before us; None if it handed on the lease that we take."""
        return None if is_clean else last

    def _write(self, lease: Mapping[str, Any], record: LeaseRecord) -> WriteLease:
        return WriteLease(lease, record, self._term(record), self._notes(self._sent_s))

    def _notes(self, now_s: float) -> Mapping[str, str]:  # noqa: ARG002 - for subclasses
        """Annotations to be written beside the term."""
        return {}

    def _term(self, record: LeaseRecord) -> Term:
        before = () if self.predecessor is None else self.predecessor.sealable
        sealable = None if before is None else tuple(sorted(self.schedulers.union(before)))
        self._written_seal = None
        if self.open_seal is not None:
            self.may_say_undecided = True  # before the seal is read: `decides` writes it first
            self._written_seal = self.open_seal
        ends, open_seal = self._unclean_ends, self._written_seal
        return Term(record.transitions, sealable, unclean_ends=ends, open_seal=open_seal)

    def _again(self, now_s: float) -> Act:
        if not self.is_leader:
            pause_s = self.follows_s * (1 + FOLLOWER_JITTER * self._draw())
            return Wait(now_s + pause_s)
        if now_s >= self.fence_s:
            return self._lost()
        return Wait(min(max(self._tried_s + self.rules.retry_s, now_s), self.fence_s))

    def _lost(self) -> Lost:
        self.phase = ElectionPhase.LOST
        return Lost()

    def _holds(self) -> bool:
        return self._seen.holder == self.rules.identity

    def _is_valid(self, now_s: float) -> bool:
        return self._seen_s + self._seen.duration_s > now_s

    def _fresh(self, now_s: float, transitions: int) -> LeaseRecord:
        stamp, self._sent_s = self._stamp(now_s), now_s
        return LeaseRecord(self.rules.identity, self.rules.duration_s, stamp, stamp, transitions)

    def _cached(self, now_s: float) -> LeaseRecord:
        return replace(
            self._fresh(now_s, self._seen.transitions), acquire_time=self._seen.acquire_time
        )

    def _stamp(self, now_s: float) -> str:
        """Rounded to microseconds: floats have no better resolution for such times."""
        return micro_time(round((now_s + self.wall_ahead_s) * 1e6) * 1000)
