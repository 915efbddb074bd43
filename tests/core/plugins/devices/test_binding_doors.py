"""PreBind of DynamicResources where something changes while a claim is written."""

import pytest

from asched.core.framework.effects import Create, EmitEvent, Patch, WaitFor
from asched.core.framework.status import Status
from asched.core.model.claim import ResourceClaim
from asched.core.model.decode import decode
from asched.core.model.kinds import RESOURCE_CLAIM, RESOURCE_SLICE
from asched.core.plugins.devices.binding import ATTEMPTS_MAX
from tests.core.dra.worlds import a_device, a_slice
from tests.core.plugins.devices.test_binding import (
    BINDS,
    FINALIZER,
    POD_REF,
    Dialogue,
    Heard,
    bound,
    extended,
    told,
    with_finalizer,
)
from tests.core.plugins.dra_world import DraWorld, a_claim_object, a_pod, allocated


def words(status: Status | None) -> str:
    """What a binding that failed says."""
    assert status is not None
    assert not status.is_success
    return status.message


def in_writing(version: str = "2") -> Dialogue:
    """A pod whose claim c is protected, and about to be allocated."""
    return Dialogue(DraWorld(a_claim_object("c", **with_finalizer(version))), a_pod("c"))


def test_pods_that_share_a_claim_write_it_one_after_the_other() -> None:
    """The second one waits for its turn, and adds itself to what the first one wrote."""
    other = {"resource": "pods", "name": "q", "uid": "uid-q"}
    world = DraWorld(a_claim_object("c", **allocated()))
    first, second = Dialogue(world, a_pod("c")), Dialogue(world, a_pod("c", name="q"))
    assert isinstance(first.effect, Patch)
    assert isinstance(second.effect, WaitFor)
    assert not second.effect.ready()

    first.done(a_claim_object("c", **bound("3")))
    assert first.status is not None
    assert first.status.is_success
    assert second.effect.ready()
    second.done()

    assert second.effect.body == {
        "metadata": {"uid": "uid-c", "resourceVersion": "3"},
        "status": {"reservedFor": [POD_REF, other]},
    }


def test_a_claim_that_went_while_another_pod_wrote_it_is_refused_by_the_api() -> None:
    world = DraWorld(a_claim_object("c", **allocated()))
    first, second = Dialogue(world, a_pod("c")), Dialogue(world, a_pod("c", name="q"))
    world.lose(RESOURCE_CLAIM, world.cluster.get(RESOURCE_CLAIM, "d/c"))
    first.refused(404, "not found")
    second.done()
    assert isinstance(second.effect, Patch)
    second.refused(404, "not found")
    assert words(second.status) == "add reservation to claim d/c: not found"


# --- what the watch tells meanwhile --------------------------------------------------------------


def test_a_claim_that_is_being_deleted_is_not_written() -> None:
    talk = in_writing()
    talk.refused(409)
    gone = {"metadata": {"resourceVersion": "3", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    talk.world.see_claim(a_claim_object("c", **gone))
    talk.done()
    assert words(talk.status) == "claim d/c got deleted in the meantime"


@pytest.mark.parametrize("comes_again", [False, True], ids=["gone", "another of its name"])
@pytest.mark.parametrize("is_lost", [False, True], ids=["conflict", "lost"])
def test_a_claim_that_is_gone_is_not_waited_for(comes_again: bool, is_lost: bool) -> None:
    """However unknown the outcome: no devices are held by it."""
    talk = in_writing()
    talk.world.lose(RESOURCE_CLAIM, talk.world.cluster.get(RESOURCE_CLAIM, "d/c"))
    if comes_again:
        again = {"uid": "uid-again", "resourceVersion": "9", "finalizers": [FINALIZER]}
        talk.world.see_claim(a_claim_object("c", metadata=again))
    talk.lost() if is_lost else talk.refused(409, "no answer")
    assert words(talk.status) == "get updated claim d/c after conflict: no answer"


def test_a_reservation_without_an_allocation_is_not_enough() -> None:
    talk = in_writing()
    talk.refused(409)
    talk.world.see_claim(a_claim_object("c", **with_finalizer("3"), reservedFor=[POD_REF]))
    talk.done()
    assert talk.effect.body["status"]["allocation"]["devices"]["results"]


@pytest.mark.parametrize(
    ("known", "news", "is_news"),
    [
        ("9", "10", True),
        ("10", "9", False),
        ("7", "7", False),
        ("7", "x", True),
        ("x", "7", True),
        ("x", "y", True),
        ("x", "x", False),
    ],
)
def test_versions_count_upwards_where_they_are_numbers(
    known: str, news: str, is_news: bool
) -> None:
    """The answer to the first write told a version; then the watch tells one."""
    world = DraWorld(a_claim_object("c", metadata={"resourceVersion": known, "uid": "uid-c"}))
    talk = Dialogue(world, a_pod("c"))
    talk.refused(409)
    assert not talk.effect.ready()
    world.see_claim(a_claim_object("c", **with_finalizer(news)))
    assert talk.effect.ready() == is_news


# --- doubt ---------------------------------------------------------------------------------------


def test_a_lost_reservation_holds_no_devices_and_is_given_up() -> None:
    world = DraWorld(a_claim_object("c", **allocated()))
    talk = Dialogue(world, a_pod("c"))
    talk.lost()
    talk.timed_out()
    assert words(talk.status) == "get updated claim d/c after conflict: no answer"


def test_a_conflict_leaves_no_doubt() -> None:
    talk = in_writing()
    talk.refused(409)
    talk.timed_out()
    assert words(talk.status) == "get updated claim d/c after conflict: no"


def test_a_newer_version_ends_the_doubt() -> None:
    talk = in_writing()
    talk.lost()
    talk.world.see_claim(a_claim_object("c", **with_finalizer("3")))
    talk.done()
    talk.refused(409)
    talk.timed_out()
    assert words(talk.status) == "get updated claim d/c after conflict: no"


def test_attempts_in_doubt_do_not_count() -> None:
    talk = in_writing()
    talk.lost()
    talk.timed_out()
    for attempt in range(ATTEMPTS_MAX):
        assert isinstance(talk.effect, Patch)
        talk.refused(409)
        talk.world.see_claim(a_claim_object("c", **with_finalizer(str(10 + attempt))))
        talk.done()
    assert words(talk.status) == "add allocation and reservation to claim d/c: no"


def test_an_answer_without_the_claim_is_none() -> None:
    """To the finalizer it ends in an error, to the allocation in doubt."""
    talk = Dialogue(DraWorld(a_claim_object("c")), a_pod("c"))
    talk.done()
    talk.timed_out()
    assert words(talk.status).endswith("after conflict: unexpected answer Done")

    talk = in_writing()
    talk.done()
    assert isinstance(talk.effect, WaitFor)
    talk.timed_out()
    assert isinstance(talk.effect, Patch)


# --- extended resources --------------------------------------------------------------------------


def in_flight(talk: Dialogue) -> set[str]:
    return set(talk.world.plugin._ledger.in_flight)


def test_the_claim_names_its_pod_as_its_controller() -> None:
    (owner,) = extended().effect.body["metadata"]["ownerReferences"]
    assert owner == {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "p",
        "uid": "uid-p",
        "controller": True,
    }


def test_the_devices_are_held_for_the_created_claim_until_it_tells_of_them_itself() -> None:
    talk = extended()
    assert len(in_flight(talk)) == 1
    talk.done(a_claim_object("x", **with_finalizer()))
    assert in_flight(talk) == {"uid-x"}
    assert talk.world.cluster.get(RESOURCE_CLAIM, "d/x") is not None
    made = a_claim_object("x", **bound())
    talk.done(made)
    talk.done()
    assert talk.status is not None
    assert talk.status.is_success
    assert in_flight(talk) == set()
    ledger = talk.world.plugin._ledger
    assert ledger.taken.allocation_of("uid-x") is not None
    talk.world.lose(RESOURCE_CLAIM, decode(ResourceClaim, made))
    ledger.catch_up()
    assert ledger.taken.allocation_of("uid-x") is None


def test_a_claim_that_is_not_created_is_an_error() -> None:
    talk = extended()
    assert isinstance(talk.effect, Create)
    talk.refused(403, "quota")
    assert words(talk.status).startswith("create claim for extended resources d/")
    assert words(talk.status).endswith(": quota")
    talk = extended()
    talk.done()
    assert words(talk.status).endswith(": unexpected answer Done")


def test_a_created_claim_is_not_gone_before_the_watch_has_shown_it() -> None:
    talk = extended()
    talk.done(a_claim_object("x"))
    talk.lost()
    assert isinstance(talk.effect, WaitFor)
    assert not talk.effect.ready()


def test_a_created_claim_that_cannot_be_written_holds_no_devices() -> None:
    talk = extended()
    talk.done(a_claim_object("x", **with_finalizer()))
    talk.refused(403)
    assert words(talk.status) == "add allocation and reservation to claim d/x: no"
    assert in_flight(talk) == set()


def test_a_pod_that_cannot_be_told_of_its_claim_is_an_error() -> None:
    talk = extended()
    talk.done(a_claim_object("x", **with_finalizer()))
    talk.done(a_claim_object("x", **bound()))
    talk.refused(403, "forbidden")
    assert words(talk.status) == "update pod d/p ExtendedResourceClaimStatus: forbidden"


def test_devices_of_extended_resources_are_awaited_as_well() -> None:
    talk = extended()
    talk.done(a_claim_object("x", **with_finalizer()))
    talk.done(a_claim_object("x", **bound(result=BINDS)))
    talk.done()
    assert isinstance(talk.effect, EmitEvent)


# --- binding conditions --------------------------------------------------------------------------


def test_how_long_devices_were_waited_for_is_counted_from_the_start_of_the_wait() -> None:
    world = DraWorld(a_claim_object("c", **with_finalizer()))
    world.cluster.wall_clock_s = 100.0
    world.see(RESOURCE_SLICE, a_slice(a_device("a", **BINDS), "b"))
    talk = Dialogue(world, a_pod("c"))
    heard = Heard(talk)
    talk.done(a_claim_object("c", **bound(result=BINDS)))
    talk.done()
    world.cluster.wall_clock_s = 107.5
    world.see_claim(told("ready", "4"))
    talk.done()
    assert [waited_s for *_, waited_s in heard.waits] == [7.5]


def test_one_of_two_devices_with_conditions_is_awaited() -> None:
    world = DraWorld(a_claim_object("c", **with_finalizer()))
    talk = Dialogue(world, a_pod("c"))
    made = bound(result=BINDS)
    plain = {"request": "r0", "driver": "gpu.example.com", "pool": "n1", "device": "b"}
    made["allocation"]["devices"]["results"].append(plain)
    talk.done(a_claim_object("c", **made))
    assert isinstance(talk.effect, EmitEvent)


def test_a_claim_without_devices_is_not_awaited() -> None:
    world = DraWorld(a_claim_object("c", allocation={"devices": {}}, reservedFor=[POD_REF]))
    talk = Dialogue(world, a_pod("c"))
    assert talk.status is not None
    assert talk.status.is_success
