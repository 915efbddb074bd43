"""A plan: pods with the nodes they are to have, bound to the cluster it was made for.

    workload ─suppose─> a place for every pod ─> Plan ─file─> does it hold? ─> `applying.py`

What makes a place certain is the pod itself: it asks for its node by name in its required node
affinity, as a DaemonSet's pods do. So whichever scheduler it names puts it there, with every check
that belongs to it, or leaves it waiting; elsewhere it cannot go. Controllers adopt pods that are as
they would have made them (`makers.py`), and make no others. What they make later, in place of one
that went, is free again.

Rules   a plan has a place for every pod and evicts nobody, else there is none. What pods need
        beside has to be there first, but for claims of a StatefulSet's templates.
        It holds as long as every pod finds its node in a simulation of the cluster as it is by
        then: whatever else changed does not matter.
"""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from asched_lab.whatif.changes import Scenario
from asched_lab.whatif.engine import suppose
from asched_lab.whatif.makers import GATE, SETS, STATEFUL_SET, NoPlanError, taken_apart
from asched_lab.whatif.result import Result
from asched_lab.whatif.snapshot import Json, Snapshot
from asched_lab.whatif.world import Scheduler

API_VERSION: Final = "asched.dev/v1"
KIND: Final = "Plan"
#: The namespace whose uid tells clusters apart.
SYSTEM: Final = "kube-system"
ID_BYTES: Final = 8


@dataclass(slots=True)
class Plan:
    """`pods`: manifests, each with its node; `before`: claims that have to be there; `owners`: what
    they belong to, in the order in which it is to be created; all are marked with `id`. `version`
    and `cluster` are those of the snapshot it was made of.
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
        """As it is written down."""
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
        """Raises NoPlanError for what is none."""
        try:
            if (document["apiVersion"], document["kind"]) != (API_VERSION, KIND):
                raise NoPlanError(f"this is no {KIND} of {API_VERSION}")
            return cls(
                id=str(document["id"]),
                pods=[(dict(one["pod"]), str(one["node"])) for one in document["pods"]],
                before=[dict(claim) for claim in document["before"]],
                owners=[dict(owner) for owner in document["owners"]],
                server=document["server"],
                cluster=document["clusterUID"],
                version=document["resourceVersion"],
                made=document["made"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise NoPlanError(f"this is no {KIND} of {API_VERSION}: {error!r}") from None


def planned(
    snapshot: Snapshot,
    manifests: Iterable[Json],
    scheduler: Scheduler,
    *,
    replicas: int | None = None,
    namespace: str = "",
) -> tuple[Plan, Result]:
    """A place for every pod that manifests ask for. Raises NoPlanError, ScenarioError."""
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
    known = {_key(pod) for pod in snapshot.objects.get(("v1", "Pod"), ())}
    there = [_key(pod) for pod in pods if _key(pod) in known]
    if there:
        raise NoPlanError(f"pod {there[0]} is there already")
    supposed = (*plan.before, *_empty(plan.owners), *map(_owned, pods))
    result = suppose(snapshot, Scenario(workloads=supposed), scheduler)
    _judge(result, {_key(pod) for pod in pods})
    nodes = {place.pod: place.node for place in result.places}
    plan.pods = [(_without_owner(pod), nodes[_key(pod)]) for pod in pods]
    return plan, result


def holds(plan: Plan, snapshot: Snapshot, scheduler: Scheduler) -> Result:
    """What becomes of it now: every pod finds its node, and nobody has to leave. Raises
    NoPlanError if not so.
    """
    if plan.cluster != identity(snapshot):
        raise NoPlanError(f"it was made for another cluster, at {plan.server}")
    known = {_key(pod) for pod in snapshot.objects.get(("v1", "Pod"), ())}
    there = [_key(pod) for pod, _ in plan.pods if _key(pod) in known]
    if there:
        raise NoPlanError(f"pod {there[0]} is there already: was it applied before?")
    claims = {_key(one) for one in snapshot.objects.get(("v1", "PersistentVolumeClaim"), ())}
    there = [_key(claim) for claim in plan.before if _key(claim) in claims]
    if there:
        raise NoPlanError(f"claim {there[0]} is there already")
    pods = (pinned(pod, node) for pod, node in plan.pods)
    result = suppose(snapshot, Scenario(workloads=(*plan.before, *pods)), scheduler)
    _judge(result, {_key(pod) for pod, _ in plan.pods})
    return result


def _empty(owners: Iterable[Json]) -> list[Json]:
    """Those that schedulers look at, without pods of their own."""
    return [
        {**owner, "spec": {**owner["spec"], "replicas": 0}}
        for owner in owners
        if (owner["apiVersion"], owner["kind"]) in (*SETS, STATEFUL_SET)
    ]


def _judge(result: Result, pods: set[str]) -> None:
    """Raises NoPlanError unless all pods have places and nobody has to go."""
    said = [f"{what}: {why}" for what, why in result.refused]
    said += [f"{p.pod} waits: {p.why}" for p in result.pending if p.pod in pods]
    said += [f"{pod} would be evicted" for pod in result.evicted]
    if said:
        raise NoPlanError("\n".join(said))


def identity(snapshot: Snapshot) -> str:
    """What tells a cluster from every other; empty if its namespaces cannot be listed."""
    for namespace in snapshot.objects.get(("v1", "Namespace"), ()):
        if namespace["metadata"]["name"] == SYSTEM:
            return str(namespace["metadata"].get("uid", ""))
    return ""


# --- pods ----------------------------------------------------------------------------------------


def pinned(pod: Json, node: str) -> Json:
    """The pod as it can only go to one node: terms are alternatives, so each asks for it."""
    affinity = dict(pod["spec"].get("affinity") or {})
    of_node = dict(affinity.get("nodeAffinity") or {})
    required = dict(of_node.get("requiredDuringSchedulingIgnoredDuringExecution") or {})
    here = {"key": "metadata.name", "operator": "In", "values": [node]}
    anywhere: Json = {}
    terms = [
        {**term, "matchFields": [*(term.get("matchFields") or ()), here]}
        for term in required.get("nodeSelectorTerms") or (anywhere,)
    ]
    of_node["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    spec = {**pod["spec"], "affinity": {**affinity, "nodeAffinity": of_node}}
    return {**pod, "spec": spec}


def gated(pod: Json) -> Json:
    """The pod as no scheduler looks at it before the gate is taken away."""
    gates = [*(pod["spec"].get("schedulingGates") or ()), {"name": GATE}]
    return {**pod, "spec": {**pod["spec"], "schedulingGates": gates}}


def marked(obj: Json, plan: str) -> Json:
    """By which what was created is known as ours, should an answer get lost."""
    annotations = {**(obj["metadata"].get("annotations") or {}), GATE: plan}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def _owned(pod: Json) -> Json:
    """As the simulation takes it: references have a uid there."""
    references = pod["metadata"].get("ownerReferences") or ()
    owners = [{**reference, "uid": reference["name"]} for reference in references]
    return {**pod, "metadata": {**pod["metadata"], "ownerReferences": owners}}


def _without_owner(pod: Json) -> Json:
    metadata = {n: v for n, v in pod["metadata"].items() if n != "ownerReferences"}
    return {**pod, "metadata": metadata}


def _key(pod: Mapping[str, Any]) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
