"""Feature gates of kube-scheduler by minor version: their stage, default, locks and parents, and
`--feature-gates`.

Rules   a locked gate may be named with its own value only; an enabled gate needs its parents
        enabled, also when it is enabled by default; an unknown gate is a warning, not an error;
        AllAlpha and AllBeta move every gate of their stage that is not named itself.
        A gate that asched implements is in HONOURED. A gate that kube-scheduler implements and
        asched does not is in REFUSED, and rejected if it differs from its default. All others
        belong to other components: setting them gives a warning and has no effect; of 1.37 and
        1.38, only those are listed whose stage and default are known.
        A gate of another minor version than the one in force is rejected with the version that has
        it, unless it has no effect here. The state of the gates includes that of the rules of
        `versions.py`.
Source  the help text of kube-scheduler 1.36.2 (alpha and beta gates) and its start-up errors
        (locks and parents); release notes of 1.37; CHANGELOG-1.38.md
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

import msgspec

from asched.core.config.versions import BASE, MINORS, rules_of

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


ALL_ALPHA: Final = "AllAlpha"
ALL_BETA: Final = "AllBeta"
#: Upstream groups gates by component; a scheduler has only one.
COMPONENT: Final = "kube"

#: Gates that asched implements.
HONOURED: Final = frozenset(
    {
        ALL_ALPHA,
        ALL_BETA,
        "ComponentFlagz",
        "ComponentStatusz",
        "CompositePodGroup",
        "DRADeviceTaintRules",
        "DRAFractionalCapacityRange",
        "DRAPrioritizedList",
        "DRASchedulerFilterTimeout",
        "GangScheduling",
        "GenericWorkload",
        "InPlacePodVerticalScalingSchedulerPreemption",
        "LoggingAlphaOptions",
        "LoggingBetaOptions",
        "MatchLabelKeysInPodTopologySpread",
        "NodeDeclaredFeatures",
        "NominatedNodeNameForExpectation",
        "PodGroupPreemptionPolicy",
        "SchedulerAsyncAPICalls",
        "StorageCapacityScoring",
        "TaintTolerationComparisonOperators",
        "TopologyAwareWorkloadScheduling",
        "VolumeLimitScaling",
        "WorkloadAwarePreemption",
    }
)
_ALWAYS: Final = "asched cannot do without it"
_NEVER: Final = "asched does not implement it"
#: Gates of kube-scheduler that asched keeps at their default -> reason.
REFUSED: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            "DRAConsumableCapacity",
            "DRADeviceBindingConditions",
            "DRADeviceTaints",
            "DRAExtendedResource",
            "DRAPartitionableDevices",
            "DRAResourceClaimDeviceStatus",
            "PodLevelResources",
            "SchedulerAsyncPreemption",
            "SchedulerPopFromBackoffQ",
            "WatchListClient",
        ),
        _ALWAYS,
    ),
    **dict.fromkeys(
        (
            "CoordinatedLeaderElection",
            "DRADerivedAttributes",
            "DRADeviceCompatibilityGroups",
            "DRAListTypeAttributes",
            "DRANodeAllocatableResources",
            "DRAOptionalNodeOperations",
            "DRAWorkloadResourceClaims",
            "NativeHistograms",
        ),
        _NEVER,
    ),
}

_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})


class GateTable(NamedTuple):
    """The gates of one minor version."""

    #: gate -> (stage, default)
    gates: Mapping[str, tuple[str, bool]]
    locked: frozenset[str]
    #: gate that is gone -> the gate that includes it; "" if it is on for good
    removed: Mapping[str, str]


@cache
def table_of(minor: str) -> GateTable:
    """The gates of a minor version of MINORS: those of 1.36 and every change since."""
    gates, locked, removed = dict(GATES), LOCKED, dict[str, str]()
    for later in MINORS[1 : MINORS.index(minor) + 1]:
        changes = CHANGES[later]
        removed |= changes.removed
        gates = {k: v for k, v in (gates | changes.moved).items() if k not in removed}
        locked = (locked | changes.locked) - removed.keys()
    return GateTable(gates, locked, removed)


@cache
def default_gates(minor: str) -> Mapping[str, bool]:
    """The state of every gate and rule of a minor version where no flag changes it."""
    state = {name: default for name, (_, default) in table_of(minor).gates.items()}
    return _complete(state, minor)


def _complete(state: Mapping[str, bool], minor: str) -> dict[str, bool]:
    """The state of gates with that of removed gates, of gates to come and of rules."""
    removed = table_of(minor).removed
    later = dict.fromkeys(HONOURED - state.keys() - removed.keys(), False)
    gone = {name: state[by] if by else True for name, by in removed.items()}
    return {**state, **gone, **later, **rules_of(minor)}


def version_with(gate: str) -> str:
    """The first minor version that has a gate; "" if none is known to."""
    return next((minor for minor in MINORS if gate in table_of(minor).gates), "")


DEFAULT_GATES: Final[Mapping[str, bool]] = default_gates(BASE)


class GateError(Exception):
    """`--feature-gates` is invalid; with kube-scheduler's message where it rejects the
    value, too.
    """


class FeatureGates(msgspec.Struct, frozen=True):
    """The state of every gate, and the warnings for the user."""

    enabled: Mapping[str, bool]
    warnings: tuple[str, ...] = ()


def parse_bool(text: str) -> bool:
    """A boolean as Go's strconv reads it; raises ValueError."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError("must be true or false")


def parse(values: Sequence[str], minor: str = BASE) -> FeatureGates:
    """The gates of a minor version after every `--feature-gates` value, in the order given; raises
    GateError.
    """
    by_component: dict[str, list[str]] = {}
    for value in values:
        for pair in filter(None, (part.strip() for part in value.split(","))):
            component, _, own = pair.partition(":") if ":" in pair else ("", "", pair)
            by_component.setdefault(component.strip(), []).append(own)
    if {"", COMPONENT} <= by_component.keys():
        raise GateError(
            "set kube feature gates with default empty prefix or kube: prefix consistently, do not"
            " mix use"
        )
    for component in by_component:
        if component not in ("", COMPONENT):
            raise GateError(f"component not registered: {component}")
    wanted: dict[str, bool] = {}
    for pair in (pair for pairs in by_component.values() for pair in pairs):
        name, equals, text = (part.strip() for part in pair.partition("="))
        if not equals:
            raise GateError(f"missing bool value for {pair}")
        try:
            wanted[name] = parse_bool(text)
        except ValueError as error:
            raise GateError(f"invalid value of {name}={text}, err: {error}") from error
    gates = resolve(wanted, minor)
    _refuse(gates.enabled, minor)
    defaults, known = default_gates(minor), table_of(minor).gates
    idle = tuple(
        f"feature gate {name} has no effect on this scheduler"
        for name, value in wanted.items()
        if name in known and name not in HONOURED and value is not defaults[name]
    )
    return FeatureGates(gates.enabled, (*gates.warnings, *idle))


def _refuse(enabled: Mapping[str, bool], minor: str) -> None:
    """Raises GateError for gates that asched does not implement."""
    defaults = default_gates(minor)
    faults = [
        f"feature gate {name}={str(enabled[name]).lower()} is refused: {reason}"
        for name, reason in sorted(REFUSED.items())
        if name in enabled
        and enabled[name] is not defaults[name]
        and enabled[name] is (reason == _NEVER)
    ]
    if faults:
        raise GateError("; ".join(faults))


def _absent(name: str, value: bool, minor: str) -> str:
    """A warning for a gate that the version in force does not have. Raises GateError for one that
    would change something.
    """
    shown = f"feature gate {name}={str(value).lower()}"
    by = table_of(minor).removed.get(name)
    if by:
        raise GateError(f"{shown} is refused: in Kubernetes {minor} it is part of {by}")
    if by is not None and value:
        return f"{shown} has no effect: Kubernetes {minor} has no such gate, it is always on"
    if by is not None:
        raise GateError(f"{shown} is refused: in Kubernetes {minor} it is always on")
    has = version_with(name)
    if not has:
        return f"unrecognized feature gate: {name}"
    if value and (name in HONOURED or name in REFUSED):
        raise GateError(
            f"{shown} is refused: Kubernetes {has} and newer have it, and asched decides as {minor}"
        )
    return f"{shown} has no effect: Kubernetes {has} and newer have it"


def resolve(wanted: Mapping[str, bool], minor: str = BASE) -> FeatureGates:
    """Defaults, then AllAlpha and AllBeta, then the gates named; raises GateError."""
    gates, locked, removed = table_of(minor)
    state = {name: default for name, (_, default) in gates.items()}
    for group, stage in ((ALL_ALPHA, "ALPHA"), (ALL_BETA, "BETA")):
        if group in wanted:
            state.update({name: wanted[group] for name, (own, _) in gates.items() if own == stage})
    warnings = []
    for name, value in wanted.items():
        if name not in gates:
            warnings.append(_absent(name, value, minor))
            continue
        default = gates[name][1]
        if name in locked and value is not default:
            state_text = "true" if default else "false"
            raise GateError(
                f"cannot set feature gate {name} to {str(value).lower()}, "
                f"feature is locked to {state_text}"
            )
        state[name] = value
    alpha = [name for name, on in state.items() if on and gates[name][0] == "ALPHA"]
    if alpha:
        warnings.append(
            "component has alpha features enabled in emulated version, this is unsupported: "
            f"features=[{' '.join(alpha)}]"
        )
    faults = list(_orphans(state, removed))
    if faults:
        raise GateError(faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")
    return FeatureGates(_complete(state, minor), tuple(warnings))


def _orphans(state: Mapping[str, bool], removed: Mapping[str, str]) -> Iterable[str]:
    for name, parents in PARENTS.items():
        off = [p for p in parents if p not in removed and not state.get(p, False)]
        if state.get(name, False) and off:
            yield f"{name} is enabled, but depends on features that are disabled: [{' '.join(off)}]"
