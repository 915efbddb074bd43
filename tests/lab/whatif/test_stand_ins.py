"""What controllers would do, as far as a scheduler waits for it."""

from asched_lab.apiserver.resources import PODS, find
from asched_lab.whatif.stand_ins import Hands
from tests.lab.whatif.clusters import a_node, a_pod, a_store, places, supposed

CLAIMS, VOLUMES = find("persistentvolumeclaims"), find("persistentvolumes")


def a_class(provisioner: str = "csi.example.com", mode: str = "WaitForFirstConsumer") -> dict:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
    }


def a_claim(name: str = "data") -> dict:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "resources": {"requests": {"storage": "1Gi"}},
        },
        "status": {"phase": "Pending"},
    }


MOUNTED = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]


def test_a_claim_that_waits_for_its_pod_gets_a_volume_in_the_zone_of_the_node() -> None:
    objects = (a_node("n1"), a_node("n2", zone="b"), a_class(), a_claim())
    result = supposed(
        *objects, a_pod("web", volumes=MOUNTED, nodeSelector={"topology.kubernetes.io/zone": "b"})
    )
    assert places(result) == {"default/web": "n2"}


def test_a_claim_that_nobody_provides_for_stays_unbound_and_its_pod_waits() -> None:
    local = a_class("kubernetes.io/no-provisioner")
    result = supposed(a_node("n1"), local, a_claim(), a_pod("w", volumes=MOUNTED))
    assert "didn't find available persistent volumes to bind" in places(result)["default/w"]


def test_a_claim_is_made_from_the_template_of_a_pod_and_goes_with_it() -> None:
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpu", "namespace": "default"},
        "spec": {
            "spec": {
                "devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}
            }
        },
    }
    device_class = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {},
    }
    devices = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {
            "driver": "d",
            "nodeName": "n2",
            "pool": {"name": "n2", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "dev-0"}],
        },
    }
    asks = {"resourceClaims": [{"name": "g", "resourceClaimTemplateName": "gpu"}]}
    objects = (a_node("n1"), a_node("n2"), template, device_class, devices)

    result = supposed(*objects, a_pod("first", **asks), a_pod("second", **asks))

    assert places(result)["default/first"] == "n2"
    assert "cannot allocate all claims" in places(result)["default/second"]

    store = a_store(*objects, a_pod("first", **asks))
    hands = Hands(store)
    hands.work()
    (claim,) = store.listed(find("resourceclaims"))
    (pod,) = store.listed(PODS)
    assert pod["status"]["resourceClaimStatuses"] == [
        {"name": "g", "resourceClaimName": claim["metadata"]["name"]}
    ]
    store.remove(PODS, pod)
    hands.work()
    assert store.listed(find("resourceclaims")) == []


def test_a_pod_that_goes_for_another_is_made_anew_by_what_keeps_it() -> None:
    low = a_pod("low", "3", on="n1", owner="ReplicaSet/low", priority=0)
    result = supposed(a_node("n1"), low, a_pod("high", "3", priority=5))

    assert set(result.evicted) == {"default/low"}
    assert result.evicted["default/low"].startswith("Preempted by pod ")
    found = {place.instead_of or place.pod: place for place in result.places}
    assert found["default/high"].node == "n1"
    assert "Insufficient cpu" in found["default/low"].why
