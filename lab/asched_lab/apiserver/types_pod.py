"""The types of pods and of the metadata of every object, in the notation of `schema.py`."""

from typing import Final

TYPES: Final = """
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
"""
