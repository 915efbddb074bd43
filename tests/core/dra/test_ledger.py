"""The ledger follows the cluster object by object, and starts afresh when it must."""

from typing import Any

import pytest

from asched.core.dra.ledger import FEW, TAKEN_STEPS, DeviceLedger
from asched.core.model.claim import RESERVED_FOR_MAX, ResourceClaim
from asched.core.model.decode import decode
from asched.core.model.kinds import (
    DEVICE_CLASS,
    DEVICE_TAINT_RULE,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    Kind,
)
from asched.core.model.pod import Pod
from asched.core.state.budget import SLICE_STEPS, OutOfTurn
from asched.core.state.change_log import LOG_ENTRIES_MAX
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Gone, Listed, Seen
from tests.core.dra.worlds import a_class, a_slice, held


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


def test_all_profiles_share_one_ledger() -> None:
    cluster = Cluster()
    assert cluster.singleton(DeviceLedger) is cluster.singleton(DeviceLedger)


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
    assert world.ledger.is_in_flight("uid-c")
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


def test_classes_are_known_by_name_and_resource() -> None:
    world = World()
    world.see(DEVICE_CLASS, a_class("gpu", extendedResourceName="example.com/gpu"))
    assert world.ledger.device_class("gpu") is not None
    assert set(world.ledger.by_resource) == {
        "example.com/gpu",
        "deviceclass.resource.kubernetes.io/gpu",
    }
    version = world.ledger.version
    world.lose(DEVICE_CLASS, a_class("gpu"))
    assert world.ledger.device_class("gpu") is None
    assert world.ledger.version != version


def test_the_claim_made_for_a_pod_is_found_by_its_owner() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "pu", "controller": True}
    mark = {"resource.kubernetes.io/extended-resource-claim": "true"}
    claim = a_claim(ownerReferences=[owner], annotations=mark)
    world = World()
    world.see(RESOURCE_CLAIM, claim)
    found = world.ledger.extended_claim_of("pu")
    assert found is not None
    assert found.uid == "uid-c"
    world.lose(RESOURCE_CLAIM, claim)
    assert world.ledger.extended_claim_of("pu") is None


def test_a_reader_that_lost_its_place_in_the_log_compares_everything() -> None:
    world = World()
    gone, stays = a_claim("x").allocated(held("a")), a_claim("y").allocated(held("b"))
    world.see(RESOURCE_CLAIM, gone)
    world.see(RESOURCE_SLICE, a_slice("a", "b"))
    world.cluster.apply(Listed(RESOURCE_CLAIM, (stays,)))
    world.cluster.apply(Listed(RESOURCE_SLICE, ()))
    for _ in range(LOG_ENTRIES_MAX + 1):
        world.cluster.object_log.add("others", "x")
    world.ledger.catch_up()
    assert world.taken == ["b"]
    assert list(world.ledger.inventory.names()) == []


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


def test_thousands_that_changed_are_taken_in_as_far_as_the_budget_goes() -> None:
    world = World()
    count = 3 * SLICE_STEPS
    world.cluster.apply(Seen(RESOURCE_CLAIM, a_claim().allocated(held("a"))))
    world.cluster.apply(Seen(DEVICE_CLASS, a_class()))
    for i in range(count):
        world.cluster.apply(Seen(RESOURCE_SLICE, a_slice(name=f"s{i}", pool=f"p{i}")))
    ledger, slices = world.ledger, 0
    known = []
    while slices < 100:
        world.cluster.budget.open()
        slices += 1
        try:
            ledger.catch_up(in_slices=True)
            break
        except OutOfTurn:
            known.append(len(list(ledger.inventory.names())))
    assert known == sorted(set(known)), "each slice gets further"
    assert len(known) > 3
    assert len(list(ledger.inventory.names())) == count
    assert world.taken == ["a"]
    assert ledger.device_class(a_class().metadata.name) is not None


def test_whoever_asks_of_claims_alone_need_not_wait_for_slices() -> None:
    world = World()
    world.cluster.apply(Seen(RESOURCE_SLICE, a_slice(name="s", pool="p")))
    world.cluster.apply(Seen(RESOURCE_CLAIM, a_claim().allocated(held("a"))))
    world.ledger.catch_up_with_claims()
    assert world.taken == ["a"]
    assert not list(world.ledger.inventory.names())

    world.ledger.catch_up()
    assert list(world.ledger.inventory.names()) == ["s"]


@pytest.mark.parametrize("kind", [DEVICE_CLASS, DEVICE_TAINT_RULE])
def test_however_many_classes_and_rules_are_told_they_are_read_once(kind: Kind) -> None:
    """A list of them costs linear time: each reading goes through all."""
    world, many = World(), 10 * FEW
    world.ledger.catch_up()  # from now on it hears of each
    objects = [
        decode(kind.record, {"metadata": {"name": f"one-{at}"}, "spec": {}}) for at in range(many)
    ]
    world.cluster.apply(Listed(kind, tuple(objects)))
    before = world.cluster.budget.spent
    world.ledger.catch_up(in_slices=True)

    assert world.cluster.budget.spent - before == TAKEN_STEPS
