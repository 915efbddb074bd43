"""Plugins and configuration files of other schedulers: what they are, and what replaces them here.

A chart or a guide of another project names plugins that only that project's scheduler has. The
advice says what such a plugin does, and names a plugin of asched only where its purpose is the
same. A file of another kind is described in one line, because the errors of a decoder that expects
a KubeSchedulerConfiguration say nothing about it.

Source  kubernetes-sigs/scheduler-plugins, koordinator-sh/koordinator, volcano-sh/volcano,
        apache/yunikorn-k8shim: their charts and documentation
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from asched import names
from asched.core.config.v1 import API_GROUP, API_VERSION, KIND

_STRATEGY: Final = f"the scoringStrategy of {names.NODE_RESOURCES_FIT}"

#: Plugin of another project -> what it is, and what replaces it.
FOREIGN_PLUGINS: Final[Mapping[str, str]] = {
    # scheduler-plugins
    "NodeResourcesAllocatable": "scheduler-plugins' score by the size of a node, not by what is"
    f" free; delete the line, or fill nodes by {_STRATEGY}, type MostAllocated",
    "NodeMetadata": "scheduler-plugins' score by a label or annotation of nodes; delete the line,"
    " and use preferred node affinity",
    "PodState": "scheduler-plugins' score by terminating and nominated pods; delete the line,"
    " asched has none",
    "QOSSort": "scheduler-plugins' order of the queue by QoS class; delete the line, and use"
    f" PriorityClasses ({names.PRIORITY_SORT})",
    "PreemptionToleration": "scheduler-plugins' preemption that spares pods for a time; delete the"
    f" line: {names.DEFAULT_PREEMPTION} respects PodDisruptionBudgets and preemptionPolicy",
    "CrossNodePreemption": "scheduler-plugins' preemption on several nodes at once; delete the"
    f" line: {names.DEFAULT_PREEMPTION} evicts pods of one node",
    "NetworkOverhead": "scheduler-plugins' placement by costs between the pods of an AppGroup;"
    " delete the line, and use pod affinity",
    "TopologicalSort": "scheduler-plugins' order of the queue by AppGroup; delete the line",
    "SySched": "scheduler-plugins' score by system calls; delete the line, asched has none",
    "Peaks": "scheduler-plugins' score by power; delete the line, asched has none",
    "DiskIO": "scheduler-plugins' score by disk load; delete the line, asched has none",
    # Koordinator
    "DefaultPreBind": "Koordinator's write of annotations before the binding; delete the line:"
    " asched's plugins write their own",
    "Reservation": "Koordinator's reservations, which asched does not read; delete the line:"
    " CheckAndHold reserves places for ProvisioningRequests",
    "NodeNUMAResource": "Koordinator's choice of CPUs and NUMA zones; delete the line:"
    " NodeResourceTopologyMatch checks the zones of kubelets",
    "DeviceShare": "Koordinator's choice of GPUs and RDMA devices; delete the line: asched shares"
    " devices by resource claims, and those of other device plugins by HamiVGPU, VolcanoVGPU and"
    " GpuShare",
    "ElasticQuota": "Koordinator's trees of quotas; delete the line: CapacityScheduling follows"
    " ElasticQuotas of scheduling.x-k8s.io",
    "NodeResourcesFitPlus": "Koordinator's score with a strategy for each resource; delete the"
    f" line, and use {_STRATEGY}",
    "ScarceResourceAvoidance": "Koordinator's score that keeps pods off nodes with GPUs; delete the"
    " line, and taint these nodes with effect PreferNoSchedule",
    "BatchResourceFit": f"Koordinator's check of batch resources; delete the line:"
    f" {names.NODE_RESOURCES_FIT} counts every resource of a node",
    "CompatibleDefaultPreemption": "Koordinator's form of preemption; enable"
    f" {names.DEFAULT_PREEMPTION} instead",
    "SchedulingHint": "Koordinator's hints about nodes; delete the line, asched does not read them",
    # further projects
    "YuniKornPlugin": "YuniKorn's queues; delete the line: Kueue or ElasticQuotas"
    " (CapacityScheduling) limit what a namespace uses",
    "FitLimitResources": "a score by the limits of pods; delete the line:"
    f" {names.NODE_RESOURCES_FIT} scores by requests",
    "KusciaScheduling": "Kuscia's start of several pods together; Coscheduling follows PodGroups of"
    " scheduling.x-k8s.io",
    "KusciaSort": f"Kuscia's order of the queue; delete the line, or use {names.PRIORITY_SORT}",
}

#: Begins an action of a template; no JSON, and no YAML that this program reads, has it elsewhere.
_ACTION: Final = "{{"
_COMMENT: Final = re.compile(r"(^|\s)#.*")
_INSTEAD: Final = f"asched reads a {KIND}, see config/ and docs/configuration.md"


def template_place(text: str) -> tuple[int, int] | None:
    """Line and column, from 1, of the first action of a template outside comments."""
    if _ACTION not in text:
        return None
    for number, line in enumerate(text.splitlines(), 1):
        column = _COMMENT.sub("", line).find(_ACTION)
        if column >= 0:
            return number, column + 1
    return None


TEMPLATE: Final = (
    "this is a template, no configuration yet; render it first, as by"
    " `helm template CHART | asched config check -`"
)


def describe_scheduler(document: Any) -> str:
    """Which other scheduler a file configures, and what to do; empty if it is not known."""
    if not isinstance(document, Mapping):
        return ""
    if "tiers" in document and "actions" in document:
        return (
            "this is the configuration of Volcano's scheduler; asched has no actions and tiers:"
            " config/batch.yaml starts gangs, docs/batch.md says what else replaces them"
        )
    if "partitions" in document:
        return (
            "these are YuniKorn's queues; asched has none: Kueue or ElasticQuotas limit what a"
            " namespace uses, see docs/batch.md"
        )
    return ""


def describe_file(document: Any) -> str:
    """What a file is that is no configuration, and what to do; empty for a configuration."""
    if not isinstance(document, Mapping):
        return ""
    fields = {str(key).lower(): value for key, value in document.items()}
    version, kind = fields.get("apiversion"), fields.get("kind")
    if str(version or "").startswith(f"{API_GROUP}/") or kind in (KIND, "Policy"):
        return ""
    if kind:
        what = f"this is a {kind}" + (f" of {version}" if version else "")
        return f"{what}, no configuration of a scheduler; {_INSTEAD}"
    if what := describe_scheduler(document):
        return what
    if version or {"profiles", "extenders", "leaderelection", "clientconnection"} & fields.keys():
        return ""
    return (
        f"this has neither apiVersion nor kind; write `apiVersion: {API_VERSION}` and"
        f" `kind: {KIND}`, or render the chart whose values these are by `helm template`"
    )
