"""Which labels of a node would have to change for a pod to select it."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.selector import Labels, Requirement, compile_node_selector, integer

#: What a label is set to where any value will do.
ANY: Final = "true"

#: Key -> its new value, None to take the label away.
LabelChange = dict[str, str | None]


def keys_read(pod: Pod) -> tuple[str, ...]:
    """The label keys of nodes that the pod's selector and required node affinity speak of."""
    return tuple(dict.fromkeys(key for wanted in _wanted(pod) for key in wanted))


def fewest_changes(pod: Pod, labels: Labels) -> list[LabelChange]:
    """For each term of its affinity what would have to change for the pod to select a node with
    these labels; terms that contradict themselves are left out.
    """
    found = []
    for wanted in _wanted(pod):
        change: LabelChange = {}
        for key, requirements in wanted.items():
            if not _all_accept(requirements, labels.get(key)):
                values = [v for v in _candidates(requirements) if _all_accept(requirements, v)]
                if not values:
                    break
                change[key] = values[0]
        else:
            found.append(change)
    return found


def relabelled(node: Node, change: LabelChange) -> Node:
    labels = {k: v for k, v in {**node.labels, **change}.items() if v is not None}
    metadata = msgspec.structs.replace(node.metadata, labels=labels)
    return msgspec.structs.replace(node, metadata=metadata)


def _wanted(pod: Pod) -> list[dict[str, list[Requirement]]]:
    """For each term of the affinity all that is required of each label, the selector included."""
    affinity = pod.spec.affinity
    wanted = affinity.node_affinity if affinity is not None else None
    terms = compile_node_selector(wanted.required if wanted is not None else None)
    selected = [
        Requirement(key, "In", frozenset((value,)))
        for key, value in (pod.spec.node_selector or {}).items()
    ]
    chosen = [()] if terms is None else [t.expressions for t in terms if not t.broken]
    found = []
    for expressions in chosen:
        by_key: dict[str, list[Requirement]] = {}
        for requirement in (*selected, *expressions):
            by_key.setdefault(requirement.key, []).append(requirement)
        found.append(by_key)
    return found


def _all_accept(requirements: Iterable[Requirement], value: str | None) -> bool:
    return all(requirement.accepts(value) for requirement in requirements)


def _candidates(requirements: Iterable[Requirement]) -> Iterator[str | None]:
    """Values that may meet them, where any does; None is no label at all."""
    for requirement in requirements:
        match requirement.operator:
            case "In":
                yield from sorted(requirement.values)
            case "Gt" | "Lt":
                bound = integer(min(requirement.values, default="")) or 0
                yield str(bound + (1 if requirement.operator == "Gt" else -1))
    yield ANY
    yield None
