"""Objects of the size that the API server still accepts."""

from collections.abc import Callable
from typing import Any, Final

from tests.builders import PodBuilder

Worst = Callable[[PodBuilder, int], PodBuilder]


def selecting(i: int) -> dict[str, Any]:
    return {"matchExpressions": [{"key": f"k{i}", "operator": "NotIn", "values": ["x"]}]}


def spreading(action: str, key: str) -> Worst:
    def build(pod: PodBuilder, n: int) -> PodBuilder:
        return pod.spec(
            topologySpreadConstraints=[
                {
                    "maxSkew": 1,
                    "topologyKey": key.format(i),
                    "whenUnsatisfiable": action,
                    "labelSelector": selecting(i),
                    "nodeTaintsPolicy": "Honor",
                }
                for i in range(n)
            ]
        )

    return build


def near(kind: str, how: str, key: str) -> Worst:
    """Pod affinity or anti-affinity with n terms."""

    def build(pod: PodBuilder, n: int) -> PodBuilder:
        terms: list[dict[str, Any]] = [
            {"topologyKey": key.format(i), "labelSelector": selecting(i)} for i in range(n)
        ]
        if how.startswith("preferred"):
            terms = [{"weight": 1, "podAffinityTerm": term} for term in terms]
        return pod.spec(affinity={kind: {f"{how}DuringSchedulingIgnoredDuringExecution": terms}})

    return build


def node_affinity(*, required: bool, wide: bool) -> Worst:
    """n terms of one requirement, or one term of n."""

    def build(pod: PodBuilder, n: int) -> PodBuilder:
        expressions = [
            {"key": f"n{i % 7}", "operator": "NotIn", "values": [f"v{i}"]} for i in range(n)
        ]
        terms: list[dict[str, Any]] = [{"matchExpressions": [one]} for one in expressions]
        if wide:
            terms = [{"matchExpressions": expressions}]
        how = "requiredDuringSchedulingIgnoredDuringExecution"
        wish: Any = {"nodeSelectorTerms": terms}
        if not required:
            how = "preferredDuringSchedulingIgnoredDuringExecution"
            wish = [{"weight": 1, "preference": term} for term in terms]
        return pod.spec(affinity={"nodeAffinity": {how: wish}})

    return build


def each(field: str, make: Callable[[int], dict[str, Any]]) -> Worst:
    return lambda pod, n: pod.spec(**{field: [make(i) for i in range(n)]})


def ports(pod: PodBuilder, n: int) -> PodBuilder:
    """Others for each pod, so that none is in the way of another."""
    start = 1000 * (1 + len(pod.build().metadata.name))
    used = [{"containerPort": i, "hostPort": i} for i in range(start, start + n)]
    return pod.spec(containers=[{"name": "c", "image": "i", "ports": used}])


def resources(pod: PodBuilder, n: int) -> PodBuilder:
    wanted = {f"example.com/r{i}": "0" for i in range(n)}
    container = {"name": "c", "image": "i", "resources": {"requests": wanted, "limits": wanted}}
    return pod.spec(containers=[container])


def labels(pod: PodBuilder, n: int) -> PodBuilder:
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    keys = [f"l{i}" for i in range(n)]
    return pod.labels(**dict.fromkeys(keys, "v")).spec(
        topologySpreadConstraints=[
            {**spread, "labelSelector": {"matchLabels": {}}, "matchLabelKeys": keys}
        ]
    )


WORST: Final[dict[str, Worst]] = {
    "soft spread": spreading("ScheduleAnyway", "k{}"),
    "soft spread by keys of nodes": spreading("ScheduleAnyway", "n{}"),
    "hard spread": spreading("DoNotSchedule", "k{}"),
    "hard spread by keys of nodes": spreading("DoNotSchedule", "n{}"),
    "affinity": near("podAffinity", "required", "k{}"),
    "anti-affinity": near("podAntiAffinity", "required", "k{}"),
    "anti-affinity by one key": near("podAntiAffinity", "required", "zone"),
    "preferred affinity": near("podAffinity", "preferred", "k{}"),
    "preferred anti-affinity by one key": near("podAntiAffinity", "preferred", "zone"),
    "required node terms": node_affinity(required=True, wide=False),
    "one required node term": node_affinity(required=True, wide=True),
    "preferred node terms": node_affinity(required=False, wide=False),
    "one preferred node term": node_affinity(required=False, wide=True),
    "node selector": lambda pod, n: pod.spec(nodeSelector={f"k{i}": "v" for i in range(n)}),
    "tolerations": each("tolerations", lambda i: {"key": "k", "value": f"v{i}"}),
    "tolerations that compare": each(
        "tolerations", lambda i: {"key": "k", "operator": "Gt", "value": f"{i}"}
    ),
    "host ports": ports,
    "resource names": resources,
    "labels": labels,
    "containers": each("containers", lambda i: {"name": f"c{i}", "image": f"i{i}"}),
    "init containers": each("initContainers", lambda i: {"name": f"c{i}", "image": f"i{i}"}),
    "gates": each("schedulingGates", lambda i: {"name": f"g{i}"}),
    "claims of volumes": each(
        "volumes", lambda i: {"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"c{i}"}}
    ),
    "disks": each("volumes", lambda i: {"name": f"v{i}", "gcePersistentDisk": {"pdName": f"d{i}"}}),
    "ephemeral volumes": each(
        "volumes",
        lambda i: {"name": f"v{i}", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
    ),
    "claims of devices": each(
        "resourceClaims", lambda i: {"name": f"r{i}", "resourceClaimName": f"c{i}"}
    ),
}
