"""What the volumes of a pod ask for."""

from asched.core.model.decode import decode
from asched.core.model.migration import CsiVolume
from asched.core.model.pod import Pod
from asched.core.model.storage import (
    claim_class,
    storage_of,
    uses_claim,
    volume_class,
)
from asched.core.model.volume import PersistentVolumeClaim
from tests.volume_builders import a_claim, a_pod, a_volume

BETA = "volume.beta.kubernetes.io/storage-class"


def test_an_in_tree_disk_is_counted_under_its_driver() -> None:
    storage = storage_of(a_pod("p", disks=[{"cinder": {"volumeID": "v"}}]))

    assert storage.has_migratable
    assert storage.migrated == (CsiVolume("cinder.csi.openstack.org", "v"),)


def test_a_disk_without_a_readable_name_is_told() -> None:
    disk = {"awsElasticBlockStore": {"volumeID": "aws://z/disk"}}

    broken = storage_of(a_pod("p", disks=[disk])).broken

    assert broken == (
        "converting volume(d0) from inline to csi: invalid format for AWS volume (aws://z/disk)"
    )


def test_a_claim_is_used_by_its_name_in_its_namespace() -> None:
    pod = a_pod("p", "c", ephemeral=["e"])

    assert uses_claim(pod, a_claim("c"), ephemeral=False)
    assert not uses_claim(pod, a_claim("c", namespace="other"), ephemeral=True)
    assert uses_claim(pod, a_claim("p-e"), ephemeral=True)
    assert not uses_claim(pod, a_claim("p-e"), ephemeral=False)
    assert not uses_claim(pod, a_claim("other"), ephemeral=True)
    assert not uses_claim(
        a_pod("p", disks=[{"csi": {"driver": "x"}}]), a_claim("p-d0"), ephemeral=True
    )
    bare = decode(Pod, {"metadata": {"name": "p", "namespace": "default"}})
    assert not uses_claim(bare, a_claim("p"), ephemeral=True)


def test_the_old_annotation_wins_over_the_class_field() -> None:
    metadata = {"name": "c", "annotations": {BETA: "old"}}
    claim = decode(
        PersistentVolumeClaim, {"metadata": metadata, "spec": {"storageClassName": "new"}}
    )

    assert claim_class(claim) == "old"
    assert claim_class(a_claim("c", cls="new")) == "new"
    assert claim_class(a_claim("c")) == ""
    assert claim_class(PersistentVolumeClaim()) == ""
    assert volume_class(a_volume("pv", cls="x")) == "x"
