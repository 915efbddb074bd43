"""Which changes help a pod that found no node with room for its volumes."""

from typing import Any

import pytest

from asched.core.framework.points import Hint
from asched.core.model.decode import decode
from asched.core.model.volume import CsiNode
from asched.core.plugins.volumes.hints import OF_OWN_CLAIMS
from asched.core.plugins.volumes.limits import (
    NodeVolumeLimits,
    after_attachment_deleted,
    after_claim_added,
    after_csi_node_updated,
    after_pod_deleted,
    detached,
)
from tests.core.plugins.volumes.test_limits import EBS, SCALING, a_pair
from tests.heard import heard
from tests.poison.counted import counted
from tests.volume_builders import (
    a_claim,
    a_class,
    a_cluster,
    a_csi_node,
    a_node,
    a_pod,
    a_volume,
    an_attachment,
)


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        ({"a": 1}, {"a": 2}, Hint.QUEUE),
        ({"a": 2}, {"a": 1, "b": 1}, Hint.QUEUE),
        ({"a": 2}, {"a": 1}, Hint.SKIP),
        ({"a": 2}, {"a": None}, Hint.SKIP),
        ({"a": 2}, {}, Hint.SKIP),
        ({"a": None}, {"a": 0}, Hint.SKIP),
    ],
)
def test_a_csi_node_helps_if_some_limit_grew(old: Any, new: Any, hint: Hint) -> None:
    assert after_csi_node_updated(a_pod("p"), a_csi_node("n", old), a_csi_node("n", new)) is hint


def test_a_pod_helps_if_it_went_from_a_node_with_volumes() -> None:
    waiting = a_pod("p", "c")

    assert after_pod_deleted(waiting, a_pod("gone", "x", node="n"), None) is Hint.QUEUE
    assert after_pod_deleted(waiting, a_pod("gone", ephemeral=["e"], node="n"), None) is Hint.QUEUE
    file = a_pod("gone", disks=[{"azureFile": {}}], node="n")
    assert after_pod_deleted(waiting, file, None) is Hint.QUEUE
    nominated = a_pod("gone", "x", nominated="n")
    assert after_pod_deleted(waiting, nominated, None) is Hint.QUEUE
    assert after_pod_deleted(waiting, a_pod("gone", "x"), None) is Hint.SKIP
    assert after_pod_deleted(waiting, a_pod("gone", node="n"), None) is Hint.SKIP


def test_claims_and_attachments_help_those_who_use_them() -> None:
    direct, made = a_pod("p", "c"), a_pod("p", ephemeral=["e"])
    ebs = a_pod("p", disks=[{"awsElasticBlockStore": {"volumeID": "vol-1"}}])
    attachment = an_attachment("va", "n", EBS, "pv")

    assert after_claim_added(made, None, a_claim("p-e")) is Hint.QUEUE
    assert after_claim_added(direct, None, a_claim("d")) is Hint.SKIP
    assert after_attachment_deleted(direct, attachment, None) is Hint.QUEUE
    assert after_attachment_deleted(made, attachment, None) is Hint.SKIP
    assert after_attachment_deleted(ebs, attachment, None) is Hint.QUEUE
    assert after_attachment_deleted(ebs, an_attachment("v", "n", "x", "pv"), None) is Hint.SKIP


def test_what_it_listens_to() -> None:
    plugin = NodeVolumeLimits(a_cluster())

    assert heard(plugin.registrations()) == {
        "storage.k8s.io/CSINode: Add": None,
        "storage.k8s.io/CSINode: Update": after_csi_node_updated,
        "Pod: Delete": after_pod_deleted,
        "PersistentVolumeClaim: Add": (after_claim_added, OF_OWN_CLAIMS),
        "storage.k8s.io/VolumeAttachment: Delete": after_attachment_deleted,
    }
    more = heard(plugin.extra_events())
    assert set(more) == {
        "Node: Add",
        "storage.k8s.io/CSINode: Delete, Update",
        "storage.k8s.io/VolumeAttachment: Delete",
        "PersistentVolumeClaim: Add, Delete, Update",
        "PersistentVolume: Add, Delete, Update",
        "storage.k8s.io/StorageClass: Add, Delete, Update",
    }
    scaling = heard(NodeVolumeLimits(a_cluster(), SCALING).extra_events())
    assert set(scaling) - set(more) == {"storage.k8s.io/CSIDriver: Delete, Update"}


def test_a_csi_node_may_tell_no_drivers_and_no_limits() -> None:
    silent = decode(CsiNode, {"metadata": {"name": "n"}, "spec": {"drivers": None}})
    named = decode(CsiNode, {"metadata": {"name": "n"}, "spec": {"drivers": [{"name": "a"}]}})
    full = a_csi_node("n", {"a": 1})
    for old in (silent, named):
        assert after_csi_node_updated(a_pod("p"), old, full) is Hint.QUEUE
        assert after_csi_node_updated(a_pod("p"), full, old) is Hint.SKIP


def test_what_decides_how_claims_count_is_overlooked_by_hints() -> None:
    used = a_pod("runs", "c2", node="n")
    cluster = a_cluster(a_node("n"), a_class("s"), *a_pair(1), *a_pair(2), used)
    told = {
        registration.trigger.resource: registration.hint
        for registration in NodeVolumeLimits(cluster).extra_events()
    }
    waiting = a_pod("p", "c1")
    about_volume = told["PersistentVolume"]
    assert about_volume is not None

    assert about_volume(waiting, a_volume("pv1"), None) is Hint.QUEUE, "its own"
    assert about_volume(waiting, a_volume("pv2"), None) is Hint.QUEUE, "that of a placed pod"
    assert about_volume(waiting, a_volume("pv3"), None) is Hint.SKIP
    assert about_volume(waiting, None, a_volume("pv1")) is Hint.QUEUE
    assert about_volume(a_pod("p", "c3", "c1"), None, a_volume("pv1")) is Hint.QUEUE
    assert told["Node"] is None
    assert told["storage.k8s.io/CSINode"] is None


def test_an_attachment_that_goes_helps_claims_made_for_the_pod_too() -> None:
    gone = an_attachment("a", "csi", "n", "pv1")
    assert detached(a_pod("p", ephemeral=["e"]), gone, None) is Hint.QUEUE
    assert detached(a_pod("p"), gone, None) is Hint.SKIP


def of_claims(claims: int, disks: int = 0) -> Any:
    """A waiting pod with so many volumes."""
    names = [f"c{number}" for number in range(claims)]
    return a_pod("p", *names, disks=[{"rbd": {"image": f"i{n}"}} for n in range(disks)])


@pytest.mark.parametrize("hint", [detached, after_attachment_deleted])
def test_an_attachment_that_goes_costs_no_look_at_thousands_of_volumes(hint: Any) -> None:
    """Each waiting pod is asked about each attachment that goes."""
    gone = an_attachment("a", "csi", "n", "pv1")
    waiting = of_claims(2000)
    with counted() as cost:
        assert hint(waiting, gone, None) is Hint.QUEUE
    assert cost.calls < 20
    waiting = of_claims(0, disks=2000)
    with counted() as cost:
        assert hint(waiting, gone, None) is Hint.SKIP
    assert cost.calls < 10 * 2000


def test_a_claim_that_comes_is_looked_for_by_its_name() -> None:
    waiting = of_claims(2000)
    with counted() as cost:
        assert after_claim_added(waiting, None, a_claim("c1999")) is Hint.QUEUE
        assert after_claim_added(waiting, None, a_claim("other")) is Hint.SKIP
    assert cost.calls < 20
