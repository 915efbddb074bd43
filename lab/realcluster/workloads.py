"""The objects of the trials; pods have a label `app` with the name of what they belong to."""

from typing import Any

from realcluster.settings import PREFIX

Json = dict[str, Any]

IMAGE = "busybox:1.35"
FOREVER = ["sleep", "100000"]
CLASS = "local"
#: Folders on every node, made by node.sh.
DISKS = "/var/lib/kubelet/disks"


def pod_spec(scheduler: str, *, cpu: str = "5m", command: list[str] | None = None) -> Json:
    container = {
        "name": "main",
        "image": IMAGE,
        "command": command or FOREVER,
        "resources": {"requests": {"cpu": cpu, "memory": "4Mi"}},
    }
    return {
        "schedulerName": scheduler,
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
    }


def deployment(name: str, replicas: int, spec: Json) -> Json:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def one_per_node(name: str, spec: Json) -> Json:
    """The same pod template, whose pods exclude each other from nodes."""
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": name}},
    }
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {**spec, "affinity": {"podAntiAffinity": required}}


def never_started(spec: Json) -> Json:
    """Pods whose volume is missing: kubelets admit them and wait, which costs no CPU time."""
    (container,) = spec["containers"]
    mount = {"name": "missing", "mountPath": "/missing"}
    return {
        **spec,
        "containers": [{**container, "volumeMounts": [mount]}],
        "volumes": [{"name": "missing", "configMap": {"name": "missing"}}],
    }


def stream_pod(name: str, scheduler: str, owner: Json) -> Json:
    """A pod that never starts. It has a controller, without which `kubectl drain` refuses it."""
    metadata = owner["metadata"]
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }
    labels = {"app": metadata["name"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels, "ownerReferences": [reference]},
        "spec": never_started(pod_spec(scheduler)),
    }


def static_pod(cpu: str) -> Json:
    """Of a namespace that does not exist, so that no scheduler knows of it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "unseen", "namespace": f"{PREFIX}-absent"},
        "spec": {**pod_spec("", cpu=cpu), "priority": 2000001000,
                 "priorityClassName": "system-node-critical"},
    }  # fmt: skip


def storage_class() -> Json:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": CLASS},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def local_volume(name: str, node: str, disk: str) -> Json:
    term = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": {"app": "volumes"}},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": CLASS,
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": f"{DISKS}/{disk}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}},
        },
    }


def stateful_set(name: str, replicas: int, scheduler: str) -> Json:
    """Each pod has a claim of the class of local volumes, and writes to it."""
    script = "echo $(hostname) > /data/name; exec sleep 100000"
    spec = pod_spec(scheduler, command=["sh", "-c", script])
    spec["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    claim = {
        "metadata": {"name": "data", "labels": {"app": name}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": CLASS,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    made = deployment(name, replicas, spec)
    made["spec"] |= {
        "podManagementPolicy": "Parallel",
        "serviceName": name,
        "volumeClaimTemplates": [claim],
    }
    return {**made, "kind": "StatefulSet"}


def gang(name: str, size: int, cpu: str, scheduler: str) -> list[Json]:
    """A PodGroup of scheduler-plugins and its Job."""
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": size},
    }
    labels = {"app": name, "scheduling.x-k8s.io/pod-group": name}
    spec = {**pod_spec(scheduler, cpu=cpu), "restartPolicy": "Never"}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "parallelism": size,
            "completions": size,
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
    return [group, job]
