"""Types of all kinds but pods, in the notation of `schema.py`.

A kind that is not described is stored as it was sent: no part of the lab reads it. Of pod groups,
whose versions differ, only the fields that are read are described.
"""

from typing import Final

KIND_TYPES: Final = """
Node
  metadata:ObjectMeta! spec:NodeSpec! status:NodeStatus!
NodeSpec
  podCIDR:str podCIDRs:[str]@ providerID:str unschedulable:bool taints:[Taint]
  configSource:NodeConfigSource externalID:str podPreemptionPolicy:PodPreemptionPolicy
Taint
  key:str! value:str effect:str! timeAdded:time
NodeConfigSource
  configMap:NodeConfigMap
NodeConfigMap
  kubeletConfigKey:str! name:str! namespace:str! resourceVersion:str? uid:str?
PodPreemptionPolicy
  disableResizePreemption:[str]
NodeStatus
  capacity:{amount} allocatable:{amount} phase:str conditions:[NodeCondition]@type
  addresses:[NodeAddress]@type daemonEndpoints:DaemonEndpoints! nodeInfo:NodeInfo!
  images:[ContainerImage] volumesInUse:[str] volumesAttached:[AttachedVolume]
  config:NodeConfigStatus runtimeHandlers:[RuntimeHandler] features:NodeFeatures
  declaredFeatures:[str]
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
  architecture:str! swap:NodeSwap
NodeSwap
  capacity:int64?
ContainerImage
  names:[str] sizeBytes:int64
AttachedVolume
  devicePath:str! name:str!
NodeConfigStatus
  active:NodeConfigSource assigned:NodeConfigSource error:str? lastKnownGood:NodeConfigSource
RuntimeHandler
  features:RuntimeHandlerFeatures name:str?
RuntimeHandlerFeatures
  recursiveReadOnlyMounts:bool? userNamespaces:bool?
NodeFeatures
  supplementalGroupsPolicy:bool?
Namespace
  metadata:ObjectMeta! spec:NamespaceSpec! status:NamespaceStatus!
NamespaceSpec
  finalizers:[str]
NamespaceStatus
  phase:str conditions:[Condition]@type
Condition
  type:str! status:str! observedGeneration:int64? lastProbeTime:time lastUpdateTime:time
  lastTransitionTime:time reason:str? message:str?
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
  externalName:str externalTrafficPolicy:str healthCheckNodePort:int32 publishNotReadyAddresses:bool
  sessionAffinityConfig:SessionAffinityConfig ipFamilies:[str] ipFamilyPolicy:str?
  allocateLoadBalancerNodePorts:bool? loadBalancerClass:str? internalTrafficPolicy:str?
  trafficDistribution:str?
ServicePort
  name:str protocol:str appProtocol:str? port:int32! targetPort:ios! nodePort:int32
SessionAffinityConfig
  clientIP:ClientIPConfig
ClientIPConfig
  timeoutSeconds:int32?
ServiceStatus
  loadBalancer:LoadBalancerStatus! conditions:[Condition]@type
LoadBalancerStatus
  ingress:[LoadBalancerIngress]
LoadBalancerIngress
  hostname:str? ip:str? ipMode:str? ports:[PortStatus]
PortStatus
  error:str? port:int32! protocol:str!
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
  hard:{amount} scopes:[str] scopeSelector:ScopeSelector
ScopeSelector
  matchExpressions:[ScopeRequirement]
ScopeRequirement
  operator:str! scopeName:str! values:[str]
ResourceQuotaStatus
  hard:{amount} used:{amount}
PersistentVolume
  metadata:ObjectMeta! spec:PersistentVolumeSpec! status:PersistentVolumeStatus!
PersistentVolumeSpec
  capacity:{amount} accessModes:[str] claimRef:ObjectReference persistentVolumeReclaimPolicy:str
  storageClassName:str mountOptions:[str] volumeMode:str? nodeAffinity:VolumeNodeAffinity
  volumeAttributesClassName:str? hostPath:HostPath gcePersistentDisk:NamedDisk
  awsElasticBlockStore:NamedDisk nfs:NFSVolume iscsi:ISCSIVolume glusterfs:GlusterfsVolume
  rbd:RBDVolume flexVolume:FlexVolume cinder:CinderVolume cephfs:CephFSVolume fc:FCVolume
  flocker:FlockerVolume azureFile:AzureFileVolume vsphereVolume:VsphereVolume quobyte:QuobyteVolume
  azureDisk:AzureDisk photonPersistentDisk:PhotonDisk portworxVolume:PortworxVolume
  scaleIO:ScaleIOVolume storageos:StorageOSVolume local:LocalVolume csi:PersistentCSI
VolumeNodeAffinity
  required:NodeSelector
LocalVolume
  fsType:str? path:str!
PersistentCSI
  driver:str! volumeHandle:str! readOnly:bool fsType:str volumeAttributes:{str}
  controllerPublishSecretRef:SecretReference nodeStageSecretRef:SecretReference
  nodePublishSecretRef:SecretReference controllerExpandSecretRef:SecretReference
  nodeExpandSecretRef:SecretReference
PersistentVolumeStatus
  phase:str message:str reason:str lastPhaseTransitionTime:time
PersistentVolumeClaim
  metadata:ObjectMeta! spec:PersistentVolumeClaimSpec! status:PersistentVolumeClaimStatus!
PersistentVolumeClaimStatus
  phase:str accessModes:[str] capacity:{amount} conditions:[Condition]@type
  allocatedResources:{amount} allocatedResourceStatuses:{str} currentVolumeAttributesClassName:str?
  modifyVolumeStatus:ModifyVolumeStatus
ModifyVolumeStatus
  status:str! targetVolumeAttributesClassName:str?
ReplicationController
  metadata:ObjectMeta! spec:ReplicationControllerSpec! status:ReplicaStatus!
ReplicationControllerSpec
  replicas:int32? minReadySeconds:int32 selector:{str} template:PodTemplateSpec
ReplicaStatus
  replicas:int32! fullyLabeledReplicas:int32 readyReplicas:int32 availableReplicas:int32
  terminatingReplicas:int32? observedGeneration:int64 conditions:[Condition]@type
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
  conditions:[Condition]@type collisionCount:int32?
StatefulSet
  metadata:ObjectMeta! spec:StatefulSetSpec! status:StatefulSetStatus!
StatefulSetSpec
  replicas:int32? selector:LabelSelector! template:PodTemplateSpec! volumeClaimTemplates:[SetClaim]
  serviceName:str! podManagementPolicy:str updateStrategy:DeploymentStrategy!
  revisionHistoryLimit:int32? minReadySeconds:int32
  persistentVolumeClaimRetentionPolicy:ClaimRetentionPolicy ordinals:Ordinals
SetClaim
  kind:str apiVersion:str metadata:ObjectMeta! spec:PersistentVolumeClaimSpec!
  status:PersistentVolumeClaimStatus!
ClaimRetentionPolicy
  whenDeleted:str whenScaled:str
Ordinals
  start:int32!
StatefulSetStatus
  observedGeneration:int64 replicas:int32! readyReplicas:int32 currentReplicas:int32
  updatedReplicas:int32 currentRevision:str updateRevision:str collisionCount:int32?
  conditions:[Condition]@type availableReplicas:int32!
DaemonSet
  metadata:ObjectMeta! spec:DaemonSetSpec! status:DaemonSetStatus!
DaemonSetSpec
  selector:LabelSelector! template:PodTemplateSpec! updateStrategy:DeploymentStrategy!
  minReadySeconds:int32 revisionHistoryLimit:int32?
DaemonSetStatus
  currentNumberScheduled:int32! numberMisscheduled:int32! desiredNumberScheduled:int32!
  numberReady:int32! numberAvailable:int32 numberUnavailable:int32 updatedNumberScheduled:int32
  observedGeneration:int64 collisionCount:int32? conditions:[Condition]@type
Job
  metadata:ObjectMeta! spec:JobSpec! status:JobStatus!
JobSpec
  parallelism:int32? completions:int32? activeDeadlineSeconds:int64?
  podFailurePolicy:PodFailurePolicy successPolicy:SuccessPolicy backoffLimit:int32?
  backoffLimitPerIndex:int32? maxFailedIndexes:int32? selector:LabelSelector manualSelector:bool?
  template:PodTemplateSpec! ttlSecondsAfterFinished:int32? completionMode:str? suspend:bool?
  podReplacementPolicy:str? managedBy:str? scheduling:any
PodFailurePolicy
  rules:[PodFailureRule]!
PodFailureRule
  action:str! onExitCodes:ExitCodesRule onPodConditions:[PodConditionPattern]
ExitCodesRule
  containerName:str? operator:str! values:[int32]!
PodConditionPattern
  status:str? type:str!
SuccessPolicy
  rules:[SuccessRule]!
SuccessRule
  succeededCount:int32? succeededIndexes:str?
JobStatus
  active:int32 completedIndexes:str completionTime:time conditions:[Condition] failed:int32
  failedIndexes:str? ready:int32? startTime:time succeeded:int32 terminating:int32?
  uncountedTerminatedPods:UncountedPods
UncountedPods
  failed:[str]@ succeeded:[str]@
PodDisruptionBudget
  metadata:ObjectMeta! spec:PodDisruptionBudgetSpec! status:PodDisruptionBudgetStatus!
PodDisruptionBudgetSpec
  minAvailable:ios selector:LabelSelector maxUnavailable:ios unhealthyPodEvictionPolicy:str?
PodDisruptionBudgetStatus
  observedGeneration:int64 disruptedPods:{time} disruptionsAllowed:int32! currentHealthy:int32!
  desiredHealthy:int32! expectedPods:int32! conditions:[Condition]@type
PodGroup
  metadata:ObjectMeta! spec:PodGroupSpec! status:PodGroupStatus!
PodGroupSpec...
  parentCompositePodGroupName:str? priority:int32? priorityClassName:str preemptionPolicy:str?
  schedulingPolicy:PodGroupPolicy schedulingConstraints:PodGroupConstraints
  workloadRef:WorkloadReference
PodGroupPolicy
  basic:any gang:GangPolicy
GangPolicy
  minCount:int32? minGroupCount:int32?
PodGroupConstraints...
  topology:[TopologyConstraint]
TopologyConstraint...
  key:str!
WorkloadReference...
  workloadName:str
PodGroupStatus
  conditions:[Condition]@type resourceClaimStatuses:[ResourceClaimName]@name
CompositePodGroup
  metadata:ObjectMeta! spec:PodGroupSpec! status:PodGroupStatus!
PriorityClass
  metadata:ObjectMeta! value:int32! globalDefault:bool description:str preemptionPolicy:str?
Lease
  metadata:ObjectMeta! spec:LeaseSpec!
LeaseSpec
  holderIdentity:str? leaseDurationSeconds:int32? acquireTime:micro renewTime:micro
  leaseTransitions:int32? strategy:str? preferredHolder:str?
StorageClass
  metadata:ObjectMeta! provisioner:str! parameters:{str} reclaimPolicy:str? mountOptions:[str]
  allowVolumeExpansion:bool? volumeBindingMode:str? allowedTopologies:[TopologyTerm]
TopologyTerm
  matchLabelExpressions:[TopologyRequirement]
TopologyRequirement
  key:str! values:[str]!
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
  fsGroupPolicy:str? tokenRequests:[TokenRequestOf] requiresRepublish:bool? seLinuxMount:bool?
  nodeAllocatableUpdatePeriodSeconds:int64? serviceAccountTokenInSecrets:bool?
  preventPodSchedulingIfMissing:bool?
TokenRequestOf
  audience:str! expirationSeconds:int64?
CSIStorageCapacity
  metadata:ObjectMeta! nodeTopology:LabelSelector storageClassName:str! capacity:qty
  maximumVolumeSize:qty
VolumeAttachment
  metadata:ObjectMeta! spec:VolumeAttachmentSpec! status:VolumeAttachmentStatus!
VolumeAttachmentSpec
  attacher:str! nodeName:str! source:VolumeAttachmentSource!
VolumeAttachmentSource
  inlineVolumeSpec:PersistentVolumeSpec persistentVolumeName:str?
VolumeAttachmentStatus
  attached:bool! attachmentMetadata:{str} attachError:VolumeError detachError:VolumeError
VolumeError
  errorCode:int32? message:str? time:time
CronJob
  metadata:ObjectMeta! spec:CronJobSpec! status:CronJobStatus!
CronJobSpec
  schedule:str! timeZone:str? startingDeadlineSeconds:int64? concurrencyPolicy:str suspend:bool?
  jobTemplate:JobTemplate! successfulJobsHistoryLimit:int32? failedJobsHistoryLimit:int32?
JobTemplate
  metadata:ObjectMeta! spec:JobSpec!
CronJobStatus
  active:[ObjectReference] lastScheduleTime:time lastSuccessfulTime:time
PodTemplate
  metadata:ObjectMeta! template:PodTemplateSpec!
ResourceClaim
  metadata:ObjectMeta! spec:ResourceClaimSpec! status:ResourceClaimStatus!
ResourceClaimSpec
  devices:DeviceClaim
DeviceClaim
  requests:[DeviceRequest] constraints:[DeviceConstraint] config:[DeviceConfig]
DeviceRequest
  name:str! exactly:ExactRequest firstAvailable:[ExactRequest]
ExactRequest
  name:str deviceClassName:str! selectors:[DeviceSelector] allocationMode:str count:int64
  adminAccess:bool? tolerations:[DeviceToleration] capacity:CapacityRequirements
DeviceSelector
  cel:CELSelector
CELSelector
  expression:str!
DeviceToleration
  key:str operator:str value:str effect:str tolerationSeconds:int64?
CapacityRequirements
  requests:{qty}
DeviceConstraint
  requests:[str] matchAttribute:str? distinctAttribute:str?
DeviceConfig
  source:str requests:[str] opaque:OpaqueConfig
OpaqueConfig
  driver:str! parameters:any
ResourceClaimStatus
  allocation:AllocationResult reservedFor:[ResourceClaimConsumer]@uid
  devices:[AllocatedDevice]@driver,device,pool,shareID
AllocationResult
  devices:DeviceResults nodeSelector:NodeSelector allocationTimestamp:time
DeviceResults
  results:[DeviceResult] config:[DeviceConfig]
DeviceResult
  request:str! driver:str! pool:str! device:str! adminAccess:bool? tolerations:[DeviceToleration]
  bindingConditions:[str] bindingFailureConditions:[str] shareID:str? consumedCapacity:{qty}
ResourceClaimConsumer
  apiGroup:str resource:str! name:str! uid:str!
AllocatedDevice
  driver:str! pool:str! device:str! shareID:str? conditions:[Condition]@type data:any
  networkData:NetworkDeviceData
NetworkDeviceData
  hardwareAddress:str interfaceName:str ips:[str]
ResourceClaimTemplate
  metadata:ObjectMeta! spec:ClaimOfTemplate!
ClaimOfTemplate
  metadata:ObjectMeta spec:ResourceClaimSpec!
ResourceSlice
  metadata:ObjectMeta! spec:ResourceSliceSpec!
ResourceSliceSpec
  driver:str! pool:ResourcePool! nodeName:str? nodeSelector:NodeSelector allNodes:bool?
  devices:[Device] perDeviceNodeSelection:bool? sharedCounters:[CounterSet]
ResourcePool
  name:str! generation:int64! resourceSliceCount:int64!
Device
  name:str! attributes:{DeviceAttribute} capacity:{DeviceCapacity} nodeName:str?
  nodeSelector:NodeSelector allNodes:bool? consumesCounters:[CounterConsumption] taints:[Taint]
  bindsToNode:bool? bindingConditions:[str] bindingFailureConditions:[str]
  allowMultipleAllocations:bool? nodeAllocatableResourceMappings:{NodeResourceMapping}
DeviceAttribute
  bool:bool? bools:[bool] int:int64? ints:[int64] string:str? strings:[str] version:str?
  versions:[str]
DeviceCapacity
  value:qty! requestPolicy:CapacityRequestPolicy
CapacityRequestPolicy
  default:qty validValues:[qty] validRange:CapacityRange
CapacityRange
  min:qty max:qty step:qty
CounterConsumption
  counterSet:str! counters:{Counter}
Counter
  value:qty!
NodeResourceMapping
  allocationMultiplier:qty capacityKey:str?
CounterSet
  name:str! counters:{Counter}
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
RuntimeClass
  metadata:ObjectMeta! handler:str! overhead:RuntimeOverhead scheduling:RuntimeScheduling
RuntimeOverhead
  podFixed:{amount}
RuntimeScheduling
  nodeSelector:{str} tolerations:[Toleration]
DeviceClass
  metadata:ObjectMeta! spec:DeviceClassSpec!
DeviceClassSpec
  selectors:[DeviceSelector] config:[DeviceConfig] extendedResourceName:str?
DeviceTaintRule
  metadata:ObjectMeta! spec:DeviceTaintRuleSpec! status:DeviceTaintRuleStatus
DeviceTaintRuleSpec
  deviceSelector:DeviceTaintSelector taint:Taint!
DeviceTaintSelector
  driver:str? pool:str? device:str?
DeviceTaintRuleStatus
  conditions:[Condition]@type
CoschedulingGroup
  metadata:ObjectMeta! spec:CoschedulingSpec status:CoschedulingStatus
CoschedulingSpec
  minMember:int32? minResources:{qty} scheduleTimeoutSeconds:int32?
CoschedulingStatus
  phase:str? occupiedBy:str? running:int32? succeeded:int32? failed:int32? scheduleStartTime:time
ElasticQuota
  metadata:ObjectMeta! spec:ElasticQuotaSpec status:ElasticQuotaStatus
ElasticQuotaSpec
  min:{qty} max:{qty}
ElasticQuotaStatus
  used:{qty}
ProvisioningRequest
  metadata:ObjectMeta! spec:ProvisioningSpec status:ProvisioningStatus
ProvisioningSpec
  podSets:[ProvisioningPods] provisioningClassName:str? parameters:{str}
ProvisioningPods
  podTemplateRef:LocalReference count:int32?
ProvisioningStatus
  conditions:[Condition] provisioningClassDetails:{str}
Anything...
  metadata:ObjectMeta!
"""
