"""Suggested changes of a pod or of nodes: what finds them, and how one is described."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np

from asched.core.cluster.supposition import Supposition
from asched.core.model.pod import Pod
from asched.insight.explain.deciding import Deciding


class SuggestedChange(NamedTuple):
    """`text` for people, `details` with API field names for programs; `nodes`: the number of nodes
    that the pod fits on then, one of them `node`. `takes`: how many `of` the pods that wait for the
    same fit then, with the pod itself; 0 of 0 if that was not tried.
    """

    kind: str
    text: str
    details: dict[str, Any]
    nodes: int
    node: str
    takes: int = 0
    of: int = 0


class Way(NamedTuple):
    """A suggested change, and its application to a pod and to the cluster."""

    change: SuggestedChange
    of_pod: Callable[[Pod], Pod] = lambda pod: pod
    of_cluster: Callable[[Supposition], object] = lambda _: None


#: Finds the ways of one kind, the smallest first. Raises OutOfTurn, PointError.
Kind = Callable[[Deciding], Iterator[Way]]


def with_spec(pod: Pod, **fields: Any) -> Pod:
    """The pod with other fields in its spec."""
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, **fields))


def suggestion(
    deciding: Deciding, kind: str, text: str, details: dict[str, Any], pod: Pod | None = None
) -> SuggestedChange:
    """The suggested change of a pod that fits with it in the hypothetical cluster."""
    rows = np.flatnonzero(deciding.rows(pod))
    return SuggestedChange(kind, text, details, len(rows), deciding.node(int(rows[0])).name)
