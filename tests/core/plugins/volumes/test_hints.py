"""What wakes a pod whose volumes kept it waiting."""

from typing import Any

import pytest

from asched.core.framework.points import Hint
from asched.core.plugins.volumes import hints as after
from tests.volume_builders import (
    a_capacity,
    a_claim,
    a_class,
    a_csi_node,
    a_driver,
    a_pod,
)

POD = a_pod("p", "c", ephemeral=["e"], disks=[{"csi": {"driver": "csi"}}])


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        (None, a_class("s"), Hint.QUEUE),
        (a_class("s"), a_class("s", topologies=[{"zone": ["a"]}]), Hint.QUEUE),
        (a_class("s"), a_class("s", "csi"), Hint.SKIP),
    ],
)
def test_classes(old: Any, new: Any, hint: Hint) -> None:
    assert after.after_class_changed(POD, old, new) is hint


def test_claims() -> None:
    assert after.after_claim_changed(POD, None, a_claim("c")) is Hint.QUEUE
    assert after.after_claim_changed(POD, None, a_claim("p-e")) is Hint.QUEUE
    assert after.after_claim_changed(POD, None, a_claim("d")) is Hint.SKIP


def test_csi_nodes() -> None:
    node = a_csi_node("n", moved="kubernetes.io/aws-ebs")

    assert after.after_csi_node_changed(POD, None, a_csi_node("n")) is Hint.QUEUE
    assert after.after_csi_node_changed(POD, a_csi_node("n"), node) is Hint.QUEUE
    assert (
        after.after_csi_node_changed(POD, a_csi_node("n"), a_csi_node("n", {"x": 1})) is Hint.SKIP
    )


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        (a_driver("csi", capacity=True), a_driver("csi", capacity=False), Hint.QUEUE),
        (a_driver("csi", capacity=True), a_driver("csi"), Hint.QUEUE),
        (a_driver("csi"), a_driver("csi", capacity=True), Hint.SKIP),
        (a_driver("other", capacity=True), a_driver("other"), Hint.SKIP),
    ],
)
def test_drivers_of_inline_volumes(old: Any, new: Any, hint: Hint) -> None:
    assert after.after_csi_driver_changed(POD, old, new) is hint


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        (None, a_capacity("k", "s", None, {}), Hint.QUEUE),
        (a_capacity("k", "s", "1Gi", {}), a_capacity("k", "s", "2Gi", {}), Hint.QUEUE),
        (a_capacity("k", "s", None, {}), a_capacity("k", "s", "0", {}), Hint.QUEUE),
        (a_capacity("k", "s", "2Gi", {}), a_capacity("k", "s", "3Gi", {}, "1Gi"), Hint.SKIP),
        (a_capacity("k", "s", "2Gi", {}), a_capacity("k", "s", None, {}), Hint.SKIP),
        (a_capacity("k", "s", "2Gi", {}), a_capacity("k", "s", "2Gi", {}), Hint.SKIP),
    ],
)
def test_capacities(old: Any, new: Any, hint: Hint) -> None:
    assert after.after_capacity_changed(POD, old, new) is hint


@pytest.mark.parametrize("gone", [POD, a_pod("plain"), a_pod("e", ephemeral=["e"])])
def test_whom_a_pod_that_goes_concerns_is_told_as_the_hint_says(gone: Any) -> None:
    offered = after.OF_CLAIMS.offered(gone, None)
    assert after.OF_CLAIMS.sought(POD)
    assert bool(offered) is (after.volumes_are_free(POD, gone, None) is Hint.QUEUE)
