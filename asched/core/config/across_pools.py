"""Which namespaces have to share a pool because of a rule about pods, and what is said about it."""

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Final

from asched.core.config.pools import TO_SHARE

OF_ANY_NAMESPACE: Final = f"may concern pods of any namespace, so all would {TO_SHARE}"
OF_OTHER_POOLS: Final = f"concerns pods of other pools; these namespaces {TO_SHARE}"
NAMED_MAX: Final = 5


def namespaces_to_share(
    own: str, reached: Collection[str], pool_of: Callable[[str], Hashable]
) -> tuple[str, ...]:
    """The namespaces that have to share a pool, since a rule of a pod of namespace `own` may
    concern pods of those `reached`; `own` first. Empty if none of them is in another pool.
    """
    pool = pool_of(own)
    others = [name for name in sorted(reached) if pool_of(name) != pool]
    return (own, *others) if others else ()


def why_stopped(rule: str, to_share: Sequence[str] | None) -> str:
    """Why a pod waits for whose rule these namespaces have to share a pool; None: all of them."""
    if to_share is None:
        return f"rule of {rule} {OF_ANY_NAMESPACE}"
    return f"rule of {rule} {OF_OTHER_POOLS}: {listed(to_share)}"


def of_another_node(rule: str, node: str, namespace: str) -> str:
    """Why a pod waits that is pinned to a node of another pool than its namespace's, while its rule
    concerns other pods of its namespace.
    """
    text = f"concerns pods of other pools; node {node} and its namespace {TO_SHARE}"
    return f"rule of {rule} {text}: {namespace}"


def listed(to_share: Sequence[str]) -> str:
    """The own namespace and NAMED_MAX others, for messages."""
    named, more = to_share[: NAMED_MAX + 1], len(to_share) - NAMED_MAX - 1
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")
