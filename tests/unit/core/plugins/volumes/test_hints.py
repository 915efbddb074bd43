"""What wakes a pod whose volumes kept it waiting."""

from typing import Any

import pytest

from asched.core.framework.registrations import Hint
from asched.core.model.decode import decode
from asched.core.model.pod import Pod
from asched.core.plugins.volumes import hints as after
from tests.volume_builders import a_capacity, a_claim, a_class, a_csi_node, a_driver, a_pod

IN_A = a_class("s", topologies=[{"zone": ["a"]}])
POD = a_pod("p", "c", ephemeral=["e"], disks=[{"csi": {"driver": "csi"}}])
#: `spec.volumes` is not told at all.
WITHOUT = decode(Pod, {"metadata": {"name": "without", "namespace": "default"}, "spec": {}})


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        (None, a_class("s"), Hint.QUEUE),
        (a_class("s"), a_class("s", topologies=[{"zone": ["a"]}]), Hint.QUEUE),
        (a_class("s"), a_class("s", "csi"), Hint.SKIP),
        (IN_A, a_class("s", "csi", topologies=[{"zone": ["a"]}]), Hint.SKIP),
        (IN_A, a_class("s", topologies=[{"zone": ["b"]}]), Hint.QUEUE),
        (IN_A, a_class("s"), Hint.QUEUE),
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
        (a_driver("csi"), a_driver("csi", capacity=False), Hint.SKIP),
        (a_driver("csi", capacity=True), a_driver("csi", capacity=True), Hint.SKIP),
        (a_driver("other", capacity=True), a_driver("other"), Hint.SKIP),
    ],
)
def test_drivers_of_inline_volumes(old: Any, new: Any, hint: Hint) -> None:
    assert after.after_csi_driver_changed(POD, old, new) is hint
    assert after.after_csi_driver_changed(WITHOUT, old, new) is Hint.SKIP


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


@pytest.mark.parametrize("name", ["c", "p-e", "q-e", "other"])
@pytest.mark.parametrize("namespace", ["default", "elsewhere"])
def test_whom_a_claim_concerns_is_told_by_its_name(name: str, namespace: str) -> None:
    """Of all others each hint about claims says that they need not be tried."""
    claim = a_claim(name, namespace=namespace)
    for pod in (POD, a_pod("q", ephemeral=["e"]), a_pod("plain"), WITHOUT):
        asked = [after.after_claim_changed, after.after_named_claim_changed]
        hints = {hint(pod, None, claim) for hint in asked}
        sought, offered = after.OF_OWN_CLAIMS.sought(pod), after.OF_OWN_CLAIMS.offered(None, claim)
        is_concerned = not set(sought or ()).isdisjoint(offered or ())
        assert is_concerned is (Hint.QUEUE in hints)
