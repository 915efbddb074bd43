"""Types of metadata, pods and volumes, in the notation of `schema.py`."""

from typing import Final

POD_TYPES: Final = """
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
SecretReference
  name:str? namespace:str?
NameAndValue
  name:str! value:str!
Pod
  metadata:ObjectMeta! spec:PodSpec! status:PodStatus!
PodSpec
  volumes:[Volume]@name initContainers:[Container]@name containers:[Container]!@name
  ephemeralContainers:[EphemeralContainer]@name restartPolicy:str
  terminationGracePeriodSeconds:int64? activeDeadlineSeconds:int64? dnsPolicy:str nodeSelector:{str}
  serviceAccountName:str serviceAccount:str automountServiceAccountToken:bool? nodeName:str
  hostNetwork:bool hostPID:bool hostIPC:bool shareProcessNamespace:bool?
  securityContext:PodSecurityContext imagePullSecrets:[LocalReference]@name hostname:str
  subdomain:str affinity:Affinity schedulerName:str tolerations:[Toleration]
  hostAliases:[HostAlias]@ip priorityClassName:str priority:int32? dnsConfig:PodDNSConfig
  readinessGates:[ReadinessGate] runtimeClassName:str? enableServiceLinks:bool?
  preemptionPolicy:str? overhead:{amount}
  topologySpreadConstraints:[TopologySpreadConstraint]@topologyKey,whenUnsatisfiable
  setHostnameAsFQDN:bool? os:PodOS hostUsers:bool? schedulingGates:[SchedulingGate]@name
  resourceClaims:[PodResourceClaim]@name resources:ResourceRequirements hostnameOverride:str?
  workloadRef:any schedulingGroup:SchedulingGroup
Volume
  name:str! hostPath:HostPath emptyDir:EmptyDir gcePersistentDisk:NamedDisk
  awsElasticBlockStore:NamedDisk gitRepo:GitRepoVolume secret:SecretVolume nfs:NFSVolume
  iscsi:ISCSIVolume glusterfs:GlusterfsVolume persistentVolumeClaim:ClaimVolume rbd:RBDVolume
  flexVolume:FlexVolume cinder:CinderVolume cephfs:CephFSVolume flocker:FlockerVolume
  downwardAPI:DownwardVolume fc:FCVolume azureFile:AzureFileVolume configMap:ConfigMapVolume
  vsphereVolume:VsphereVolume quobyte:QuobyteVolume azureDisk:AzureDisk
  photonPersistentDisk:PhotonDisk projected:ProjectedVolume portworxVolume:PortworxVolume
  scaleIO:ScaleIOVolume storageos:StorageOSVolume csi:CSIVolume ephemeral:EphemeralVolume
  image:ImageVolume
HostPath
  path:str! type:str?
EmptyDir
  medium:str sizeLimit:qty
NamedDisk
  pdName:str volumeID:str fsType:str partition:int32 readOnly:bool
GitRepoVolume
  directory:str? repository:str! revision:str?
SecretVolume
  secretName:str items:[KeyToPath] defaultMode:int32? optional:bool?
KeyToPath
  key:str! mode:int32? path:str!
NFSVolume
  path:str! readOnly:bool? server:str!
ISCSIVolume
  targetPortal:str! iqn:str! lun:int32! iscsiInterface:str fsType:str readOnly:bool portals:[str]
  chapAuthDiscovery:bool chapAuthSession:bool secretRef:SecretReference initiatorName:str?
GlusterfsVolume
  endpoints:str! endpointsNamespace:str? path:str! readOnly:bool?
ClaimVolume
  claimName:str! readOnly:bool
RBDVolume
  monitors:[str]! image:str! fsType:str pool:str user:str keyring:str secretRef:SecretReference
  readOnly:bool
FlexVolume
  driver:str! fsType:str? options:{str} readOnly:bool? secretRef:SecretReference
CinderVolume
  fsType:str? readOnly:bool? secretRef:SecretReference volumeID:str!
CephFSVolume
  monitors:[str]! path:str? readOnly:bool? secretFile:str? secretRef:SecretReference user:str?
FlockerVolume
  datasetName:str? datasetUUID:str?
DownwardVolume
  items:[DownwardFile] defaultMode:int32?
DownwardFile
  fieldRef:FieldRef mode:int32? path:str! resourceFieldRef:ResourceFieldRef
FieldRef
  apiVersion:str fieldPath:str!
ResourceFieldRef
  containerName:str? divisor:qty resource:str!
FCVolume
  fsType:str? lun:int32? readOnly:bool? targetWWNs:[str] wwids:[str]
AzureFileVolume
  readOnly:bool? secretName:str! secretNamespace:str? shareName:str!
ConfigMapVolume
  name:str items:[KeyToPath] defaultMode:int32? optional:bool?
VsphereVolume
  fsType:str? storagePolicyID:str? storagePolicyName:str? volumePath:str!
QuobyteVolume
  group:str? readOnly:bool? registry:str! tenant:str? user:str? volume:str!
AzureDisk
  diskName:str! diskURI:str! cachingMode:str? fsType:str? readOnly:bool? kind:str?
PhotonDisk
  fsType:str? pdID:str!
ProjectedVolume
  sources:[VolumeProjection]! defaultMode:int32?
VolumeProjection
  clusterTrustBundle:TrustBundleProjection configMap:KeysProjection downwardAPI:DownwardProjection
  podCertificate:CertificateProjection secret:KeysProjection serviceAccountToken:TokenProjection
TrustBundleProjection
  labelSelector:LabelSelector name:str? optional:bool? path:str! signerName:str?
KeysProjection
  items:[KeyToPath] name:str? optional:bool?
DownwardProjection
  items:[DownwardFile]
CertificateProjection
  certificateChainPath:str? credentialBundlePath:str? keyPath:str? keyType:str! signerName:str!
  maxExpirationSeconds:int32? userAnnotations:{str}
TokenProjection
  audience:str? expirationSeconds:int64? path:str!
PortworxVolume
  fsType:str? readOnly:bool? volumeID:str!
ScaleIOVolume
  fsType:str? gateway:str! protectionDomain:str? readOnly:bool? secretRef:SecretReference
  sslEnabled:bool? storageMode:str? storagePool:str? system:str! volumeName:str?
StorageOSVolume
  fsType:str? readOnly:bool? secretRef:ObjectReference volumeName:str? volumeNamespace:str?
CSIVolume
  driver:str! fsType:str? nodePublishSecretRef:LocalReference readOnly:bool? volumeAttributes:{str}
EphemeralVolume
  volumeClaimTemplate:ClaimTemplate
ClaimTemplate
  metadata:ObjectMeta! spec:PersistentVolumeClaimSpec!
PersistentVolumeClaimSpec
  accessModes:[str] selector:LabelSelector resources:VolumeResources! volumeName:str
  storageClassName:str? volumeMode:str? dataSource:TypedReference dataSourceRef:TypedReference
  volumeAttributesClassName:str?
VolumeResources
  limits:{amount} requests:{amount}
TypedReference
  apiGroup:str? kind:str! name:str! namespace:str?
ImageVolume
  pullPolicy:str? reference:str?
Container
  name:str! image:str command:[str] args:[str] workingDir:str
  ports:[ContainerPort]@containerPort,protocol envFrom:[EnvFromSource] env:[EnvVar]@name
  resources:ResourceRequirements! resizePolicy:[ResizePolicy] restartPolicy:str?
  restartPolicyRules:[RestartRule] volumeMounts:[VolumeMount]@mountPath
  volumeDevices:[VolumeDevice]@devicePath livenessProbe:Probe readinessProbe:Probe
  startupProbe:Probe lifecycle:Lifecycle terminationMessagePath:str terminationMessagePolicy:str
  imagePullPolicy:str securityContext:SecurityContext stdin:bool stdinOnce:bool tty:bool
ContainerPort
  name:str hostPort:int32 containerPort:int32! protocol:str hostIP:str
EnvFromSource
  prefix:str? configMapRef:EnvFromObject secretRef:EnvFromObject
EnvFromObject
  name:str? optional:bool?
EnvVar
  name:str! value:str valueFrom:EnvVarSource
EnvVarSource
  fieldRef:FieldRef resourceFieldRef:ResourceFieldRef configMapKeyRef:KeyRef secretKeyRef:KeyRef
  fileKeyRef:FileKeyRef
KeyRef
  key:str! name:str? optional:bool?
FileKeyRef
  key:str! optional:bool? path:str! volumeName:str!
ResourceRequirements
  limits:{amount} requests:{amount} claims:[ResourceClaimUse]@name
ResourceClaimUse
  name:str! request:str
ResizePolicy
  resourceName:str! restartPolicy:str!
RestartRule
  action:str! exitCodes:RestartExitCodes
RestartExitCodes
  operator:str! values:[int32]
VolumeMount
  name:str! readOnly:bool recursiveReadOnly:str? mountPath:str! subPath:str mountPropagation:str?
  subPathExpr:str
VolumeDevice
  name:str! devicePath:str!
Probe
  exec:ExecAction httpGet:HTTPGet tcpSocket:TCPSocket grpc:GRPCAction initialDelaySeconds:int32
  timeoutSeconds:int32 periodSeconds:int32 successThreshold:int32 failureThreshold:int32
  terminationGracePeriodSeconds:int64?
ExecAction
  command:[str]
HTTPGet
  path:str port:ios! host:str scheme:str httpHeaders:[NameAndValue]
TCPSocket
  host:str? port:ios!
GRPCAction
  port:int32! service:str?
Lifecycle
  postStart:LifecycleHandler preStop:LifecycleHandler stopSignal:str?
LifecycleHandler
  exec:ExecAction httpGet:HTTPGet tcpSocket:TCPSocket sleep:SleepAction
SleepAction
  seconds:int64!
SecurityContext
  allowPrivilegeEscalation:bool? appArmorProfile:SecurityProfile capabilities:Capabilities
  privileged:bool? procMount:str? readOnlyRootFilesystem:bool? runAsGroup:int64? runAsNonRoot:bool?
  runAsUser:int64? seLinuxOptions:SELinuxOptions seccompProfile:SecurityProfile
  windowsOptions:WindowsOptions
SecurityProfile
  localhostProfile:str? type:str!
Capabilities
  add:[str] drop:[str]
SELinuxOptions
  level:str? role:str? type:str? user:str?
WindowsOptions
  gmsaCredentialSpec:str? gmsaCredentialSpecName:str? hostProcess:bool? runAsUserName:str?
EphemeralContainer
  name:str! image:str command:[str] args:[str] workingDir:str ports:[ContainerPort]@containerPort
  envFrom:[EnvFromSource] env:[EnvVar]@name resources:ResourceRequirements!
  resizePolicy:[ResizePolicy] restartPolicy:str? restartPolicyRules:[RestartRule]
  volumeMounts:[VolumeMount]@mountPath volumeDevices:[VolumeDevice]@devicePath livenessProbe:Probe
  readinessProbe:Probe startupProbe:Probe lifecycle:Lifecycle terminationMessagePath:str
  terminationMessagePolicy:str imagePullPolicy:str securityContext:SecurityContext stdin:bool
  stdinOnce:bool tty:bool targetContainerName:str
PodSecurityContext
  seLinuxOptions:SELinuxOptions windowsOptions:WindowsOptions runAsUser:int64? runAsGroup:int64?
  runAsNonRoot:bool? supplementalGroups:[int64] supplementalGroupsPolicy:str? fsGroup:int64?
  sysctls:[NameAndValue] fsGroupChangePolicy:str? seccompProfile:SecurityProfile
  appArmorProfile:SecurityProfile seLinuxChangePolicy:str?
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
Toleration
  key:str operator:str value:str effect:str tolerationSeconds:int64?
HostAlias
  ip:str! hostnames:[str]
PodDNSConfig
  nameservers:[str] options:[PodDNSOption] searches:[str]
PodDNSOption
  name:str? value:str?
ReadinessGate
  conditionType:str!
TopologySpreadConstraint
  maxSkew:int32! topologyKey:str! whenUnsatisfiable:str! labelSelector:LabelSelector
  minDomains:int32? nodeAffinityPolicy:str? nodeTaintsPolicy:str? matchLabelKeys:[str]
PodOS
  name:str!
SchedulingGate
  name:str!
PodResourceClaim
  name:str! resourceClaimName:str? resourceClaimTemplateName:str?
SchedulingGroup
  podGroupName:str?
PodStatus
  observedGeneration:int64 phase:str conditions:[PodCondition]@type message:str reason:str
  nominatedNodeName:str hostIP:str hostIPs:[PodIP]@ip podIP:str podIPs:[PodIP]@ip startTime:time
  initContainerStatuses:[ContainerStatus] containerStatuses:[ContainerStatus] qosClass:str
  ephemeralContainerStatuses:[ContainerStatus] resize:str
  resourceClaimStatuses:[ResourceClaimName]@name extendedResourceClaimStatus:ExtendedResourceClaim
  nodeAllocatableResourceClaimStatuses:[NodeAllocatableClaim] allocatedResources:{amount}
  resources:ResourceRequirements
PodCondition
  type:str! observedGeneration:int64 status:str! lastProbeTime:time! lastTransitionTime:time!
  reason:str message:str
PodIP
  ip:str!
ContainerStatus
  name:str! state:ContainerState! lastState:ContainerState! ready:bool! restartCount:int32!
  image:str! imageID:str! containerID:str started:bool? allocatedResources:{amount}
  resources:ResourceRequirements volumeMounts:[VolumeMountStatus] user:ContainerUser
  allocatedResourcesStatus:[ResourceStatus] stopSignal:str?
ContainerState
  running:RunningState terminated:TerminatedState waiting:WaitingState
RunningState
  startedAt:time
TerminatedState
  containerID:str? exitCode:int32! finishedAt:time message:str? reason:str? signal:int32?
  startedAt:time
WaitingState
  message:str? reason:str?
VolumeMountStatus
  mountPath:str! name:str! readOnly:bool? recursiveReadOnly:str? volumeStatus:VolumeStatus
VolumeStatus
  image:ImageVolumeStatus
ImageVolumeStatus
  imageRef:str!
ContainerUser
  linux:LinuxUser
LinuxUser
  gid:int64! supplementalGroups:[int64] uid:int64!
ResourceStatus
  name:str! resources:[ResourceHealth]
ResourceHealth
  health:str? message:str? resourceID:str!
ResourceClaimName
  name:str! resourceClaimName:str?
ExtendedResourceClaim
  requestMappings:[ExtendedRequest]! resourceClaimName:str!
ExtendedRequest
  containerName:str! requestName:str! resourceName:str!
NodeAllocatableClaim
  containers:[str] resourceClaimName:str! resources:{qty}
PodTemplateSpec
  metadata:ObjectMeta! spec:PodSpec!
"""
