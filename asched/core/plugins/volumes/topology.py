"""Nodes from which volumes can be reached: masks over rows for the selectors of storage objects.

    node affinity of a volume      node selector terms, judged by labels alone: names are not known
    allowedTopologies of a class   terms of `label In values`, any of which may hold
    nodeTopology of a capacity     a label selector; none at all reaches no node

Bounds  SELECTORS_MAX node selectors of few terms are kept compiled, WIDE_MAX of more.
Source  kubernetes/kubernetes v1.36 component-helpers/storage/volume/helpers.go,
        pkg/apis/core/v1/helper/helpers.go (MatchTopologySelectorTerms)
"""

from collections import OrderedDict
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import numpy as np

from asched.core.cluster.budget import FEW, Budget, Gradual
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.view import NodeView
from asched.core.framework.points import Mask
from asched.core.model.meta import LabelSelector
from asched.core.model.selector import (
    NodeSelector,
    NodeSelectorTerm,
    NodeTerm,
    Requirement,
    compile_node_selector,
    compile_selector,
    compile_term,
)
from asched.core.model.volume import TopologyTerm
from asched.core.plugins.stepwise import Stepwise
from asched.core.plugins.term_match import COMPILE_STEPS, match_term, steps_in

#: Cache of compiled node selectors. A guess: each local volume has its own, and there are thousands
#: of local volumes.
SELECTORS_MAX: Final = 16_384
#: Such volumes are rare, and each selector may be a megabyte.
WIDE_MAX: Final = 16


class Reach:
    """One per cluster (`Cluster.singleton`). A volume may have ten thousand terms, which are
    compiled and matched in slices of the budget.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._budget = cluster.budget
        self._wide: OrderedDict[int, _Wide] = OrderedDict()
        steps_of = steps_in(cluster.nodes)
        self._masks: Stepwise[NodeTerm, Mask] = Stepwise(cluster.budget, steps_of, keeps_whole=True)

    def of(self, nodes: NodeView, required: NodeSelector | None) -> Mask:
        """The same as `reachable`; do not change the array. Raises OutOfTurn for many terms and
        rows.
        """
        if not is_wide(required):
            return reachable(nodes, required)
        assert required is not None
        terms = self._compiled(required)
        row = _only_row(nodes)
        if row is not None and (node := nodes.table.node_at[row]) is not None:
            labels = node.labels
            met = any(all(r.matches(labels) for r in term.expressions) for term in terms)
            return np.full(1, met, dtype=np.bool_)
        return self._masks.sum(
            (id(required), None if nodes.rows is None else nodes.rows.tobytes()),
            lambda: nodes.table.labels_moved,
            terms,
            np.zeros(nodes.size, dtype=np.bool_),
            lambda found, term: found | _reached(nodes, term),
        )

    def _compiled(self, required: NodeSelector) -> list[NodeTerm]:
        wide = self._wide.pop(id(required), None) or _Wide(self._budget, required)
        self._wide[id(required)] = wide
        if len(self._wide) > WIDE_MAX:
            self._wide.popitem(last=False)
        if wide.terms is None:
            wide.terms = _meaningful(wide.compiled.all())
        return wide.terms


class _Wide:
    """A selector, referenced so that its id is not reused; `terms` None: not all compiled yet."""

    __slots__ = ("compiled", "required", "terms")

    def __init__(self, budget: Budget, required: NodeSelector) -> None:
        self.required = required
        self.compiled: Gradual[NodeSelectorTerm, NodeTerm] = Gradual(
            budget, required.node_selector_terms or (), compile_term, COMPILE_STEPS
        )
        self.terms: list[NodeTerm] | None = None


def is_wide(required: NodeSelector | None) -> bool:
    """Whether it has more terms than are compiled without a check of the budget."""
    return required is not None and len(required.node_selector_terms or ()) > FEW


def reachable(nodes: NodeView, required: NodeSelector | None) -> Mask:
    """bool[M]: rows that a volume's required node affinity accepts; None accepts all."""
    terms = compiled(required)
    if terms is None:
        return np.ones(nodes.size, dtype=np.bool_)
    found: Mask = np.zeros(nodes.size, dtype=np.bool_)
    for term in terms:
        found |= _reached(nodes, term)
    return found


def _reached(nodes: NodeView, term: NodeTerm) -> Mask | np.bool_:
    return match_term(nodes, term) if term.expressions else np.True_


def _only_row(nodes: NodeView) -> int | None:
    """The row of a view of one row; else None."""
    return int(nodes.rows[0]) if nodes.rows is not None and nodes.size == 1 else None


@lru_cache(maxsize=SELECTORS_MAX)
def compiled(required: NodeSelector | None) -> tuple[NodeTerm, ...] | None:
    """Terms without fields that can match at all; None is no restriction.

    Upstream compares a volume with a node without a name and ignores fields. A term that has only
    fields therefore matches every node.
    """
    terms = compile_node_selector(required)
    return None if terms is None else tuple(_meaningful(terms))


def _meaningful(terms: Iterable[NodeTerm]) -> list[NodeTerm]:
    return [
        NodeTerm(term.expressions, (), broken=False)
        for term in terms
        if not term.broken and not term.is_empty
    ]


def allowed(nodes: NodeView, terms: tuple[TopologyTerm, ...] | None) -> Mask:
    """bool[M]: rows on which a class may make volumes; no terms allow all rows."""
    if not terms:
        return np.ones(nodes.size, dtype=np.bool_)
    found: Mask = np.zeros(nodes.size, dtype=np.bool_)
    for term in terms:
        wanted = term.match_label_expressions or ()
        expressions = tuple(Requirement(e.key, "In", frozenset(e.values or ())) for e in wanted)
        found |= match_term(nodes, NodeTerm(expressions, (), broken=False))
    return found


def selected(nodes: NodeView, selector: LabelSelector | None) -> Mask:
    """bool[M]: rows a label selector selects; None, or an invalid selector, selects none."""
    try:
        found = compile_selector(selector)
    except ValueError:
        found = None
    if found is None:
        return np.zeros(nodes.size, dtype=np.bool_)
    if found.is_everything:
        return np.ones(nodes.size, dtype=np.bool_)
    return match_term(nodes, NodeTerm(found.requirements, (), broken=False))
