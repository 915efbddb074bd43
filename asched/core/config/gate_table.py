"""Every feature gate of kube-scheduler 1.36 as data (stage, default, locks, parents), and what
newer minor versions change of it.

Rules   of 1.37 and 1.38, changes are listed where the stage and the default are known; gates of
        other components that are not listed keep what they had.
Source  the help text of kube-scheduler 1.36.2 (alpha and beta gates) and its start-up errors
        (locks and parents); release notes of 1.37; CHANGELOG-1.38.md
"""

from typing import Final, NamedTuple

_ALPHA: Final = ("ALPHA", False)
_ON: Final = ("BETA", True)
_OFF: Final = ("BETA", False)
_GA: Final = ("GA", True)


def _gates(by_stage: dict[tuple[str, bool], str]) -> dict[str, tuple[str, bool]]:
    """Gates with their (stage, default), sorted by name."""
    found = {gate: stage for stage, gates in by_stage.items() for gate in gates.split()}
    return dict(sorted(found.items()))


_LOCKED: Final = """
    APIServerTracing AnonymousAuthConfigurableEndpoints AnyVolumeDataSource
    AuthorizeNodeWithSelectors AuthorizeWithSelectors CPUManagerPolicyOptions
    ConsistentListFromCache DRAAdminAccess DeclarativeValidation DisableAllocatorDualWrite
    DynamicResourceAllocation ExecProbeTimeout ImageVolume InOrderInformers
    InPlacePodVerticalScaling JobManagedBy KubeletFineGrainedAuthz KubeletTracing
    LogarithmicScaleDown MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator
    MutableCSINodeAllocatableCount NodeInclusionPolicyInPodTopologySpread NodeLogQuery NodeSwap
    PodLifecycleSleepAction PodObservedGenerationTracking PodSchedulingReadiness ProcMountType
    RecoverVolumeExpansionFailure SELinuxMountReadWriteOncePod SchedulerQueueingHints
    ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation SidecarContainers
    StructuredAuthenticationConfiguration SystemdWatchdog TopologyManagerPolicyOptions
    UserNamespacesSupport VolumeAttributesClass WinOverlay
"""
#: GA gates that can no longer be switched.
LOCKED: Final = frozenset(_LOCKED.split())
#: gate -> (stage, default)
GATES: Final = _gates(
    {
        _ALPHA: """
            APIServingWithRoutine AllAlpha AllowUnsafeMalformedObjectDeletion CBORServingAndStorage
            CPUManagerPolicyAlphaOptions CRIListStreaming CSIVolumeHealth ClientsAllowCBOR
            ClientsPreferCBOR CloudControllerManagerWatchBasedRoutesReconciliation
            CloudControllerManagerWebhook ContainerStopSignals CrossNamespaceVolumeDataSource
            DRAListTypeAttributes DRANodeAllocatableResources DRAResourcePoolStatus
            DRAWorkloadResourceClaims EventedPLEG GangScheduling GenericWorkload HPAScaleToZero
            ImageVolumeWithDigest InPlacePodVerticalScalingExclusiveCPUs
            InPlacePodVerticalScalingExclusiveMemory KubeletInUserNamespace LoggingAlphaOptions
            ManifestBasedAdmissionControlConfig MemoryQoS MutablePVNodeAffinity NativeHistograms
            PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI
            PodLevelResourceManagers PodLogsQuerySplitStreams PodsAPI QOSReserved
            ReduceDefaultCrashLoopBackOffDecay RuntimeClassInImageCriApi ShardedListAndWatch
            StorageCapacityScoring StorageVersionAPI TaintTolerationComparisonOperators
            TopologyAwareWorkloadScheduling TopologyManagerPolicyAlphaOptions
            UserNamespacesHostNetworkSupport VolumeLimitScaling WindowsCPUAndMemoryAffinity
            WorkloadAwarePreemption WorkloadWithJob
        """,
        _ON: """
            APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth AtomicFIFO
            AuthorizePodWebsocketUpgradeCreatePermission CPUManagerPolicyBetaOptions
            CRDObservedGenerationTracking ClearingNominatedNodeNameAfterBinding
            ClientsAllowCARotation ClientsAllowTLSCacheGC ComponentFlagz ComponentStatusz
            ConstrainedImpersonation ContainerCheckpoint ContainerRestartRules ContextualLogging
            DRAConsumableCapacity DRADeviceBindingConditions DRADeviceTaints DRAExtendedResource
            DRAPartitionableDevices DRAResourceClaimDeviceStatus
            DRAResourceClaimGranularStatusAuthorization DRASchedulerFilterTimeout
            DeclarativeValidationBeta DeploymentReplicaSetTerminatingReplicas
            DetectCacheInconsistency EnvFiles ExtendWebSocketsToKubelet GracefulNodeShutdown
            GracefulNodeShutdownBasedOnPodPriority HPAConfigurableTolerance HostnameOverride
            InOrderInformersBatchProcess InPlacePodLevelResourcesVerticalScaling
            InPlacePodVerticalScalingInitContainers KubeletCrashLoopBackOffMax
            KubeletEnsureSecretPulledImages KubeletSeparateDiskGC
            KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot
            LoggingBetaOptions MatchLabelKeysInPodTopologySpread
            MatchLabelKeysInPodTopologySpreadSelectorMerge MutablePodResourcesForSuspendedJobs
            MutableSchedulingDirectivesForSuspendedJobs NodeDeclaredFeatures
            NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching PLEGOnDemandRelist
            PodDeletionCost PodLevelResources PodReadyToStartContainersCondition
            PodTopologyLabelsAdmission PortForwardWebsockets PreventStaticPodAPIReferences
            RelaxedServiceNameValidation ReloadKubeletClientCAFile
            ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResourceHealthStatus
            ResourceHealthStatusMessage RestartAllContainersOnContainerExits
            RotateKubeletServerCertificate SchedulerAsyncPreemption SchedulerPopFromBackoffQ
            ServiceAccountNodeAudienceRestriction SizeBasedListCostEstimate
            StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob
            StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet
            StatefulSetSemanticRevisionComparison StorageVersionHash StrictIPCIDRValidation
            StructuredAuthenticationConfigurationEgressSelector
            StructuredAuthenticationConfigurationJWKSMetrics TokenRequestServiceAccountUIDValidation
            TopologyManagerPolicyBetaOptions TranslateStreamCloseWebsocketRequests
            UnauthenticatedHTTP2DOSMitigation UnknownVersionInteroperabilityProxy
            UnlockWhileProcessingFIFO WatchCacheInitializationPostStartHook WatchList
            WatchListClient WindowsGracefulNodeShutdown
        """,
        _OFF: """
            AllBeta ClusterTrustBundle ClusterTrustBundleProjection ConcurrentWatchObjectDecode
            CoordinatedLeaderElection DRADeviceTaintRules
            LocalStorageCapacityIsolationFSQuotaMonitoring MaxUnavailableStatefulSet
            PodCertificateRequest SELinuxMount SchedulerAsyncAPICalls StorageVersionMigrator
        """,
        _GA: _LOCKED
        + """
            DRAPrioritizedList DeclarativeValidationTakeover DisableCPUQuotaWithExclusiveCPUs
            InformerResourceVersion
        """,
    }
)

#: gate -> gates it needs
PARENTS: Final[dict[str, tuple[str, ...]]] = {
    "ClusterTrustBundleProjection": ("ClusterTrustBundle",),
    "CompositePodGroup": ("GenericWorkload",),
    "DRADeviceBindingConditions": ("DynamicResourceAllocation", "DRAResourceClaimDeviceStatus"),
    "DRADeviceTaintRules": ("DRADeviceTaints",),
    "DRAResourceClaimGranularStatusAuthorization": ("DRAResourceClaimDeviceStatus",),
    "DRAWorkloadResourceClaims": ("GenericWorkload",),
    "ExtendWebSocketsToKubelet": ("NodeDeclaredFeatures",),
    "GangScheduling": ("GenericWorkload",),
    "GracefulNodeShutdownBasedOnPodPriority": ("GracefulNodeShutdown",),
    "InPlacePodLevelResourcesVerticalScaling": (
        "InPlacePodVerticalScaling",
        "PodLevelResources",
        "NodeDeclaredFeatures",
    ),
    "InPlacePodVerticalScalingInitContainers": ("NodeDeclaredFeatures",),
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": ("MatchLabelKeysInPodTopologySpread",),
    "ResourceHealthStatusMessage": ("ResourceHealthStatus",),
    "RestartAllContainersOnContainerExits": ("ContainerRestartRules", "NodeDeclaredFeatures"),
    "StaleControllerConsistencyDaemonSet": ("AtomicFIFO",),
    "StaleControllerConsistencyJob": ("AtomicFIFO",),
    "StaleControllerConsistencyReplicaSet": ("AtomicFIFO",),
    "StaleControllerConsistencyStatefulSet": ("AtomicFIFO",),
    "StorageVersionAPI": ("APIServerIdentity",),
    "TopologyAwareWorkloadScheduling": ("GenericWorkload",),
    "UnknownVersionInteroperabilityProxy": ("APIServerIdentity",),
    "WindowsGracefulNodeShutdown": ("GracefulNodeShutdown",),
    "WorkloadAwarePreemption": ("GangScheduling",),
    "WorkloadWithJob": ("GenericWorkload",),
}


class GateChanges(NamedTuple):
    """What a minor version changes of the gates of the one before."""

    #: gate -> (stage, default)
    moved: dict[str, tuple[str, bool]]
    locked: frozenset[str]
    #: gate -> the gate that includes it; "" if what it switched is on for good
    removed: dict[str, str]


CHANGES: Final[dict[str, GateChanges]] = {
    "1.37": GateChanges(
        moved=_gates(
            {
                _ALPHA: """
                    CompositePodGroup DRADerivedAttributes DRADeviceCompatibilityGroups
                    DRAOptionalNodeOperations InPlacePodVerticalScalingSchedulerPreemption
                    InterPodAffinityHostnameFastPath PodGroupPreemptionPolicy
                    SchedulerPreQueueingHints
                """,
                _ON: """
                    AllowUnsafeMalformedObjectDeletion ConcurrentWatchObjectDecode
                    DRAFractionalCapacityRange EtcdRangeStream
                    ExcludeAdmissionWebhookVirtualResources HPAOptimizedSelectorStore
                    ManifestBasedAdmissionControlConfig NativeHistograms
                    PersistentVolumeClaimUnusedSinceTime StorageCapacityScoring VolumeLimitScaling
                    WatchListCompression
                """,
                _OFF: """
                    DRAWorkloadResourceClaims GenericWorkload PodAndContainerStatsFromCRI
                    PodLevelResourceManagers
                """,
                _GA: """
                    ClusterTrustBundle ClusterTrustBundleProjection DRADeviceTaintRules
                    DRADeviceTaints DRAExtendedResource DRAResourceClaimDeviceStatus
                    HPAConfigurableTolerance HostnameOverride
                    InPlacePodVerticalScalingInitContainers NodeDeclaredFeatures PLEGOnDemandRelist
                    PodCertificateRequest RelaxedServiceNameValidation SELinuxMount
                """,
            }
        ),
        locked=frozenset(
            {
                "DRAExtendedResource",
                "DRAPrioritizedList",
                "DRAResourceClaimDeviceStatus",
                "DeclarativeValidationTakeover",
                "HostnameOverride",
                "NodeDeclaredFeatures",
            }
        ),
        removed={
            "APIServerTracing": "",
            "AnyVolumeDataSource": "",
            "ConsistentListFromCache": "",
            "GangScheduling": "GenericWorkload",
            "PreventStaticPodAPIReferences": "",
            "SidecarContainers": "",
            "WorkloadAwarePreemption": "GenericWorkload",
        },
    ),
    "1.38": GateChanges(
        moved={
            "EnvFiles": _GA,
            "GenericWorkload": _GA,
            "InPlacePodVerticalScalingSchedulerPreemption": _ON,
            "ManagedFieldsOptOut": _ALPHA,
        },
        locked=frozenset({"DRADeviceTaintRules", "DRADeviceTaints", "EnvFiles"}),
        removed={
            "DynamicResourceAllocation": "",
            "KubeletTracing": "",
            "PodSchedulingReadiness": "",
        },
    ),
}
