"""Points for how full the storage of a node would be."""

from typing import Any

from asched.core.config.args import UtilizationShapePoint
from asched.core.plugins.resources.scores import curve
from asched.core.plugins.volumes.capacity_scoring import storage_scores
from asched.core.plugins.volumes.choice import choose
from asched.core.plugins.volumes.claims import PodClaims
from tests.volume_builders import (
    ZONE,
    a_capacity,
    a_claim,
    a_class,
    a_cluster,
    a_driver,
    a_node,
    a_volume,
)

FALLING = curve((UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0)))
RISING = curve((UtilizationShapePoint(0, 0), UtilizationShapePoint(100, 10)))


def scores(points: Any, *objects: Any) -> list[int]:
    claims = tuple(obj for obj in objects if type(obj).__name__ == "PersistentVolumeClaim")
    cluster = a_cluster(
        a_node("n1", "a"), a_node("n2", "b"), a_class("s", "csi"), a_class("t", "csi"), *objects
    )
    return storage_scores(
        choose(cluster, PodClaims(delayed=claims), cluster.view()), points
    ).tolist()


def test_existing_volumes_count_by_the_share_that_is_asked_for() -> None:
    volumes = (
        a_volume("a", cls="s", size="4Gi", reach={ZONE: ["a"]}),
        a_volume("b", cls="s", size="8Gi", reach={ZONE: ["b"]}),
    )

    assert scores(RISING, a_claim("c", cls="s", size="2Gi"), *volumes) == [50, 25]


def test_claims_of_a_class_are_added_up_and_classes_weigh_alike() -> None:
    claims = [a_claim("x", cls="s", size="1Gi"), a_claim("y", cls="s", size="1Gi"),
              a_claim("z", cls="t", size="1Gi")]  # fmt: skip
    volumes = [a_volume("a", cls="s", size="1Gi"), a_volume("b", cls="s", size="3Gi"),
               a_volume("c", cls="t", size="100Gi")]  # fmt: skip

    assert scores(RISING, *claims, *volumes) == [26, 26]  # (50 + 1) / 2, rounded half up


def test_volumes_to_be_made_count_by_the_room_there_is() -> None:
    room = (a_driver("csi", capacity=True), a_capacity("k", "s", "100Gi", {ZONE: "a"}))

    assert scores(FALLING, a_claim("c", cls="s", size="30Gi"), *room) == [70, 0]


def test_a_volume_to_be_made_does_not_count_beside_one_that_exists() -> None:
    room = (a_driver("csi", capacity=True), a_capacity("k", "t", "100Gi", {}))
    claims = (a_claim("x", cls="s", size="1Gi"), a_claim("y", cls="t", size="90Gi"))
    volume = a_volume("a", cls="s", size="2Gi", reach={ZONE: ["a"]})

    assert scores(RISING, *claims, volume, *room) == [50, 90]


def test_claims_that_64_bits_cannot_sum_leave_nothing_free() -> None:
    room = (a_driver("csi", capacity=True), a_capacity("k", "s", "8Ei", {ZONE: "a"}))
    claims = [a_claim(name, cls="s", size="5Ei") for name in ("x", "y")]

    assert scores(FALLING, *claims, *room) == [0, 0]
    assert scores(RISING, *claims, *room)[0] == 100
