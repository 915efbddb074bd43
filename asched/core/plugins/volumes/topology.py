"""Nodes from which volumes can be reached: masks over rows for the selectors of storage objects.

    node affinity of a volume      node selector terms, judged by labels alone: names are not known
    allowedTopologies of a class   terms of `label In values`, any of which may hold
    nodeTopology of a capacity     a label selector; none at all reaches no node

Bounds  SELECTORS_MAX node selectors are kept compiled; of the terms of each the first TERMS_MAX
        count.
Source  kubernetes/kubernetes v1.36 component-helpers/storage/volume/helpers.go,
        pkg/apis/core/v1/helper/helpers.go (MatchTopologySelectorTerms)
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import numpy as np

from asched.core.cluster.view import NodeView
from asched.core.framework.points import Mask
from asched.core.model.meta import LabelSelector
from asched.core.model.pod_limits import TERMS_MAX
from asched.core.model.selector import (
    NodeSelector,
    NodeTerm,
    Requirement,
    compile_selector,
    compile_term,
)
from asched.core.model.volume import TopologyTerm
from asched.core.plugins.term_match import match_term

#: Cache of compiled node selectors. A guess: each local volume has its own, and there are thousands
#: of local volumes.
SELECTORS_MAX: Final = 16_384


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


@lru_cache(maxsize=SELECTORS_MAX)
def compiled(required: NodeSelector | None) -> tuple[NodeTerm, ...] | None:
    """Terms without fields that can match at all; None is no restriction.

    Upstream compares a volume with a node without a name and ignores fields. A term that has only
    fields therefore matches every node.
    """
    if required is None:
        return None
    written = (required.node_selector_terms or ())[:TERMS_MAX]
    return tuple(_meaningful(map(compile_term, written)))


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
