"""A DaemonSet's pods: which nodes get one, and what ties it to its node.

A node gets a pod if the template's node name, selector and required affinity allow it and its hard
taints are tolerated, with the tolerations that every daemon pod has; the pod is tied to its node by
a field selector in place of the affinity.

Source  kubernetes/kubernetes v1.36 pkg/controller/daemon
"""

from collections.abc import Iterable, Iterator
from typing import Final

from asched.core.model.decode import decode
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.selector import compile_node_selector
from asched.core.model.taint import NO_EXECUTE, NO_SCHEDULE, tolerated
from asched_lab.whatif.objects import Json

_TAINTS: Final = "node.kubernetes.io/"
#: Tolerations of every daemon pod, and those of a pod on the node's network besides.
TOLERATED: Final = (
    ("not-ready", NO_EXECUTE),
    ("unreachable", NO_EXECUTE),
    ("disk-pressure", NO_SCHEDULE),
    ("memory-pressure", NO_SCHEDULE),
    ("pid-pressure", NO_SCHEDULE),
    ("unschedulable", NO_SCHEDULE),
)
ON_THE_HOST: Final = ("network-unavailable", NO_SCHEDULE)
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def daemons(template: Json, nodes: Iterable[Json]) -> Iterator[tuple[str, Json]]:
    """(node, spec of its pod) for each of the nodes that the template's pods run on."""
    spec = _tolerant(template)
    pod = decode(Pod, {"metadata": {"name": "daemon"}, "spec": spec})
    for obj in nodes:
        node = decode(Node, obj)
        if _runs_on(pod, node):
            yield node.name, _tied(spec, node.name)


def _tolerant(spec: Json) -> Json:
    known = [*TOLERATED, *([ON_THE_HOST] if spec.get("hostNetwork") else ())]
    more = [
        {"key": _TAINTS + name, "operator": "Exists", "effect": effect} for name, effect in known
    ]
    own = [own for own in spec.get("tolerations") or () if own not in more]
    return {**spec, "tolerations": [*own, *more]}


def _runs_on(pod: Pod, node: Node) -> bool:
    spec, labels = pod.spec, node.labels
    if spec.node_name not in ("", node.name):
        return False
    if any(labels.get(key) != value for key, value in (spec.node_selector or {}).items()):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    terms = compile_node_selector(affinity.required if affinity is not None else None)
    if terms is not None and not any(term.matches(node.name, labels) for term in terms):
        return False
    own = spec.tolerations or ()
    return all(not taint.is_hard or tolerated(taint, own) for taint in node.spec.taints or ())


def _tied(spec: Json, node: str) -> Json:
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    affinity = spec.get("affinity") or {}
    of_nodes = affinity.get("nodeAffinity") or {}
    required = {"nodeSelectorTerms": [{"matchFields": fields}]}
    tied = {**affinity, "nodeAffinity": {**of_nodes, REQUIRED: required}}
    return {**spec, "affinity": tied}
