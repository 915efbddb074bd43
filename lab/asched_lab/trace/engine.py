"""A trace run decided by the scheduler's own engine.

Nodes and pods are Kubernetes objects, with all default filters and the plugin GpuSharing, loaded
like a user plugin, which learns the expected pods from those it has placed.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from asched.core.cluster.facts import Seen
from asched.core.cluster.pods import PodInfo
from asched.core.config.defaults import configuration
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.framework.effects import Effect
from asched.core.framework.runner import Decision, Runner
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.hardware.gpu.args import (
    BEST_FIT,
    CLUSTERING,
    CUTTING_STOCK,
    DOT_PRODUCT,
    FRAGMENTATION_GRADIENT_DESCENT,
    PACKING,
    GpuSharingArgs,
)
from asched.hardware.gpu.plugin import GpuSharing
from asched.hardware.gpu.shares import WHOLE
from asched.host.assemble import Parts, build_runners
from asched.host.user_plugins.catalogue import Catalogue, of_class
from asched.names import DEFAULT_SCHEDULER_NAME
from asched_lab.trace.openb import PODS_MAX, TraceNode, TracePod

#: Policy of a trace run -> strategy of the plugin.
STRATEGIES: Final = {
    "dotprod": DOT_PRODUCT,
    "gpuclustering": CLUSTERING,
    "gpupacking": PACKING,
    "bestfit": BEST_FIT,
    "fgd": FRAGMENTATION_GRADIENT_DESCENT,
    "stock": CUTTING_STOCK,
}
_ARGS: Final = GpuSharingArgs()
#: Pods that may share a device, as its device plugin reports.
_SHARERS: Final = 100


class Engine:
    """One profile over all nodes."""

    def __init__(self, nodes: Sequence[TraceNode], strategy: str) -> None:
        self.parts = Parts.fresh()
        self.configuration, self.runners = _runners(self.parts, strategy)
        (self._runner,) = self.runners.values()
        self._offered = 0
        for node in nodes:
            self.parts.cluster.apply(Seen(NODE, decode(Node, _engine_node(node))))

    def offer(self, pod: TracePod) -> str | None:
        """Place a pod; return its node, None if it fits nowhere."""
        cluster, info = self.parts.cluster, self.info_of(pod)
        attempt = self._runner.schedule(info, self._offered)
        try:
            effect: Effect = next(attempt)
        except StopIteration as end:
            if not isinstance(end.value, Decision):
                return None
            cluster.assume(info, end.value.node)
            return end.value.node
        raise TypeError(f"a trace run cannot answer this effect: {effect}")

    def info_of(self, pod: TracePod) -> PodInfo:
        """A pod as the scheduler sees it, with a name of its own."""
        self._offered += 1
        made = decode(Pod, _engine_pod(pod, f"pod-{self._offered}"))
        return self.parts.cluster.classes.info_of(made)


def _runners(parts: Parts, strategy: str) -> tuple[SchedulerConfiguration, Mapping[str, Runner]]:
    """A configuration with one profile, in which only GpuSharing scores, and its runner."""
    score = {"enabled": [{"name": GpuSharing.name}], "disabled": [{"name": "*"}]}
    profile = {
        "plugins": {"filter": {"enabled": [{"name": GpuSharing.name}]}, "score": score},
        "pluginConfig": [{"name": GpuSharing.name, "args": {"strategy": strategy}}],
    }
    plugins = Catalogue([of_class(GpuSharing, "asched")])
    made = configuration({"profiles": [profile]})
    return made, build_runners(made, parts, factories=plugins.factories, known=plugins.known)


def _engine_node(node: TraceNode) -> dict[str, Any]:
    labels = {_ARGS.devices_label: str(node.devices), _ARGS.model_label: node.model}
    offered = {
        "cpu": f"{node.cpu}m",
        "memory": f"{node.memory}Mi",
        "pods": str(PODS_MAX),
        _ARGS.resource: str(node.devices * _SHARERS),
        _ARGS.share_resource: str(node.devices * 100),
    }
    return {
        "metadata": {"name": node.name, "uid": node.name, "labels": labels},
        "spec": {},
        "status": {"allocatable": offered},
    }


def _engine_pod(pod: TracePod, name: str) -> dict[str, Any]:
    """A share of a device is rounded up to a whole percentage."""
    demand = pod.demand
    requests = {"cpu": f"{demand.cpu}m", "memory": f"{pod.memory}Mi"}
    if demand.number:
        requests[_ARGS.resource] = str(demand.number)
    if 0 < demand.milli < WHOLE:
        requests[_ARGS.share_resource] = str(-(-demand.milli * 100 // WHOLE))
    container = {"name": "main", "resources": {"requests": requests}}
    spec: dict[str, Any] = {"containers": [container], "schedulerName": DEFAULT_SCHEDULER_NAME}
    if len(demand.models) == 1:
        spec["nodeSelector"] = {_ARGS.model_label: demand.models[0]}
    elif demand.models:
        expression = {"key": _ARGS.model_label, "operator": "In", "values": list(demand.models)}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        spec["affinity"] = {"nodeAffinity": required}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": spec,
        "status": {"phase": "Pending"},
    }
