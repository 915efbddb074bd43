"""Whether a pod may go to a node, by the API's rules: every rule of a default scheduler except
those for volumes and devices.

Slow and simple, on the server's objects; it shares no code with the scheduler.

Source  the Kubernetes API reference, v1.36; `tests/lab/sim/test_rules.py` compares every answer
        with recordings of kube-scheduler
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

JsonObject = Mapping[str, Any]
#: Whole numbers are integers: a run adds and compares hundreds of thousands.
Amount = Fraction | int
Amounts = dict[str, Amount]

HOSTNAME_FIELD: Final = "metadata.name"
CORDON: Final = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
#: Resources that the pod level may set.
POD_LEVEL: Final = ("cpu", "memory")
HUGE_PAGES: Final = "hugepages-"
_SUFFIX: Final = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(1000),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(1024),
    "Mi": Fraction(1024**2),
    "Gi": Fraction(1024**3),
    "Ti": Fraction(1024**4),
    "Pi": Fraction(1024**5),
    "Ei": Fraction(1024**6),
}


@lru_cache(maxsize=4096)
def amount(text: str) -> Amount:
    """Parse a quantity."""
    suffix = next((s for s in sorted(_SUFFIX, key=len, reverse=True) if text.endswith(s)), "")
    found = Fraction(text.removesuffix(suffix)) * _SUFFIX.get(suffix, 1)
    return found.numerator if found.denominator == 1 else found


# --- amounts -------------------------------------------------------------------------------------


def requests_of(pod: JsonObject) -> Amounts:
    """A pod's requests, including one pod."""
    spec = pod["spec"]
    total: Amounts = defaultdict(int)
    for container in spec.get("containers") or ():
        _add(total, _requests(container))
    running: Amounts = defaultdict(int)
    peak: Amounts = defaultdict(int)
    for container in spec.get("initContainers") or ():
        requested = _requests(container)
        if container.get("restartPolicy") == "Always":  # a sidecar runs beside later containers
            _add(running, requested)
            requested = {}
        for name in {*running, *requested}:
            peak[name] = max(peak[name], running[name] + requested.get(name, 0))
    _add(total, running)
    for name, most in peak.items():
        total[name] = max(total[name], most)
    for name, requested_of_pod in _requests(spec).items():
        if name in POD_LEVEL or name.startswith(HUGE_PAGES):
            total[name] = requested_of_pod
    _add(total, {n: amount(str(q)) for n, q in (spec.get("overhead") or {}).items()})
    total["pods"] = 1
    return total


def _requests(holder: JsonObject) -> Amounts:
    found = (holder.get("resources") or {}).get("requests") or {}
    return {name: amount(str(text)) for name, text in found.items()}


def _add(total: Amounts, more: Mapping[str, Amount]) -> None:
    for name, requested in more.items():
        total[name] += requested


# --- rules of a node -----------------------------------------------------------------------------


def admits(node: JsonObject, pod: JsonObject) -> bool:
    """Whether selector, node affinity, taints and cordon admit the pod."""
    return selects(node, pod) and tolerated(node, pod)


def selects(node: JsonObject, pod: JsonObject) -> bool:
    """Whether the pod's node selector and required node affinity select the node."""
    spec = pod["spec"]
    labels = _labels(node)
    if any(labels.get(k) != v for k, v in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity: JsonObject = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(_term_chooses(term, node) for term in required.get("nodeSelectorTerms") or ())


def _term_chooses(term: JsonObject, node: JsonObject) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    named = {HOSTNAME_FIELD: node["metadata"]["name"]}
    return bool(expressions or fields) and (
        all(_is_met(requirement, _labels(node)) for requirement in expressions)
        and all(_is_met(requirement, named) for requirement in fields)
    )


def _is_met(requirement: JsonObject, labels: Mapping[str, str]) -> bool:
    key, operator = requirement["key"], requirement["operator"]
    values: Sequence[str] = requirement.get("values") or ()
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    if operator in ("Gt", "Lt"):
        if key not in labels or len(values) != 1:
            return False
        try:
            mine, bar = int(labels[key]), int(values[0])
        except ValueError:
            return False
        return mine > bar if operator == "Gt" else mine < bar
    is_in = labels.get(key) in values
    return is_in if operator == "In" else not is_in


def tolerated(node: JsonObject, pod: JsonObject) -> bool:
    """Whether the pod tolerates all taints that exclude it, and the cordon."""
    spec = node.get("spec") or {}
    taints = [taint for taint in spec.get("taints") or () if taint["effect"] != "PreferNoSchedule"]
    if spec.get("unschedulable"):
        taints.append(CORDON)
    tolerations = pod["spec"].get("tolerations") or ()
    return all(any(_tolerates(toleration, taint) for toleration in tolerations) for taint in taints)


def _tolerates(toleration: JsonObject, taint: JsonObject) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (
        taint.get("value") or ""
    )


# --- other pods ----------------------------------------------------------------------------------


def selected(selector: JsonObject | None, pod: JsonObject) -> bool:
    """Whether a label selector selects the pod: a null selector selects none, an empty one all."""
    return selector is not None and chooses(selector, _labels(pod))


def chooses(selector: JsonObject, labels: Mapping[str, str]) -> bool:
    """Whether labels match all of a selector."""
    wanted = (selector.get("matchLabels") or {}).items()
    return all(labels.get(k) == v for k, v in wanted) and all(
        _is_met(requirement, labels) for requirement in selector.get("matchExpressions") or ()
    )


def ports_clash(pod: JsonObject, other: JsonObject) -> bool:
    """Whether two pods use one host port of the same node."""
    return any(
        (a["protocol"], a["port"]) == (b["protocol"], b["port"])
        and (a["ip"] == b["ip"] or "0.0.0.0" in (a["ip"], b["ip"]))  # noqa: S104 - a value compared
        for a in _ports(pod)
        for b in _ports(other)
    )


def _ports(pod: JsonObject) -> Iterator[dict[str, Any]]:
    spec = pod["spec"]
    sidecars = [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    for container in (*(spec.get("containers") or ()), *sidecars):
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield {
                    "protocol": port.get("protocol") or "TCP",
                    "port": port["hostPort"],
                    "ip": port.get("hostIP") or "0.0.0.0",  # noqa: S104 - every address
                }


def terms_of(pod: JsonObject, kind: str) -> Sequence[JsonObject]:
    """The required terms of `podAffinity` or `podAntiAffinity`."""
    affinity = (pod["spec"].get("affinity") or {}).get(kind) or {}
    found: Sequence[JsonObject] = (
        affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    )
    return found


def term_selects(
    term: JsonObject, owner: JsonObject, other: JsonObject, namespaces: Mapping[str, JsonObject]
) -> bool:
    """Whether a term of `owner` selects `other`. `namespaces` by name, for namespace selectors."""
    names = set(term.get("namespaces") or ())
    wanted = term.get("namespaceSelector")
    if wanted is not None:
        names |= {name for name, found in namespaces.items() if chooses(wanted, _labels(found))}
    elif not names:
        names = {owner["metadata"]["namespace"]}
    if other["metadata"]["namespace"] not in names:
        return False
    labels, own = _labels(other), _labels(owner)
    same, different = term.get("matchLabelKeys") or (), term.get("mismatchLabelKeys") or ()
    return (
        selected(term.get("labelSelector"), other)
        and all(labels.get(key) == own[key] for key in same if key in own)
        and all(labels.get(key) != own[key] for key in different if key in own)
    )


def domain(node: JsonObject | None, key: str) -> str | None:
    """The topology domain of a node under a label, if it has one."""
    return None if node is None else _labels(node).get(key)


def hard_constraints(pod: JsonObject) -> list[JsonObject]:
    """Topology spread constraints that reject nodes."""
    return [
        constraint
        for constraint in pod["spec"].get("topologySpreadConstraints") or ()
        if constraint["whenUnsatisfiable"] == "DoNotSchedule"
    ]


def spread_counts(constraint: JsonObject, pod: JsonObject, other: JsonObject) -> bool:
    """Whether a constraint of `pod` counts `other`. An empty selector counts no placed pod, as
    upstream.
    """
    if other["spec"].get("nodeName") and not any((constraint.get("labelSelector") or {}).values()):
        return False
    own, labels = _labels(pod), _labels(other)
    keys = [key for key in constraint.get("matchLabelKeys") or () if key in own]
    return (
        other["metadata"]["namespace"] == pod["metadata"]["namespace"]
        and not other["metadata"].get("deletionTimestamp")
        and selected(constraint.get("labelSelector"), other)
        and all(labels.get(key) == own[key] for key in keys)
    )


def includes(constraint: JsonObject, node: JsonObject, pod: JsonObject) -> bool:
    """Whether a constraint of the pod includes the node."""
    if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not selects(node, pod):
        return False
    if constraint.get("nodeTaintsPolicy", "Ignore") == "Ignore":
        return True
    # A cordon does not count as a taint.
    bare = {**node, "spec": {**(node.get("spec") or {}), "unschedulable": False}}
    return tolerated(bare, pod)


def _labels(obj: JsonObject) -> Mapping[str, str]:
    return obj["metadata"].get("labels") or {}


def counted(pods: Iterable[JsonObject]) -> list[JsonObject]:
    """Pods that use resources: placed, and not finished."""
    return [
        pod
        for pod in pods
        if pod["spec"].get("nodeName")
        and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
    ]
