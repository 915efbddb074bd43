"""Rules put taints on devices, as if their driver had told of them."""

import random
from typing import Any

import pytest

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Gone, Seen
from asched.core.dra.ledger import DeviceLedger
from asched.core.dra.taint_rules import tainted
from asched.core.model.claim import DeviceTaintRule
from asched.core.model.decode import decode
from asched.core.model.kinds import DEVICE_TAINT_RULE, RESOURCE_SLICE, Kind
from tests.device_builders import DRIVER, NODE_NAME, World, a_claim, a_slice, asks


def a_rule(
    name: str, key: str = "broken", effect: str = "NoSchedule", **selector: str
) -> DeviceTaintRule:
    taint = {"key": key, "effect": effect}
    spec = {"deviceSelector": selector, "taint": taint}
    return decode(DeviceTaintRule, {"metadata": {"name": name}, "spec": spec})


def keys(record: Any) -> list[list[str]]:
    return [[taint.key for taint in device.taints or ()] for device in record.spec.devices]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({}, [["broken"], ["broken"]]),
        ({"driver": DRIVER}, [["broken"], ["broken"]]),
        ({"driver": "other"}, [[], []]),
        ({"pool": NODE_NAME}, [["broken"], ["broken"]]),
        ({"pool": "other"}, [[], []]),
        ({"device": "b"}, [[], ["broken"]]),
        ({"driver": DRIVER, "pool": NODE_NAME, "device": "a"}, [["broken"], []]),
        ({"driver": DRIVER, "pool": "other", "device": "a"}, [[], []]),
    ],
)
def test_all_that_a_selector_names_must_hold(selector, expected) -> None:
    assert keys(tainted(a_slice("a", "b"), [a_rule("r", **selector)])) == expected


def test_a_rule_without_a_selector_is_about_no_device() -> None:
    rule = decode(DeviceTaintRule, {"spec": {"taint": {"key": "x", "effect": "NoSchedule"}}})
    record = a_slice("a")
    assert tainted(record, [rule]) is record


def test_only_claims_that_tolerate_it_get_a_tainted_device() -> None:
    world = World(tainted(a_slice("a", "b"), [a_rule("r", device="a")]))
    assert world.devices(a_claim(asks())) == [["b"]]
    tolerant = asks(tolerations=[{"key": "broken", "operator": "Exists"}])
    assert world.devices(a_claim(tolerant)) == [["a"]]
    soft = World(tainted(a_slice("a"), [a_rule("r", effect="None")]))
    assert soft.devices(a_claim(asks())) == [["a"]]


@pytest.mark.parametrize("seed", range(8))
def test_whatever_comes_and_goes_slices_have_the_taints_of_the_moment(seed: int) -> None:
    rng = random.Random(seed)
    cluster = Cluster()
    ledger = cluster.singleton(DeviceLedger)
    rules: dict[str, DeviceTaintRule] = {}
    slices: dict[str, Any] = {}
    for _ in range(60):
        name = f"x{rng.randrange(4)}"
        if rng.random() < 0.5:
            selector = rng.choice(({}, {"device": "a"}, {"pool": "p1"}, {"driver": "other"}))
            rule = a_rule(name, key=f"k{rng.randrange(3)}", **selector)
            gone = rng.random() < 0.3 and name in rules
            step(cluster, DEVICE_TAINT_RULE, rules, name, None if gone else rule)
        else:
            record = a_slice("a", "b", name=name, pool=f"p{rng.randrange(2)}")
            gone = rng.random() < 0.3 and name in slices
            step(cluster, RESOURCE_SLICE, slices, name, None if gone else record)
        if rng.random() < 0.5:
            ledger.catch_up()
            found = {one: ledger.inventory.record(one) for one in ledger.inventory.names()}
            now = [rules[one] for one in sorted(rules)]
            assert found == {one: tainted(record, now) for one, record in slices.items()}


def step(cluster: Cluster, kind: Kind, known: dict[str, Any], name: str, obj: Any) -> None:
    """An object appears or changes; None: it goes."""
    if obj is None:
        cluster.apply(Gone(kind, known.pop(name)))
    else:
        known[name] = obj
        cluster.apply(Seen(kind, obj))
