"""Where volumes can be reached from: masks over node rows for the selectors of storage objects.

    node affinity of a volume      node selector terms, judged by labels alone: names are not known
    allowedTopologies of a class   terms of `label In values`, any of which may hold
    nodeTopology of a capacity     a label selector; none at all reaches no node
Source  kubernetes/kubernetes v1.36 component-helpers/storage/volume/helpers.go,
        pkg/apis/core/v1/helper/helpers.go (MatchTopologySelectorTerms)
"""

from functools import lru_cache
from typing import Final

import numpy as np

from asched.core.framework.points import Mask
from asched.core.model.meta import LabelSelector
from asched.core.model.selector import (
    NodeSelector,
    NodeTerm,
    Requirement,
    compile_node_selector,
    compile_selector,
)
from asched.core.model.volume import TopologyTerm
from asched.core.plugins.term_match import match_term
from asched.core.state.view import NodeView

#: Node selectors compiled lately. A guess: local volumes have one each, and thousands of them.
SELECTORS_MAX: Final = 16_384


def reachable(nodes: NodeView, required: NodeSelector | None) -> Mask:
    """bool[M]: rows that a volume's required node affinity accepts; None accepts all."""
    terms = compiled(required)
    if terms is None:
        return np.ones(nodes.size, dtype=np.bool_)
    found: Mask = np.zeros(nodes.size, dtype=np.bool_)
    for term in terms:
        found |= match_term(nodes, term) if term.expressions else np.True_
    return found


@lru_cache(maxsize=SELECTORS_MAX)
def compiled(required: NodeSelector | None) -> tuple[NodeTerm, ...] | None:
    """Terms without fields that can match at all; None is no restriction.

    A volume is compared with a node without a name, of which no field is looked at. A term that
    has fields alone therefore matches every node.
    """
    terms = compile_node_selector(required)
    if terms is None:
        return None
    return tuple(
        NodeTerm(term.expressions, (), broken=False)
        for term in terms
        if not term.broken and not term.is_empty
    )


def allowed(nodes: NodeView, terms: tuple[TopologyTerm, ...] | None) -> Mask:
    """bool[M]: rows on which a class may make volumes; no terms allow all rows."""
    if not terms:
        return np.ones(nodes.size, dtype=np.bool_)
    found: Mask = np.zeros(nodes.size, dtype=np.bool_)
    for term in terms:
        wanted = term.match_label_expressions or ()
        if wanted and all(expression.values for expression in wanted):
            expressions = tuple(Requirement(e.key, "In", frozenset(e.values or ())) for e in wanted)
            found |= match_term(nodes, NodeTerm(expressions, (), broken=False))
    return found


def selected(nodes: NodeView, selector: LabelSelector | None) -> Mask:
    """bool[M]: rows a label selector selects; None, or one that makes no sense, selects none."""
    try:
        found = compile_selector(selector)
    except ValueError:
        found = None
    if found is None:
        return np.zeros(nodes.size, dtype=np.bool_)
    if found.is_everything:
        return np.ones(nodes.size, dtype=np.bool_)
    return match_term(nodes, NodeTerm(found.requirements, (), broken=False))
