"""Annotations, labels and the like that asched reads or writes on objects of users."""

from typing import Final, NamedTuple

from asched.names import PREFIX


class Marker(NamedTuple):
    """`place`: kind of object and whether it is an annotation, a label or something else;
    `use`: read or written, and by which plugin ("" for all).
    """

    name: str
    place: str
    use: str
    plugin: str
    text: str


_POD, _NODE = "annotation of a pod", "annotation of a node"
_READ, _WRITTEN = "read", "written"
_HAMI, _VOLCANO, _GPU_SHARE = "HamiVGPU", "VolcanoVGPU", "GpuShare"
_SHARED: Final = f"{_HAMI}, {_VOLCANO}"
_LOAD: Final = "LoadAwareScheduling"
_NETWORK: Final = "NetworkTopology"
_GROUP: Final = "annotation of a PodGroup or pod"
_SPARING: Final = "GangSparingPreemption"

MARKERS: Final[tuple[Marker, ...]] = (
    Marker(
        f"{PREFIX}/expected-duration-seconds",
        _POD,
        _READ,
        "Backfill",
        "Expected run time; a soft end, counted with `softEnds: true`",
    ),
    Marker(f"{PREFIX}/plan", "annotation", _WRITTEN, "", "Id of the plan that made the object"),
    Marker(
        f"{PREFIX}/plan",
        "scheduling gate of a pod",
        _WRITTEN,
        "",
        "Holds the pods of a plan back until all objects exist (`asched plan --apply`)",
    ),
    Marker(
        f"{PREFIX}/pool",
        "label of a node",
        _READ,
        "",
        "The pool that the node belongs to, where `pools` of the configuration has no"
        " `nodeSelector` for it",
    ),
    Marker(
        f"{PREFIX}/term",
        "annotation of the Lease",
        f"{_READ}, {_WRITTEN}",
        "",
        "What the leader says about its time: whose bindings carry a version, whether all writes"
        " are answered, when leaders ended without releasing the Lease (JSON)",
    ),
    Marker(
        f"{PREFIX}/pool-term",
        "annotation of the Lease of a pool",
        f"{_READ}, {_WRITTEN}",
        "`poolLeases`",
        "Up to which versions the holder has seen nodes and namespaces (JSON)",
    ),
    Marker(
        f"{PREFIX}/pool-replicas",
        "annotation of the Lease",
        f"{_READ}, {_WRITTEN}",
        "`poolLeases`",
        "The replicas that share the pools, each with a number that it increases (JSON)",
    ),
    Marker(
        f"{PREFIX}/TakenOver",
        "condition of a pod, annotation of a ResourceClaim",
        _WRITTEN,
        "",
        "Of a pod that waited, or a claim without an allocation, when the leader changed: late"
        " bindings and allocations of the last one are refused",
    ),
    Marker(
        f"{PREFIX}/pages",
        "extension of a cluster in a kubeconfig",
        _READ,
        "",
        '`{"server": URL}`: where `explain`, `top`, `shadow` and `version` read pages',
    ),
    Marker(
        f"use.{PREFIX}/asched",
        "label of a namespace",
        "not read",
        "",
        "With the component `admission-policy`: pods of the namespace may name the scheduler; the"
        " part after the slash is the name of the lease",
    ),
    Marker(
        "autoscaling.x-k8s.io/consume-provisioning-request",
        _POD,
        _READ,
        "CheckAndHold",
        "The ProvisioningRequest whose places the pod takes",
    ),
    Marker(
        "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
        _POD,
        _READ,
        "CheckAndHold",
        "Older name of the same",
    ),
    Marker(
        "cluster-autoscaler.kubernetes.io/scale-down-disabled",
        "annotation of a node",
        _WRITTEN,
        "CheckAndHold",
        "With `keepNodes`: the node has held places; cluster-autoscaler does not remove it",
    ),
    Marker(
        "karpenter.sh/do-not-disrupt",
        "annotation of a node",
        _WRITTEN,
        "CheckAndHold",
        "With `keepNodes`: the same for Karpenter",
    ),
    Marker(
        f"{PREFIX}/kept-for-held-places",
        "annotation of a node",
        f"{_READ}, {_WRITTEN}",
        "CheckAndHold",
        "Which of the two asched has set, and removes",
    ),
    Marker(
        "cluster-autoscaler.kubernetes.io/safe-to-evict",
        "annotation of a pod",
        _READ,
        "Rebalance",
        "`false`: the pod is not moved; `true`: it is, also with local volumes",
    ),
    Marker(
        "karpenter.sh/do-not-disrupt",
        "annotation of a pod",
        _READ,
        "Rebalance",
        "`true`: the pod is not moved",
    ),
    Marker(
        f"{PREFIX}/PodsMoved",
        "condition of a pod",
        f"{_READ}, {_WRITTEN}",
        "Rebalance",
        "How many pods were evicted to make room for its unit, and when",
    ),
    Marker(
        f"{PREFIX}/drain",
        "taint of a node",
        _READ,
        "Rebalance",
        "With a cordon: the node's pods are moved, until the time in its value (in seconds since"
        " 1970); set and removed by `asched drain`",
    ),
    Marker(
        f"{PREFIX}/group-scale-up",
        "label of a ProvisioningRequest or PodTemplate",
        f"{_READ}, {_WRITTEN}",
        "GroupScaleUp",
        "asched made the object, and deletes it",
    ),
    Marker(
        f"{PREFIX}/scheduler-name",
        "annotation of a ProvisioningRequest",
        f"{_READ}, {_WRITTEN}",
        "GroupScaleUp",
        "The profile that made it",
    ),
    Marker(
        f"{PREFIX}/new-nodes",
        "annotation of a ProvisioningRequest",
        f"{_READ}, {_WRITTEN}",
        "GroupScaleUp",
        "How many nodes of which shape its gang lacks",
    ),
    Marker(
        "scheduling.x-k8s.io/pod-group",
        "label of a pod",
        _READ,
        "Coscheduling",
        "The PodGroup of scheduler-plugins to which the pod belongs",
    ),
    Marker(
        "kueue.x-k8s.io/max-exec-time-seconds",
        "label of a pod or Job",
        _READ,
        "Backfill",
        "A soft end, counted with `softEnds: true`",
    ),
    Marker(
        "kueue.x-k8s.io/podset-required-topology",
        _GROUP,
        _READ,
        _NETWORK,
        "The level within one domain of which the gang must stay",
    ),
    Marker(
        "kueue.x-k8s.io/podset-preferred-topology",
        _GROUP,
        _READ,
        _NETWORK,
        "The level within one domain of which the gang should stay",
    ),
    Marker("kai.scheduler/topology", _GROUP, _READ, _NETWORK, "Name of KAI's Topology"),
    Marker(
        "kai.scheduler/topology-required-placement", _GROUP, _READ, _NETWORK, "As Kueue's required"
    ),
    Marker(
        "kai.scheduler/topology-preferred-placement",
        _GROUP,
        _READ,
        _NETWORK,
        "As Kueue's preferred",
    ),
    Marker(
        "volcano.sh/network-topology-mode", _GROUP, _READ, _NETWORK, "`hard` (required) or `soft`"
    ),
    Marker(
        "volcano.sh/network-topology-highest-tier",
        _GROUP,
        _READ,
        _NETWORK,
        "The highest tier that the mode `hard` allows",
    ),
    Marker("scheduling.k8s.io/group-name", _POD, _READ, _SPARING, "A gang of Volcano"),
    Marker("pod-group-name", _POD, _READ, _SPARING, "A gang of KAI"),
    Marker(
        "yunikorn.apache.org/task-group-name",
        "annotation or label of a pod",
        _READ,
        _SPARING,
        "A gang of YuniKorn",
    ),
    Marker("gang.scheduling.koordinator.sh/name", _POD, _READ, _SPARING, "A gang of Koordinator"),
    Marker(
        "pod-group.scheduling.sigs.k8s.io/name",
        "label of a pod",
        _READ,
        _SPARING,
        "A gang of Koordinator",
    ),
    Marker(
        "pod-group.scheduling.sigs.k8s.io",
        "label of a pod",
        _READ,
        _SPARING,
        "A gang of Koordinator",
    ),
    Marker("hami.io/node-nvidia-register", _NODE, _READ, _HAMI, "The node's devices"),
    Marker("hami.io/device-cordon", _NODE, _READ, _HAMI, "Devices that take no more pods"),
    Marker(
        "hami.io/mutex.lock", _NODE, "read, written", _HAMI, "Lock while a pod gets its devices"
    ),
    Marker("nvidia.com/use-gputype", _POD, _READ, _SHARED, "Models that the pod accepts"),
    Marker("nvidia.com/nouse-gputype", _POD, _READ, _SHARED, "Models that the pod refuses"),
    Marker("nvidia.com/use-gpuuuid", _POD, _READ, _HAMI, "Devices that the pod accepts"),
    Marker("nvidia.com/nouse-gpuuuid", _POD, _READ, _HAMI, "Devices that the pod refuses"),
    Marker("nvidia.com/vgpu-mode", _POD, _READ, _HAMI, "The mode that the devices must have"),
    Marker("nvidia.com/numa-bind", _POD, _READ, _HAMI, "All devices in one NUMA zone"),
    Marker(
        "hami.io/gpu-scheduler-policy",
        _POD,
        _READ,
        _HAMI,
        "Choice of devices: `binpack`, `spread` or `mutex`",
    ),
    Marker(
        "hami.io/node-scheduler-policy", _POD, _READ, _HAMI, "Choice of nodes: `binpack`, `spread`"
    ),
    Marker("hami.io/device-scoring-weights", _POD, _READ, _HAMI, "Refused where it is set"),
    Marker("hami.io/vgpu-devices-to-allocate", _POD, _WRITTEN, _HAMI, "Devices to hand out"),
    Marker("hami.io/vgpu-devices-allocated", _POD, _WRITTEN, _HAMI, "Devices of the pod"),
    Marker("hami.io/vgpu-node", "annotation and label of a pod", _WRITTEN, _HAMI, "The pod's node"),
    Marker("hami.io/vgpu-time", _POD, _WRITTEN, _HAMI, "Time of the decision"),
    Marker("hami.io/bind-time", _POD, _WRITTEN, _HAMI, "Time of the binding"),
    Marker("hami.io/bind-phase", _POD, _WRITTEN, _HAMI, "Phase of the hand-over"),
    Marker("volcano.sh/node-vgpu-register", _NODE, _READ, _VOLCANO, "The node's devices"),
    Marker("volcano.sh/vgpu-use-gpuuuid", _POD, _READ, _VOLCANO, "Devices that the pod accepts"),
    Marker("volcano.sh/vgpu-nouse-gpuuuid", _POD, _READ, _VOLCANO, "Devices that it refuses"),
    Marker("volcano.sh/vgpu-mode", _POD, _READ, _VOLCANO, "The mode that the devices must have"),
    Marker("volcano.sh/vgpu-podgroup-policy", _POD, _READ, _VOLCANO, "Refused where it is set"),
    Marker("volcano.sh/devices-to-allocate", _POD, _WRITTEN, _VOLCANO, "Devices to hand out"),
    Marker("volcano.sh/vgpu-ids-new", _POD, _WRITTEN, _VOLCANO, "Devices of the pod"),
    Marker("volcano.sh/vgpu-node", _POD, _WRITTEN, _VOLCANO, "The pod's node"),
    Marker("volcano.sh/vgpu-time", _POD, _WRITTEN, _VOLCANO, "Time of the decision"),
    Marker("volcano.sh/bind-time", _POD, _WRITTEN, _VOLCANO, "Time of the binding"),
    Marker("volcano.sh/bind-phase", _POD, _WRITTEN, _VOLCANO, "Phase of the hand-over"),
    Marker("ALIYUN_COM_GPU_MEM_IDX", _POD, _WRITTEN, _GPU_SHARE, "The pod's device, by number"),
    Marker("ALIYUN_COM_GPU_MEM_POD", _POD, _WRITTEN, _GPU_SHARE, "Memory that the pod gets"),
    Marker("ALIYUN_COM_GPU_MEM_DEV", _POD, _WRITTEN, _GPU_SHARE, "Memory of the device"),
    Marker(
        "ALIYUN_COM_GPU_MEM_ASSUME_TIME", _POD, _WRITTEN, _GPU_SHARE, "Time of the decision, ns"
    ),
    Marker(
        "ALIYUN_COM_GPU_MEM_ASSIGNED",
        _POD,
        _WRITTEN,
        _GPU_SHARE,
        '`"false"`: not handed out yet',
    ),
    Marker(
        "scheduling.koordinator.sh/device-allocated",
        _POD,
        _READ,
        "GpuFractions",
        "The devices of which the pod has parts, by Koordinator",
    ),
    Marker("alibabacloud.com/gpu-index", _POD, _READ, "GpuFractions", "The same, by ACK"),
    Marker("volcano.sh/gpu-index", _POD, _READ, "GpuFractions", "The same, by Volcano"),
    Marker(
        "scheduling.koordinator.sh/usage-thresholds",
        _NODE,
        _READ,
        _LOAD,
        "Thresholds of this node in place of the arguments",
    ),
    Marker(
        "node.koordinator.sh/raw-allocatable", _NODE, _READ, _LOAD, "Allocatable before amplifying"
    ),
    Marker("koordinator.sh/priority-class", "label of a pod", _READ, _LOAD, "Koordinator's class"),
    Marker("koordinator.sh/qosClass", "label of a pod", _READ, _LOAD, "Koordinator's QoS class"),
    Marker(
        "scheduling.koordinator.sh/load-estimated-scaling-factors",
        _POD,
        _READ,
        _LOAD,
        "Factors of the estimate, with `allowCustomizeEstimation: true`",
    ),
    Marker(
        "scheduling.koordinator.sh/load-estimated-seconds-after-pod-scheduled",
        _POD,
        _READ,
        _LOAD,
        "How long the estimate counts, with `allowCustomizeEstimation: true`",
    ),
    Marker(
        "scheduling.koordinator.sh/load-estimated-seconds-after-initialized",
        _POD,
        _READ,
        _LOAD,
        "How long the estimate counts, with `allowCustomizeEstimation: true`",
    ),
    Marker(
        "topology.node.k8s.io/fingerprint",
        "annotation of a NodeResourceTopology",
        _READ,
        "NodeResourceTopologyMatch",
        "Which pods the agent had seen",
    ),
)
