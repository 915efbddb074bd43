"""The extender protocol v1, as client and as server: requests and answers.

    requests sent      arguments, preemption_arguments, binding_arguments
    answers received   filter_result, priorities, preemption_result, binding_error
    requests received  read_arguments, read_preemption_arguments, read_binding_arguments
    answers sent       filter_answer, priorities_answer, preemption_answer, binding_answer

Rules   the structs have no JSON tags: keys are Go's field names, absent values are sent as null,
                and read regardless of their case; Kubernetes objects inside have their usual form.
                Requests refer to whole objects as `Whole` and `Wholes`: the sender inserts their
                bytes. Values are read as Go's decoder does, with the same error messages: authors
                of extenders know them, and they appear in the pod's condition.
Bounds  none of its own: a request is as large as the cluster.
Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/kube-scheduler/extender/v1/types.go;
        encoding/json of Go 1.25 (UnmarshalTypeError)
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from asched.core.config.scalars import kind_of
from asched.core.framework.effects import Whole, Wholes
from asched.core.framework.preemption_trial import Candidate
from asched.core.model.kinds import NODE, POD
from asched.core.model.pod import Pod
from asched.core.model.quantity import INT64_MAX, INT64_MIN


class WireError(ValueError):
    """A value of the wrong type or range for its field."""


def _mismatch(shown: str, go_type: str, struct: str, path: tuple[str, ...]) -> WireError:
    where = f"struct field {struct}.{'.'.join(path)}" if struct else "value"
    return WireError(f"json: cannot unmarshal {shown} into Go {where} of type {go_type}")


class GoField(NamedTuple):
    """A value, and where it is: the struct, and the path from the outermost one; both empty
    outside. null is the zero value. Methods raise WireError.
    """

    value: Any
    struct: str = ""
    path: tuple[str, ...] = ()

    def text(self) -> str:
        return "" if self.value is None else self._of(str, "string")

    def integer(self) -> int:
        """A whole number of 64 bits."""
        value = self.value
        if value is None:
            return 0
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _mismatch(kind_of(value), "int64", self.struct, self.path)
        if isinstance(value, float) or not INT64_MIN <= value <= INT64_MAX:
            raise _mismatch(f"number {value}", "int64", self.struct, self.path)
        return value

    def items(self, go_type: str) -> list["GoField"]:
        return [self._replace(value=item) for item in self.raw_items(go_type)]

    def raw_items(self, go_type: str) -> list[Any]:
        """A list; empty for null."""
        return [] if self.value is None else self._of(list, go_type)

    def entries(self, go_type: str) -> dict[str, Any]:
        """A map; {} for null."""
        return {} if self.value is None else self._of(dict, go_type)

    def fields_of(self, go_type: str, known: Sequence[str]) -> "GoFields":
        """The known fields of a struct. A key is matched exactly or else regardless of its case;
        unknown ones are ignored.
        """
        by_lower = {name.lower(): name for name in known}
        found: dict[str, Any] = {}
        for key, item in self.entries(f"v1.{go_type}").items():
            name = by_lower.get(key.lower())
            if name is not None and (item is not None or name not in found):
                found[name] = item
        return {name: GoField(found.get(name), go_type, (*self.path, name)) for name in known}

    def _of(self, kind: type, go_type: str) -> Any:
        if not isinstance(self.value, kind):
            raise _mismatch(kind_of(self.value), go_type, self.struct, self.path)
        return self.value


GoFields = Mapping[str, GoField]

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


class MetaVictims(NamedTuple):
    uids: tuple[str, ...]
    violations: int


def filter_result(value: Any) -> FilterResult:
    """Raises WireError."""
    known = ("Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes", "Error")
    found = GoField(value).fields_of("ExtenderFilterResult", known)
    return FilterResult(
        node_names=_texts(found["NodeNames"]),
        nodes=None if found["Nodes"].value is None else tuple(n for n, _ in _nodes(found["Nodes"])),
        failed=_reasons(found["FailedNodes"]),
        unresolvable=_reasons(found["FailedAndUnresolvableNodes"]),
        error=found["Error"].text(),
    )


def priorities(value: Any) -> list[tuple[str, int]]:
    """(host, score) of each HostPriority. Raises WireError."""
    result = []
    for item in GoField(value).raw_items("v1.HostPriorityList"):
        if type(item) is dict and len(item) == 2:  # the usual form, thousands of them
            host, score = item.get("Host"), item.get("Score")
            if type(host) is str and type(score) is int and INT64_MIN <= score <= INT64_MAX:
                result.append((host, score))
                continue
        found = GoField(item).fields_of("HostPriority", ("Host", "Score"))
        result.append((found["Host"].text(), found["Score"].integer()))
    return result


def preemption_result(value: Any) -> dict[str, MetaVictims]:
    """Node name to victims; only the meta form counts. Raises WireError."""
    known = ("NodeNameToMetaVictims",)
    found = GoField(value).fields_of("ExtenderPreemptionResult", known)
    return _meta_victims(found["NodeNameToMetaVictims"])


def binding_error(value: Any) -> str:
    """The error message, empty if binding succeeded. Raises WireError."""
    return GoField(value).fields_of("ExtenderBindingResult", ("Error",))["Error"].text()


def _texts(field: GoField) -> tuple[str, ...] | None:
    if field.value is None:
        return None
    names = field.raw_items("[]string")
    return tuple([n if type(n) is str else field._replace(value=n).text() for n in names])


def _reasons(field: GoField) -> dict[str, str]:
    found = field.entries("v1.FailedNodesMap")
    return {name: field._replace(value=reason).text() for name, reason in found.items()}


def _nodes(field: GoField) -> list[tuple[str, GoField]]:
    """The nodes of a NodeList with their names."""
    listed = field.fields_of("NodeList", ("items",))["items"].items("[]v1.Node")
    return [(_metadata(node, "Node", "name"), node) for node in listed]


def _metadata(field: GoField, kind: str, name: str) -> str:
    """A text in the metadata of an object."""
    metadata = field.fields_of(kind, ("metadata",))["metadata"]
    return metadata.fields_of("ObjectMeta", (name,))[name].text()


def _meta_victims(field: GoField) -> dict[str, MetaVictims]:
    return {
        name: _victims(field._replace(value=victims), "Meta")
        for name, victims in field.entries("map[string]*v1.MetaVictims").items()
    }


def _victims(field: GoField, form: str) -> MetaVictims:
    """Victims as uids (`form` "Meta"), or as whole pods ("")."""
    found = field.fields_of(f"{form}Victims", ("Pods", "NumPDBViolations"))
    pods = found["Pods"].items(f"[]*v1.{form}Pod")
    uids = [
        pod.fields_of("MetaPod", ("UID",))["UID"].text() if form else _metadata(pod, "Pod", "uid")
        for pod in pods
    ]
    return MetaVictims(tuple(uids), found["NumPDBViolations"].integer())


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
    found = GoField(value).fields_of("ExtenderArgs", ("Pod", "Nodes", "NodeNames"))
    pod, names = found["Pod"].entries("v1.Pod"), _texts(found["NodeNames"])
    if names is not None or found["Nodes"].value is None:
        return Arguments(pod, None, names or ())
    nodes = _nodes(found["Nodes"])
    whole_ones = [node.entries("v1.Node") for _, node in nodes]
    return Arguments(pod, whole_ones, tuple(name for name, _ in nodes))


def read_preemption_arguments(value: Any) -> PreemptionArguments:
    """Victims as uids, in either form. Raises WireError."""
    known = ("Pod", "NodeNameToVictims", "NodeNameToMetaVictims")
    found = GoField(value).fields_of("ExtenderPreemptionArgs", known)
    pod, victims = found["Pod"].entries("v1.Pod"), _meta_victims(found["NodeNameToMetaVictims"])
    field = found["NodeNameToVictims"]
    for name, whole_ones in field.entries("map[string]*v1.Victims").items():
        victims.setdefault(name, _victims(field._replace(value=whole_ones), ""))
    return PreemptionArguments(pod, victims)


def read_binding_arguments(value: Any) -> BindingArguments:
    """Raises WireError."""
    known = ("PodName", "PodNamespace", "PodUID", "Node")
    found = GoField(value).fields_of("ExtenderBindingArgs", known)
    return BindingArguments(*(found[name].text() for name in known))


# --- answers sent --------------------------------------------------------------------------------


def filter_answer(
    question: Arguments, passed: Iterable[str], failed: dict[str, str], never: dict[str, str]
) -> dict[str, Any]:
    """In the form of the request: names for names, whole nodes for whole nodes."""
    passed = set(passed)
    names: Any = [name for name in question.node_names if name in passed]
    nodes = None
    if question.nodes is not None:
        pairs = zip(question.nodes, question.node_names, strict=True)
        nodes = {"metadata": {}, "items": [node for node, name in pairs if name in passed]}
        names = None
    return {
        "Nodes": nodes,
        "NodeNames": names,
        "FailedNodes": failed,
        "FailedAndUnresolvableNodes": never,
        "Error": "",
    }


def filter_error(message: str) -> dict[str, Any]:
    fields = ("Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes")
    return {**dict.fromkeys(fields), "Error": message}


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
