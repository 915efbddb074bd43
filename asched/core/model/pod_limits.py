"""Limits for the pods that are scheduled. A pod beyond one of them is refused with a message that
names the limit: evaluating it would take longer than other pods should wait.

Ordinary pods have tens of entries and take hundreds of bytes.
"""

from collections.abc import Iterable
from typing import Final

from asched.core.model.pod import Affinity, Pod
from asched.core.model.selector import NodeSelectorTerm

#: Terms of pod and node affinity, and topology spread constraints, in sum.
TERMS_MAX: Final = 256
#: Requirements of all node affinity terms in sum.
REQUIREMENTS_MAX: Final = 1_024
#: Bytes of spec and labels, encoded as in the key of the pod's class.
BYTES_MAX: Final = 128 << 10
#: Pods of fewer bytes cannot exceed the other limits.
CHECKED_BYTES: Final = 2 << 10


def exceeded(pod: Pod, size_bytes: int) -> str:
    """Which limit a pod with a key of this size exceeds, for its condition; empty if none."""
    if size_bytes <= CHECKED_BYTES:
        return ""
    if size_bytes > BYTES_MAX:
        return _refusal("KiB of spec and labels", -(-size_bytes >> 10), BYTES_MAX >> 10)
    affinity = pod.spec.affinity
    node_terms = _node_terms(affinity)
    terms = len(node_terms) + pod_terms(affinity)
    terms += len(pod.spec.topology_spread_constraints or ())
    if terms > TERMS_MAX:
        return _refusal("affinity terms and topology spread constraints", terms, TERMS_MAX)
    requirements = sum(len(term.match_expressions or ()) for term in node_terms)
    if requirements > REQUIREMENTS_MAX:
        return _refusal("requirements of node affinity", requirements, REQUIREMENTS_MAX)
    return ""


def pod_terms(affinity: Affinity | None) -> int:
    """The number of terms of pod affinity and anti-affinity."""
    both = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ()
    return sum(len(part.required or ()) + len(part.preferred or ()) for part in both if part)


def _node_terms(affinity: Affinity | None) -> list[NodeSelectorTerm]:
    near = affinity.node_affinity if affinity else None
    if near is None:
        return []
    required: Iterable[NodeSelectorTerm] = ()
    if near.required is not None:
        required = near.required.node_selector_terms or ()
    return [*required, *(preferred.preference for preferred in near.preferred or ())]


def _refusal(what: str, count: int, limit: int) -> str:
    return f"the pod has {count} {what}, more than the limit of {limit}"
