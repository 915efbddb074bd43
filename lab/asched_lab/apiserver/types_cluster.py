"""The types of everything except pods, in the notation of `schema.py`.

A kind that is not described here is stored as it was sent: the scheduler does not read it.
"""

from typing import Final

TYPES: Final = """
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
