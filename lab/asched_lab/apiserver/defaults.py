"""Defaults of objects, kind by kind.

They are applied in place before all other rules, on every write, also on the result of a patch,
where a patched container gets its defaults back.
"""

import base64
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from asched_lab.apiserver import quantities

JsonObject = dict[str, Any]

FILE_MODE: Final = 0o644
#: Volume sources with a default `defaultMode`.
SOURCES_WITH_MODE: Final = ("secret", "configMap", "downwardAPI", "projected")
POD_SPEC: Final = (
    ("restartPolicy", "Always"),
    ("terminationGracePeriodSeconds", 30),
    ("dnsPolicy", "ClusterFirst"),
    ("schedulerName", "default-scheduler"),
)
PROBE: Final = (
    ("timeoutSeconds", 1),
    ("periodSeconds", 10),
    ("successThreshold", 1),
    ("failureThreshold", 3),
)


def containers_of(spec: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Every container with its path in the spec, in the order of error messages."""
    for member in ("containers", "initContainers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(member) or ()):
            yield f"{member}[{index}]", container


def default_pod(pod: JsonObject) -> None:
    """All defaults of a pod: those of its spec, and requests that follow limits."""
    spec = pod["spec"]
    default_pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    for _, container in containers_of(spec):
        requests_follow_limits(container["resources"])
    if "resources" in spec:
        pod_requests_follow(spec)


def pod_requests_follow(spec: JsonObject) -> None:
    """Requests of a whole pod: the sum of its containers, else the pod's own limit."""
    resources = spec["resources"]
    for name, limit in resources.get("limits", {}).items():
        requested = [
            container["resources"].get("requests", {}).get(name)
            for container in spec.get("containers") or ()
        ]
        amounts = [quantities.value(amount) for amount in requested if amount is not None]
        wanted = quantities.canonical(str(sum(amounts))) if amounts else limit
        resources.setdefault("requests", {}).setdefault(name, wanted)


def requests_follow_limits(resources: JsonObject) -> None:
    limits = resources.get("limits")
    if limits:
        requests = resources.setdefault("requests", {})
        for name, amount in limits.items():
            requests.setdefault(name, amount)


def default_pod_spec(spec: JsonObject) -> None:
    """All defaults of a pod spec, also in templates."""
    for name, value in POD_SPEC:
        spec.setdefault(name, value)
    spec.setdefault("securityContext", {})
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    host_network = spec.get("hostNetwork", False)
    for _, container in containers_of(spec):
        default_container(container, host_network=host_network)
    for volume in spec.get("volumes") or ():
        default_volume(volume)


def default_container(container: JsonObject, *, host_network: bool) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("imagePullPolicy", pull_policy(container.get("image", "")))
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if host_network and port["containerPort"]:
            port.setdefault("hostPort", port["containerPort"])
    for env in container.get("env") or ():
        field_ref = (env.get("valueFrom") or {}).get("fieldRef")
        if field_ref is not None:
            field_ref.setdefault("apiVersion", "v1")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if name in container:
            default_probe(container[name])


def pull_policy(image: str) -> str:
    """Always for the tag latest, written or implied; a digest counts as a tag."""
    if "@" in image:
        return "IfNotPresent"
    _, colon, tag = image.rpartition("/")[2].partition(":")
    return "Always" if not colon or tag == "latest" else "IfNotPresent"


def default_probe(probe: JsonObject) -> None:
    for name, value in PROBE:
        probe.setdefault(name, value)
    get = probe.get("httpGet")
    if get is not None:
        get.setdefault("path", "/")
        get.setdefault("scheme", "HTTP")
    grpc = probe.get("grpc")
    if grpc is not None:
        grpc.setdefault("service", "")


def default_volume(volume: JsonObject) -> None:
    for name in SOURCES_WITH_MODE:
        if name in volume:
            volume[name].setdefault("defaultMode", FILE_MODE)
    if "projected" in volume:
        for source in volume["projected"]["sources"] or ():
            default_projection(source)
    if "downwardAPI" in volume:
        default_projection(volume)
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    if "iscsi" in volume:
        volume["iscsi"].setdefault("iscsiInterface", "default")
    if "rbd" in volume:
        for name, value in (("pool", "rbd"), ("user", "admin"), ("keyring", "/etc/ceph/keyring")):
            volume["rbd"].setdefault(name, value)
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if template is not None:
        template["spec"].setdefault("volumeMode", "Filesystem")
    # A volume without any source is an empty directory.
    if len(volume) == 1:
        volume["emptyDir"] = {}


def default_projection(source: JsonObject) -> None:
    token = source.get("serviceAccountToken")
    if token is not None:
        token.setdefault("expirationSeconds", 3600)
    for item in (source.get("downwardAPI") or {}).get("items") or ():
        if "fieldRef" in item:
            item["fieldRef"].setdefault("apiVersion", "v1")


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
    "StorageClass": partial(_fill, reclaimPolicy="Delete", volumeBindingMode="Immediate"),
    "CSIDriver": _csi_driver,
    "ReplicationController": _replication_controller,
    "ReplicaSet": _replica_set,
    "Deployment": _deployment,
    "StatefulSet": _stateful_set,
    "DaemonSet": _daemon_set,
    "Job": _job,
    "PriorityClass": partial(_fill, preemptionPolicy="PreemptLowerPriority"),
    "LimitRange": _limit_range,
    "Lease": _lease,
    "CronJob": _cron_job,
    "PodTemplate": _template,
    "RoleBinding": _role_binding,
    "ClusterRoleBinding": _role_binding,
    "ResourceClaim": _resource_claim,
    "ResourceClaimTemplate": _resource_claim_template,
}


def apply_defaults(kind: str, obj: JsonObject) -> None:
    """Fill in the kind's defaults; kinds without a function have none."""
    fill = BY_KIND.get(kind)
    if fill is not None:
        fill(obj)
