"""A plan: pods with their future nodes, bound to the cluster it was made for.

    workload ─suppose─> a place for every pod ─> Plan ─file─> still valid? ─> `applying.py`

The pod itself makes its place certain: its required node affinity names its node, as in pods of
DaemonSets. Whichever scheduler serves it places it there, after every check, or leaves it pending.
Controllers adopt pods that are as they would have made them (`makers.py`), and make no more. Pods
that they make later, as replacements, may go to any node.

Rules   a plan has a place for every pod and evicts no pod, else there is no plan. Other objects
        that pods need must exist already, except claims of a StatefulSet's templates.
        A plan is valid as long as every pod finds its node in a simulation of the current cluster:
        other changes do not matter.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from asched.names import PREFIX
from asched_lab.whatif.changes import Scenario
from asched_lab.whatif.engine import suppose
from asched_lab.whatif.makers import GATE, SETS, STATEFUL_SET, NoPlanError, taken_apart
from asched_lab.whatif.manifests import check_manifest
from asched_lab.whatif.objects import Json, ObjectError, title
from asched_lab.whatif.result import Result
from asched_lab.whatif.snapshot import Snapshot
from asched_lab.whatif.world import Scheduler

API_VERSION: Final = f"{PREFIX}/v1"
KIND: Final = "Plan"
#: The namespace whose uid identifies a cluster.
SYSTEM: Final = "kube-system"
ID_BYTES: Final = 8


@dataclass(slots=True)
class Plan:
    """`pods`: manifests, each with its node; `before`: claims that must exist first; `owners`:
    owners in order of creation; all are marked with `id`. `version` and `cluster` are those of the
    snapshot.
    """

    id: str = ""
    before: list[Json] = field(default_factory=list)
    pods: list[tuple[Json, str]] = field(default_factory=list)
    owners: list[Json] = field(default_factory=list)
    server: str = ""
    cluster: str = ""
    version: str = ""
    made: str = ""

    def document(self) -> Json:
        """The plan as it is written to a file."""
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "id": self.id,
            "server": self.server,
            "clusterUID": self.cluster,
            "resourceVersion": self.version,
            "made": self.made,
            "before": self.before,
            "owners": self.owners,
            "pods": [{"node": node, "pod": pod} for pod, node in self.pods],
        }

    @classmethod
    def of(cls, document: Any) -> "Plan":
        """Raises NoPlanError if the document is not a plan."""
        try:
            if (document["apiVersion"], document["kind"]) != (API_VERSION, KIND):
                raise NoPlanError(f"this is no {KIND} of {API_VERSION}")
            return cls(
                id=str(document["id"]),
                pods=[(_object(entry["pod"]), str(entry["node"])) for entry in document["pods"]],
                before=[_object(claim) for claim in document["before"]],
                owners=[_object(owner) for owner in document["owners"]],
                server=document["server"],
                cluster=document["clusterUID"],
                version=document["resourceVersion"],
                made=document["made"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise NoPlanError(f"this is no {KIND} of {API_VERSION}: {error!r}") from None
        except ObjectError as error:
            raise NoPlanError(f"this is no {KIND} of {API_VERSION}: {error}") from None


def _object(obj: Any) -> Json:
    """An object of a plan: with name, namespace and spec. Raises ObjectError, KeyError, TypeError,
    ValueError.
    """
    checked, _ = check_manifest(dict(obj))
    for name in ("name", "namespace"):
        if not checked["metadata"][name]:
            raise ObjectError(f"{title(checked)}: metadata.{name}: must be set")
    if not isinstance(checked["spec"], dict):
        raise ObjectError(f"{title(checked)}: spec: must be a mapping")
    return checked


def planned(
    snapshot: Snapshot,
    manifests: Iterable[Json],
    scheduler: Scheduler,
    *,
    replicas: int | None = None,
    namespace: str = "",
) -> tuple[Plan, Result]:
    """Find a place for every pod of the manifests. Raises NoPlanError, ScenarioError."""
    plan = Plan(
        id=secrets.token_hex(ID_BYTES),
        server=snapshot.server,
        cluster=identity(snapshot),
        version=snapshot.version,
        made=snapshot.taken,
    )
    pods: list[Json] = []
    for manifest in manifests:
        parts = taken_apart(manifest, replicas, namespace or "default", plan.id, snapshot)
        plan.owners += parts.owners
        plan.before += parts.before
        pods += parts.pods
    if not pods:
        raise NoPlanError("there is no pod to plan for")
    _check_new(plan.owners, snapshot)
    known = {_key(pod) for pod in snapshot.objects.get(("v1", "Pod"), ())}
    existing = [_key(pod) for pod in pods if _key(pod) in known]
    if existing:
        raise NoPlanError(f"pod {existing[0]} exists already")
    supposed = (*plan.before, *_empty(plan.owners), *map(_owned, pods))
    result = suppose(snapshot, Scenario(workloads=supposed), scheduler)
    _check(result, {_key(pod) for pod in pods})
    nodes = {place.pod: place.node for place in result.places}
    plan.pods = [(_without_owner(pod), nodes[_key(pod)]) for pod in pods]
    return plan, result


def holds(plan: Plan, snapshot: Snapshot, scheduler: Scheduler) -> Result:
    """Simulate the plan again: every pod must find its node without evictions, else NoPlanError
    is raised.
    """
    if plan.cluster != identity(snapshot):
        raise NoPlanError(f"it was made for another cluster, at {plan.server}")
    known = {_key(pod) for pod in snapshot.objects.get(("v1", "Pod"), ())}
    existing = [_key(pod) for pod, _ in plan.pods if _key(pod) in known]
    if existing:
        raise NoPlanError(f"pod {existing[0]} exists already: was it applied before?")
    _check_new(plan.owners, snapshot)
    claims = {_key(claim) for claim in snapshot.objects.get(("v1", "PersistentVolumeClaim"), ())}
    existing = [_key(claim) for claim in plan.before if _key(claim) in claims]
    if existing:
        raise NoPlanError(f"claim {existing[0]} exists already")
    pods = (pinned(pod, node) for pod, node in plan.pods)
    result = suppose(snapshot, Scenario(workloads=(*plan.before, *pods)), scheduler)
    _check(result, {_key(pod) for pod, _ in plan.pods})
    return result


def _check_new(owners: Sequence[Json], snapshot: Snapshot) -> None:
    """Raise NoPlanError if an owner exists. A snapshot lacks some kinds of owners: these exist if
    they own one of its objects.
    """
    known = {
        (kind, _key(obj)) for (_, kind), objects in snapshot.objects.items() for obj in objects
    }
    for obj in snapshot:
        for reference in obj["metadata"].get("ownerReferences") or ():
            known.add(
                (reference["kind"], f"{obj['metadata'].get('namespace')}/{reference['name']}")
            )
    for owner in reversed(owners):  # the Deployment before its ReplicaSet
        if (owner["kind"], _key(owner)) in known:
            raise NoPlanError(
                f"{title(owner)} exists already: a plan creates workloads and does not change them;"
                " use asched simulate --replicas, or plan a workload of another name"
            )


def _empty(owners: Iterable[Json]) -> list[Json]:
    """Owners that schedulers read, without pods of their own."""
    return [
        {**owner, "spec": {**owner["spec"], "replicas": 0}}
        for owner in owners
        if (owner["apiVersion"], owner["kind"]) in (*SETS, STATEFUL_SET)
    ]


def _check(result: Result, pods: set[str]) -> None:
    """Raises NoPlanError unless all pods have places and no pod is evicted."""
    problems = [f"{what}: {why}" for what, why in result.refused]
    problems += [f"{p.pod} waits: {p.why}" for p in result.pending if p.pod in pods]
    problems += [f"{pod} would be evicted" for pod in result.evicted]
    if problems:
        raise NoPlanError("\n".join(problems))


def identity(snapshot: Snapshot) -> str:
    """The identity of a cluster; empty if its namespaces cannot be listed."""
    for namespace in snapshot.objects.get(("v1", "Namespace"), ()):
        if namespace["metadata"]["name"] == SYSTEM:
            return str(namespace["metadata"].get("uid", ""))
    return ""


# --- pods ----------------------------------------------------------------------------------------


def pinned(pod: Json, node: str) -> Json:
    """The pod restricted to one node: terms are alternatives, so each gets the restriction."""
    affinity = dict(pod["spec"].get("affinity") or {})
    of_node = dict(affinity.get("nodeAffinity") or {})
    required = dict(of_node.get("requiredDuringSchedulingIgnoredDuringExecution") or {})
    this_node = {"key": "metadata.name", "operator": "In", "values": [node]}
    anywhere: Json = {}
    terms = [
        {**term, "matchFields": [*(term.get("matchFields") or ()), this_node]}
        for term in required.get("nodeSelectorTerms") or (anywhere,)
    ]
    of_node["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    spec = {**pod["spec"], "affinity": {**affinity, "nodeAffinity": of_node}}
    return {**pod, "spec": spec}


def gated(pod: Json) -> Json:
    """The pod with a gate, so that no scheduler tries it before the gate is removed."""
    gates = [*(pod["spec"].get("schedulingGates") or ()), {"name": GATE}]
    return {**pod, "spec": {**pod["spec"], "schedulingGates": gates}}


def marked(obj: Json, plan: str) -> Json:
    """The object with the plan's id, which identifies it if the answer to its creation is lost."""
    annotations = {**(obj["metadata"].get("annotations") or {}), GATE: plan}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def _owned(pod: Json) -> Json:
    """The pod as the simulation reads it: owner references need a uid there."""
    references = pod["metadata"].get("ownerReferences") or ()
    owners = [{**reference, "uid": reference["name"]} for reference in references]
    return {**pod, "metadata": {**pod["metadata"], "ownerReferences": owners}}


def _without_owner(pod: Json) -> Json:
    metadata = {n: v for n, v in pod["metadata"].items() if n != "ownerReferences"}
    return {**pod, "metadata": metadata}


def _key(pod: Mapping[str, Any]) -> str:
    return f"{pod['metadata'].get('namespace')}/{pod['metadata']['name']}"
