"""The ledger follows the cluster object by object, and starts afresh when it must."""

from typing import Any

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Gone, Seen
from asched.core.dra.ledger import DeviceLedger
from asched.core.model.claim import RESERVED_FOR_MAX, ResourceClaim
from asched.core.model.decode import decode
from asched.core.model.kinds import (
    RESOURCE_CLAIM,
    Kind,
)
from asched.core.model.pod import Pod
from tests.device_builders import held


def a_claim(name: str = "c", uid: str = "", version: str = "1", **fields: Any) -> ResourceClaim:
    metadata = {"name": name, "namespace": "d", "uid": uid or f"uid-{name}"}
    metadata |= {"resourceVersion": version, **fields}
    return decode(ResourceClaim, {"metadata": metadata})


class World:
    def __init__(self) -> None:
        self.cluster = Cluster()
        self.ledger = self.cluster.singleton(DeviceLedger)

    def see(self, kind: Kind, obj: Any) -> None:
        self.cluster.apply(Seen(kind, obj))
        self.ledger.catch_up()

    def lose(self, kind: Kind, obj: Any) -> None:
        self.cluster.apply(Gone(kind, obj))
        self.ledger.catch_up()

    @property
    def taken(self) -> list[str]:
        return sorted(device.device for device in self.ledger.taken.devices)


def test_claims_come_change_and_go() -> None:
    world = World()
    claim = a_claim().allocated(held("a"))
    world.see(RESOURCE_CLAIM, claim)
    assert world.taken == ["a"]
    world.see(RESOURCE_CLAIM, a_claim().allocated(held("b")))
    assert world.taken == ["b"]
    world.lose(RESOURCE_CLAIM, claim)
    assert world.taken == []


def test_a_claim_made_anew_under_its_name_is_another() -> None:
    world = World()
    world.see(RESOURCE_CLAIM, a_claim(uid="one").allocated(held("a")))
    world.see(RESOURCE_CLAIM, a_claim(uid="two"))
    assert world.taken == []


def test_an_allocation_in_flight_counts_whatever_the_watch_says() -> None:
    world = World()
    world.see(RESOURCE_CLAIM, a_claim())
    world.ledger.reserve("uid-c", held("a"))
    assert "uid-c" in world.ledger.in_flight
    world.see(RESOURCE_CLAIM, a_claim(version="2"))
    assert world.taken == ["a"]
    world.lose(RESOURCE_CLAIM, a_claim(version="2"))
    assert world.taken == ["a"]
    assert world.ledger.release("uid-c", "d/c")
    assert world.taken == []
    assert not world.ledger.release("uid-c", "d/c")


def test_what_was_written_stays_taken_after_release() -> None:
    world = World()
    world.see(RESOURCE_CLAIM, a_claim())
    world.ledger.reserve("uid-c", held("a"))
    world.cluster.assume_object(RESOURCE_CLAIM, a_claim(version="3").allocated(held("a")))
    world.ledger.catch_up()
    world.ledger.release("uid-c", "d/c")
    assert world.taken == ["a"]


def a_member(name: str, group: str = "gang") -> Pod:
    spec = {"schedulingGroup": {"podGroupName": group}} if group else {}
    metadata = {"name": name, "namespace": "d", "uid": f"uid-{name}"}
    return decode(Pod, {"metadata": metadata, "spec": spec})


def test_an_allocation_in_flight_is_handed_on_within_a_group_and_stays_for_the_last() -> None:
    world, claim = World(), a_claim()
    world.see(RESOURCE_CLAIM, claim)
    given = held("a")
    world.ledger.reserve("uid-c", given, a_member("one"))

    assert world.ledger.handed_on(claim, a_member("two")) is given
    assert world.ledger.handed_on(claim, a_member("other", "others")) is None
    assert world.ledger.handed_on(claim, a_member("alone", "")) is None
    world.ledger.reserve("uid-c", given, a_member("two"))

    assert not world.ledger.release("uid-c", "d/c", "uid-one")
    assert world.taken == ["a"]
    assert world.ledger.release("uid-c", "d/c", "uid-two")
    assert world.taken == []


def test_no_more_pods_hold_one_than_the_api_lets_a_claim_have() -> None:
    world, claim = World(), a_claim()
    world.see(RESOURCE_CLAIM, claim)
    given = held("a")
    for number in range(RESERVED_FOR_MAX):
        assert number == 0 or world.ledger.handed_on(claim, a_member(f"p{number}")) is given
        world.ledger.reserve("uid-c", given, a_member(f"p{number}"))

    assert world.ledger.handed_on(claim, a_member("one too many")) is None
    assert world.ledger.handed_on(claim, a_member("p3")) is given


def test_what_a_pod_of_no_group_reserved_is_its_own() -> None:
    world, claim = World(), a_claim()
    world.see(RESOURCE_CLAIM, claim)
    world.ledger.reserve("uid-c", held("a"), a_member("one", ""))

    assert world.ledger.handed_on(claim, a_member("two", "")) is None
