"""Public names: plugins, extension points, annotations, event reasons.

Users meet these words in configuration files, metrics, events and conditions; they are
kube-scheduler's (v1.36). Every other module takes them from here, so that a name is spelled once.
"""

from typing import Final

# --- plugins (pkg/scheduler/framework/plugins/names) ---------------------------------------------

SCHEDULING_GATES: Final = "SchedulingGates"
PRIORITY_SORT: Final = "PrioritySort"
NODE_UNSCHEDULABLE: Final = "NodeUnschedulable"
NODE_NAME: Final = "NodeName"
TAINT_TOLERATION: Final = "TaintToleration"
NODE_AFFINITY: Final = "NodeAffinity"
NODE_PORTS: Final = "NodePorts"
NODE_RESOURCES_FIT: Final = "NodeResourcesFit"
VOLUME_RESTRICTIONS: Final = "VolumeRestrictions"
NODE_VOLUME_LIMITS: Final = "NodeVolumeLimits"
VOLUME_BINDING: Final = "VolumeBinding"
VOLUME_ZONE: Final = "VolumeZone"
POD_TOPOLOGY_SPREAD: Final = "PodTopologySpread"
INTER_POD_AFFINITY: Final = "InterPodAffinity"
DYNAMIC_RESOURCES: Final = "DynamicResources"
DEFAULT_PREEMPTION: Final = "DefaultPreemption"
GANG_SPARING_PREEMPTION: Final = "GangSparingPreemption"
NODE_RESOURCES_BALANCED_ALLOCATION: Final = "NodeResourcesBalancedAllocation"
IMAGE_LOCALITY: Final = "ImageLocality"
DEFAULT_BINDER: Final = "DefaultBinder"
NODE_DECLARED_FEATURES: Final = "NodeDeclaredFeatures"
GANG_SCHEDULING: Final = "GangScheduling"
TOPOLOGY_PLACEMENT_GENERATOR: Final = "TopologyPlacementGenerator"
POD_GROUP_PODS_COUNT: Final = "PodGroupPodsCount"
COSCHEDULING: Final = "Coscheduling"  # of scheduler-plugins; in no default profile
CAPACITY_SCHEDULING: Final = "CapacityScheduling"  # of scheduler-plugins; in no default profile
CHECK_AND_HOLD: Final = "CheckAndHold"  # our own; in no default profile
BACKFILL: Final = "Backfill"  # our own; in no default profile
REBALANCE: Final = "Rebalance"  # our own; in no default profile
GROUP_SCALE_UP: Final = "GroupScaleUp"  # our own; in no default profile

#: Added to each profile where the configuration has pools; no configuration names it.
NODE_POOLS: Final = "NodePools"

#: The pseudo plugin to which rejections of pods beyond a limit (`core/model/pod_limits.py`) are
#: attributed.
POD_LIMITS: Final = "PodLimits"
#: The pseudo plugin to which the rejections of HTTP extenders are attributed.
EXTENDER: Final = "Extender"

# --- extension points, as the configuration spells them (and metrics, with a capital) ------------

EXTENSION_POINTS: Final = (
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
)

# --- conditions, events, labels ------------------------------------------------------------------

#: Prefix of the project's own annotations, labels, gates and API groups, where Kubernetes wants a
#: DNS name. It is no address: nothing resolves it, and the project does not own the domain. The
#: manifests spell it, too.
PREFIX: Final = "asched.dev"
#: The taint of a cordoned node whose pods are to be moved (`batch/rebalance/draining.py`).
DRAIN_TAINT: Final = f"{PREFIX}/drain"

DEFAULT_SCHEDULER_NAME: Final = "default-scheduler"
OUR_SCHEDULER_NAME: Final = "asched"
POD_SCHEDULED: Final = "PodScheduled"
POD_GROUP_SCHEDULED: Final = "PodGroupScheduled"
POD_GROUP_INITIALLY_SCHEDULED: Final = "PodGroupInitiallyScheduled"  # since 1.37
COMPOSITE_POD_GROUP_INITIALLY_SCHEDULED: Final = "CompositePodGroupInitiallyScheduled"
REASON_SCHEDULED: Final = "Scheduled"
REASON_UNSCHEDULABLE: Final = "Unschedulable"
REASON_SCHEDULER_ERROR: Final = "SchedulerError"
REASON_INVALID: Final = "Invalid"
REASON_NEW_NODES_DO_NOT_HELP: Final = "NewNodesDoNotHelp"  # our own; autoscalers ignore it
DISRUPTION_TARGET: Final = "DisruptionTarget"
REASON_PREEMPTION_BY_SCHEDULER: Final = "PreemptionByScheduler"
EVENT_SCHEDULED: Final = "Scheduled"
EVENT_FAILED_SCHEDULING: Final = "FailedScheduling"
EVENT_PREEMPTED: Final = "Preempted"
EVENT_MOVED: Final = "Moved"  # our own, as the next two
EVENT_PODS_MOVE: Final = "PodsMove"
EVENT_PLACE_HELD: Final = "PlaceHeld"
#: Condition of a pod of a unit: how many pods were evicted to make room for the unit, and when.
PODS_MOVED: Final = f"{PREFIX}/PodsMoved"
EVENT_KUBELET_REFUSED: Final = "KubeletRefused"
EVENT_FOUND_BY_AUDIT: Final = "FoundByAudit"
LABEL_HOSTNAME: Final = "kubernetes.io/hostname"
#: Annotation of the Lease: what its holder says about its time as leader (JSON).
LEASE_TERM: Final = f"{PREFIX}/term"
#: The pool of all nodes and namespaces that no pool names.
DEFAULT_POOL: Final = "default"
#: Annotations of the Leases of pools, and of the Lease that all of them share
#: (`core/leader/pools.py`).
LEASE_POOL: Final = f"{PREFIX}/pool-term"
LEASE_MEMBERS: Final = f"{PREFIX}/pool-replicas"
#: Condition of a pending pod, and annotation of a claim without an allocation, that a new leader
#: wrote, so that late writes of the one before it are refused.
TAKEN_OVER: Final = f"{PREFIX}/TakenOver"
REASON_LEADER_CHANGED: Final = "LeaderChanged"
EVENT_TRIED_LATER: Final = "TriedLater"
#: Header for a bearer token that passes through the API server's proxy, which removes
#: `Authorization` and does not pass the user's identity on.
TOKEN_HEADER: Final = "asched-token"  # noqa: S105
#: Of a cluster in a kubeconfig: {"server": URL}, where a scheduler serves its pages.
PAGES_EXTENSION: Final = f"{PREFIX}/pages"
#: Of a node: the pool that it belongs to, unless the configuration names other labels.
POOL_LABEL: Final = f"{PREFIX}/pool"
LABEL_ZONE: Final = "topology.kubernetes.io/zone"
LABEL_REGION: Final = "topology.kubernetes.io/region"
LABEL_BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
LABEL_BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"
TAINT_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"

# --- what names are made of (apimachinery, pkg/util/validation) -----------------------------------

QUALIFIED_NAME_PATTERN: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
SUBDOMAIN_PATTERN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
