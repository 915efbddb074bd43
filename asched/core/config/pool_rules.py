"""Which pools of a configuration select a node or a namespace, by its labels and name."""

from collections.abc import Sequence
from typing import NamedTuple

from asched.core.config.pools import NodePool
from asched.core.model.meta import LabelSelector, LabelSelectorRequirement
from asched.core.model.selector import Labels, Selector, compile_selector


class _Selection(NamedTuple):
    """What a pool selects."""

    node_labels: tuple[tuple[str, str], ...]
    namespaces: frozenset[str]
    namespace_selector: Selector | None


class PoolRules:
    """What the pools of a configuration select. A pool is its number in `names`, without the pool
    `default`.
    """

    def __init__(self, pools: Sequence[NodePool]) -> None:
        self.names = tuple(pool.name for pool in pools)
        self._selections = tuple(map(_selection, pools))

    def of_node(self, labels: Labels) -> list[int]:
        """The pools that select a node with these labels."""
        return [
            number
            for number, selection in enumerate(self._selections)
            if all(labels.get(key) == value for key, value in selection.node_labels)
        ]

    def of_namespace(self, name: str, labels: Labels) -> list[int]:
        """The pools that name a namespace, or select its labels."""
        return [
            number
            for number, (_, listed, selector) in enumerate(self._selections)
            if name in listed or (selector is not None and selector.matches(labels))
        ]

    def is_named(self, namespace: str, pool: int) -> bool:
        """Whether the pool names the namespace, not only its labels."""
        return namespace in self._selections[pool].namespaces

    def listed(self, pools: Sequence[int]) -> str:
        """The names of pools, as a list for messages."""
        return ", ".join(self.names[pool] for pool in pools)


def _selection(pool: NodePool) -> _Selection:
    labels, listed = tuple(pool.labels.items()), frozenset(pool.namespaces)
    written = pool.namespace_selector
    if written is None:
        return _Selection(labels, listed, None)
    expressions = tuple(
        LabelSelectorRequirement(key=wanted.key, operator=wanted.operator, values=wanted.values)
        for wanted in written.match_expressions
    )
    selector = LabelSelector(
        match_labels=dict(written.match_labels or {}), match_expressions=expressions
    )
    return _Selection(labels, listed, compile_selector(selector))
