"""Pseudonyms for everything that a recording names, chosen so that decisions stay the same.

Objects are walked as JSON. Any field without a rule is replaced, so a field that a later version
adds reveals nothing. Equal strings get equal pseudonyms wherever they occur (a zone in a label, a
volume's affinity and a selector; a node's name in its own label), and pseudonyms sort in the order
of the names, since names break ties.

A value is kept where a rule for its place allows it and the value has the expected form: an amount,
a time, a term of Kubernetes. It is kept in that place only: a value that a tenant writes into its
own objects does not unmask a name elsewhere.

Kept     amounts with the resources they are of, times, TERMS; device attributes and what CEL
         expressions contain; drivers named by cluster-scoped objects; schedulers named by the
         configuration names; KEYS of labels and taints; numbers of labels that a selector compares
         as numbers; WORDS
Composed names made of other names: claims of ephemeral volumes, subrequests, lists of zones

Bounds   memory: each string once with its pseudonym

Source   of TERMS: kubernetes/kubernetes v1.36 staging/src/k8s.io/api, pkg/kubelet/status,
         docs/reference/labels-annotations-taints; scheduler-plugins, Kueue, cluster-autoscaler
"""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from asched.core.model import kinds
from asched.core.model.kinds import KINDS
from asched.core.model.quantity import QuantityError, parse

_ENUMERATIONS: Final = """
ReadWriteOnce ReadOnlyMany ReadWriteMany ReadWriteOncePod Filesystem Block Immediate
WaitForFirstConsumer Retain Delete Recycle ExactCount All FromClass FromClaim
NoSchedule PreferNoSchedule NoExecute None Honor Ignore DoNotSchedule ScheduleAnyway
In NotIn Exists DoesNotExist Gt Lt Equal True False Unknown
Pending Running Succeeded Failed Active Terminating Available Bound Released Lost
PreScheduling Scheduling Scheduled Finished Inqueue Completed Aborted
Never PreemptLowerPriority Always OnFailure TCP UDP SCTP Directory DirectoryOrCreate File
FileOrCreate Socket CharDevice BlockDevice Restart RestartAllContainers Pod PodGroup Node HyperNode
Hostname InternalIP ExternalIP InternalDNS ExternalDNS ClusterIP NodePort LoadBalancer ExternalName
pods nodes
"""
_CONDITIONS: Final = """
PodScheduled Ready Initialized ContainersReady DisruptionTarget PodReadyToStartContainers
PodResizePending PodResizeInProgress PodHasNetwork AllContainersRestarting ResourceHealthStatus
Unschedulable SchedulingGated SchedulerError NotReady PodCompleted PodFailed ContainersNotReady
ContainersNotInitialized UnknownContainerStatuses PreemptionByScheduler DeletionByTaintManager
EvictionByEvictionAPI DeletionByPodGC TerminationByKubelet Infeasible Deferred Error Evicted
Preempting Terminated NodeLost NodeShutdown NodeAffinity NodePorts NodeName OutOfcpu OutOfmemory
OutOfpods OutOfephemeral-storage UnexpectedAdmissionError TopologyAffinityError
MemoryPressure DiskPressure PIDPressure NetworkUnavailable KubeletReady KubeletNotReady
KubeletHasSufficientMemory KubeletHasInsufficientMemory KubeletHasNoDiskPressure
KubeletHasDiskPressure KubeletHasSufficientPID KubeletHasInsufficientPID NodeStatusUnknown
NodeStatusNeverUpdated RouteCreated NoRouteCreated
DisruptionAllowed SufficientPods InsufficientPods SyncFailed
Resizing FileSystemResizePending ModifyVolumeError ModifyingVolume
Complete Suspended FailureTarget SuccessCriteriaMet JobSuspended JobResumed BackoffLimitExceeded
DeadlineExceeded PodFailurePolicy
PodGroupScheduled PodGroupInitiallyScheduled Accepted Provisioned BookingExpired CapacityRevoked
CapacityIsFound CapacityIsNotFound CapacityIsLost CapacityIsConsumed CapacityReservationTimeExpired
FailedToCreatePods Expired GangNotFollowed
Conflict NotFound AlreadyExists Forbidden Unauthorized Invalid BadRequest Gone Timeout ServerTimeout
TooManyRequests InternalError ServiceUnavailable MethodNotAllowed NotAcceptable
UnsupportedMediaType RequestEntityTooLarge
"""
_IN_TREE_VOLUMES: Final = """
kubernetes.io/aws-ebs kubernetes.io/azure-disk kubernetes.io/azure-file kubernetes.io/cinder
kubernetes.io/gce-pd kubernetes.io/no-provisioner kubernetes.io/portworx-volume
kubernetes.io/vsphere-volume
"""
_KINDS: Final = """
v1 apps/v1 batch/v1 apps batch policy/v1 storage.k8s.io/v1 resource.k8s.io/v1 resource.k8s.io
ReplicaSet ReplicationController StatefulSet DaemonSet Deployment Job CronJob Node
"""
TERMS: Final = frozenset(
    (
        *(_ENUMERATIONS + _CONDITIONS + _IN_TREE_VOLUMES + _KINDS).split(),
        *(word for kind in KINDS for word in (kind.name, kind.group_version)),
    )
)
#: Of labels, annotations and taints. A tenant may invent a label's key under kubernetes.io, so the
#: domain alone says nothing.
KEYS: Final = frozenset(
    """
beta.kubernetes.io/arch beta.kubernetes.io/instance-type beta.kubernetes.io/os
failure-domain.beta.kubernetes.io/region failure-domain.beta.kubernetes.io/zone
kubernetes.io/arch kubernetes.io/hostname kubernetes.io/metadata.name kubernetes.io/os
node.kubernetes.io/instance-type node.kubernetes.io/windows-build
topology.kubernetes.io/region topology.kubernetes.io/zone
node-role.kubernetes.io/control-plane node-role.kubernetes.io/master
node.kubernetes.io/disk-pressure node.kubernetes.io/exclude-from-external-load-balancers
node.kubernetes.io/memory-pressure node.kubernetes.io/network-unavailable
node.kubernetes.io/not-ready node.kubernetes.io/out-of-service node.kubernetes.io/pid-pressure
node.kubernetes.io/unreachable node.kubernetes.io/unschedulable
node.cloudprovider.kubernetes.io/shutdown node.cloudprovider.kubernetes.io/uninitialized
app.kubernetes.io/component app.kubernetes.io/instance app.kubernetes.io/managed-by
app.kubernetes.io/name app.kubernetes.io/part-of app.kubernetes.io/version
apps.kubernetes.io/pod-index batch.kubernetes.io/controller-uid
batch.kubernetes.io/job-completion-index batch.kubernetes.io/job-name
statefulset.kubernetes.io/pod-name controller.kubernetes.io/pod-deletion-cost
kubernetes.io/config.hash kubernetes.io/config.mirror kubernetes.io/config.source
pv.kubernetes.io/bind-completed pv.kubernetes.io/bound-by-controller
pv.kubernetes.io/migrated-to pv.kubernetes.io/provisioned-by
storageclass.kubernetes.io/is-default-class storage.alpha.kubernetes.io/migrated-plugins
volume.beta.kubernetes.io/storage-class volume.beta.kubernetes.io/storage-provisioner
volume.kubernetes.io/selected-node volume.kubernetes.io/storage-provisioner
volume.kubernetes.io/storage-resizer
resource.kubernetes.io/delete-protection resource.kubernetes.io/extended-resource-claim
resource.kubernetes.io/pod-claim-name
scheduling.k8s.io/group-name scheduling.x-k8s.io/pod-group pod-group.scheduling.sigs.k8s.io/name
kueue.x-k8s.io/max-exec-time-seconds kueue.x-k8s.io/podset kueue.x-k8s.io/queue-name
autoscaling.x-k8s.io/consume-provisioning-request
autoscaling.x-k8s.io/provisioning-class-name
cluster-autoscaler.kubernetes.io/consume-provisioning-request
cluster-autoscaler.kubernetes.io/provisioning-class-name
cluster-autoscaler.kubernetes.io/safe-to-evict
topology.node.k8s.io/fingerprint
jobset.sigs.k8s.io/jobset-name jobset.sigs.k8s.io/replicatedjob-name
jobset.sigs.k8s.io/job-index leaderworkerset.sigs.k8s.io/name
""".split()  # noqa: SIM905 - read as a list of words
)


Check = Callable[[str], bool]


def _is_amount(text: str) -> bool:
    try:
        parse(text)
    except QuantityError:
        return False
    return True


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_term(text: str) -> bool:
    return text in TERMS


def _is_feature(text: str) -> bool:
    return _FEATURE.fullmatch(text) is not None


def _is_attribute(text: str) -> bool:
    return _ATTRIBUTE.fullmatch(text) is not None


def _is_anything(_: str) -> bool:
    return True


_FEATURE: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,62}", re.ASCII)
_ATTRIBUTE: Final = re.compile(r"[a-z0-9.-]{1,253}/[A-Za-z0-9._-]{1,63}", re.ASCII)


def _at(check: Check, *places: str) -> Mapping[str, Check]:
    return dict.fromkeys(places, check)


#: Places where a string, or a list of strings, is kept if it has the expected form. A place is a
#: field, or a field in another field.
KEPT: Final[Mapping[str, Check]] = {
    **_at(_is_time, "allocationTimestamp", "creationTimestamp", "deletionTimestamp"),
    **_at(_is_time, "lastProbeTime", "lastTransitionTime", "scheduleStartTime", "startTime"),
    **_at(_is_term, "accessModes", "action", "allocationMode", "apiGroup", "apiVersion"),
    **_at(_is_term, "disruptionMode", "effect", "kind", "nodeAffinityPolicy", "nodeTaintsPolicy"),
    **_at(_is_term, "operator", "phase", "preemptionPolicy", "protocol", "reason"),
    **_at(_is_term, "reservedFor.resource", "restartPolicy", "source", "status", "type"),
    **_at(_is_term, "volumeBindingMode", "volumeMode", "whenUnsatisfiable"),
    **_at(str.isdecimal, "resourceVersion"),
    **_at(_is_feature, "declaredFeatures"),
    **_at(_is_attribute, "spec.extendedResourceName"),
    **_at(_is_attribute, "constraints.distinctAttribute", "constraints.matchAttribute"),
    **_at(_is_anything, "cel.expression"),
}
#: The same for whole trees, whose keys are names of resources and attributes.
KEPT_TREES: Final[Mapping[str, Check]] = {
    **_at(_is_amount, "allocatable", "allocatedResources", "available", "capacity"),
    **_at(_is_amount, "consumedCapacity", "counters", "cpu", "limits", "max"),
    **_at(_is_amount, "maximumVolumeSize", "memory", "min", "minResources", "overhead"),
    **_at(_is_amount, "requests", "usage", "used"),
    **_at(_is_anything, "devices.attributes"),
}
#: Names of drivers, in any object.
DRIVERS: Final = frozenset(("attacher", "driver", "provisioner", "drivers.name"))
#: Fields for drivers in objects that only administrators and their controllers write.
DRIVERS_OF: Final[Mapping[str, str]] = {
    kinds.CSI_DRIVER.resource: "metadata.name",
    kinds.CSI_NODE.resource: "spec.drivers.name",
    kinds.PERSISTENT_VOLUME.resource: "spec.csi.driver",
    kinds.RESOURCE_SLICE.resource: "spec.driver",
    kinds.STORAGE_CLASS.resource: "provisioner",
    kinds.VOLUME_ATTACHMENT.resource: "spec.attacher",
}
#: Names of requests; those of subrequests are made of two.
REQUESTS: Final = frozenset(("request", "requests"))
#: Content that schedulers do not read.
EMPTIED: Final = frozenset(("data", "networkData", "parameters"))
#: Strings, or lists of them, that are keys of labels or taints.
LABEL_KEYS: Final = frozenset(("key", "matchLabelKeys", "mismatchLabelKeys", "topologyKey"))
#: Objects whose keys are keys of labels, unless they are structures of the same name.
LABELED: Final = frozenset(("annotations", "labels", "matchLabels", "nodeSelector", "selector"))
#: Objects whose keys are names.
BY_NAME: Final = frozenset(("disruptedPods", "provisioningClassDetails"))
IMAGES: Final = frozenset(("image", "names", "reference"))
NUMERIC: Final = ("Gt", "Lt")
#: Values that mean the same in every cluster.
WORDS: Final = frozenset(
    (
        *("", "true", "false", "yes", "no", "True", "False", "Unknown", "linux", "windows"),
        *("amd64", "arm64", "0.0.0.0", "::", "127.0.0.1", "default", "kube-system"),  # noqa: S104
        *("metadata.name", "metadata.namespace"),
    )
)
#: An annotation that lists in-tree volume plugins.
MIGRATED: Final = "storage.alpha.kubernetes.io/migrated-plugins"
#: The message by which a scheduler learns that a pod was already bound.
ASSIGNED: Final = re.compile(r'already assigned to node "([^"]*)"')
#: The separator of several zones in one value of a volume's label.
ZONES_JOINT: Final = "__"


def is_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


class Pseudonyms:
    """Collects names first (`note` everything), then replaces them (`settle`, `walked`)."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._namespaces: set[str] = set()
        self._drivers: set[str] = set()
        self._schedulers: set[str] = set()
        self._numeric_keys: set[str] = set()
        self._composed: dict[str, tuple[str, ...]] = {}
        self._new: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._new)

    # --- collecting ------------------------------------------------------------------------------

    def note(self, value: Any, resource: str = "") -> None:
        """Collect the names of an object of this kind, or of a part of one."""
        self._walk(value, self._note_name)
        self._note_rules(value)
        if resource in DRIVERS_OF:
            self._drivers.update(_named(value, DRIVERS_OF[resource]))

    def keep_schedulers(self, names: Iterable[str]) -> None:
        """Keep these scheduler names in pods: they are profiles of the configuration."""
        self._schedulers.update(names)

    def note_text(self, text: str) -> None:
        """Collect a free text."""
        self._names.add(text)

    def _note_name(self, text: str) -> str:
        self._names.add(text)
        return text

    def _note_rules(self, value: Any) -> None:
        """Collect what other values of these fields decide about names."""
        if isinstance(value, list):
            for item in value:
                self._note_rules(item)
        elif isinstance(value, dict):
            if value.get("operator") in NUMERIC and isinstance(value.get("key"), str):
                self._numeric_keys.add(value["key"])
            for field, item in value.items():
                if field in ("namespace", "namespaces"):
                    self._namespaces.update(_strings(item))
                else:
                    self._note_rules(item)
            self._note_composed(value)

    def _note_composed(self, value: dict[str, Any]) -> None:
        """Claims of ephemeral volumes are called POD-VOLUME."""
        spec, metadata = value.get("spec"), value.get("metadata")
        if not isinstance(spec, dict) or not isinstance(metadata, dict):
            return
        for volume in spec.get("volumes") or ():
            if "ephemeral" in volume:
                parts = metadata.get("name", ""), "-", volume.get("name", "")
                self._composed["".join(parts)] = parts

    # --- replacing -------------------------------------------------------------------------------

    def settle(self) -> None:
        """Number the collected names in their sort order.

        Namespaces are compared together with what follows them in `namespace/name`.
        """
        names = self._names - WORDS - self._composed.keys()
        order = sorted(names, key=lambda name: f"{name}/" if name in self._namespaces else name)
        digits, letter = len(str(len(order))), "x"
        taken = {name for name in names if is_number(name[1:])}
        while any(name.startswith(letter) for name in taken):
            letter = chr(ord(letter) + 1)
        self._new = {name: f"{letter}{number:0{digits}}" for number, name in enumerate(order)}

    def learn(self, then: Any, now: Any) -> None:
        """Pair the texts that a machine wrote in the recording with those it writes under
        pseudonyms; both come back with the objects.
        """
        if isinstance(then, str) and isinstance(now, str):
            if then not in WORDS:
                self._new[then] = now
        elif isinstance(then, dict) and isinstance(now, dict):
            for field in then.keys() & now.keys():
                self.learn(then[field], now[field])
        elif isinstance(then, list) and isinstance(now, list):
            for old, new in zip(then, now, strict=False):
                self.learn(old, new)

    def walked(self, value: Any, resource: str = "") -> Any:
        """An object of this kind, or a part of one, under pseudonyms."""
        walked = self._walk(value, self.of)
        if resource == kinds.CSI_DRIVER.resource:
            walked["metadata"]["name"] = value["metadata"]["name"]
        return walked

    def term(self, text: str) -> str:
        """A string that may be a Kubernetes term."""
        return text if text in TERMS else self.of(text)

    def replied(self, value: Any) -> Any:
        """The reply of an extender or a coroutine: keys may be names, too."""
        if isinstance(value, dict):
            return {self._new.get(key, key): self.replied(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.replied(item) for item in value]
        return self.of(value) if isinstance(value, str) else value

    def message(self, text: str) -> str:
        """A message of the API server; a scheduler parses one form of it."""
        found = ASSIGNED.search(text)
        return f'already assigned to node "{self.of(found[1])}"' if found else self.of(text)

    def note_reply(self, value: Any) -> None:
        self._names.update(_strings(value))

    def of(self, name: str) -> str:
        """The pseudonym of a name; a name that was not collected is marked as such."""
        if name in WORDS:
            return name
        found = self._new.get(name)
        if found is not None:
            return found
        parts = self._composed.get(name)
        if parts is not None:
            return "".join(part if part == "-" else self.of(part) for part in parts)
        return "unknown"

    # --- rules -----------------------------------------------------------------------------------

    def _walk(self, value: Any, name: Callable[[str], str], within: str = "") -> Any:
        if isinstance(value, dict):
            return {
                field: self._field(field, item, name, value, within)
                for field, item in value.items()
            }
        if isinstance(value, list):
            return [self._walk(item, name, within) for item in value]
        return name(value) if isinstance(value, str) else value

    def _field(
        self,
        field: str,
        value: Any,
        name: Callable[[str], str],
        siblings: dict[str, Any],
        within: str,
    ) -> Any:
        place = f"{within}.{field}"
        is_plain = _is_plain(value)
        if field in REQUESTS and is_plain:
            return _each(value, lambda item: "/".join(map(name, item.split("/"))))
        if field in EMPTIED:
            return None
        check = KEPT_TREES.get(place) or KEPT_TREES.get(field)
        if check is None and is_plain:
            check = KEPT.get(place) or KEPT.get(field)
        if check is not None and all(map(check, _strings(value))):
            return value
        if (field in DRIVERS or place in DRIVERS) and isinstance(value, str):
            return value if value in self._drivers else name(value)
        if field == "schedulerName" and value in self._schedulers:
            return value
        if field in LABEL_KEYS:
            return _each(value, lambda key: self._key(key, name))
        if field in LABELED and _is_flat(value):
            return {
                self._key(key, name): self._label(key, item, name) for key, item in value.items()
            }
        if field in BY_NAME and isinstance(value, dict):
            return {
                key if key in TERMS else name(key): self._walk(item, _unless(_is_time, name))
                for key, item in value.items()
            }
        if field in IMAGES and _is_plain(value):
            return _each(value, lambda image: _image(image, name))
        if field in ("value", "values") and _is_plain(value):
            return _each(value, lambda item: self._label(str(siblings.get("key", "")), item, name))
        return self._walk(value, name, field)

    def _key(self, key: str, name: Callable[[str], str]) -> str:
        return key if key in KEYS else name(key)

    def _label(self, key: str, value: str, name: Callable[[str], str]) -> str:
        if key in self._numeric_keys and is_number(value):
            return value
        if key == MIGRATED and all(map(_is_term, value.split(","))):
            return value
        if ZONES_JOINT in value and key in KEYS:
            return ZONES_JOINT.join(name(zone) for zone in value.split(ZONES_JOINT))
        return name(value)


def _unless(check: Check, name: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: text if check(text) else name(text)


def _image(image: str, name: Callable[[str], str]) -> str:
    """A name and a tag; an image without a tag means `latest`."""
    if not image:
        return image
    has_tag = image.rfind(":") > image.rfind("/")
    return name(image if has_tag else f"{image}:latest") + ":1"


def _each(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, list):
        return [change(item) if isinstance(item, str) else item for item in value]
    return change(value) if isinstance(value, str) else value


def _is_plain(value: Any) -> bool:
    """Whether it is a string or a list of strings."""
    return isinstance(value, str) or (
        isinstance(value, list) and all(isinstance(item, str) for item in value)
    )


def _is_flat(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _strings(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)


def _named(value: Any, path: str) -> Iterable[str]:
    """The strings at a path of fields; lists on the path are flattened."""
    found = [value]
    for field in path.split("."):
        flat = [part for item in found for part in (item if isinstance(item, list) else (item,))]
        found = [item[field] for item in flat if isinstance(item, dict) and field in item]
    return _strings(found)
