"""Where volumes can be made, and whether there is room."""

from typing import Any

import pytest

from asched.core.plugins.volumes.provisioning import UNTOLD, provision, volume_limit_bytes
from tests.volume_builders import (
    ZONE,
    a_capacity,
    a_claim,
    a_class,
    a_cluster,
    a_driver,
    a_node,
)

NODES = (a_node("n1", "a"), a_node("n2", "b"))
CLAIM = a_claim("c", cls="s", size="2Gi")


def judged(*objects: Any, claim: Any = CLAIM) -> tuple[list[int], list[int]]:
    cluster = a_cluster(*NODES, *objects)
    found = provision(cluster, claim, cluster.view())
    return found.possible.astype(int).tolist(), found.roomy.astype(int).tolist()


@pytest.mark.parametrize("provisioner", ["", "kubernetes.io/no-provisioner"])
def test_some_classes_make_nothing(provisioner: str) -> None:
    assert judged(a_class("s", provisioner))[0] == [0, 0]


def test_a_class_that_is_gone_makes_nothing() -> None:
    assert judged()[0] == [0, 0]


def test_a_class_may_be_tied_to_zones() -> None:
    assert judged(a_class("s", "csi", topologies=[{ZONE: ["b"]}])) == ([0, 1], [1, 1])


@pytest.mark.parametrize(
    ("driver", "roomy"),
    [
        (a_driver("csi", capacity=True), [0, 0]),
        (a_driver("csi", capacity=False), [1, 1]),
        (a_driver("csi"), [1, 1]),
        (a_driver("other", capacity=True), [1, 1]),
    ],
)
def test_room_is_asked_for_only_where_the_driver_tells_it(driver: Any, roomy: list[int]) -> None:
    assert judged(a_class("s", "csi"), driver)[1] == roomy


@pytest.mark.parametrize(
    ("capacity", "roomy"),
    [
        (a_capacity("k", "s", "2Gi", {ZONE: "a"}), [1, 0]),
        (a_capacity("k", "s", "2Gi", {}), [1, 1]),
        (a_capacity("k", "s", "2Gi", None), [0, 0]),
        (a_capacity("k", "other", "2Gi", {}), [0, 0]),
        (a_capacity("k", "s", "1Gi", {}), [0, 0]),
        (a_capacity("k", "s", "9Gi", {}, largest="1Gi"), [0, 0]),
        (a_capacity("k", "s", None, {}, largest="2Gi"), [1, 1]),
        (a_capacity("k", "s", None, {}), [0, 0]),
    ],
)
def test_room(capacity: Any, roomy: list[int]) -> None:
    assert judged(a_class("s", "csi"), a_driver("csi", capacity=True), capacity)[1] == roomy


def test_every_capacity_is_looked_at_and_the_first_by_name_that_has_room_is_told() -> None:
    capacities = [
        a_capacity("a", "other", "9Gi", {}),
        a_capacity("b", "s", "1Gi", {}),
        a_capacity("c", "s", None, {ZONE: "a"}, largest="2Gi"),
        a_capacity("d", "s", "8Gi", {}),
        a_capacity("e", "s", "9Gi", {}),
    ]
    driver = a_driver("csi", capacity=True)
    cluster = a_cluster(*NODES, a_class("s", "csi"), driver, *reversed(capacities))

    found = provision(cluster, CLAIM, cluster.view())

    assert found.roomy.all()
    assert found.capacity_bytes is not None
    assert found.capacity_bytes.tolist() == [0, 8 << 30]


def test_a_claim_that_asks_for_nothing_always_has_room() -> None:
    claim = a_claim("c", cls="s", size=None)

    assert judged(a_class("s", "csi"), a_driver("csi", capacity=True), claim=claim)[1] == [1, 1]


def test_the_capacity_that_was_found_is_told() -> None:
    cluster = a_cluster(
        *NODES,
        a_class("s", "csi"),
        a_driver("csi", capacity=True),
        a_capacity("k", "s", "4Gi", {ZONE: "a"}),
    )

    found = provision(cluster, CLAIM, cluster.view()).capacity_bytes

    assert found is not None
    assert found.tolist() == [4 << 30, UNTOLD]


def test_a_limit_that_is_not_told_is_below_every_other() -> None:
    assert volume_limit_bytes(a_capacity("k", "s", None, {})) == -1
    assert volume_limit_bytes(a_capacity("k", "s", "5", {}, largest="3")) == 3
