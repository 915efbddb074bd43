"""/metrics/resources: requests and limits of each pod, as counted by kube-scheduler.

Bound pods that have terminated and zero amounts are left out.

Bounds  PAGE_BYTES_MAX, about; what is beyond is left out, and the log says so.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/metrics/resources, and a recorded page
"""

import logging
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from prometheus_client.core import Metric

from asched.core.model.pod import Pod
from asched.core.model.requests import exact_limits, exact_requests
from asched.serve.telemetry.instruments import label_value
from asched.serve.telemetry.page import exposed

log = logging.getLogger("asched.serve")

#: Names have at most 253 characters, but a pod may name any number of resources.
PAGE_BYTES_MAX: Final = 256 << 20
#: Of a line: the names of family and labels, and the value.
LINE_BYTES: Final = 128
#: (family, help)
REQUEST: Final = (
    "kube_pod_resource_request",
    "[STABLE] What pods request, by pod and resource, as scheduler and kubelet count it.",
)
LIMIT: Final = (
    "kube_pod_resource_limit",
    "[STABLE] What pods may use at most, by pod and resource.",
)
TERMINAL: Final = ("Succeeded", "Failed")
ATTACHABLE_PREFIX: Final = "attachable-volumes-"
HUGEPAGES_PREFIX: Final = "hugepages-"
_NANO: Final = 10**9


def unit_of(resource: str) -> str:
    """The unit label: cores, bytes, integer, or nothing."""
    if resource == "cpu":
        return "cores"
    if resource in ("memory", "storage", "ephemeral-storage"):
        return "bytes"
    if resource.startswith(HUGEPAGES_PREFIX):
        return "bytes"
    return "integer" if resource.startswith(ATTACHABLE_PREFIX) else ""


def _metrics(pods: Iterable[Pod]) -> Iterator[Metric]:
    limits, requests = Metric(*LIMIT, "gauge"), Metric(*REQUEST, "gauge")
    size = left_out = 0
    for pod in pods:
        if pod.spec.node_name and pod.status.phase in TERMINAL:
            continue
        for metric, amounts in ((requests, exact_requests(pod)), (limits, exact_limits(pod))):
            for resource, amount in amounts.items():
                if not amount:
                    continue
                labels = _labels(pod, resource)
                size += LINE_BYTES + sum(map(len, labels.values()))
                if size > PAGE_BYTES_MAX:
                    left_out += 1
                    continue
                metric.add_sample(metric.name, labels, amount / _NANO)
    if left_out:
        extra = {"cause": "resources", "lines": left_out}
        log.warning("/metrics/resources is too long; some lines are left out", extra=extra)
    for metric in (limits, requests):
        metric.samples.sort(key=lambda sample: tuple(sample.labels.values()))
        if metric.samples:
            yield metric


def _labels(pod: Pod, resource: str) -> dict[str, str]:
    return {
        "namespace": pod.metadata.namespace,
        "node": pod.spec.node_name or "",
        "pod": pod.metadata.name,
        "priority": str(pod.priority),
        "resource": resource,
        "scheduler": label_value(pod.spec.scheduler_name),
        "unit": unit_of(resource),
    }


def render(pods: Iterable[Pod]) -> bytes:
    return exposed(partial(_metrics, pods))
