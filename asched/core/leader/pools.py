"""A Lease for each pool: which pools a replica takes and gives up, and what the Leases say.

    the Lease of the mode    all replicas of one layout hold it together, under the layout's name
    the Lease of a pool      one replica holds it, and decides for the pool's pods and nodes

A layout is the pools of a configuration and the times of its Leases, as a hash. The Lease of the
mode is the one that a single leader holds: a replica without pools, of another layout, or of an
earlier release waits until it has run out. So two layouts never decide at a time. Each time that it
is taken begins an epoch. What is written on the Lease of a pool in another epoch does not count:
its pods are sealed, and its acknowledgements are void.

A node or a namespace that comes to a pool is not used before each other pool has let go of it. The
holder of a pool acknowledges on its Lease up to which version it has seen nodes and namespaces; it
does so once its requests about all that has left the pool are answered. The new holder of a pool
waits for this, too, for all that the pool has. The acknowledgement of a former holder counts: it
was right when it was written, and a new holder begins with a newer view.

Free pools go to the replicas with the fewest pools, which take them at once; the other replicas try
a little later, in case these have just died.
A replica that has two pools more than another one gives one up in order.

`asched_lab.protocol` searches this protocol completely. Here are states only: no clock, no I/O.

Bounds  a replica that gives no sign on the Lease of the mode for the renew deadline is forgotten.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from asched import names
from asched.core.cluster.pool_tenure import Versions
from asched.core.leader.election import (
    FOLLOWER_JITTER,
    Act,
    Election,
    LeaseRecord,
    LeaseTimes,
    Predecessor,
    Term,
    Wait,
)

#: Between the name of a process and the number of its term, in the holder of a pool's Lease.
TERM_SEPARATOR: Final = "#"
#: The beginning of the holder of the Lease of the mode.
OF_LAYOUT: Final = "pools-"
#: Pauses of a follower of a pool, in retry periods: shorter than with one leader, so that a pool is
#: taken in time when the replica that was to take it has died, too.
FOLLOWS: Final = 0.5
#: Retry periods that other replicas leave to the one that is to take a free pool. It is longer than
#: the longest pause of a follower, by which that one may see later that the pool is free.
HEAD_START: Final = FOLLOWS * (1.0 + FOLLOWER_JITTER) + 0.05
#: Retry periods without a sign after which no pool is left to a replica: two signs may be missed.
SIGNS: Final = 3


def _each(choose: Callable[[Iterable[int]], int], all_of: Sequence[Versions]) -> Versions:
    return Versions(*(choose(versions) for versions in zip(*all_of, strict=True)))


class PoolNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an annotation on a pool's Lease says. `epoch`: of the Lease of the mode; `holder`: the
    replica that wrote it.
    """

    epoch: str = ""
    holder: str = ""
    nodes: int = 0
    namespaces: int = 0

    @classmethod
    def of(cls, lease: Mapping[str, Any] | None) -> "PoolNote":
        return _annotation(lease, names.LEASE_POOL, cls) or cls()

    @property
    def acknowledged(self) -> Versions:
        return Versions(self.nodes, self.namespaces)


def _annotation(lease: Mapping[str, Any] | None, name: str, kind: Any) -> Any:
    """An annotation of a Lease, decoded; None if it has none of this form."""
    annotations = ((lease or {}).get("metadata") or {}).get("annotations") or {}
    try:
        return msgspec.json.decode(annotations.get(name) or b"", type=kind)
    except (msgspec.MsgspecError, UnicodeError, TypeError):
        return None


class ModeElection(Election):
    """A replica's part in the Lease of the mode. It leads while the mode is that of its layout.

    A renewal by any replica counts for all that share the Lease: one that finds another record than
    before knows that it was written after the request that showed the one before.
    """

    is_shared = True

    def __init__(
        self,
        rules: LeaseTimes,
        draw: Callable[[], float],
        schedulers: Iterable[str] = (),
        *,
        layout: str,
    ) -> None:
        super().__init__(replace(rules, identity=holder_of_layout(layout)), draw, schedulers)
        self.writes_unread = False  # other replicas write it between two writes of ours
        self.member = rules.identity
        self._renewals = 0
        #: When the request was sent that showed the present record.
        self._shown_s = 0.0
        #: by name: the number in the last sign of a replica, and when it was seen first
        self._signs: dict[str, tuple[int, float]] = {}

    @property
    def epoch(self) -> str:
        """The time since the mode's Lease was taken, as a name; empty while we do not share it."""
        if not self.is_leader:
            return ""
        record = self._seen if self.lease is not None else LeaseRecord()
        return f"{record.transitions} {record.acquire_time}"

    @property
    def sealable(self) -> tuple[str, ...] | None:
        """The schedulers of this epoch and of the leader before it, as in `Term`."""
        term = Term.of(self.lease)
        return None if term is None else term.sealable

    def members(self, now_s: float, within_s: float | None = None) -> set[str]:
        """The replicas of this layout that gave a sign within this time."""
        since_s = now_s - (self.rules.renew_s if within_s is None else within_s)
        signs = tuple(self._signs.items())  # another thread may add one meanwhile
        return {self.member, *(name for name, (_, seen_s) in signs if seen_s > since_s)}

    def lease_read(self, lease: Mapping[str, Any] | None, now_s: float) -> Act:
        for name, number in (_annotation(lease, names.LEASE_MEMBERS, dict[str, int]) or {}).items():
            if self._signs.get(name, (None, 0.0))[0] != number:
                self._signs[name] = number, now_s
        record, before_s = LeaseRecord.of(lease or {}), self._shown_s
        if self.is_leader and record.holder == self.rules.identity and record != self._seen:
            self._renewed(max(before_s, self.renewed_s))
        self._shown_s = self._tried_s
        return super().lease_read(lease, now_s)

    def written(self, lease: Mapping[str, Any], now_s: float) -> Act:
        self._shown_s = self._tried_s
        return super().written(lease, now_s)

    def _predecessor(self, last: Predecessor, *, is_clean: bool) -> Predecessor | None:
        """Each pool has a seal of its own."""
        return super()._predecessor(replace(last, open_seal=None), is_clean=is_clean)

    def _notes(self, now_s: float) -> Mapping[str, str]:
        self._renewals += 1
        signs = {name: self._signs[name][0] for name in self.members(now_s) - {self.member}}
        if self.is_fit:
            signs[self.member] = self._renewals
        return {names.LEASE_MEMBERS: msgspec.json.encode(signs).decode()}

    def _term(self, record: LeaseRecord) -> Term:
        """Names that another replica has written stay for the whole epoch."""
        term, known = super()._term(record), Term.of(self.lease)
        if known is None or known.transitions != record.transitions:
            return term
        sealable = union(term.sealable, known.sealable)
        return Term(record.transitions, sealable, unclean_ends=known.unclean_ends)


class PoolElection(Election):
    """A replica's part in the Lease of one pool, for one term: a replica that has given the pool up
    begins anew under another name.
    """

    def __init__(
        self,
        rules: LeaseTimes,
        draw: Callable[[], float],
        schedulers: Iterable[str] = (),
        *,
        board: "PoolBoard",
    ) -> None:
        super().__init__(rules, draw, schedulers)
        self.follows_s = FOLLOWS * rules.retry_s
        self.is_fit = False
        #: What this replica acknowledges as holder; None as long as it does not use the pool.
        self.acknowledged: Versions | None = None
        #: When the Lease was taken.
        self.taken_s = 0.0
        #: When its last holder was seen to renew or release it; None if there was none.
        self.last_sign_s: float | None = None
        #: Since when the Lease is free; None if it is not.
        self.free_since_s: float | None = None
        #: The epoch in which we took the Lease, and what was acknowledged in it before.
        self.epoch = ""
        self.last_acknowledged = Versions()
        self._board = board

    @property
    def note(self) -> PoolNote:
        """What the Lease said when it was last seen."""
        return PoolNote.of(self.lease)

    def is_held(self, now_s: float) -> bool:
        """Whether the Lease has a holder, as last seen."""
        return bool(self.holder) and (self.is_leader or self._is_valid(now_s))

    def woke(self, now_s: float) -> Act:
        if not self.is_leader:
            self.is_fit = self._board.takes_s(self, now_s) <= now_s
        return super().woke(now_s)

    def lease_read(self, lease: Mapping[str, Any] | None, now_s: float) -> Act:
        act = super().lease_read(lease, now_s)
        if isinstance(act, Wait) and self.is_held(now_s):
            self.free_since_s = None
        return act

    def _take(self, now_s: float) -> Act:
        if self.free_since_s is None:
            self.free_since_s = now_s
        takes_s = self._board.takes_s(self, now_s)
        self.is_fit = takes_s <= now_s
        self.taken_s, self.epoch = now_s, self._board.epoch
        self.last_sign_s = None if self.lease is None else self._seen_s
        note = self.note
        self.last_acknowledged = note.acknowledged if note.epoch == self.epoch else Versions()
        act = super()._take(now_s)
        return Wait(min(act.until_s, takes_s)) if isinstance(act, Wait) else act

    def _predecessor(self, last: Predecessor, *, is_clean: bool) -> Predecessor | None:
        """In a new epoch also the last leader of another mode, or of another layout."""
        if self.note.epoch == self.epoch:
            return super()._predecessor(last, is_clean=is_clean)
        sealable = union(last.sealable, self._board.mode.sealable)
        return replace(last, sealable=sealable, open_seal=None)

    def _notes(self, now_s: float) -> Mapping[str, str]:  # noqa: ARG002
        known = self.last_acknowledged
        nodes, namespaces = known.merged(self.acknowledged or known, max)
        note = PoolNote(self.epoch, self._board.mode.member, nodes, namespaces)
        return {names.LEASE_POOL: msgspec.json.encode(note).decode()}


class PoolBoard:
    """The pools of a layout, as one replica sees their Leases."""

    def __init__(self, mode: ModeElection) -> None:
        self.mode = mode
        #: by name; of each pool the election of the present term
        self.pools: dict[str, PoolElection] = {}

    @property
    def epoch(self) -> str:
        return self.mode.epoch

    def fence_s(self, pool: str) -> float:
        """Until when this replica may act for a pool."""
        election = self.pools[pool]
        if not election.is_leader or election.epoch != self.epoch:
            return -inf
        return min(election.fence_s, self.mode.fence_s)

    def holder(self, pool: str, now_s: float) -> str:
        """The replica that holds a pool; empty if none does."""
        election = self.pools[pool]
        return election.holder.partition(TERM_SEPARATOR)[0] if election.is_held(now_s) else ""

    def takes_s(self, election: PoolElection, now_s: float) -> float:
        """When this replica takes a pool that is free, as far as it knows now."""
        mode = self.mode
        if not (mode.is_leader and mode.is_fit and now_s < mode.fence_s):
            return inf
        member, head_start_s = mode.member, HEAD_START * election.rules.retry_s
        alive, counts = mode.members(now_s, SIGNS * mode.rules.retry_s), self._counts(now_s)
        counts = Counter({name: counts[name] for name in alive})
        free = [self.pools[pool] for pool in sorted(self.pools)]  # the same order in every replica
        free = [known for known in free if not known.is_held(now_s)]
        for last in {known.note.holder for known in free} - {member}:
            counts.pop(last, None)  # it has ended, or given the pool up
        for known in free:
            if known is election:
                break
            counts[min(counts, key=lambda name: (counts[name], name))] += 1
        first = min(counts, key=lambda name: (counts[name], name))
        since_s = now_s if election.free_since_s is None else election.free_since_s
        return since_s if first == member else since_s + head_start_s

    def has_surplus(self, now_s: float) -> bool:
        """Whether this replica holds at least two pools more than another one, and no pool is
        free.
        """
        counts = self._counts(now_s)
        is_settled = all(election.is_held(now_s) for election in self.pools.values())
        return is_settled and counts[self.mode.member] >= min(counts.values()) + 2

    def acknowledged_beside(self, pool: str) -> tuple[Versions, Versions]:
        """The oldest and the newest acknowledgement of all other pools."""
        known = [
            self._acknowledged(election) for name, election in self.pools.items() if name != pool
        ]
        return _each(min, known), _each(max, known)

    def _acknowledged(self, election: PoolElection) -> Versions:
        if election.is_leader and election.acknowledged is not None:
            return election.acknowledged
        note = election.note
        return note.acknowledged if note.epoch == self.epoch else Versions()

    def _counts(self, now_s: float) -> Counter[str]:
        """The number of pools of each replica."""
        counts = Counter(dict.fromkeys(self.mode.members(now_s), 0))
        counts.update(filter(None, (self.holder(pool, now_s) for pool in self.pools)))
        return counts


def lease_of_pool(mode: str, pool: str) -> str:
    """The name of a pool's Lease; `mode`: that of the Lease of the mode."""
    return f"{mode}-pool-{pool}"


def holder_of_layout(layout: str) -> str:
    """The holder of the Lease of the mode."""
    return f"{OF_LAYOUT}{layout}"


def is_of_layout(holder: str) -> bool:
    """Whether the replicas of a layout hold a Lease together."""
    return holder.startswith(OF_LAYOUT)


def union(names: tuple[str, ...] | None, others: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Names of schedulers; None if either is: bindings without a version may be under way."""
    if names is None or others is None:
        return None
    return tuple(sorted({*names, *others}))
