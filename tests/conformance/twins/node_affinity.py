"""Twin of NodeAffinity."""

from asched.core.config.args import NodeAffinityArgs
from asched.core.model.decode import decode
from asched.core.model.meta import LabelSelectorRequirement
from asched.core.model.node import Node
from asched.core.model.pod import Pod, PodNodeAffinity
from asched.core.model.selector import NodeSelectorTerm, PreferredSchedulingTerm
from tests.conformance.twins.picture import Picture, Place, Rejection


def reject(
    pod: Pod, place: Place, picture: Picture, args: NodeAffinityArgs | None
) -> Rejection | None:
    added = _added(args)
    if added and added.required and not any_term(added.required.node_selector_terms, place.node):
        return ["node(s) didn't match scheduler-enforced node affinity"], False
    for key, value in (pod.spec.node_selector or {}).items():
        if key not in place.node.labels or place.node.labels[key] != value:
            return ["node(s) didn't match Pod's node affinity/selector"], False
    own = _own(pod)
    if own and own.required and not any_term(own.required.node_selector_terms, place.node):
        return ["node(s) didn't match Pod's node affinity/selector"], False
    return None


def raw_score(
    pod: Pod, place: Place, picture: Picture, args: NodeAffinityArgs | None
) -> int | None:
    own, added = _own(pod), _added(args)
    wanted: list[PreferredSchedulingTerm] = []
    if own and own.preferred is not None:
        wanted += own.preferred
    elif not (added and added.preferred):
        return None
    if added and added.preferred:
        wanted += added.preferred
    return sum(t.weight for t in wanted if _matches(t.preference, place.node))


def normalized(raw: list[int]) -> list[int]:
    most = max(raw)
    return [score * 100 // most if most else 0 for score in raw]


def _own(pod: Pod) -> PodNodeAffinity | None:
    return pod.spec.affinity.node_affinity if pod.spec.affinity else None


def _added(args: NodeAffinityArgs | None) -> PodNodeAffinity | None:
    return decode(PodNodeAffinity, args.added_affinity) if args and args.added_affinity else None


def any_term(terms: tuple[NodeSelectorTerm, ...] | None, node: Node) -> bool:
    """Whether some term of a node selector selects the node."""
    return any(_matches(term, node) for term in terms or ())


def _matches(term: NodeSelectorTerm, node: Node) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    return all(_holds(r, node.labels.get(r.key)) for r in term.match_expressions or ()) and all(
        _holds(r, node.name) for r in term.match_fields or ()
    )


def _holds(requirement: LabelSelectorRequirement, value: str | None) -> bool:
    values = requirement.values or ()
    match requirement.operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and _is_number(value) and int(value) > int(values[0])
        case "Lt":
            return value is not None and _is_number(value) and int(value) < int(values[0])
    raise AssertionError(f"worlds have no operator {requirement.operator}")


def _is_number(text: str) -> bool:
    return text.lstrip("-").isdigit()
