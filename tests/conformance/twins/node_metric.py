"""Twin of LoadAwareScheduling, node by node, from JSON: `args` with nothing left out, `there` are
the pods on the node, each with the second in which it was bound.
"""

import math
from datetime import datetime
from fractions import Fraction
from typing import Any

from asched.core.model.quantity import parse

Json = dict[str, Any]
There = list[tuple[Json, float]]
BATCH = {"cpu": "kubernetes.io/batch-cpu", "memory": "kubernetes.io/batch-memory"}
MID = {"cpu": "kubernetes.io/mid-cpu", "memory": "kubernetes.io/mid-memory"}
DEFAULTS = {"cpu": 250, "memory": 200 * 1024 * 1024}


def verdict(
    node: Json,
    metric: Json | None,
    there: There,
    pod: Json,
    args: Json,
    now_s: float,
) -> str:
    """Why a node is rejected, or nothing."""
    owners = pod["metadata"].get("ownerReferences", [])
    if any(owner["kind"] == "DaemonSet" for owner in owners):
        return ""
    thresholds, prod, aggregated = args["usageThresholds"], args["prodUsageThresholds"], None
    if args["aggregated"] and args["aggregated"]["usageThresholds"]:
        aggregated = args["aggregated"]
    custom = node["metadata"].get("custom")
    if custom:
        thresholds = custom.get("usageThresholds") or thresholds
        prod = custom.get("prodUsageThresholds") or prod
        aggregated = custom.get("aggregatedUsage") or aggregated
    is_prod = priority_class(pod) == "koord-prod" and any(prod.values())
    kind, long = "", 0
    if is_prod:
        wanted = prod
    elif aggregated:
        wanted = aggregated["usageThresholds"]
        kind, long = (
            aggregated["usageAggregationType"],
            seconds(aggregated["usageAggregatedDuration"]),
        )
    else:
        wanted = thresholds
    if not any(wanted.values()) or metric is None:
        return ""
    if args["filterExpiredNodeMetrics"] and is_expired(metric, args, now_s):
        is_let_in = args["enableScheduleWhenNodeMetricsExpired"]
        return "" if is_let_in else "node(s) nodeMetric expired"
    if "nodeMetric" not in metric["status"]:
        return ""
    load = load_of(metric, there, args, is_prod=is_prod, kind=kind, long_s=long)
    for name in sorted(wanted):
        total = units(node["status"]["allocatable"], name)
        if not wanted[name] or not total:
            continue
        share = (load.get(name, 0) + estimate(pod, args).get(name, 0)) / total * 100
        if half_up(share) > wanted[name]:
            return f"node(s) {name} {'aggregated ' if kind else ''}usage exceed threshold"
    return ""


def points(
    node: Json,
    metric: Json | None,
    there: There,
    pod: Json,
    args: Json,
    now_s: float,
) -> int:
    if metric is None or "nodeMetric" not in metric["status"] or is_expired(metric, args, now_s):
        return 0
    is_prod = args["scoreAccordingProdUsage"] and priority_class(pod) == "koord-prod"
    kind, long = "", 0
    if not is_prod and args["aggregated"]:
        kind = args["aggregated"]["scoreAggregationType"]
        long = seconds(args["aggregated"]["scoreAggregatedDuration"])
    load = load_of(metric, there, args, is_prod=is_prod, kind=kind, long_s=long)
    more = estimate(pod, args)
    each = {}
    for name in ("cpu", "memory"):
        total = units(node["status"]["allocatable"], name)
        used = load.get(name, 0) + more.get(name, 0)
        each[name] = 0 if not total or used > total else (total - used) * 100 // total
    weight = sum(args["resourceWeights"].values()) + args["dominantResourceWeight"]
    total = sum(each[name] * w for name, w in args["resourceWeights"].items())
    total += args["dominantResourceWeight"] * min(each.values())
    return total // weight


def load_of(
    metric: Json,
    there: There,
    args: Json,
    *,
    is_prod: bool,
    kind: str,
    long_s: float,
) -> dict[str, int]:
    told = metric["status"]["nodeMetric"]
    names = ("cpu", "memory")
    measured = {
        (one["namespace"], one["name"]): one for one in metric["status"].get("podsMetric", [])
    }
    updated_s = when(metric["status"]["updateTime"])
    interval = metric["spec"].get("metricCollectPolicy", {}).get("reportIntervalSeconds", 60)
    total = dict.fromkeys(names, 0)
    everything = dict.fromkeys(names, 0)
    if is_prod and args["prodUsageIncludeSys"]:
        total = {name: units(told["systemUsage"], name) for name in names}
    for pod, bound_s in there:
        key = pod["metadata"]["namespace"], pod["metadata"]["name"]
        one = measured.get(key)
        usage = {name: units(one["podUsage"], name) for name in names} if one else None
        expected = estimate(pod, args)
        new = usage is None or bound_s > updated_s - interval
        after = args["estimatedSecondsAfterPodScheduled"]
        new = new or bool(after and bound_s + after > updated_s)
        if is_prod:
            if priority_class(pod) != "koord-prod":
                continue
            if usage is not None and one["priority"] == "koord-prod":
                total = {name: total[name] + usage[name] for name in names}
            elif usage is not None:
                usage, new = None, True
        for name in names:
            everything[name] += expected[name]
            if new:
                total[name] += max(expected[name] - (usage[name] if usage else 0), 0)
    if is_prod:
        return total
    base = told["nodeUsage"]
    if kind:
        found = [
            (seconds(one["duration"]), one["usage"][kind])
            for one in told.get("aggregatedNodeUsages", [])
            if kind in one["usage"] and long_s in (0, seconds(one["duration"]))
        ]
        if found:
            base = max(found, key=lambda pair: pair[0])[1]
        elif long_s:
            return everything
    return {name: total[name] + units(base, name) for name in names}


def estimate(pod: Json, args: Json) -> dict[str, int]:
    names = {"koord-batch": BATCH, "koord-mid": MID, "koord-free": {}}.get(priority_class(pod))
    found = {}
    for name, factor in args["estimatedScalingFactors"].items():
        real = name if names is None else names.get(name, "")
        request, limit = added_up(pod, "requests", real), added_up(pod, "limits", real)
        most = max(request, limit)
        if not most:
            has_default = names is None or names is BATCH
            found[name] = DEFAULTS[name] if has_default else 0
            continue
        found[name] = half_up(Fraction(most * factor, 100))
        if limit:
            found[name] = min(found[name], limit)
    return found


def priority_class(pod: Json) -> str:
    labels, priority = pod["metadata"].get("labels", {}), pod["spec"].get("priority", 0)
    label = labels.get("koordinator.sh/priority-class")
    if label in ("koord-prod", "koord-mid", "koord-batch", "koord-free"):
        return label
    if label is None:
        for low, name in ((9000, "prod"), (7000, "mid"), (5000, "batch"), (3000, "free")):
            if low <= priority < low + 1000:
                return "koord-" + name
    containers = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]
    asked = [c["resources"].get(f, {}) for c in containers for f in ("requests", "limits")]
    qos = labels.get("koordinator.sh/qosClass")
    if qos == "BE":
        return "koord-batch"
    if qos in ("LS", "LSR", "LSE", "SYSTEM"):
        return "koord-prod"
    cpu_or_memory = any(name in one for one in asked for name in ("cpu", "memory"))
    return "koord-prod" if cpu_or_memory else "koord-batch"


def added_up(pod: Json, field: str, name: str) -> int:
    total = sum(units(c["resources"].get(field, {}), name) for c in pod["spec"]["containers"])
    inits = [
        units(c["resources"].get(field, {}), name) for c in pod["spec"].get("initContainers", [])
    ]
    return max([total, *inits])


def is_expired(metric: Json, args: Json, now_s: float) -> bool:
    told = metric["status"].get("updateTime")
    return told is None or now_s - when(told) >= args["nodeMetricExpirationSeconds"]


def units(amounts: Json, name: str) -> int:
    """Milli-CPU, or whole units."""
    return math.ceil(parse(amounts.get(name, 0)) * (1000 if name == "cpu" else 1))


def when(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def seconds(text: str) -> float:
    """Of `5m0s` and the like, as the tests write them."""
    if not text:
        return 0
    minutes, _, rest = text.partition("m")
    return int(minutes) * 60 + int(rest.rstrip("s") or 0)


def half_up(value: float | Fraction) -> int:
    return math.floor(Fraction(value) + Fraction(1, 2))
