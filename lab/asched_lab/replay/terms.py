"""Terms that mean the same in every cluster: values of enumerations, reasons and types of
conditions, kinds and API groups, keys of labels, annotations and taints.

A recording under pseudonyms keeps these and no other strings; a term missing here is replaced, and
has no other cost.

Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/api, pkg/kubelet/status,
        docs/reference/labels-annotations-taints; scheduler-plugins, Kueue, cluster-autoscaler
"""

from typing import Final

from asched.core.model.kinds import KINDS

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
FailedToCreatePods Expired GangNotFollowed QuotaLeftToKueue
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
