"""The schema: one table of types, and the reader that gives an object its stored form.

Notation, one type per block, its fields on indented lines as `name:type`:

    str bool int32 int64 qty time micro ios any    scalars (`ios` is a number or a string)
    amount                                         a quantity of a resource, in thousandths at most
    Name  [T]  {T}                                 another type, a list, a map from strings
    !   always present, with its zero value if it was not sent
    ?   stored even when zero; without a mark a zero value is omitted, as with Go's omitempty
    @k  a list whose elements are identified by `k`; `@` alone: a set

The reader removes empty values, writes quantities and times in one form, collects the paths of
unknown fields, and refuses values of a wrong type. It builds new containers everywhere, so that
stored objects never share structure with a caller's.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

from asched_lab.apiserver import quantities
from asched_lab.apiserver.resources import CUSTOM, Resource

#: The types of metadata and pods, then all others. A kind that is not described is stored as it was
#: sent: the scheduler does not read it.
TEXT: Final = """
ObjectMeta
  name:str generateName:str namespace:str selfLink:str uid:str resourceVersion:str generation:int64
  creationTimestamp:time deletionTimestamp:time deletionGracePeriodSeconds:int64? labels:{str}
  annotations:{str} ownerReferences:[OwnerReference]@uid finalizers:[str]@ managedFields:[any]
OwnerReference
  apiVersion:str! kind:str! name:str! uid:str! controller:bool? blockOwnerDeletion:bool?
LabelSelector
  matchLabels:{str} matchExpressions:[SelectorRequirement]
SelectorRequirement
  key:str! operator:str! values:[str]
ObjectReference
  kind:str namespace:str name:str uid:str apiVersion:str resourceVersion:str fieldPath:str
LocalReference
  name:str
TypedReference
  apiGroup:str? kind:str! name:str! namespace:str?
Pod
  metadata:ObjectMeta! spec:PodSpec! status:PodStatus!
PodTemplateSpec
  metadata:ObjectMeta! spec:PodSpec!
PodSpec
  volumes:[Volume]@name initContainers:[Container]@name containers:[Container]!@name
  ephemeralContainers:[EphemeralContainer]@name restartPolicy:str
  terminationGracePeriodSeconds:int64? activeDeadlineSeconds:int64? dnsPolicy:str
  nodeSelector:{str} serviceAccountName:str serviceAccount:str automountServiceAccountToken:bool?
  nodeName:str hostNetwork:bool hostPID:bool hostIPC:bool shareProcessNamespace:bool?
  securityContext:PodSecurityContext imagePullSecrets:[LocalReference]@name hostname:str
  subdomain:str affinity:Affinity schedulerName:str tolerations:[Toleration]
  hostAliases:[HostAlias]@ip priorityClassName:str priority:int32? dnsConfig:any
  readinessGates:[ReadinessGate] runtimeClassName:str? enableServiceLinks:bool?
  preemptionPolicy:str? overhead:{amount}
  topologySpreadConstraints:[TopologySpreadConstraint]@topologyKey,whenUnsatisfiable
  setHostnameAsFQDN:bool? os:PodOS hostUsers:bool? schedulingGates:[SchedulingGate]@name
  resourceClaims:[PodResourceClaim]@name resources:ResourceRequirements hostnameOverride:str?
  workloadRef:any schedulingGroup:any
PodOS
  name:str!
HostAlias
  ip:str! hostnames:[str]
ReadinessGate
  conditionType:str!
SchedulingGate
  name:str!
PodResourceClaim
  name:str! resourceClaimName:str? resourceClaimTemplateName:str?
ResourceRequirements
  limits:{amount} requests:{amount} claims:[ResourceClaimUse]@name
ResourceClaimUse
  name:str! request:str
Toleration
  key:str operator:str value:str effect:str tolerationSeconds:int64?
TopologySpreadConstraint
  maxSkew:int32! topologyKey:str! whenUnsatisfiable:str! labelSelector:LabelSelector
  minDomains:int32? nodeAffinityPolicy:str? nodeTaintsPolicy:str? matchLabelKeys:[str]
Affinity
  nodeAffinity:NodeAffinity podAffinity:PodAffinity podAntiAffinity:PodAffinity
NodeAffinity
  requiredDuringSchedulingIgnoredDuringExecution:NodeSelector
  preferredDuringSchedulingIgnoredDuringExecution:[PreferredSchedulingTerm]
NodeSelector
  nodeSelectorTerms:[NodeSelectorTerm]!
NodeSelectorTerm
  matchExpressions:[SelectorRequirement] matchFields:[SelectorRequirement]
PreferredSchedulingTerm
  weight:int32! preference:NodeSelectorTerm!
PodAffinity
  requiredDuringSchedulingIgnoredDuringExecution:[PodAffinityTerm]
  preferredDuringSchedulingIgnoredDuringExecution:[WeightedPodAffinityTerm]
PodAffinityTerm
  labelSelector:LabelSelector namespaces:[str] topologyKey:str! namespaceSelector:LabelSelector
  matchLabelKeys:[str] mismatchLabelKeys:[str]
WeightedPodAffinityTerm
  weight:int32! podAffinityTerm:PodAffinityTerm!
PodSecurityContext
  seLinuxOptions:any windowsOptions:any runAsUser:int64? runAsGroup:int64? runAsNonRoot:bool?
  supplementalGroups:[int64] supplementalGroupsPolicy:str? fsGroup:int64? sysctls:[any]
  fsGroupChangePolicy:str? seccompProfile:any appArmorProfile:any seLinuxChangePolicy:str?
Container
  name:str! image:str command:[str] args:[str] workingDir:str
  ports:[ContainerPort]@containerPort,protocol envFrom:[any] env:[EnvVar]@name
  resources:ResourceRequirements! resizePolicy:[any] restartPolicy:str? restartPolicyRules:[any]
  volumeMounts:[VolumeMount]@mountPath volumeDevices:[VolumeDevice]@devicePath
  livenessProbe:Probe readinessProbe:Probe startupProbe:Probe lifecycle:any
  terminationMessagePath:str terminationMessagePolicy:str imagePullPolicy:str securityContext:any
  stdin:bool stdinOnce:bool tty:bool
EphemeralContainer
  name:str! image:str command:[str] args:[str] workingDir:str ports:[ContainerPort]@containerPort
  envFrom:[any] env:[EnvVar]@name resources:ResourceRequirements! resizePolicy:[any]
  restartPolicy:str? volumeMounts:[VolumeMount]@mountPath volumeDevices:[VolumeDevice]@devicePath
  livenessProbe:Probe readinessProbe:Probe startupProbe:Probe lifecycle:any
  terminationMessagePath:str terminationMessagePolicy:str imagePullPolicy:str securityContext:any
  stdin:bool stdinOnce:bool tty:bool targetContainerName:str
ContainerPort
  name:str hostPort:int32 containerPort:int32! protocol:str hostIP:str
EnvVar
  name:str! value:str valueFrom:any
VolumeMount
  name:str! readOnly:bool recursiveReadOnly:str? mountPath:str! subPath:str mountPropagation:str?
  subPathExpr:str
VolumeDevice
  name:str! devicePath:str!
Probe
  exec:any httpGet:HTTPGet tcpSocket:any grpc:any initialDelaySeconds:int32 timeoutSeconds:int32
  periodSeconds:int32 successThreshold:int32 failureThreshold:int32
  terminationGracePeriodSeconds:int64?
HTTPGet
  path:str port:ios! host:str scheme:str httpHeaders:[any]
Volume
  name:str! hostPath:HostPath emptyDir:EmptyDir gcePersistentDisk:NamedDisk
  awsElasticBlockStore:NamedDisk gitRepo:any secret:SecretVolume nfs:any iscsi:ISCSIVolume
  glusterfs:any persistentVolumeClaim:ClaimVolume rbd:RBDVolume flexVolume:any cinder:any
  cephfs:any flocker:any downwardAPI:DownwardVolume fc:any azureFile:any configMap:ConfigMapVolume
  vsphereVolume:any quobyte:any azureDisk:AzureDisk photonPersistentDisk:any
  projected:ProjectedVolume portworxVolume:any scaleIO:any storageos:any csi:any
  ephemeral:EphemeralVolume image:any
HostPath
  path:str! type:str?
EmptyDir
  medium:str sizeLimit:qty
NamedDisk
  pdName:str volumeID:str fsType:str partition:int32 readOnly:bool
SecretVolume
  secretName:str items:[any] defaultMode:int32? optional:bool?
ISCSIVolume
  targetPortal:str! iqn:str! lun:int32! iscsiInterface:str fsType:str readOnly:bool portals:[str]
  chapAuthDiscovery:bool chapAuthSession:bool secretRef:any initiatorName:str?
ClaimVolume
  claimName:str! readOnly:bool
RBDVolume
  monitors:[str]! image:str! fsType:str pool:str user:str keyring:str secretRef:any readOnly:bool
DownwardVolume
  items:[any] defaultMode:int32?
ConfigMapVolume
  name:str items:[any] defaultMode:int32? optional:bool?
AzureDisk
  diskName:str! diskURI:str! cachingMode:str? fsType:str? readOnly:bool? kind:str?
ProjectedVolume
  sources:[any]! defaultMode:int32?
EphemeralVolume
  volumeClaimTemplate:ClaimTemplate
ClaimTemplate
  metadata:ObjectMeta! spec:PersistentVolumeClaimSpec!
PodStatus
  observedGeneration:int64 phase:str conditions:[PodCondition]@type message:str reason:str
  nominatedNodeName:str hostIP:str hostIPs:[any]@ip podIP:str podIPs:[PodIP]@ip startTime:time
  initContainerStatuses:[ContainerStatus] containerStatuses:[ContainerStatus] qosClass:str
  ephemeralContainerStatuses:[ContainerStatus] resize:str resourceClaimStatuses:[any]@name
  extendedResourceClaimStatus:any allocatedResources:{amount} resources:ResourceRequirements
PodIP
  ip:str!
PodCondition
  type:str! observedGeneration:int64 status:str! lastProbeTime:time! lastTransitionTime:time!
  reason:str message:str
ContainerStatus
  name:str! state:any! lastState:any! ready:bool! restartCount:int32! image:str! imageID:str!
  containerID:str started:bool? allocatedResources:{amount} resources:ResourceRequirements
  volumeMounts:[any] user:any allocatedResourcesStatus:[any] stopSignal:str?
Node
  metadata:ObjectMeta! spec:NodeSpec! status:NodeStatus!
NodeSpec
  podCIDR:str podCIDRs:[str]@ providerID:str unschedulable:bool taints:[Taint] configSource:any
  externalID:str podPreemptionPolicy:PodPreemptionPolicy
PodPreemptionPolicy
  disableResizePreemption:[str]
Taint
  key:str! value:str effect:str! timeAdded:time
NodeStatus
  capacity:{amount} allocatable:{amount} phase:str conditions:[NodeCondition]@type
  addresses:[NodeAddress]@type daemonEndpoints:DaemonEndpoints! nodeInfo:NodeInfo!
  images:[ContainerImage] volumesInUse:[str] volumesAttached:[any] config:any runtimeHandlers:[any]
  features:any declaredFeatures:[str]
NodeCondition
  type:str! status:str! lastHeartbeatTime:time! lastTransitionTime:time! reason:str message:str
NodeAddress
  type:str! address:str!
DaemonEndpoints
  kubeletEndpoint:DaemonEndpoint!
DaemonEndpoint
  Port:int32!
NodeInfo
  machineID:str! systemUUID:str! bootID:str! kernelVersion:str! osImage:str!
  containerRuntimeVersion:str! kubeletVersion:str! kubeProxyVersion:str! operatingSystem:str!
  architecture:str! swap:any
ContainerImage
  names:[str] sizeBytes:int64
Namespace
  metadata:ObjectMeta! spec:NamespaceSpec! status:NamespaceStatus!
NamespaceSpec
  finalizers:[str]
NamespaceStatus
  phase:str conditions:[any]@type
Binding
  metadata:ObjectMeta! target:ObjectReference!
Eviction
  metadata:ObjectMeta! deleteOptions:any
ConfigMap
  metadata:ObjectMeta! immutable:bool? data:{str} binaryData:{str}
Secret
  metadata:ObjectMeta! immutable:bool? data:{str} stringData:{str} type:str
ServiceAccount
  metadata:ObjectMeta! secrets:[ObjectReference]@name imagePullSecrets:[LocalReference]
  automountServiceAccountToken:bool?
Event
  metadata:ObjectMeta! involvedObject:ObjectReference! reason:str message:str source:EventSource!
  firstTimestamp:time! lastTimestamp:time! count:int32 type:str eventTime:micro! series:EventSeries
  action:str related:ObjectReference reportingComponent:str! reportingInstance:str!
EventSource
  component:str host:str
EventSeries
  count:int32 lastObservedTime:micro!
EventV1
  metadata:ObjectMeta! eventTime:micro! series:EventSeries reportingController:str
  reportingInstance:str action:str reason:str regarding:ObjectReference! related:ObjectReference
  note:str type:str deprecatedSource:EventSource! deprecatedFirstTimestamp:time!
  deprecatedLastTimestamp:time! deprecatedCount:int32
Service
  metadata:ObjectMeta! spec:ServiceSpec! status:ServiceStatus!
ServiceSpec
  ports:[ServicePort]@port,protocol selector:{str} clusterIP:str clusterIPs:[str] type:str
  externalIPs:[str] sessionAffinity:str loadBalancerIP:str loadBalancerSourceRanges:[str]
  externalName:str externalTrafficPolicy:str healthCheckNodePort:int32
  publishNotReadyAddresses:bool sessionAffinityConfig:any ipFamilies:[str] ipFamilyPolicy:str?
  allocateLoadBalancerNodePorts:bool? loadBalancerClass:str? internalTrafficPolicy:str?
  trafficDistribution:str?
ServicePort
  name:str protocol:str appProtocol:str? port:int32! targetPort:ios! nodePort:int32
ServiceStatus
  loadBalancer:any! conditions:[any]@type
LimitRange
  metadata:ObjectMeta! spec:LimitRangeSpec!
LimitRangeSpec
  limits:[LimitRangeItem]!
LimitRangeItem
  type:str! max:{amount} min:{amount} default:{amount} defaultRequest:{amount}
  maxLimitRequestRatio:{amount}
ResourceQuota
  metadata:ObjectMeta! spec:ResourceQuotaSpec! status:ResourceQuotaStatus!
ResourceQuotaSpec
  hard:{amount} scopes:[str] scopeSelector:any
ResourceQuotaStatus
  hard:{amount} used:{amount}
PersistentVolume
  metadata:ObjectMeta! spec:PersistentVolumeSpec! status:PersistentVolumeStatus!
PersistentVolumeSpec
  capacity:{amount} accessModes:[str] claimRef:ObjectReference persistentVolumeReclaimPolicy:str
  storageClassName:str mountOptions:[str] volumeMode:str? nodeAffinity:VolumeNodeAffinity
  volumeAttributesClassName:str? hostPath:HostPath gcePersistentDisk:NamedDisk
  awsElasticBlockStore:NamedDisk nfs:any iscsi:ISCSIVolume glusterfs:any rbd:any flexVolume:any
  cinder:any cephfs:any fc:any flocker:any azureFile:any vsphereVolume:any quobyte:any
  azureDisk:AzureDisk photonPersistentDisk:any portworxVolume:any scaleIO:any storageos:any
  local:any csi:PersistentCSI
PersistentCSI
  driver:str! volumeHandle:str! readOnly:bool fsType:str volumeAttributes:{str}
  controllerPublishSecretRef:any nodeStageSecretRef:any nodePublishSecretRef:any
  controllerExpandSecretRef:any nodeExpandSecretRef:any
VolumeNodeAffinity
  required:NodeSelector
PersistentVolumeStatus
  phase:str message:str reason:str lastPhaseTransitionTime:time
PersistentVolumeClaim
  metadata:ObjectMeta! spec:PersistentVolumeClaimSpec! status:PersistentVolumeClaimStatus!
PersistentVolumeClaimSpec
  accessModes:[str] selector:LabelSelector resources:VolumeResources! volumeName:str
  storageClassName:str? volumeMode:str? dataSource:TypedReference dataSourceRef:TypedReference
  volumeAttributesClassName:str?
VolumeResources
  limits:{amount} requests:{amount}
PersistentVolumeClaimStatus
  phase:str accessModes:[str] capacity:{amount} conditions:[any]@type allocatedResources:{amount}
  allocatedResourceStatuses:{str} currentVolumeAttributesClassName:str? modifyVolumeStatus:any
ReplicationController
  metadata:ObjectMeta! spec:ReplicationControllerSpec! status:ReplicaStatus!
ReplicationControllerSpec
  replicas:int32? minReadySeconds:int32 selector:{str} template:PodTemplateSpec
ReplicaStatus
  replicas:int32! fullyLabeledReplicas:int32 readyReplicas:int32 availableReplicas:int32
  terminatingReplicas:int32? observedGeneration:int64 conditions:[any]@type
ReplicaSet
  metadata:ObjectMeta! spec:ReplicaSetSpec! status:ReplicaStatus!
ReplicaSetSpec
  replicas:int32? minReadySeconds:int32 selector:LabelSelector! template:PodTemplateSpec!
Deployment
  metadata:ObjectMeta! spec:DeploymentSpec! status:DeploymentStatus!
DeploymentSpec
  replicas:int32? selector:LabelSelector! template:PodTemplateSpec! strategy:DeploymentStrategy!
  minReadySeconds:int32 revisionHistoryLimit:int32? paused:bool progressDeadlineSeconds:int32?
DeploymentStrategy
  type:str rollingUpdate:RollingUpdate
RollingUpdate
  maxUnavailable:ios maxSurge:ios partition:int32?
DeploymentStatus
  observedGeneration:int64 replicas:int32 updatedReplicas:int32 readyReplicas:int32
  availableReplicas:int32 unavailableReplicas:int32 terminatingReplicas:int32?
  conditions:[any]@type collisionCount:int32?
StatefulSet
  metadata:ObjectMeta! spec:StatefulSetSpec! status:StatefulSetStatus!
StatefulSetSpec
  replicas:int32? selector:LabelSelector! template:PodTemplateSpec!
  volumeClaimTemplates:[PersistentVolumeClaim] serviceName:str! podManagementPolicy:str
  updateStrategy:DeploymentStrategy! revisionHistoryLimit:int32? minReadySeconds:int32
  persistentVolumeClaimRetentionPolicy:any ordinals:any
StatefulSetStatus
  observedGeneration:int64 replicas:int32! readyReplicas:int32 currentReplicas:int32
  updatedReplicas:int32 currentRevision:str updateRevision:str collisionCount:int32?
  conditions:[any]@type availableReplicas:int32!
DaemonSet
  metadata:ObjectMeta! spec:DaemonSetSpec! status:any!
DaemonSetSpec
  selector:LabelSelector! template:PodTemplateSpec! updateStrategy:DeploymentStrategy!
  minReadySeconds:int32 revisionHistoryLimit:int32?
Job
  metadata:ObjectMeta! spec:JobSpec! status:any!
JobSpec
  parallelism:int32? completions:int32? activeDeadlineSeconds:int64? podFailurePolicy:any
  successPolicy:any backoffLimit:int32? backoffLimitPerIndex:int32? maxFailedIndexes:int32?
  selector:LabelSelector manualSelector:bool? template:PodTemplateSpec!
  ttlSecondsAfterFinished:int32? completionMode:str? suspend:bool? podReplacementPolicy:str?
  managedBy:str? scheduling:any
PodDisruptionBudget
  metadata:ObjectMeta! spec:PodDisruptionBudgetSpec! status:PodDisruptionBudgetStatus!
PodDisruptionBudgetSpec
  minAvailable:ios selector:LabelSelector maxUnavailable:ios unhealthyPodEvictionPolicy:str?
PodDisruptionBudgetStatus
  observedGeneration:int64 disruptedPods:{time} disruptionsAllowed:int32! currentHealthy:int32!
  desiredHealthy:int32! expectedPods:int32! conditions:[any]@type
PodGroup
  metadata:ObjectMeta! spec:any! status:PodGroupStatus!
CompositePodGroup
  metadata:ObjectMeta! spec:any! status:PodGroupStatus!
PodGroupStatus
  conditions:[any]@type resourceClaimStatuses:[any]@name
PriorityClass
  metadata:ObjectMeta! value:int32! globalDefault:bool description:str preemptionPolicy:str?
Lease
  metadata:ObjectMeta! spec:LeaseSpec!
LeaseSpec
  holderIdentity:str? leaseDurationSeconds:int32? acquireTime:micro renewTime:micro
  leaseTransitions:int32? strategy:str? preferredHolder:str?
StorageClass
  metadata:ObjectMeta! provisioner:str! parameters:{str} reclaimPolicy:str? mountOptions:[str]
  allowVolumeExpansion:bool? volumeBindingMode:str? allowedTopologies:[any]
CSINode
  metadata:ObjectMeta! spec:CSINodeSpec!
CSINodeSpec
  drivers:[CSINodeDriver]!@name
CSINodeDriver
  name:str! nodeID:str! topologyKeys:[str]! allocatable:CSINodeLimit
CSINodeLimit
  count:int32?
CSIDriver
  metadata:ObjectMeta! spec:CSIDriverSpec!
CSIDriverSpec
  attachRequired:bool? podInfoOnMount:bool? volumeLifecycleModes:[str]@ storageCapacity:bool?
  fsGroupPolicy:str? tokenRequests:[any] requiresRepublish:bool? seLinuxMount:bool?
  nodeAllocatableUpdatePeriodSeconds:int64? serviceAccountTokenInSecrets:bool?
  preventPodSchedulingIfMissing:bool?
CSIStorageCapacity
  metadata:ObjectMeta! nodeTopology:LabelSelector storageClassName:str! capacity:qty
  maximumVolumeSize:qty
VolumeAttachment
  metadata:ObjectMeta! spec:any! status:VolumeAttachmentStatus!
VolumeAttachmentStatus
  attached:bool! attachmentMetadata:{str} attachError:any detachError:any
CronJob
  metadata:ObjectMeta! spec:CronJobSpec! status:any!
CronJobSpec
  schedule:str! timeZone:str? startingDeadlineSeconds:int64? concurrencyPolicy:str suspend:bool?
  jobTemplate:JobTemplate! successfulJobsHistoryLimit:int32? failedJobsHistoryLimit:int32?
JobTemplate
  metadata:ObjectMeta! spec:JobSpec!
PodTemplate
  metadata:ObjectMeta! template:PodTemplateSpec!
ResourceClaim
  metadata:ObjectMeta! spec:any! status:ResourceClaimStatus!
ResourceClaimStatus
  allocation:any reservedFor:[ResourceClaimConsumer]@uid devices:[any]
ResourceClaimConsumer
  apiGroup:str resource:str! name:str! uid:str!
ResourceClaimTemplate
  metadata:ObjectMeta! spec:any!
ResourceSlice
  metadata:ObjectMeta! spec:any!
NetworkPolicy
  metadata:ObjectMeta! spec:any!
Scale
  metadata:ObjectMeta! spec:ScaleSpec! status:ScaleStatus!
ScaleSpec
  replicas:int32
ScaleStatus
  replicas:int32! selector:str
DeleteOptions
  gracePeriodSeconds:int64? preconditions:Preconditions orphanDependents:bool?
  propagationPolicy:str? dryRun:[str] ignoreStoreReadErrorWithClusterBreakingPotential:bool?
Preconditions
  uid:str? resourceVersion:str?
Anything
  metadata:ObjectMeta!
"""


JsonObject = dict[str, Any]
#: Reads one value: (value, path, paths of unknown fields) -> stored form.
Reader = Callable[[Any, str, list[str]], Any]

MICRO_TIME: Final = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)$")
FIELD: Final = re.compile(r"^(\w+):(.+?)([!?]?)(@[\w,]*)?$")
INT_BOUNDS: Final = {"int32": 1 << 31, "int64": 1 << 63}


class DecodeError(ValueError):
    """A value of the wrong type; the message has type and path."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a type: `form` is its type text, `keys` identify list elements."""

    name: str
    form: str
    always: bool
    pointer: bool
    keys: tuple[str, ...] | None


def _parse(text: str) -> dict[str, dict[str, Field]]:
    types: dict[str, dict[str, Field]] = {}
    fields: dict[str, Field] = {}
    for line in text.splitlines():
        if not line.startswith(" "):
            fields = types.setdefault(line, {}) if line else fields
            continue
        for item in line.split():
            match = FIELD.match(item)
            assert match is not None, item
            name, form, mark, keys = match.groups()
            identity = None if keys is None else tuple(filter(None, keys[1:].split(",")))
            fields[name] = Field(name, form, mark == "!", mark == "?", identity)
    return types


TYPES: Final = _parse(TEXT)


def type_name(res: Resource) -> str:
    """The type of a resource; `Anything` for kinds that are stored as they were sent."""
    if res.kind == "Event" and res.group:
        return "EventV1"
    return res.kind if res.kind in TYPES and res.group not in CUSTOM else "Anything"


def _wrong(value: object, path: str, wanted: str) -> DecodeError:
    kinds = {str: "string", dict: "object", list: "array", bool: "bool"}
    kind = kinds.get(type(value), "number")
    return DecodeError(
        f"json: cannot unmarshal {kind} into Go struct field {path} of type {wanted}"
    )


def _plain(kind: type, wanted: str) -> Reader:
    def read(value: Any, path: str, _unknown: list[str]) -> Any:
        if type(value) is not kind:
            raise _wrong(value, path, wanted)
        return value

    return read


def _integer(wanted: str) -> Reader:
    bound = INT_BOUNDS[wanted]

    def read(value: Any, path: str, _unknown: list[str]) -> Any:
        if type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is not int or not -bound <= value < bound:
            raise _wrong(value, path, wanted)
        return value

    return read


def _quantity(value: Any, _path: str, _unknown: list[str]) -> Any:
    try:
        return quantities.text_of(value)
    except ValueError as fault:
        raise DecodeError(str(fault)) from None


def _amount(value: Any, path: str, unknown: list[str]) -> Any:
    return quantities.to_milli(_quantity(value, path, unknown))


def _time(value: Any, path: str, _unknown: list[str]) -> Any:
    if type(value) is not str:
        raise _wrong(value, path, "string")
    if len(value) == 20 and value[-1] == "Z" and value[10] == "T" and value[4] == "-":
        return value
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        moment = datetime.min  # noqa: DTZ901  stands for "no time" just below
    if moment.tzinfo is None:
        raise DecodeError(f'parsing time "{value}" as "2006-01-02T15:04:05Z07:00": cannot parse')
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _micro_time(value: Any, path: str, _unknown: list[str]) -> Any:
    if type(value) is not str:
        raise _wrong(value, path, "string")
    if MICRO_TIME.match(value):
        return value
    form = "2006-01-02T15:04:05.000000Z07:00"
    # A well-formed second without fraction fails at the fraction; other values at the year.
    rest = value[19:] if re.match(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", value) else value
    wanted = ".000000" if rest != value else "2006"
    raise DecodeError(f'parsing time "{value}" as "{form}": cannot parse "{rest}" as "{wanted}"')


def _int_or_string(value: Any, path: str, _unknown: list[str]) -> Any:
    if type(value) not in {int, str}:
        raise _wrong(value, path, "intstr.IntOrString")
    return value


def without_nulls(value: Any) -> Any:
    """A deep copy of any JSON value in which no member of an object is null."""
    if type(value) is dict:
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    if type(value) is list:
        return [without_nulls(v) for v in value]
    return value


def _anything(value: Any, _path: str, _unknown: list[str]) -> Any:
    return without_nulls(value)


SCALARS: Final[dict[str, Reader]] = {
    "str": _plain(str, "string"),
    "bool": _plain(bool, "bool"),
    "int32": _integer("int32"),
    "int64": _integer("int64"),
    "qty": _quantity,
    "amount": _amount,
    "time": _time,
    "micro": _micro_time,
    "ios": _int_or_string,
    "any": _anything,
}
ZEROS: Final[dict[str, Any]] = {"str": "", "bool": False, "int32": 0, "int64": 0, "ios": 0}


def _list(form: str) -> Reader:
    read_element = reader(form)
    wanted = f"[]{form}"

    def read(value: Any, path: str, unknown: list[str]) -> Any:
        if type(value) is not list:
            raise _wrong(value, path, wanted)
        return [read_element(v, f"{path}[{i}]", unknown) for i, v in enumerate(value)]

    return read


def _map(form: str) -> Reader:
    read_value = reader(form)

    def read(value: Any, path: str, unknown: list[str]) -> Any:
        if type(value) is not dict:
            raise _wrong(value, path, f"map[string]{form}")
        return {
            k: "" if v is None else read_value(v, f"{path}.{k}", unknown) for k, v in value.items()
        }

    return read


def _zero(field: Field) -> Callable[[], Any]:
    """A factory for the value of an always present field that was not sent."""
    if field.form in TYPES:
        return lambda: reader(field.form)({}, "", [])
    if field.form == "any":
        return dict
    zero = ZEROS.get(field.form)
    return lambda: zero


def _struct(name: str, *, open_ended: bool = False) -> Reader:
    fields = TYPES[name]
    plan: dict[str, tuple[Reader, bool]] = {}
    for field in fields.values():
        keep = field.always or field.pointer or field.form in TYPES or field.form == "any"
        plan[field.name] = (reader(field.form), keep or field.form == "ios")
    zeros = {field.name: _zero(field) for field in fields.values() if field.always}

    def read(value: Any, path: str, unknown: list[str]) -> Any:
        if type(value) is not dict:
            raise _wrong(value, path, name)
        out: JsonObject = {}
        dot = f"{path}." if path else ""
        for key, raw in value.items():
            step = plan.get(key)
            if step is None:
                if open_ended:
                    out[key] = without_nulls(raw)
                else:
                    unknown.append(dot + key)
            elif raw is not None:
                made = step[0](raw, dot + key, unknown)
                if made or (step[1] and made != []):
                    out[key] = made
        for key, zero in zeros.items():
            if key not in out:
                out[key] = zero()
        return out

    return read


@cache
def reader(form: str) -> Reader:
    """The reader of a type text."""
    if form.startswith("["):
        return _list(form[1:-1])
    if form.startswith("{"):
        return _map(form[1:-1])
    return SCALARS[form] if form in SCALARS else _struct(form, open_ended=form == "Anything")


def decode(res: Resource, raw: JsonObject) -> tuple[JsonObject, list[str]]:
    """The stored form of an object without kind and apiVersion, and the unknown fields' paths.

    Raises DecodeError for a value of a wrong type.
    """
    unknown: list[str] = []
    body = {k: v for k, v in raw.items() if k not in {"kind", "apiVersion"}}
    return reader(type_name(res))(body, "", unknown), unknown


def field_of(type_text: str, name: str) -> Field | None:
    """The field `name` of a type text, if the table describes it."""
    return TYPES.get(type_text, {}).get(name)
