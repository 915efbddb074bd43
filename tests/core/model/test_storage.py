"""What the volumes of a pod ask for."""

from asched.core.model.decode import decode
from asched.core.model.migration import CsiVolume
from asched.core.model.pod import Pod
from asched.core.model.storage import (
    NO_STORAGE,
    ClaimUse,
    claim_class,
    is_fully_bound,
    is_owned,
    storage_of,
    uses_claim,
    volume_class,
)
from asched.core.model.volume import PersistentVolumeClaim
from tests.volume_builders import a_claim, a_pod, a_volume

BETA = "volume.beta.kubernetes.io/storage-class"


def test_claims_are_direct_or_made_for_the_pod() -> None:
    storage = storage_of(a_pod("p", "c", ephemeral=["e"]))

    assert storage.claims == (
        ClaimUse("default/c", "c"),
        ClaimUse("default/p-e", "p-e", "p"),
    )
    assert storage.direct == ("c",)


def test_volumes_that_no_rule_looks_at_are_nothing() -> None:
    assert storage_of(a_pod("p")) is NO_STORAGE
    assert storage_of(a_pod("p", disks=[{"csi": {"driver": "x"}}])) is NO_STORAGE


def test_an_in_tree_disk_is_counted_under_its_driver() -> None:
    storage = storage_of(a_pod("p", disks=[{"cinder": {"volumeID": "v"}}]))

    assert storage.has_migratable
    assert storage.migrated == (CsiVolume("cinder.csi.openstack.org", "v"),)


def test_some_migratable_kinds_are_not_counted() -> None:
    storage = storage_of(a_pod("p", disks=[{"azureFile": {}}, {"vsphereVolume": {}}]))

    assert storage.has_migratable
    assert not storage.migrated


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


def test_bound_means_that_both_sides_know() -> None:
    assert is_fully_bound(a_claim("c", volume="pv"))
    assert not is_fully_bound(a_claim("c", volume="pv", bound=False))
    assert not is_fully_bound(a_claim("c", bound=True))
    assert not is_fully_bound(decode(PersistentVolumeClaim, {"spec": {"volumeName": "pv"}}))


def test_a_claim_is_owned_by_its_controller() -> None:
    assert is_owned(a_claim("c", owner="p"), "p")
    assert not is_owned(a_claim("c", owner="p"), "q")
    assert not is_owned(a_claim("c"), "p")
