"""The election answer by answer: what is asked next, and until when a leader may act."""

from asched.core.leader.election import (
    RELEASED_DURATION_S,
    CreateLease,
    Election,
    LeaseRecord,
    Lost,
    Read,
    Wait,
    WriteLease,
)
from tests.unit.core.leader.candidates import World, candidate


def a_lease(record: LeaseRecord, version: str = "1") -> dict[str, object]:
    return {"metadata": {"name": "l", "resourceVersion": version}, "spec": record.spec()}


def a_leader(now_s: float = 1_000.0) -> Election:
    """Who has just begun to lead, and renewed once."""
    world, me = World(), candidate()
    world.now_s = now_s
    world.perform(me, me.woke(now_s))
    assert me.is_leader
    return me


def test_a_leader_is_none_any_more_in_the_very_moment_of_its_fence() -> None:
    me = a_leader()
    fence_s = me.fence_s
    assert fence_s == 1_000.0 + 2.0 + 10.0
    assert isinstance(a_leader().woke(fence_s - 0.001), WriteLease)
    assert me.woke(fence_s) == Lost()
    assert not me.is_leader


def test_a_renewal_that_fails_is_tried_again_after_a_pause_but_never_behind_the_fence() -> None:
    me = a_leader()
    assert me.ends_s == 1_015.0
    assert isinstance(me.woke(1_002.0), WriteLease)
    assert me.ends_s == 1_017.0, "what was sent may have arrived"
    assert me.renewed_s == 1_000.0
    assert me.failed(1_002.5) == Read()
    assert me.failed(1_003.0) == Wait(1_004.0)
    assert isinstance(me.woke(1_004.0), WriteLease)
    assert me.failed(1_009.0) == Read()
    assert me.failed(1_009.5) == Wait(1_009.5), "its pause is over already"
    assert isinstance(me.woke(1_011.0), WriteLease)
    assert me.failed(1_011.1) == Read()
    assert me.failed(1_011.2) == Wait(me.fence_s)
    assert isinstance(me.woke(1_011.5), WriteLease)
    assert me.failed(1_011.9) == Read()
    assert me.failed(me.fence_s) == Lost()


def test_one_who_finds_its_own_name_goes_on_at_once_and_reads_before_each_try() -> None:
    """Its process has begun anew: it knows of no version, and nobody else may lead."""
    world, me = World(), candidate()
    world.put(LeaseRecord("me", 15, "a", "b", 7))
    assert me.woke(1_000.0) == Read()
    act = me.lease_read(world.lease, 1_000.0)
    assert isinstance(act, WriteLease)
    assert (act.record.transitions, act.record.acquire_time) == (7, "a")
    pause = me.failed(1_000.1)
    assert isinstance(pause, Wait)
    assert me.woke(pause.until_s) == Read()


def test_a_lease_that_was_deleted_is_made_anew() -> None:
    me = candidate()
    me.lease_read(a_lease(LeaseRecord("other", 15, "a", "b", 3)), 1_000.0)
    act = me.lease_read(None, 1_001.0)
    assert isinstance(act, CreateLease)
    assert act.record.transitions == 0


def test_a_lease_that_comes_back_as_it_was_counts_from_then() -> None:
    me = candidate()
    me.is_fit = False
    theirs = a_lease(LeaseRecord("other", 3, "a", "b", 3))
    assert me.lease_read(theirs, 1_000.0) == Wait(1_000.0 + 2.0 * 1.1)
    me.lease_read(None, 1_002.0)
    assert me.woke(1_002.5) == Read()
    assert me.lease_read(theirs, 1_002.5) == Wait(1_002.5 + 2.0 * 1.1)
    me.is_fit = True
    assert me.woke(1_004.0) == Read(), "what it was offered is somebody's again"
    assert me.lease_read(theirs, 1_004.7) == Wait(1_005.5), "at its very end"
    assert isinstance(me.lease_read(theirs, 1_005.5), WriteLease)


def test_one_that_is_not_fit_still_does_not_take_what_it_was_offered() -> None:
    me = candidate()
    me.is_fit = False
    assert isinstance(me.lease_read(None, 1_000.0), Wait)
    assert me.woke(1_002.0) == Read()
    assert isinstance(me.lease_read(None, 1_002.0), Wait)
    me.is_fit = True
    assert isinstance(me.woke(1_004.0), CreateLease)


def test_what_hands_the_lease_on_keeps_who_died_and_frees_it_in_a_second() -> None:
    me = a_leader()
    assert me.lease is not None
    for is_dying, holder in ((False, ""), (True, "me")):
        act = me.release(me.lease, 1_003.0, is_handed_on=True, is_dying=is_dying)
        assert act is not None
        assert act.lease is me.lease
        assert (act.record.holder, act.record.duration_s) == (holder, RELEASED_DURATION_S)
        assert act.record.acquire_time == act.record.renew_time
        assert act.record.transitions == LeaseRecord.of(me.lease).transitions
