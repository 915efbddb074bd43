"""The extender protocol v1, as client and as server: requests and answers.

    requests sent      arguments, preemption_arguments, binding_arguments
    answers received   filter_result, priorities, preemption_result, binding_error
    requests received  read_arguments, read_preemption_arguments, read_binding_arguments
    answers sent       filter_answer, priorities_answer, preemption_answer, binding_answer

Rules   the structs have no JSON tags: keys are Go's field names, absent values are sent as null,
                and read regardless of their case; Kubernetes objects inside have their usual form.
                Requests refer to whole objects as `Whole` and `Wholes`: the sender inserts their
                bytes.
Bounds  none of its own: a request is as large as the cluster.
Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/kube-scheduler/extender/v1/types.go
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from asched.core.extender.fields import (
    INT64_MAX,
    INT64_MIN,
    OUTSIDE,
    FieldPlace,
    entries,
    fields,
    integer,
    items,
    text,
)
from asched.core.framework.effects import Whole, Wholes
from asched.core.framework.trial import Candidate
from asched.core.model.kinds import NODE, POD
from asched.core.model.pod import Pod

_FILTER_RESULT: Final = "ExtenderFilterResult"
_PREEMPTION_RESULT: Final = "ExtenderPreemptionResult"
_ARGS: Final = "ExtenderArgs"
_PREEMPTION_ARGS: Final = "ExtenderPreemptionArgs"
_BINDING_ARGS: Final = "ExtenderBindingArgs"

# --- requests sent -------------------------------------------------------------------------------


def whole(pod: Pod) -> Whole:
    metadata = pod.metadata
    return Whole(POD, metadata.key, metadata.uid)


def arguments(pod: Pod, names: Sequence[str], *, names_only: bool) -> dict[str, Any]:
    """ExtenderArgs of filter and prioritize: names for extenders with a cache of nodes."""
    nodes = None if names_only else {"metadata": {}, "items": Wholes(NODE, tuple(names))}
    return {"Pod": whole(pod), "Nodes": nodes, "NodeNames": names if names_only else None}


def preemption_arguments(
    pod: Pod, candidates: Mapping[str, Candidate], *, names_only: bool
) -> dict[str, Any]:
    """ExtenderPreemptionArgs: victims as uids for extenders with a cache of pods."""
    victims = {
        name: {
            "Pods": [
                {"UID": info.pod.uid} if names_only else whole(info.pod)
                for info in candidate.victims
            ],
            "NumPDBViolations": candidate.violations,
        }
        for name, candidate in candidates.items()
    }
    return {
        "Pod": whole(pod),
        "NodeNameToVictims": None if names_only else victims,
        "NodeNameToMetaVictims": victims if names_only else None,
    }


def binding_arguments(pod: Pod, node: str) -> dict[str, Any]:
    metadata = pod.metadata
    return {
        "PodName": metadata.name,
        "PodNamespace": metadata.namespace,
        "PodUID": metadata.uid,
        "Node": node,
    }


# --- answers received ----------------------------------------------------------------------------


class FilterResult(NamedTuple):
    """`node_names` and `nodes` (by name) are None where the answer has none."""

    node_names: tuple[str, ...] | None
    nodes: tuple[str, ...] | None
    failed: dict[str, str]
    unresolvable: dict[str, str]
    error: str


class HostPriority(NamedTuple):
    host: str
    score: int


class MetaVictims(NamedTuple):
    uids: tuple[str, ...]
    violations: int


def filter_result(value: Any) -> FilterResult:
    """Raises WireError."""
    known = ("Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes", "Error")
    found = fields(value, f"v1.{_FILTER_RESULT}", OUTSIDE, known)

    def at(name: str) -> FieldPlace:
        return OUTSIDE.field(_FILTER_RESULT, name)

    return FilterResult(
        node_names=_texts(found.get("NodeNames"), at("NodeNames")),
        nodes=_node_names(found.get("Nodes"), at("Nodes")),
        failed=_reasons(found.get("FailedNodes"), at("FailedNodes")),
        unresolvable=_reasons(
            found.get("FailedAndUnresolvableNodes"), at("FailedAndUnresolvableNodes")
        ),
        error=text(found.get("Error"), at("Error")),
    )


def priorities(value: Any) -> list[HostPriority]:
    """Raises WireError."""
    result = []
    for item in items(value, "v1.HostPriorityList", OUTSIDE) or ():
        if type(item) is dict and len(item) == 2:  # the usual form, thousands of them
            host, score = item.get("Host"), item.get("Score")
            if type(host) is str and type(score) is int and INT64_MIN <= score <= INT64_MAX:
                result.append(HostPriority(host, score))
                continue
        found = fields(item, "v1.HostPriority", OUTSIDE, ("Host", "Score"))
        host = text(found.get("Host"), OUTSIDE.field("HostPriority", "Host"))
        score = integer(found.get("Score"), OUTSIDE.field("HostPriority", "Score"))
        result.append(HostPriority(host, score))
    return result


def preemption_result(value: Any) -> dict[str, MetaVictims]:
    """Node name to victims; only the meta form counts. Raises WireError."""
    found = fields(value, f"v1.{_PREEMPTION_RESULT}", OUTSIDE, ("NodeNameToMetaVictims",))
    place = OUTSIDE.field(_PREEMPTION_RESULT, "NodeNameToMetaVictims")
    return _meta_victims(found.get("NodeNameToMetaVictims"), place)


def binding_error(value: Any) -> str:
    """The error message, empty if binding succeeded. Raises WireError."""
    found = fields(value, "v1.ExtenderBindingResult", OUTSIDE, ("Error",))
    return text(found.get("Error"), OUTSIDE.field("ExtenderBindingResult", "Error"))


def _texts(value: Any, place: FieldPlace) -> tuple[str, ...] | None:
    found = items(value, "[]string", place)
    return None if found is None else tuple(text(item, place) for item in found)


def _reasons(value: Any, place: FieldPlace) -> dict[str, str]:
    found = entries(value, "v1.FailedNodesMap", place)
    return {name: text(reason, place) for name, reason in found.items()}


def _node_names(value: Any, place: FieldPlace) -> tuple[str, ...] | None:
    """The names in a NodeList; None for null."""
    if value is None:
        return None
    found = fields(value, "v1.NodeList", place, ("items",))
    inside = place.field("NodeList", "items")
    nodes = items(found.get("items"), "[]v1.Node", inside) or ()
    return tuple(_name_of(node, inside) for node in nodes)


def _name_of(obj: Any, place: FieldPlace) -> str:
    found = fields(obj, "v1.Node", place, ("metadata",))
    inside = place.field("Node", "metadata")
    metadata = fields(found.get("metadata"), "v1.ObjectMeta", inside, ("name",))
    return text(metadata.get("name"), inside.field("ObjectMeta", "name"))


def _meta_victims(value: Any, place: FieldPlace) -> dict[str, MetaVictims]:
    result = {}
    for name, victims in entries(value, "map[string]*v1.MetaVictims", place).items():
        found = fields(victims, "v1.MetaVictims", place, ("Pods", "NumPDBViolations"))
        inside = place.field("MetaVictims", "Pods")
        uids = []
        for pod in items(found.get("Pods"), "[]*v1.MetaPod", inside) or ():
            uid = fields(pod, "v1.MetaPod", inside, ("UID",)).get("UID")
            uids.append(text(uid, inside.field("MetaPod", "UID")))
        count = integer(
            found.get("NumPDBViolations"), place.field("MetaVictims", "NumPDBViolations")
        )
        result[name] = MetaVictims(tuple(uids), count)
    return result


# --- requests received ---------------------------------------------------------------------------


class Arguments(NamedTuple):
    """Request of filter and prioritize. `nodes`: whole, as mappings; None: only names were sent."""

    pod: dict[str, Any]
    nodes: list[dict[str, Any]] | None
    node_names: tuple[str, ...]


class PreemptionArguments(NamedTuple):
    pod: dict[str, Any]
    victims: dict[str, MetaVictims]


class BindingArguments(NamedTuple):
    name: str
    namespace: str
    uid: str
    node: str


def read_arguments(value: Any) -> Arguments:
    """Raises WireError."""
    found = fields(value, f"v1.{_ARGS}", OUTSIDE, ("Pod", "Nodes", "NodeNames"))
    pod = entries(found.get("Pod"), "v1.Pod", OUTSIDE.field(_ARGS, "Pod"))
    names = _texts(found.get("NodeNames"), OUTSIDE.field(_ARGS, "NodeNames"))
    if names is not None or found.get("Nodes") is None:
        return Arguments(pod, None, names or ())
    place = OUTSIDE.field(_ARGS, "Nodes")
    node_list = fields(found["Nodes"], "v1.NodeList", place, ("items",))
    inside = place.field("NodeList", "items")
    nodes = items(node_list.get("items"), "[]v1.Node", inside) or []
    return Arguments(
        pod,
        [entries(node, "v1.Node", inside) for node in nodes],
        tuple(_name_of(node, inside) for node in nodes),
    )


def read_preemption_arguments(value: Any) -> PreemptionArguments:
    """Victims as uids, in either form. Raises WireError."""
    known = ("Pod", "NodeNameToVictims", "NodeNameToMetaVictims")
    found = fields(value, f"v1.{_PREEMPTION_ARGS}", OUTSIDE, known)
    pod = entries(found.get("Pod"), "v1.Pod", OUTSIDE.field(_PREEMPTION_ARGS, "Pod"))
    place = OUTSIDE.field(_PREEMPTION_ARGS, "NodeNameToMetaVictims")
    victims = _meta_victims(found.get("NodeNameToMetaVictims"), place)
    place = OUTSIDE.field(_PREEMPTION_ARGS, "NodeNameToVictims")
    whole_ones = entries(found.get("NodeNameToVictims"), "map[string]*v1.Victims", place)
    for name, value_ in whole_ones.items():
        victims.setdefault(name, _whole_victims(value_, place))
    return PreemptionArguments(pod, victims)


def _whole_victims(value: Any, place: FieldPlace) -> MetaVictims:
    found = fields(value, "v1.Victims", place, ("Pods", "NumPDBViolations"))
    inside = place.field("Victims", "Pods")
    uids = []
    for pod in items(found.get("Pods"), "[]*v1.Pod", inside) or ():
        metadata = fields(pod, "v1.Pod", inside, ("metadata",)).get("metadata")
        at = inside.field("Pod", "metadata")
        uid = fields(metadata, "v1.ObjectMeta", at, ("uid",)).get("uid")
        uids.append(text(uid, at.field("ObjectMeta", "uid")))
    count = integer(found.get("NumPDBViolations"), place.field("Victims", "NumPDBViolations"))
    return MetaVictims(tuple(uids), count)


def read_binding_arguments(value: Any) -> BindingArguments:
    """Raises WireError."""
    known = ("PodName", "PodNamespace", "PodUID", "Node")
    found = fields(value, f"v1.{_BINDING_ARGS}", OUTSIDE, known)
    texts = (text(found.get(name), OUTSIDE.field(_BINDING_ARGS, name)) for name in known)
    return BindingArguments(*texts)


# --- answers sent --------------------------------------------------------------------------------


def filter_answer(
    question: Arguments, passed: Iterable[str], failed: dict[str, str], never: dict[str, str]
) -> dict[str, Any]:
    """In the form of the request: names for names, whole nodes for whole nodes."""
    names = set(passed)
    nodes = None
    if question.nodes is not None:
        pairs = zip(question.nodes, question.node_names, strict=True)
        nodes = {"metadata": {}, "items": [node for node, name in pairs if name in names]}
    return {
        "Nodes": nodes,
        "NodeNames": [name for name in question.node_names if name in names]
        if nodes is None
        else None,
        "FailedNodes": failed,
        "FailedAndUnresolvableNodes": never,
        "Error": "",
    }


def filter_error(message: str) -> dict[str, Any]:
    return {
        "Nodes": None,
        "NodeNames": None,
        "FailedNodes": None,
        "FailedAndUnresolvableNodes": None,
        "Error": message,
    }


def priorities_answer(scores: Mapping[str, int]) -> list[dict[str, Any]]:
    return [{"Host": host, "Score": score} for host, score in scores.items()]


def preemption_answer(victims: Mapping[str, MetaVictims]) -> dict[str, Any]:
    return {
        "NodeNameToMetaVictims": {
            name: {"Pods": [{"UID": uid} for uid in meta.uids], "NumPDBViolations": meta.violations}
            for name, meta in victims.items()
        }
    }


def binding_answer(error: str = "") -> dict[str, Any]:
    return {"Error": error}
