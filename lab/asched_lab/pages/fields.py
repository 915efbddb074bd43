"""What fields, arguments and plugins mean, in one line each; the tables say which exist."""

from collections.abc import Mapping
from typing import Final

FIELDS: Final[Mapping[str, str]] = {
    "parallelism": "No effect: one loop decides",
    "leaderElection.leaderElect": "Schedule only while holding the lease",
    "leaderElection.leaseDuration": "Age at which a lease is free for another process",
    "leaderElection.renewDeadline": "Time to renew before the leader stops",
    "leaderElection.retryPeriod": "Time between two attempts to get or renew the lease",
    "leaderElection.resourceLock": "Kind of lock; `leases` is the only one",
    "leaderElection.resourceName": (
        "Name of the lease. `asched run` takes `asched` where the file names none, unless a profile"
        " serves `default-scheduler`"
    ),
    "leaderElection.resourceNamespace": "Namespace of the lease",
    "clientConnection.kubeconfig": "Path of a kubeconfig; empty in a pod",
    "clientConnection.acceptContentTypes": "No effect: asched speaks JSON",
    "clientConnection.contentType": "No effect: asched speaks JSON",
    "clientConnection.qps": "Requests a second; negative is unlimited",
    "clientConnection.burst": "Requests above the rate for a moment",
    "enableProfiling": "Serve `/debug/pprof`",
    "enableContentionProfiling": "No effect: there are no locks to profile",
    "percentageOfNodesToScore": (
        "Stop at this share of feasible nodes; 0 scores all feasible nodes"
    ),
    "podInitialBackoffSeconds": "Backoff after the first failed attempt",
    "podMaxBackoffSeconds": "Longest backoff",
    "delayCacheUntilActive": "Fill the cache only after the lease is held",
    "profiles[].schedulerName": "The `spec.schedulerName` that the profile serves",
    "profiles[].percentageOfNodesToScore": "As above, for this profile",
    "profiles[].plugins.<point>.enabled": (
        "Plugins to add at an extension point or at `multiPoint`, with `name` and `weight`"
    ),
    "profiles[].plugins.<point>.disabled": "Plugins to remove; `*` removes all defaults",
    "profiles[].pluginConfig[].name": "The plugin that the arguments belong to",
    "profiles[].pluginConfig[].args": "Its arguments, see below",
    "extenders[].urlPrefix": "Address of the extender",
    "extenders[].filterVerb": "Path of the filter call; empty switches it off",
    "extenders[].preemptVerb": "Path of the preemption call",
    "extenders[].prioritizeVerb": "Path of the score call",
    "extenders[].weight": "Factor of its scores",
    "extenders[].bindVerb": "Path of the bind call; the extender then binds the pods it manages",
    "extenders[].enableHTTPS": "Use TLS although the address does not say so",
    "extenders[].tlsConfig.insecure": "Do not verify the certificate",
    "extenders[].tlsConfig.serverName": "Name to verify in place of the host",
    "extenders[].tlsConfig.certFile": "Client certificate",
    "extenders[].tlsConfig.keyFile": "Key of the client certificate",
    "extenders[].tlsConfig.caFile": "Certificate authority",
    "extenders[].tlsConfig.certData": "Client certificate, base64; takes precedence over the file",
    "extenders[].tlsConfig.keyData": "Key, base64; takes precedence over the file",
    "extenders[].tlsConfig.caData": "Authority, base64; takes precedence over the file",
    "extenders[].httpTimeout": "Time for one call",
    "extenders[].nodeCacheCapable": "Send names of nodes instead of whole nodes",
    "extenders[].managedResources[].name": (
        "Extended resource; only pods that request one of these are sent"
    ),
    "extenders[].managedResources[].ignoredByScheduler": (
        "NodeResourcesFit does not check the resource"
    ),
    "extenders[].ignorable": "A failing call does not fail the attempt",
}

ARGUMENTS: Final[Mapping[str, str]] = {
    "Backfill.reservations": "Gangs and pods with a promised start at a time, 1 to 64",
    "Backfill.horizonSeconds": "How far away a promised start may be",
    "Backfill.maxNamespacePercentage": (
        "Share of each resource that the promises of one namespace may reserve; 100 is no limit"
    ),
    "Backfill.softEnds": "Count ends that no controller enforces",
    "Backfill.learnDurations": "Count how long equal pods took; needs `softEnds`",
    "CapacityScheduling.guaranteesMin": (
        "A namespace within its `min` is not refused because another namespace borrows"
    ),
    "CapacityScheduling.statusController": (
        "Write the status of ElasticQuotas, with `--status-controllers`"
    ),
    "CheckAndHold.provisioningClassName": "The ProvisioningRequests that this scheduler answers",
    "CheckAndHold.holdSeconds": "How long the places of an accepted request are reserved, at most",
    "CheckAndHold.maxNamespacePercentage": (
        "Share of the cluster that the requests of one namespace may reserve"
    ),
    "CheckAndHold.priority": "Pods above this priority may take reserved places",
    "CheckAndHold.keepNodes": (
        "Autoscalers are kept from removing nodes with reserved places"
        " ([Autoscalers](autoscalers.md))"
    ),
    "Coscheduling.permitWaitingTimeSeconds": "Schedule timeout of groups that set none",
    "Coscheduling.podGroupBackoffSeconds": "Backoff of a group after a failed attempt",
    "Coscheduling.podGroupRejectPercentage": "No effect: no pod waits at Permit",
    "Coscheduling.statusController": "Write the status of PodGroups, with `--status-controllers`",
    "DefaultPreemption.minCandidateNodesPercentage": "Share of the nodes tried for preemption",
    "DefaultPreemption.minCandidateNodesAbsolute": (
        "Number of nodes tried for preemption; the larger of both counts"
    ),
    "DynamicResources.filterTimeout": "Bound of the search for devices, as steps of work",
    "DynamicResources.bindingTimeout": "Time to wait for binding conditions of devices",
    "GroupScaleUp.nodeShapes": (
        "The kinds of node that the autoscaler can add, preferred ones first"
        " ([Autoscalers](autoscalers.md))"
    ),
    "GroupScaleUp.timeLimitSeconds": "How long a request for new nodes stays open",
    "GroupScaleUp.backoffSeconds": "Time until another request for the same gang",
    "GroupScaleUp.maxRequestsPerNamespace": "Open requests of a namespace",
    "InterPodAffinity.hardPodAffinityWeight": (
        "Score for nodes whose pods require affinity to the pod, 0 to 100"
    ),
    "InterPodAffinity.ignorePreferredTermsOfExistingPods": (
        "Do not score preferred terms of placed pods"
    ),
    "NodeAffinity.addedAffinity": "Node affinity that every pod of the profile has in addition",
    "NodeResourcesBalancedAllocation.resources": "Resources to balance; each weight is 1",
    "NodeResourcesFit.ignoredResources": "Extended resources that are not checked",
    "NodeResourcesFit.ignoredResourceGroups": "Prefixes of extended resources not checked",
    "NodeResourcesFit.scoringStrategy.type": (
        "`LeastAllocated`, `MostAllocated` or `RequestedToCapacityRatio`"
    ),
    "NodeResourcesFit.scoringStrategy.resources": "Resources that are scored, with weights",
    "NodeResourcesFit.scoringStrategy.requestedToCapacityRatio": (
        "Shape: score by utilization, for the strategy of that name"
    ),
    "PodTopologySpread.defaultConstraints": "Constraints of pods that have none; type `List`",
    "PodTopologySpread.defaultingType": "`System` (the built-in constraints) or `List`",
    "VolumeBinding.bindTimeoutSeconds": "Time to wait for volumes to be bound",
    "VolumeBinding.shape": "Score by used capacity; needs the gate StorageCapacityScoring",
}

PLUGIN_TEXTS: Final[Mapping[str, str]] = {
    "PrioritySort": "Order pods by priority, then by waiting time",
    "SchedulingGates": "Keep a pod out of the queue while it has scheduling gates",
    "NodeUnschedulable": "Reject cordoned nodes",
    "NodeName": "Reject all nodes but the one in `spec.nodeName`",
    "TaintToleration": "Reject and score nodes by taints",
    "NodeAffinity": "Reject and score nodes by node selector and node affinity",
    "NodePorts": "Reject nodes on which a host port is taken",
    "NodeResourcesFit": "Reject nodes without enough resources; score by what is free",
    "NodeResourcesBalancedAllocation": "Score nodes on which resources are used evenly",
    "ImageLocality": "Score nodes that have the images",
    "PodTopologySpread": "Spread pods over topology domains",
    "InterPodAffinity": "Apply affinity and anti-affinity between pods",
    "DynamicResources": "Allocate devices for resource claims",
    "DefaultPreemption": "Evict less important pods where a pod fits nowhere",
    "NodeDeclaredFeatures": "Reject nodes whose kubelet lacks a feature that the pod needs",
    "DefaultBinder": "Bind the pod",
    "VolumeRestrictions": "Reject nodes where a volume cannot be shared",
    "NodeVolumeLimits": "Reject nodes whose CSI driver takes no more volumes",
    "VolumeBinding": "Choose, bind and provision volumes",
    "VolumeZone": "Reject nodes outside the zone of a volume",
    "Backfill": "Promise waiting gangs a start, and let smaller pods go ahead meanwhile",
    "CapacityScheduling": "Guarantee namespaces a minimum by ElasticQuotas and lend the rest",
    "CheckAndHold": "Answer ProvisioningRequests and reserve their places",
    "GroupScaleUp": "Request new nodes for all pods of a gang at once",
    "GangScheduling": "Start the pods of a `scheduling.k8s.io` PodGroup together",
    "TopologyPlacementGenerator": "Keep a pod group within one topology domain",
    "PodGroupPodsCount": "Prefer placements that take more pods of a group",
    "Coscheduling": "Start the pods of a `scheduling.x-k8s.io` PodGroup together",
    "GangSparingPreemption": "As DefaultPreemption; evicts pods of gangs last",
    "GpuFractions": "Subtract fractions that other schedulers gave out from whole GPUs",
    "GpuShare": "Give out GPU memory for the gpushare device plugin",
    "GpuSharing": "Score nodes so that few GPUs are left in unusable pieces",
    "HamiVGPU": "Give out parts of GPUs for HAMi's device plugin",
    "LoadAwareScheduling": "Reject and score nodes by Koordinator's NodeMetric",
    "LoadVariationRiskBalancing": "Score nodes with low and steady load",
    "LowRiskOverCommitment": "Score nodes where limits are unlikely to be exceeded together",
    "NetworkTopology": "Keep gangs close together in racks, blocks and NVLink domains",
    "NodeResourceTopologyMatch": "Reject nodes whose NUMA zones cannot align the pod",
    "TargetLoadPacking": "Fill nodes up to a target of measured CPU use",
    "VolcanoVGPU": "Give out parts of GPUs for Volcano's vGPU device plugin",
}
