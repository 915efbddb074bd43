"""What a change is, and the way there: so that it can be supposed again for others."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np

from asched.core.model.pod import Pod
from asched.core.state.supposition import Supposition
from asched.insight.explain.deciding import Deciding


class SuggestedChange(NamedTuple):
    """`text` for people, `details` in the API's words for programs; `nodes`: on how many the pod
    fits then, one of them `node`. `takes`: how many `of` those that wait for the same fit then,
    the pod itself among them; 0 of 0: nobody was asked about.
    """

    kind: str
    text: str
    details: dict[str, Any]
    nodes: int
    node: str
    takes: int = 0
    of: int = 0


def as_it_is(pod: Pod) -> Pod:
    """For changes that are not the pod's."""
    return pod


def nothing(_: Supposition) -> None:
    """For changes that are the pod's own."""


class Way(NamedTuple):
    """A change, and what it makes of a pod, and of the cluster."""

    change: SuggestedChange
    of_pod: Callable[[Pod], Pod] = as_it_is
    of_cluster: Callable[[Supposition], object] = nothing


#: Finds the ways of one kind, the smallest first. Raises OutOfTurn, PointError.
Kind = Callable[[Deciding], Iterator[Way]]


def with_spec(pod: Pod, **fields: Any) -> Pod:
    """The pod with other fields in its spec."""
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, **fields))


def told(
    deciding: Deciding, kind: str, text: str, details: dict[str, Any], pod: Pod | None = None
) -> SuggestedChange:
    """The change of a pod that fits somewhere with it, as things are supposed to stand."""
    rows = np.flatnonzero(deciding.rows(pod))
    node = deciding.cluster.nodes.node_at[int(rows[0])]
    assert node is not None
    return SuggestedChange(kind, text, details, len(rows), node.name)
