"""Estimated use of a pod, and how long the estimate takes precedence over measurements.

    estimate   the limit, or the request if that is more, times a factor in percent; never more
               than the limit. 250m of CPU and 200 MiB without requests.
    class      koord-prod and the like: by label, by priority, by the quality of service. Pods of
               koord-batch and koord-mid have resources of their own.

Source  koordinator-sh/koordinator pkg/scheduler/plugins/loadaware/estimator, apis/extension
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from asched.core.model.pod import Pod
from asched.core.model.requests import exact_limits, pod_requests, to_units
from asched.hardware.koordinator.args import LoadAwareSchedulingArgs
from asched.hardware.koordinator.node_metric import AMOUNT_MAX, CPU, MEMORY
from asched.hardware.numa.demand import QoS, qos_of
from asched.hardware.rows import decoded_json
from asched.plugin import I64, PodClass

PROD, MID, BATCH, FREE = "koord-prod", "koord-mid", "koord-batch", "koord-free"
CLASS_LABEL: Final = "koordinator.sh/priority-class"
QOS_LABEL: Final = "koordinator.sh/qosClass"
FACTORS: Final = "scheduling.koordinator.sh/load-estimated-scaling-factors"
AFTER_SCHEDULED: Final = "scheduling.koordinator.sh/load-estimated-seconds-after-pod-scheduled"
AFTER_INITIALIZED: Final = "scheduling.koordinator.sh/load-estimated-seconds-after-initialized"
#: Annotations by which a pod may override these values, if that is allowed.
ANNOTATIONS: Final = (FACTORS, AFTER_SCHEDULED, AFTER_INITIALIZED)


_RANGES: Final = ((9000, PROD), (7000, MID), (5000, BATCH), (3000, FREE))
_OF_QOS: Final[Mapping[str, str]] = {
    "SYSTEM": PROD,
    "LSE": PROD,
    "LSR": PROD,
    "LS": PROD,
    "BE": BATCH,
}
_OWN_NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    BATCH: {CPU: "kubernetes.io/batch-cpu", MEMORY: "kubernetes.io/batch-memory"},
    MID: {CPU: "kubernetes.io/mid-cpu", MEMORY: "kubernetes.io/mid-memory"},
    FREE: {},
}
_DEFAULTS: Final[Mapping[str, int]] = {
    CPU: 250,
    MEMORY: 200 << 20,
    "kubernetes.io/batch-cpu": 250,
    "kubernetes.io/batch-memory": 200 << 20,
}


class Estimate(NamedTuple):
    """`amounts` int64[R]. The seconds are None where they are not set."""

    amounts: I64
    is_prod: bool
    after_scheduled_s: int | None
    after_initialized_s: int | None


def estimate_of(args: LoadAwareSchedulingArgs, cls: PodClass) -> Estimate:
    pod, resources = cls.example, args.resources
    annotations = (pod.metadata.annotations or {}) if args.allow_customize_estimation else {}
    given: dict[str, int] = decoded_json(annotations.get(FACTORS), dict[str, int]) or {}
    factors = {**args.factors, **given}
    kind = class_of(pod)
    requests, limits = pod_requests(pod), to_units(exact_limits(pod))
    amounts = np.zeros(len(resources), dtype=np.int64)
    for at, name in enumerate(resources):
        if name in factors:
            real = _OWN_NAMES[kind].get(name, "") if kind in _OWN_NAMES else name
            request, allowed = requests.get(real, 0), limits.get(real, 0)
            amounts[at] = min(used(real, request, allowed, factors[name]), AMOUNT_MAX)
    return Estimate(
        amounts,
        kind == PROD,
        _seconds(annotations, AFTER_SCHEDULED, args.estimated_seconds_after_pod_scheduled),
        _seconds(annotations, AFTER_INITIALIZED, args.estimated_seconds_after_initialized),
    )


def used(resource: str, request: int, limit: int, factor: int) -> int:
    """Estimate for one resource, in its units."""
    most = max(request, limit)
    if not most:
        return _DEFAULTS.get(resource, 0)
    found = (2 * most * factor + 100) // 200  # halves away from zero
    return min(found, limit) if limit > 0 else found


def class_of(pod: Pod) -> str:
    """Koordinator's priority class; empty for none."""
    label = pod.labels.get(CLASS_LABEL)
    if label is not None:
        found = label if label in {PROD, MID, BATCH, FREE} else ""
    else:
        priority = pod.priority
        found = next((name for low, name in _RANGES if low <= priority <= low + 999), "")
    if found:
        return found
    qos = pod.labels.get(QOS_LABEL, "")
    if qos not in _OF_QOS:
        qos = "BE" if qos_of(pod) is QoS.BEST_EFFORT else "LS"
    return _OF_QOS[qos]


def _seconds(annotations: Mapping[str, str], name: str, otherwise: int | None) -> int | None:
    """Negative values count as not set."""
    try:
        seconds = int(annotations.get(name, "")[:20])
    except ValueError:
        return otherwise
    return seconds if seconds >= 0 else otherwise
