"""A Lease for each pool, by the rules of the searched protocol: replicas in a scripted world."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from asched.core.cluster.pool_tenure import Versions
from asched.core.leader.election import (
    Act,
    CreateLease,
    Election,
    LeaseRecord,
    LeaseTimes,
    OpenSeal,
    Read,
    Term,
    Wait,
    WriteLease,
)
from asched.core.leader.pools import (
    ModeElection,
    PoolBoard,
    PoolElection,
    PoolNote,
    lease_of_pool,
)

MODE = "asched"
POOLS = ("batch", "web", "gpu", "default")
RETRY_S, LEASE_S = 2.0, 15.0


class Server:
    """Leases by name; a write needs the newest version."""

    def __init__(self) -> None:
        self.leases: dict[str, dict[str, Any]] = {}
        self.cut_off: set[str] = set()
        #: Whose writes of the Lease of the mode come after another one's.
        self.too_late: set[str] = set()
        self._version = 0

    def put(self, name: str, record: LeaseRecord, annotations: Mapping[str, str]) -> Any:
        self._version += 1
        known = self.leases.get(name, {"metadata": {}})["metadata"].get("annotations", {})
        self.leases[name] = {
            "metadata": {
                "name": name,
                "resourceVersion": str(self._version),
                "annotations": {**known, **annotations},
            },
            "spec": record.spec(),
        }
        return self.leases[name]

    def accepts(self, name: str, act: Act) -> bool:
        known = self.leases.get(name)
        if isinstance(act, CreateLease):
            return known is None
        assert isinstance(act, WriteLease)
        version = act.lease["metadata"]["resourceVersion"]
        return known is not None and known["metadata"]["resourceVersion"] == version


class Replica:
    """All elections of one replica."""

    def __init__(self, name: str, *, layout: str = "one") -> None:
        self.name = name
        self._terms = 0
        times = LeaseTimes(name, LEASE_S, 10.0, RETRY_S)
        self.mode = ModeElection(times, lambda: 0.5, ("asched",), layout=layout)
        self.board = PoolBoard(self.mode)
        for pool in POOLS:
            self.begin(pool)

    def begin(self, pool: str) -> None:
        self._terms += 1
        times = LeaseTimes(f"{self.name}#{self._terms}", LEASE_S, 10.0, RETRY_S)
        made = PoolElection(times, lambda: 0.5, ("asched",), board=self.board)
        self.board.pools[pool] = made

    def elections(self) -> Iterator[tuple[str, Election]]:
        yield MODE, self.mode
        for pool, election in self.board.pools.items():
            yield lease_of_pool(MODE, pool), election

    def holds(self, now_s: float) -> set[str]:
        return {pool for pool in POOLS if self.board.fence_s(pool) > now_s}


class World:
    def __init__(self, *replicas: "Replica | Single") -> None:
        self.now_s = 1_000.0
        self.server = Server()
        self.replicas: list[Any] = list(replicas)
        self._waits: dict[Election, float] = {}

    def run_for(self, seconds: float) -> None:
        until_s = self.now_s + seconds
        while True:
            alive = {
                election: (name, replica)
                for replica in self.replicas
                for name, election in replica.elections()
            }
            for election in alive:
                self._waits.setdefault(election, self.now_s)
            due = min(alive, key=lambda election: self._waits[election])
            if self._waits[due] > until_s:
                break
            self.now_s = max(self.now_s, self._waits[due])
            name, replica = alive[due]
            act = due.woke(self.now_s)
            while isinstance(act, Read | CreateLease | WriteLease):
                act = self._perform(name, replica, due, act)
            self._waits[due] = act.until_s if isinstance(act, Wait) else float("inf")
            self.check()
        self.now_s = until_s

    def _perform(self, name: str, replica: Any, election: Election, act: Act) -> Act:
        server = self.server
        if replica.name in server.cut_off:
            return election.failed(self.now_s)
        if isinstance(act, Read):
            return election.lease_read(server.leases.get(name), self.now_s)
        assert isinstance(act, CreateLease | WriteLease)
        is_late = name == MODE and replica.name in server.too_late
        if is_late or not server.accepts(name, act):
            return election.failed(self.now_s)
        return election.written(server.put(name, act.record, act.annotations), self.now_s)

    def check(self) -> None:
        """At most one replica may act for a pool, and none beside a single leader."""
        sharing = [r for r in self.replicas if isinstance(r, Replica)]
        for pool in POOLS:
            holders = [r.name for r in sharing if pool in r.holds(self.now_s)]
            assert len(holders) <= 1, (pool, holders, self.now_s)
        layouts = {r.mode.rules.identity for r in sharing if any(r.holds(self.now_s))}
        singles = [r.name for r in self.replicas if isinstance(r, Single) and r.may_act(self.now_s)]
        assert len(layouts) + len(singles) <= 1, (layouts, singles, self.now_s)

    def release(self, replica: Replica, pool: str, *, is_handed_on: bool = True) -> None:
        election, name = replica.board.pools[pool], lease_of_pool(MODE, pool)
        election.resign()
        write = election.release(self.server.leases[name], self.now_s, is_handed_on=is_handed_on)
        assert write is not None
        self.server.put(name, write.record, write.annotations)
        replica.begin(pool)

    def holder(self, pool: str) -> Replica:
        (found,) = [r for r in self.replicas if pool in r.holds(self.now_s)]
        return found  # type: ignore[no-any-return]


class Single:
    """A replica without pools."""

    def __init__(self, name: str) -> None:
        self.name = name
        times = LeaseTimes(name, LEASE_S, 10.0, RETRY_S)
        self.election = Election(times, lambda: 0.5, ("asched",))

    def elections(self) -> Iterator[tuple[str, Election]]:
        yield MODE, self.election

    def may_act(self, now_s: float) -> bool:
        return self.election.is_leader and self.election.fence_s > now_s


def test_a_lone_replica_holds_all_pools() -> None:
    world = World(Replica("a"))
    world.run_for(2 * RETRY_S)
    assert world.replicas[0].holds(world.now_s) == set(POOLS)


def test_the_lease_of_the_mode_is_renewed_by_all_and_lost_by_none() -> None:
    world = World(Replica("a"), Replica("b"), Replica("c"))
    world.run_for(300.0)
    assert all(replica.mode.is_leader for replica in world.replicas)
    assert sum(len(replica.holds(world.now_s)) for replica in world.replicas) == len(POOLS)


def test_a_renewal_of_another_replica_counts() -> None:
    """One that reads, but whose own writes always come too late."""
    world = World(Replica("a"), Replica("b"))
    world.run_for(10.0)
    world.server.too_late.add("b")
    world.run_for(60.0)
    assert world.replicas[1].mode.is_leader
    world.replicas.pop(0)
    world.run_for(60.0)
    assert not world.replicas[0].mode.is_leader


def test_the_pools_of_a_dead_replica_are_taken_when_its_leases_end() -> None:
    world = World(Replica("a"))
    world.run_for(5.0)
    world.replicas += [Replica("b"), Replica("c")]
    world.run_for(10.0)
    dead = world.replicas.pop(0)
    world.run_for(LEASE_S + RETRY_S + 1.0)
    assert not dead.holds(world.now_s)
    held = [len(replica.holds(world.now_s)) for replica in world.replicas]
    assert sum(held) == len(POOLS)
    assert max(held) - min(held) <= 1


@pytest.mark.parametrize("apart_s", [0.0, 3.0, 8.0, 11.0, 14.0])
def test_two_deaths_leave_no_pool_without_a_holder_for_long(apart_s: float) -> None:
    """A replica that has just died was to take the pool."""
    world = World(Replica("a"), Replica("b"), Replica("c"))
    world.run_for(10.0)
    settle(world)
    gaps_s: dict[str, float] = {}
    for wait_s in (apart_s, 0.0):
        dead = world.replicas.pop(0)
        gaps_s.update(dict.fromkeys(dead.holds(world.now_s), -world.now_s))
        world.run_for(wait_s)
    while any(gap_s < 0.0 for gap_s in gaps_s.values()):
        world.run_for(0.1)
        for pool in world.replicas[0].holds(world.now_s):
            if gaps_s.get(pool, 0.0) < 0.0:
                gaps_s[pool] += world.now_s
    assert len(gaps_s) >= 2
    assert max(gaps_s.values()) <= LEASE_S + 3.0


def settle(world: World) -> None:
    """Let replicas with a surplus give it up."""
    for _ in POOLS:
        for replica in world.replicas:
            if replica.board.has_surplus(world.now_s):
                world.release(replica, min(replica.holds(world.now_s)))
                world.run_for(2 * RETRY_S)


def test_who_has_two_pools_more_than_another_has_a_surplus() -> None:
    world = World(Replica("a"))
    world.run_for(5.0)
    world.replicas.append(Replica("b"))
    world.run_for(6.0)
    first, second = world.replicas
    assert first.board.has_surplus(world.now_s)
    settle(world)
    assert not second.board.has_surplus(world.now_s)
    assert [len(r.holds(world.now_s)) for r in world.replicas] == [2, 2]


def test_a_pool_that_was_handed_on_needs_no_seal_and_any_other_does() -> None:
    world = World(Replica("a"))
    world.run_for(5.0)
    first = world.replicas[0]
    for election in first.board.pools.values():
        assert election.predecessor is not None  # there may have been another mode before
        election.sealed()
    world.replicas.append(Replica("b"))
    world.run_for(6.0)
    world.release(first, "batch")
    world.release(first, "web", is_handed_on=False)
    world.run_for(2 * RETRY_S)
    second = world.replicas[1]
    assert {"batch", "web"} <= second.holds(world.now_s) | first.holds(world.now_s)
    assert world.holder("batch").board.pools["batch"].predecessor is None
    assert world.holder("web").board.pools["web"].predecessor is not None


def test_a_replica_that_was_not_sealed_itself_hands_on_what_is_to_be_sealed() -> None:
    world = World(Replica("a"))
    world.run_for(5.0)
    world.release(world.replicas[0], "batch", is_handed_on=True)
    world.run_for(2 * RETRY_S)
    assert world.holder("batch").board.pools["batch"].predecessor is not None


@pytest.mark.parametrize("other", [Single("s"), Replica("s", layout="two")])
def test_two_modes_never_act_at_a_time(other: Any) -> None:
    """Replicas of one mode are replaced by those of another, one by one."""
    world = World(Replica("a"), Replica("b"))
    world.run_for(10.0)
    world.replicas.append(other)
    world.run_for(30.0)
    world.replicas.pop(0)
    world.run_for(30.0)
    world.replicas.pop(0)
    world.run_for(LEASE_S + 3 * RETRY_S)
    if isinstance(other, Single):
        assert other.may_act(world.now_s)
        assert other.election.predecessor is not None
        assert other.election.predecessor.sealable == ("asched",)
    else:
        assert other.holds(world.now_s) == set(POOLS)


def test_after_another_mode_every_pool_is_sealed_and_no_acknowledgement_counts() -> None:
    world = World(Replica("a"))
    world.run_for(5.0)
    (first,) = world.replicas
    for election in first.board.pools.values():
        election.acknowledged = Versions(50, 50)
        election.sealed()
    world.run_for(2 * RETRY_S)
    assert first.board.acknowledged_beside("batch")[0] == Versions(50, 50)
    for pool in POOLS:
        world.release(first, pool)
    world.replicas = [Single("s")]
    world.run_for(2 * LEASE_S)
    world.replicas = [Replica("b")]
    world.run_for(2 * LEASE_S)
    (last,) = world.replicas
    assert last.holds(world.now_s) == set(POOLS)
    for election in last.board.pools.values():
        assert election.predecessor is not None
        assert election.predecessor.sealable == ("asched",)
    assert last.board.acknowledged_beside("batch")[0] == Versions()


def test_the_seal_of_another_epoch_does_not_go_on() -> None:
    """Another leader may have decided meanwhile."""
    world = World(Replica("a"))
    world.run_for(5.0)
    for election in world.replicas[0].board.pools.values():
        election.seals(OpenSeal(70, 60))
    world.run_for(2 * RETRY_S)
    world.replicas = [Replica("b")]
    world.run_for(LEASE_S + 3 * RETRY_S)
    for election in world.replicas[0].board.pools.values():
        assert election.predecessor is not None
        assert election.predecessor.open_seal == OpenSeal(70, 60)
    world.replicas = [Single("s")]
    world.run_for(2 * LEASE_S)
    world.replicas = [Replica("c")]
    world.run_for(2 * LEASE_S)
    for election in world.replicas[0].board.pools.values():
        assert election.predecessor is not None
        assert election.predecessor.open_seal is None


def test_the_acknowledgement_of_a_former_holder_stays_on_the_lease() -> None:
    world = World(Replica("a"))
    world.run_for(5.0)
    (first,) = world.replicas
    for election in first.board.pools.values():
        election.acknowledged = Versions(50, 7)
    world.run_for(2 * RETRY_S)
    world.replicas = [Replica("b")]
    world.run_for(LEASE_S + 3 * RETRY_S)
    (second,) = world.replicas
    assert second.board.acknowledged_beside("web") == (Versions(50, 7), Versions(50, 7))
    second.board.pools["gpu"].acknowledged = Versions(80, 7)
    assert second.board.acknowledged_beside("web") == (Versions(50, 7), Versions(80, 7))


def test_a_pool_without_an_acknowledgement_has_let_go_of_nothing() -> None:
    world = World(Replica("a"))
    world.run_for(5.0)
    (first,) = world.replicas
    for pool in ("web", "gpu"):
        first.board.pools[pool].acknowledged = Versions(9, 9)
    assert first.board.acknowledged_beside("batch")[0] == Versions()


def test_a_replica_that_is_cut_off_stops_before_its_pools_are_taken() -> None:
    """`World.check` compares them at every step."""
    world = World(Replica("a"), Replica("b"))
    world.run_for(10.0)
    world.server.cut_off.add("a")
    world.run_for(2 * LEASE_S)
    assert not world.replicas[0].holds(world.now_s)
    assert world.replicas[1].holds(world.now_s) == set(POOLS)


def test_no_pool_is_taken_without_the_mode() -> None:
    world = World(Single("s"))
    world.run_for(5.0)
    world.replicas.append(Replica("a"))
    world.run_for(60.0)
    assert not world.replicas[1].holds(world.now_s)


def test_a_mode_without_versions_in_its_bindings_cannot_be_sealed() -> None:
    """kube-scheduler held the Lease: every pool waits."""
    world = World(Replica("a"))
    world.server.put(MODE, LeaseRecord("kube-scheduler", 15, "t", "t", 3), {})
    world.run_for(LEASE_S + 5.0)
    (replica,) = world.replicas
    assert replica.holds(world.now_s) == set(POOLS)
    assert all(e.predecessor.sealable is None for e in replica.board.pools.values())
    term = Term.of(world.server.leases[MODE])
    assert term is not None
    assert term.sealable is None


def test_what_is_no_note_counts_as_none() -> None:
    lease = {"metadata": {"annotations": {"asched.dev/pool-term": "[1"}}}
    assert PoolNote.of(lease) == PoolNote()
    assert PoolNote.of(None) == PoolNote()
