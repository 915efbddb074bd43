"""Pools of slices: the newest generation, complete and without contradictions, or not at all."""

from typing import Any

import pytest

from asched.core.dra.devices import ReadyDevice
from asched.core.dra.pools import Pool, ReadySlice, build_pool
from asched.core.dra.selector_answers import SelectorAnswers
from asched.core.model.claim import ResourceSlice
from asched.core.model.decode import decode
from tests.core.dra.worlds import DRIVER, a_device, a_slice

POOL = (DRIVER, "n1")


def ready(*devices: Any, **fields: Any) -> ReadySlice:
    return ReadySlice(a_slice(*devices, **fields))


def built(seen: list[ReadySlice], *hidden: ReadySlice) -> Pool | None:
    return build_pool(POOL, seen, [*seen, *hidden])


def names(pool: Pool | None) -> list[str]:
    assert pool is not None
    assert (pool.invalid_reason, pool.is_incomplete) == ("", False)
    return [device.id.device for device in pool.devices]


def test_slices_of_a_pool_are_put_together_by_their_names() -> None:
    second, first = ready("c", "b", name="s2", of=2), ready("a", name="s1", of=2)
    pool = built([second, first])
    assert names(pool) == ["a", "c", "b"]
    assert pool is not None
    assert pool.name == f"{DRIVER}/n1"


def test_only_the_newest_generation_counts() -> None:
    old, new = ready("old", name="s1"), ready("new", name="s2", generation=2)
    assert names(built([old, new])) == ["new"]


def test_a_pool_that_lacks_slices_is_incomplete_and_has_no_devices() -> None:
    pool = built([ready("a", of=2)])
    assert pool is not None
    assert (pool.is_incomplete, pool.devices) == (True, ())


def test_slices_that_are_seen_elsewhere_complete_it() -> None:
    there = ready("b", name="s2", of=2, nodeName="n2")
    assert names(built([ready("a", name="s1", of=2)], there)) == ["a"]


def test_a_newer_generation_elsewhere_replaces_it() -> None:
    newer = ready("b", name="s2", generation=2, of=2, nodeName="n2")
    assert built([ready("a", name="s1", of=2)], newer) is None
    assert names(built([ready("a", name="s1", of=1)], newer)) == ["a"], "it is whole by itself"


COUNTERS = [{"name": "set", "counters": {"x": {"value": "4"}}}]


def uses(counter_set: str = "set", counter: str = "x") -> dict[str, Any]:
    used = [{"counterSet": counter_set, "counters": {counter: {"value": "1"}}}]
    return a_device(f"uses-{counter_set}-{counter}", consumesCounters=used)


def shared(**fields: Any) -> ReadySlice:
    return ready(name="counters", sharedCounters=fields.pop("counters", COUNTERS), **fields)


def test_counters_and_who_uses_them() -> None:
    pool = built([shared(of=2), ready(uses(), "free", name="s", of=2)])
    assert names(pool) == ["uses-set-x", "free"]
    assert pool is not None
    assert pool.counters == {("set", "x"): 4}
    assert [device.id.device for device in pool.consumers] == ["uses-set-x"]


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        ([ready("a", "a")], "duplicate device name a"),
        (
            [ready("a", name="s1", of=2), ready("a", name="s2", of=2)],
            "duplicate device name a",
        ),
        ([shared(counters=COUNTERS * 2)], "duplicate counter set name set"),
        ([ready(uses())], "counter set set not found"),
        (
            [shared(of=2), ready(uses(counter="y"), name="s", of=2)],
            "counter y not found in counter set set",
        ),
    ],
)
def test_a_pool_with_contradictions_is_not_used(seen: list[ReadySlice], reason: str) -> None:
    pool = built(seen)
    assert pool is not None
    assert (pool.invalid_reason, pool.devices) == (reason, ())


def test_a_pool_says_whether_its_devices_bind_or_choose_nodes() -> None:
    plain, binding = (
        built([ready("a")]),
        built([ready("b", a_device("a", bindingConditions=["x"]))]),
    )
    choosing = built([ready(a_device("a", nodeName="n1"), perDeviceNodeSelection=True)])
    assert Pool(POOL).binds is Pool(POOL).chooses_nodes is False
    assert plain is not None
    assert binding is not None
    assert choosing is not None
    assert [(pool.binds, pool.chooses_nodes) for pool in (plain, binding, choosing)] == [
        (False, False),
        (True, False),
        (False, True),
    ]


def test_who_sees_a_slice() -> None:
    own, everywhere = ready("a"), ready("a", allNodes=True)
    local = (a_device("a", nodeName="n2"), a_device("b", nodeName="n3"))
    choosing = ready(*local, perDeviceNodeSelection=True)
    nowhere = ready("a", nodeName="")
    seen = {
        name: [
            one.is_seen_by(name, {}, {}) for one in (own, everywhere, choosing, shared(), nowhere)
        ]
        for name in ("n1", "n2")
    }
    assert seen == {"n1": [True, True, False, True, False], "n2": [False, True, True, True, False]}
    assert [one.is_wide for one in (own, everywhere, choosing, shared())] == [
        False,
        True,
        True,
        True,
    ]


def test_what_a_place_said_is_remembered_for_the_node() -> None:
    own = ready("a")
    assert own.is_seen_by("n1", {}, {id(own.place): False}) is False


def test_devices_are_made_once_and_forgotten_with_their_slice() -> None:
    remembered = SelectorAnswers()
    one = ReadySlice(a_slice("a"), remembered)
    one.go()
    (device,) = one.devices
    assert one.devices[0] is device
    assert isinstance(device, ReadyDevice)
    device.ask("true")
    assert remembered.bytes > 0
    one.go()
    assert (remembered.bytes, device.answers) == (0, {})
    assert one.generation == 1


def test_consumers_are_told_whether_the_node_sees_them_or_not() -> None:
    mine, theirs = ready(uses(), "b", name="s1", of=3), shared(of=3)
    elsewhere = ready({**uses(), "name": "c"}, "d", name="s3", of=3, nodeName="n2")
    pool = built([mine, theirs], elsewhere)
    assert names(pool) == ["uses-set-x", "b"]
    assert pool is not None
    assert [device.id.device for device in pool.consumers] == ["uses-set-x", "c"]


def test_slices_and_counter_sets_may_be_empty() -> None:
    bare = {"driver": DRIVER, "nodeName": "n1", "pool": {"name": "n1", "resourceSliceCount": 2}}
    empty = ReadySlice(decode(ResourceSlice, {"metadata": {"name": "s"}, "spec": bare}))
    assert empty.devices == ()
    bare["sharedCounters"] = [{"name": "set"}]
    counters = ReadySlice(decode(ResourceSlice, {"metadata": {"name": "t"}, "spec": bare}))
    pool = built([empty, counters])
    assert names(pool) == []
    assert pool is not None
    assert pool.counters == {}
