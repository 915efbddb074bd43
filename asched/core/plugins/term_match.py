"""Node selector terms over a view: each distinct label value is evaluated once, then gathered.

A label column holds an id for each row (0: no such label), so a requirement becomes a table of
verdicts by id. `metadata.name`, the only field there is, is compared by row instead.

Source  kubernetes/kubernetes v1.36 component-helpers/scheduling/corev1/nodeaffinity
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from asched.core.cluster.nodes import LabelColumn
from asched.core.cluster.view import NodeView
from asched.core.cluster.vocab import Vocab, with_room
from asched.core.model.arrays import Mask
from asched.core.model.selector import NodeTerm, Requirement, integer

T = TypeVar("T", bound=Hashable)


def match_any(nodes: NodeView, terms: Iterable[NodeTerm]) -> Mask:
    """bool[M]: rows that some term selects; no term at all selects none."""
    matched = np.zeros(nodes.size, dtype=np.bool_)
    for term in terms:
        matched |= match_term(nodes, term)
    return matched


def match_term(nodes: NodeView, term: NodeTerm) -> Mask:
    """bool[M]: rows that meet every requirement of the term; an empty term selects none."""
    if term.broken or term.is_empty:
        return np.zeros(nodes.size, dtype=np.bool_)
    matched = np.ones(nodes.size, dtype=np.bool_)
    is_carried = nodes.table.is_carried
    for requirement in term.expressions:
        if not is_carried(requirement.key):
            if requirement.accepts(None):
                continue
            return np.zeros(nodes.size, dtype=np.bool_)
        ids, column = nodes.label(requirement.key)
        matched &= _verdicts(requirement, column)[ids]
    for field in term.fields:
        matched &= _match_name(nodes, field)
    return matched


def match_labels(nodes: NodeView, labels: Iterable[tuple[str, str]]) -> Mask:
    """bool[M]: rows that carry every one of the labels."""
    matched = np.ones(nodes.size, dtype=np.bool_)
    for key, value in labels:
        ids, column = nodes.label(key)
        wanted = column.values.find(value)
        if not wanted:
            return np.zeros(nodes.size, dtype=np.bool_)
        matched &= ids == wanted
    return matched


def _verdicts(requirement: Requirement, column: LabelColumn) -> Mask:
    """bool[V]: verdict of the requirement on each value of the label; 0 is no label."""
    values = column.values
    if requirement.operator in ("In", "NotIn"):
        named = np.zeros(len(values), dtype=np.bool_)
        named[[values.find(value) for value in requirement.values]] = True
        named[0] = False
        return named if requirement.operator == "In" else ~named
    if requirement.operator in ("Gt", "Lt"):
        bound = integer(next(iter(requirement.values), ""))
        numbers, is_number = column.integers()
        if bound is None:
            return np.zeros(len(values), dtype=np.bool_)
        found: Mask = numbers > bound if requirement.operator == "Gt" else numbers < bound
        return found & is_number
    accepted = np.full(len(values), requirement.operator == "Exists", dtype=np.bool_)
    accepted[0] = not accepted[0]
    return accepted


def _match_name(nodes: NodeView, field: Requirement) -> Mask:
    named = np.zeros(nodes.size, dtype=np.bool_)
    for name in field.values:
        position = nodes.position_of(name)
        if position is not None:
            named[position] = True
    return named if field.operator == "In" else ~named


class ByValue(Generic[T]):
    """The result of `evaluate` for each value of a vocabulary, by id."""

    def __init__(self, evaluate: Callable[[T], int], dtype: type[np.generic]) -> None:
        self._evaluate = evaluate
        self._seen = -1
        self._results: npt.NDArray[Any] = np.zeros(0, dtype=dtype)

    def of(self, vocab: Vocab[T]) -> npt.NDArray[Any]:
        """The results; values that have appeared since the last call are evaluated."""
        if self._seen != vocab.end:
            self._results = with_room(self._results, len(vocab))
            for id_ in vocab.births(self._seen):
                self._results[id_] = self._evaluate(vocab.values[id_])
            self._seen = vocab.end
        return self._results
