"""Pods of the size that the API server still accepts, each with many items of one kind."""

from collections.abc import Callable
from typing import Any, Final

Json = dict[str, Any]
#: Adds `n` items to a pod's manifest.
Filler = Callable[[Json, int], None]

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def _selector(i: int) -> Json:
    return {"matchExpressions": [{"key": f"k{i}", "operator": "NotIn", "values": ["x"]}]}


def _items(field: str, make: Callable[[int], Json]) -> Filler:
    """A list of the spec."""

    def fill(pod: Json, n: int) -> None:
        pod["spec"][field] = [make(i) for i in range(n)]

    return fill


def _spread(action: str, key: str) -> Filler:
    return _items(
        "topologySpreadConstraints",
        lambda i: {
            "maxSkew": 1,
            "topologyKey": key.format(i),
            "whenUnsatisfiable": action,
            "labelSelector": _selector(i),
            "nodeTaintsPolicy": "Honor",
        },
    )


def _near(kind: str, strength: str, key: str) -> Filler:
    """Pod affinity or anti-affinity with n terms."""

    def fill(pod: Json, n: int) -> None:
        terms: list[Json] = [
            {"topologyKey": key.format(i), "labelSelector": _selector(i)} for i in range(n)
        ]
        if strength == PREFERRED:
            terms = [{"weight": 1, "podAffinityTerm": term} for term in terms]
        pod["spec"]["affinity"] = {kind: {strength: terms}}

    return fill


def _node_affinity(strength: str, *, wide: bool) -> Filler:
    """N terms of one requirement, or one term of n."""

    def fill(pod: Json, n: int) -> None:
        expressions = [
            {"key": f"n{i % 7}", "operator": "NotIn", "values": [f"v{i}"]} for i in range(n)
        ]
        terms: list[Json] = [{"matchExpressions": [item]} for item in expressions]
        if wide:
            terms = [{"matchExpressions": expressions}]
        rule: Any = {"nodeSelectorTerms": terms}
        if strength == PREFERRED:
            rule = [{"weight": 1, "preference": term} for term in terms]
        pod["spec"]["affinity"] = {"nodeAffinity": {strength: rule}}

    return fill


def _node_selector(pod: Json, n: int) -> None:
    pod["spec"]["nodeSelector"] = {f"k{i}": "v" for i in range(n)}


def host_ports(pod: Json, n: int) -> None:
    """Other ports for each length of the pod's name, so that pods do not exclude each other."""
    start = 1000 * (1 + len(pod["metadata"]["name"]))
    used = [{"containerPort": i, "hostPort": i} for i in range(start, start + n)]
    pod["spec"]["containers"] = [{"name": "c", "image": "i", "ports": used}]


def _resources(pod: Json, n: int) -> None:
    requested = {f"example.com/r{i}": "0" for i in range(n)}
    resources = {"requests": requested, "limits": requested}
    pod["spec"]["containers"] = [{"name": "c", "image": "i", "resources": resources}]


def _labels(pod: Json, n: int) -> None:
    keys = [f"l{i}" for i in range(n)]
    pod["metadata"]["labels"] = dict.fromkeys(keys, "v")
    pod["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {}},
            "matchLabelKeys": keys,
        }
    ]


SHAPES: Final[dict[str, Filler]] = {
    "soft spread": _spread("ScheduleAnyway", "k{}"),
    "soft spread by keys of nodes": _spread("ScheduleAnyway", "n{}"),
    "hard spread": _spread("DoNotSchedule", "k{}"),
    "hard spread by keys of nodes": _spread("DoNotSchedule", "n{}"),
    "affinity": _near("podAffinity", REQUIRED, "k{}"),
    "anti-affinity": _near("podAntiAffinity", REQUIRED, "k{}"),
    "anti-affinity by one key": _near("podAntiAffinity", REQUIRED, "zone"),
    "preferred affinity": _near("podAffinity", PREFERRED, "k{}"),
    "preferred anti-affinity by one key": _near("podAntiAffinity", PREFERRED, "zone"),
    "required node terms": _node_affinity(REQUIRED, wide=False),
    "one required node term": _node_affinity(REQUIRED, wide=True),
    "preferred node terms": _node_affinity(PREFERRED, wide=False),
    "one preferred node term": _node_affinity(PREFERRED, wide=True),
    "node selector": _node_selector,
    "tolerations": _items("tolerations", lambda i: {"key": "k", "value": f"v{i}"}),
    "tolerations that compare": _items(
        "tolerations", lambda i: {"key": "k", "operator": "Gt", "value": f"{i}"}
    ),
    "host ports": host_ports,
    "resource names": _resources,
    "labels": _labels,
    "containers": _items("containers", lambda i: {"name": f"c{i}", "image": f"i{i}"}),
    "init containers": _items("initContainers", lambda i: {"name": f"c{i}", "image": f"i{i}"}),
    "gates": _items("schedulingGates", lambda i: {"name": f"g{i}"}),
    "claims of volumes": _items(
        "volumes", lambda i: {"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"c{i}"}}
    ),
    "disks": _items(
        "volumes", lambda i: {"name": f"v{i}", "gcePersistentDisk": {"pdName": f"d{i}"}}
    ),
    "ephemeral volumes": _items(
        "volumes", lambda i: {"name": f"v{i}", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
    ),
    "claims of devices": _items(
        "resourceClaims", lambda i: {"name": f"r{i}", "resourceClaimName": f"c{i}"}
    ),
}
