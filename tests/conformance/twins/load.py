"""Twins of the load plugins: their formulas for one node and pod, in plain Python, from JSON."""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from asched.core.model.quantity import parse

Json = dict[str, Any]


def target_load_packing(
    node: Json, used: float | None, expected: Iterable[Json], pod: Json, target: int
) -> int:
    """`used` in milli-CPU, None if not measured; `expected` are pods that no measurement tells."""
    if used is None:
        return 0
    capacity = float(parse(node["status"]["capacity"]["cpu"]) * 1000)
    load = used + sum(map(predicted, expected)) + predicted(pod)
    percent = 100 * load / capacity
    if percent > 100:
        return 0
    if percent > target:
        return half_up(target * (100 - percent) / (100 - target))
    return half_up((100 - target) * percent / target + target)


def predicted(pod: Json) -> int:
    """Milli-CPU with the default args."""
    total = 0
    for container in pod["spec"]["containers"]:
        resources = container.get("resources", {})
        if "cpu" in resources.get("limits", {}):
            total += math.ceil(parse(resources["limits"]["cpu"]) * 1000)
        elif "cpu" in resources.get("requests", {}):
            total += half_up(1.5 * math.ceil(parse(resources["requests"]["cpu"]) * 1000))
        else:
            total += 1000
    return total + math.ceil(parse(pod["spec"].get("overhead", {}).get("cpu", 0)) * 1000)


def load_variation(
    node: Json, samples: Sequence[tuple[float, float]], pod: Json, margin: float, root: float
) -> int:
    """`samples` are (milli-CPU, bytes), newest first."""
    if not samples:
        return 0
    scores = []
    for at, name in enumerate(("cpu", "memory")):
        offered = units(node["status"]["allocatable"], name)
        mean, deviation = moments([sample[at] for sample in samples])
        mu = min(max((mean + effective(pod, "requests", name)) / offered, 0), 1)
        sigma = min(max(deviation / offered, 0), 1) ** (1 / root)
        risk = (mu + min(max(margin * sigma, 0), 1)) / 2
        scores.append(100 * (1 - risk))
    return half_up(min(scores))


def low_risk_over_commitment(
    node: Json, samples: Sequence[tuple[float, float]], there: Sequence[Json], pod: Json
) -> int:
    """With the default args."""
    asks = any(effective(pod, f, n) for f in ("requests", "limits") for n in ("cpu", "memory"))
    if not samples or not asks:
        return 0
    risks = []
    for at, name in enumerate(("cpu", "memory")):
        offered = units(node["status"]["allocatable"], name)
        request = sum(effective(one, "requests", name) for one in there)
        limit = sum(limit_of(one, name) for one in there)
        all_requests = min(request + effective(pod, "requests", name), offered)
        all_limits = limit + limit_of(pod, name)
        from_limits = 0.0
        if all_limits > offered:
            from_limits = (all_limits - offered) / (all_limits - all_requests)
        mean, deviation = moments([sample[at] for sample in samples])
        mu, sigma = min(max(mean / offered, 0), 1), min(max(deviation / offered, 0), 1)
        sigma = min(sigma * math.sqrt(5), math.sqrt(mu * (1 - mu) * 0.99))
        request = min(request, offered)
        within = probability(mu, sigma, request / offered)
        if limit < offered and request <= limit:
            if limit == 0:
                within = 1.0
            elif mu > 0 and sigma > 0:
                below = probability(mu, sigma, limit / offered)
                within = min(max(within / below, 0), 1) if below > 0 else within
        risks.append(min(max(0.5 * from_limits + 0.5 * (1 - within), 0), 1))
    return half_up(100 * (1 - max(risks)))


def probability(mu: float, sigma: float, threshold: float) -> float:
    """That a Beta variable with this mean and deviation is at most the threshold."""
    if mu == 0 or (sigma == 0 and mu <= threshold):
        return 1.0
    if sigma == 0:
        return 0.0
    spread = mu * (1 - mu) / sigma**2 - 1
    return beta_below(mu * spread, (1 - mu) * spread, threshold)


def beta_below(a: float, b: float, x: float) -> float:
    """The regularized incomplete Beta function, by its continued fraction (DLMF 8.17.22)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_below(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    fraction = 1.0
    for m in range(300, 0, -1):  # from the tail, far beyond where it has converged
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        fraction = 1 + even / (1 + odd / fraction)
    first = -(a + b) * x / (a + 1)
    return front / a / (1 + first / fraction)


def moments(values: Sequence[float]) -> tuple[float, float]:
    mean = math.fsum(values) / len(values)
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))


def effective(pod: Json, field: str, name: str) -> int:
    spec = pod["spec"]
    each = [units(c.get("resources", {}).get(field, {}), name) for c in spec["containers"]]
    first = [
        units(c.get("resources", {}).get(field, {}), name) for c in spec.get("initContainers", ())
    ]
    return max(sum(each), *first, 0) + units(spec.get("overhead", {}), name)


def limit_of(pod: Json, name: str) -> int:
    return max(effective(pod, "limits", name), effective(pod, "requests", name))


def units(amounts: Json, name: str) -> int:
    """Milli-CPU or bytes."""
    return math.ceil(parse(amounts.get(name, 0)) * (1000 if name == "cpu" else 1))


def half_up(value: float) -> int:
    """Go's math.Round of what is not negative, exactly."""
    return math.floor(Fraction(value) + Fraction(1, 2))
