"""Where a pod counts, per topology key."""

from asched.core.cluster.counters import CounterKey, PodPredicate
from asched.core.model.decode import decode
from asched.core.model.meta import LabelSelector
from asched.core.model.selector import Selector, compile_selector
from tests.topology_builders import selector_of


def on(text: str) -> Selector:
    compiled = compile_selector(decode(LabelSelector, selector_of(text) or {}))
    assert compiled is not None
    return compiled


def key(
    text: str, *namespaces: str, terminating: bool = True, on_trial: bool = False
) -> CounterKey:
    predicate = PodPredicate(frozenset(namespaces) if namespaces else None, on(text))
    return CounterKey((predicate,), terminating, on_trial)
