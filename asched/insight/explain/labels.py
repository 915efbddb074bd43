"""Find the labels of a node that would have to change for a pod to select it."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.selector import Labels, Requirement, compile_node_selector, integer

#: The value of a label if any value suffices.
ANY: Final = "true"

#: Requirements that are evaluated in one budget step.
LOOKS_A_STEP: Final = 20

#: Key -> its new value, None to remove the label.
LabelChange = dict[str, str | None]


class Selecting:
    """A pod's requirements on node labels, compiled once. `keys`: the label keys of its selector
    and required node affinity. `charge` is called with budget steps before they are taken, and may
    raise.
    """

    def __init__(self, pod: Pod, charge: Callable[[float], None] = lambda _: None) -> None:
        self._terms = _wanted(pod)
        self._charge = charge
        self._steps = sum(len(r) for term in self._terms for r in term.values()) / LOOKS_A_STEP
        self._values: dict[tuple[int, str], tuple[str | None, ...]] = {}
        self.keys = tuple(dict.fromkeys(key for term in self._terms for key in term))

    def of(self, labels: Labels) -> tuple[str | None, ...]:
        """The values of the keys; nodes with equal values need equal changes."""
        self._charge(len(self.keys) / LOOKS_A_STEP)
        return tuple(labels.get(key) for key in self.keys)

    def fewest_changes(self, labels: Labels) -> list[LabelChange]:
        """For each term of the affinity the changes with which the pod selects a node with these
        labels; contradictory terms are left out.
        """
        self._charge(self._steps)
        found = []
        for at, term in enumerate(self._terms):
            change: LabelChange = {}
            for key, requirements in term.items():
                if not _all_accept(requirements, labels.get(key)):
                    values = self._value(at, key)
                    if not values:
                        break
                    change[key] = values[0]
            else:
                found.append(change)
        return found

    def _value(self, at: int, key: str) -> tuple[str | None, ...]:
        """The first value of a key that a term accepts; () if there is none."""
        known = self._values.get((at, key))
        if known is None:
            requirements, known = self._terms[at][key], ()
            for value in _candidates(requirements):
                self._charge(len(requirements) / LOOKS_A_STEP)
                if _all_accept(requirements, value):
                    known = (value,)
                    break
            self._values[at, key] = known
        return known


def relabelled(node: Node, change: LabelChange) -> Node:
    labels = {k: v for k, v in {**node.labels, **change}.items() if v is not None}
    metadata = msgspec.structs.replace(node.metadata, labels=labels)
    return msgspec.structs.replace(node, metadata=metadata)


def _wanted(pod: Pod) -> list[dict[str, list[Requirement]]]:
    """For each term of the affinity the requirements by label, the selector included."""
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
    """Values among which one meets the requirements, if any does; None means no label."""
    for requirement in requirements:
        match requirement.operator:
            case "In":
                yield from sorted(requirement.values)
            case "Gt" | "Lt":
                bound = integer(min(requirement.values, default="")) or 0
                yield str(bound + (1 if requirement.operator == "Gt" else -1))
    yield ANY
    yield None
