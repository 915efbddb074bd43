"""Defaults of kinds other than pods; one function per kind, listed in `BY_KIND`.

They work in place on an object built by `schema.decode`, on every write.
"""

import base64
import contextlib
from collections.abc import Callable
from typing import Any, Final

from asched_lab.apiserver import quantities
from asched_lab.apiserver.defaults import default_pod, default_pod_spec

JsonObject = dict[str, Any]


def _fill(obj: JsonObject, **values: Any) -> None:
    for name, value in values.items():
        obj.setdefault(name, value)


def _node(node: JsonObject) -> None:
    status, spec = node["status"], node["spec"]
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])
    if spec.get("podCIDR") and not spec.get("podCIDRs"):
        spec["podCIDRs"] = [spec["podCIDR"]]


def _namespace(namespace: JsonObject) -> None:
    metadata = namespace["metadata"]
    if metadata.get("name"):
        metadata.setdefault("labels", {})["kubernetes.io/metadata.name"] = metadata["name"]
    namespace["status"].setdefault("phase", "Active")


def _secret(secret: JsonObject) -> None:
    _fill(secret, type="Opaque")
    for name, text in secret.pop("stringData", {}).items():
        secret.setdefault("data", {})[name] = base64.b64encode(text.encode()).decode()


def _service(service: JsonObject) -> None:
    spec = service["spec"]
    _fill(spec, type="ClusterIP", sessionAffinity="None")
    if spec["type"] != "ExternalName":
        _fill(spec, internalTrafficPolicy="Cluster")
    if spec["type"] in {"NodePort", "LoadBalancer"}:
        _fill(spec, externalTrafficPolicy="Cluster")
    if spec["type"] == "LoadBalancer":
        _fill(spec, allocateLoadBalancerNodePorts=True)
    for port in spec.get("ports") or ():
        _fill(port, protocol="TCP")
        port["targetPort"] = port.get("targetPort") or port["port"]


def _volume(volume: JsonObject) -> None:
    _fill(volume["spec"], persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
    if "hostPath" in volume["spec"]:
        _fill(volume["spec"]["hostPath"], type="")
    volume["status"].setdefault("phase", "Pending")


def _claim(claim: JsonObject) -> None:
    _fill(claim["spec"], volumeMode="Filesystem")
    claim["status"].setdefault("phase", "Pending")


def _storage_class(storage_class: JsonObject) -> None:
    _fill(storage_class, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _csi_driver(driver: JsonObject) -> None:
    _fill(
        driver["spec"],
        attachRequired=True,
        podInfoOnMount=False,
        storageCapacity=True,
        fsGroupPolicy="ReadWriteOnceWithFSType",
        volumeLifecycleModes=["Persistent"],
        requiresRepublish=False,
        seLinuxMount=False,
    )


def _template(spec: JsonObject) -> None:
    if spec.get("template"):
        default_pod_spec(spec["template"]["spec"])


def _replication_controller(controller: JsonObject) -> None:
    spec = controller["spec"]
    _template(spec)
    _fill(spec, replicas=1)
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels:
        _fill(spec, selector=dict(labels))
        _fill(controller["metadata"], labels=dict(labels))


def _replica_set(replica_set: JsonObject) -> None:
    _template(replica_set["spec"])
    _fill(replica_set["spec"], replicas=1)


def _deployment(deployment: JsonObject) -> None:
    spec = deployment["spec"]
    _template(spec)
    _fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    _fill(spec["strategy"], type="RollingUpdate")
    if spec["strategy"]["type"] == "RollingUpdate":
        rolling = spec["strategy"].setdefault("rollingUpdate", {})
        _fill(rolling, maxUnavailable="25%", maxSurge="25%")


def _stateful_set(stateful_set: JsonObject) -> None:
    spec = stateful_set["spec"]
    _template(spec)
    _fill(spec, replicas=1, revisionHistoryLimit=10, podManagementPolicy="OrderedReady")
    _fill(spec["updateStrategy"], type="RollingUpdate")
    if spec["updateStrategy"]["type"] == "RollingUpdate":
        _fill(spec["updateStrategy"].setdefault("rollingUpdate", {}), partition=0)
    policy = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    _fill(policy, whenDeleted="Retain", whenScaled="Retain")
    for claim in spec.get("volumeClaimTemplates") or ():
        claim |= {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}
        _claim(claim)


def _daemon_set(daemon_set: JsonObject) -> None:
    spec = daemon_set["spec"]
    _template(spec)
    _fill(spec, revisionHistoryLimit=10)
    _fill(spec["updateStrategy"], type="RollingUpdate")
    if spec["updateStrategy"]["type"] == "RollingUpdate":
        _fill(spec["updateStrategy"].setdefault("rollingUpdate", {}), maxUnavailable=1, maxSurge=0)
    counts = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled")
    _fill(daemon_set["status"], **dict.fromkeys((*counts, "numberReady"), 0))
    annotations = daemon_set["metadata"].setdefault("annotations", {})
    _fill(annotations, **{"deprecated.daemonset.template.generation": "1"})


def _job(job: JsonObject) -> None:
    spec = job["spec"]
    _template(spec)
    if "completions" not in spec and "parallelism" not in spec:
        _fill(spec, completions=1)
    _fill(spec, parallelism=1, backoffLimit=6, completionMode="NonIndexed", suspend=False)
    _fill(spec, podReplacementPolicy="TerminatingOrFailed", manualSelector=False)


def _cron_job(cron_job: JsonObject) -> None:
    spec = cron_job["spec"]
    _template(spec["jobTemplate"]["spec"])
    _fill(spec, concurrencyPolicy="Allow", suspend=False)
    _fill(spec, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)


def _pod_template(pod_template: JsonObject) -> None:
    _template(pod_template)


def _network_policy(policy: JsonObject) -> None:
    spec = policy["spec"]
    types = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    _fill(spec, policyTypes=types)


def _role_binding(binding: JsonObject) -> None:
    for subject in binding.get("subjects") or ():
        if subject.get("kind") in {"User", "Group"}:
            _fill(subject, apiGroup="rbac.authorization.k8s.io")


def _device_requests(devices: JsonObject) -> None:
    for request in devices.get("requests") or ():
        for exact in (request.get("exactly"), *(request.get("firstAvailable") or ())):
            if exact is not None:
                _fill(exact, allocationMode="ExactCount")
                if exact["allocationMode"] == "ExactCount":
                    _fill(exact, count=1)


def _resource_claim(claim: JsonObject) -> None:
    _device_requests(claim["spec"].get("devices") or {})


def _resource_claim_template(template: JsonObject) -> None:
    _fill(template["spec"], metadata={})
    _device_requests((template["spec"].get("spec") or {}).get("devices") or {})


def _resource_slice(resource_slice: JsonObject) -> None:
    for device in resource_slice["spec"].get("devices") or ():
        for capacity in (device.get("capacity") or {}).values():
            with contextlib.suppress(ValueError):
                capacity["value"] = quantities.text_of(capacity.get("value"))


def _priority_class(priority_class: JsonObject) -> None:
    _fill(priority_class, preemptionPolicy="PreemptLowerPriority")


def _lease(lease: JsonObject) -> None:
    """Drop the fields of coordinated leader election, whose feature is off."""
    lease["spec"].pop("strategy", None)
    lease["spec"].pop("preferredHolder", None)


def _limit_range(limit_range: JsonObject) -> None:
    for item in limit_range["spec"]["limits"] or ():
        if item["type"] != "Container":
            continue
        for name, amount in item.get("max", {}).items():
            item.setdefault("default", {}).setdefault(name, amount)
        for name, amount in (item.get("min", {}) | item.get("default", {})).items():
            item.setdefault("defaultRequest", {}).setdefault(name, amount)


BY_KIND: Final[dict[str, Callable[[JsonObject], None]]] = {
    "Pod": default_pod,
    "Node": _node,
    "Namespace": _namespace,
    "Secret": _secret,
    "Service": _service,
    "PersistentVolume": _volume,
    "PersistentVolumeClaim": _claim,
    "StorageClass": _storage_class,
    "CSIDriver": _csi_driver,
    "ReplicationController": _replication_controller,
    "ReplicaSet": _replica_set,
    "Deployment": _deployment,
    "StatefulSet": _stateful_set,
    "DaemonSet": _daemon_set,
    "Job": _job,
    "PriorityClass": _priority_class,
    "LimitRange": _limit_range,
    "Lease": _lease,
    "CronJob": _cron_job,
    "PodTemplate": _pod_template,
    "NetworkPolicy": _network_policy,
    "RoleBinding": _role_binding,
    "ClusterRoleBinding": _role_binding,
    "ResourceClaim": _resource_claim,
    "ResourceClaimTemplate": _resource_claim_template,
    "ResourceSlice": _resource_slice,
}


def apply_defaults(kind: str, obj: JsonObject) -> None:
    """Fill in the kind's defaults; kinds without a function have none."""
    fill = BY_KIND.get(kind)
    if fill is not None:
        fill(obj)
