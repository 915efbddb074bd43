"""Whether another node would help a pod that a rule rejects, for rules that kube-scheduler lacks.

cluster-autoscaler and Karpenter add nodes for pods whose condition PodScheduled has the reason
`Unschedulable`, and ignore all other reasons. A pod that is rejected only by rules which no node
satisfies gets the reason `NewNodesDoNotHelp`; one rejection that a node would cure is enough for
`Unschedulable`. Rules of kube-scheduler, of extenders and of users' plugins count as curable.

Source  kubernetes-sigs/cluster-autoscaler pkg/utils/kubernetes/listers.go
        (ArrangePodsBySchedulability), kubernetes-sigs/karpenter pkg/utils/pod/scheduling.go
        (IsProvisionable)
"""

from typing import Final, NamedTuple

from asched import names


class RuleForNodes(NamedTuple):
    """Rejections of a plugin whose message begins with a text; the first match counts."""

    plugin: str
    begins: str
    node_helps: bool


#: Places that a ProvisioningRequest holds need no line: they count as used, so that the rejection
#: is one of NodeResourcesFit.
RULES: Final = (
    # what waits for an object, for other pods, or some seconds
    RuleForNodes(names.CAPACITY_SCHEDULING, "", node_helps=False),
    RuleForNodes(names.CHECK_AND_HOLD, "", node_helps=False),
    RuleForNodes(names.COSCHEDULING, "", node_helps=False),
    RuleForNodes("", "node(s) had refused a pod of the same owner", node_helps=False),
    # a new node is in no reservation
    RuleForNodes(names.BACKFILL, "", node_helps=True),
    # nodes without enough devices; or annotations of the pod that no node satisfies
    *(
        RuleForNodes(plugin, begins, node_helps=bool(begins))
        for plugin in ("HamiVGPU", "VolcanoVGPU", "GpuShare")
        for begins in ("node", "")
    ),
    RuleForNodes("GpuSharing", "", node_helps=True),
    RuleForNodes("GpuFractions", "", node_helps=True),
    # an agent has to report first; or a new node has whole zones, and no load
    RuleForNodes("NodeResourceTopologyMatch", "invalid node topology data", node_helps=False),
    RuleForNodes("NodeResourceTopologyMatch", "", node_helps=True),
    RuleForNodes("LoadAwareScheduling", "node(s) nodeMetric expired", node_helps=False),
    RuleForNodes("LoadAwareScheduling", "", node_helps=True),
)


def node_helps(plugin: str, message: str) -> bool:
    """Whether the rule of a plugin that gave this message might accept another node."""
    for rule in RULES:
        if rule.plugin == plugin and message.startswith(rule.begins):
            return rule.node_helps
    return True
