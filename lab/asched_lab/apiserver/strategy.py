"""Fields that a write may set and fields that belong to the server, kind by kind.

`prepare_create` and `prepare_update` work in place on a decoded object with its defaults; they set
identity, first status and generation, and restore what the used subresource may not change.

Defaults are applied in place before all other rules, on every write, also on the result of a patch,
where a patched container gets its defaults back.
"""

import base64
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from asched_lab.apiserver import quantities, schema
from asched_lab.apiserver.context import Context
from asched_lab.apiserver.resources import Resource

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


#: Metadata that only the server writes.
OWNED: Final = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)
#: Metadata that an update takes from the stored object.
RETAINED: Final = (
    "uid",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)
GATED: Final = "Scheduling is blocked due to non-empty scheduling gates"
#: Kinds whose status subresource does not change labels.
LABELS_BY_MAIN_RESOURCE: Final = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"})
QOS_RESOURCES: Final = ("cpu", "memory")


def prepare_create(ctx: Context, res: Resource, obj: JsonObject) -> None:
    """Set identity, generation and first status of a new object."""
    metadata = obj["metadata"]
    for name in OWNED:
        metadata.pop(name, None)
    metadata["uid"] = ctx.new_uid()
    metadata["creationTimestamp"] = ctx.now()
    if res.counted:
        metadata["generation"] = 1
    if res.sub("status") is not None and "s" not in res.traits:
        obj["status"] = {}
        if res.kind != "Pod":
            renew_status(res, obj)
    match res.kind:
        case "Pod":
            fold_label_keys(obj)
            obj["status"] = first_pod_status(ctx, obj)
            if obj["spec"]["terminationGracePeriodSeconds"] < 0:
                obj["spec"]["terminationGracePeriodSeconds"] = 1
        case "Namespace":
            obj["spec"].setdefault("finalizers", ["kubernetes"])
        case "PersistentVolume":
            obj["status"]["lastPhaseTransitionTime"] = ctx.now()
        case "Job":
            name_job(obj)
        case "Service":
            give_addresses(ctx, obj)


def renew_status(res: Resource, obj: JsonObject) -> None:
    """The status of a kind before any controller wrote it."""
    form = schema.TYPES.get(schema.type_name(res), {}).get("status")
    if form is None or not form.always:
        obj.pop("status")
    else:
        obj["status"] = schema.reader(form.form)({}, "", [])
    apply_defaults(res.kind, obj)


def first_pod_status(ctx: Context, pod: JsonObject) -> JsonObject:
    status: JsonObject = {"phase": "Pending", "qosClass": qos_class(pod["spec"])}
    if pod["spec"].get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": ctx.now(),
                "reason": "SchedulingGated",
                "message": GATED,
            }
        ]
    return status


def qos_class(spec: JsonObject) -> str:
    """BestEffort without requests, Guaranteed with requests equal to limits, else Burstable."""
    if "resources" in spec and (
        spec["resources"].get("requests") or spec["resources"].get("limits")
    ):
        requirements = [spec["resources"]]
    else:
        requirements = [container["resources"] for _, container in containers_of(spec)]
    requested = limited = False
    guaranteed = True
    for resources in requirements:
        requests, limits = resources.get("requests", {}), resources.get("limits", {})
        for name in QOS_RESOURCES:
            requested |= quantities.value(requests.get(name, "0")) > 0
            limited |= quantities.value(limits.get(name, "0")) > 0
            guaranteed &= name in limits and requests.get(name) == limits[name]
    if not requested and not limited:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def fold_label_keys(pod: JsonObject) -> None:
    """Add expressions with the pod's own values for matchLabelKeys to its selectors."""
    labels = pod["metadata"].get("labels") or {}
    affinity = pod["spec"].get("affinity") or {}
    terms = list(pod["spec"].get("topologySpreadConstraints") or ())
    for member in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(member) or {}
        terms += rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for weighted in rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            terms.append(weighted["podAffinityTerm"])
    for term in terms:
        for member, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
            for key in term.get(member) or ():
                selector = term.get("labelSelector")
                if key in labels and selector is not None:
                    rule = {"key": key, "operator": operator, "values": [labels[key]]}
                    rules = selector.setdefault("matchExpressions", [])
                    if rule not in rules:
                        rules.append(rule)


def name_job(job: JsonObject) -> None:
    """Make a Job select its pods by its own uid, and label itself and them."""
    metadata, spec = job["metadata"], job["spec"]
    if spec.get("manualSelector"):
        return
    uid, name = metadata["uid"], metadata["name"]
    labels = {
        "controller-uid": uid,
        "batch.kubernetes.io/controller-uid": uid,
        "job-name": name,
        "batch.kubernetes.io/job-name": name,
    }
    template = spec["template"]["metadata"]
    template["labels"] = (template.get("labels") or {}) | labels
    metadata["labels"] = dict(template["labels"]) | (metadata.get("labels") or {})
    spec.setdefault("selector", {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}})


def give_addresses(ctx: Context, service: JsonObject) -> None:
    spec = service["spec"]
    if spec["type"] == "ExternalName":
        return
    address = spec.setdefault("clusterIP", "") or ctx.new_address()
    spec["clusterIP"] = address
    spec.setdefault("clusterIPs", [address])
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")


def prepare_update(res: Resource, new: JsonObject, old: JsonObject, sub: str) -> None:
    """Restore what this subresource may not change, and count a change of the spec."""
    stored, metadata = old["metadata"], new["metadata"]
    for name in RETAINED:
        if name in stored:
            metadata[name] = stored[name]
        else:
            metadata.pop(name, None)
    metadata.pop("resourceVersion", None)
    if sub == "status":
        for name in (name for name in (*new, *old) if name not in {"metadata", "status"}):
            if name in old:
                new[name] = old[name]
            else:
                new.pop(name, None)
        if res.kind in LABELS_BY_MAIN_RESOURCE:
            _take(metadata, stored, "labels")
        _take(metadata, stored, "ownerReferences")
        _take(metadata, stored, "finalizers")
        if res.kind == "Pod" and "qosClass" in old["status"]:
            new["status"].setdefault("qosClass", old["status"]["qosClass"])
        return
    if sub == "resize":
        restore_all_but_resources(new, old)
    if res.sub("status") is not None and res.kind != "Node":
        _take(new, old, "status")
    elif res.kind == "Node":
        new["status"] = old["status"]
    if res.kind == "Namespace":
        new["spec"] = old["spec"]
    if res.kind == "Service":
        _restore_addresses(new["spec"], old["spec"])
    if res.counted and new.get("spec") != old.get("spec"):
        metadata["generation"] = stored.get("generation", 0) + 1


def restore_all_but_resources(new: JsonObject, old: JsonObject) -> None:
    """The subresource `resize` may change resources and resize policies of the same containers, and
    resources of the pod as a whole. Other containers are left for validation to refuse.
    """
    spec = dict(old["spec"])
    for member in ("containers", "initContainers"):
        wanted, present = new["spec"].get(member) or [], spec.get(member) or []
        if [container["name"] for container in wanted] != [
            container["name"] for container in present
        ]:
            return
        if present:
            spec[member] = [
                _resized(container, change)
                for container, change in zip(present, wanted, strict=True)
            ]
    _take(spec, new["spec"], "resources")
    new["spec"] = spec
    for name in ("labels", "annotations", "ownerReferences", "finalizers"):
        _take(new["metadata"], old["metadata"], name)


def _resized(container: JsonObject, change: JsonObject) -> JsonObject:
    resized = dict(container)
    for name in ("resources", "resizePolicy"):
        _take(resized, change, name)
    return resized


def _take(new: JsonObject, old: JsonObject, name: str) -> None:
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)


def _restore_addresses(new: JsonObject, old: JsonObject) -> None:
    for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if name in old:
            new.setdefault(name, old[name])
