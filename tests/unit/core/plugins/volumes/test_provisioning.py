"""Where volumes can be made, and whether there is room."""

from typing import Any

import pytest

from asched.core.plugins.volumes.topology import provision
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
