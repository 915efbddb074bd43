"""Keep autoscalers from removing nodes with held places, which look empty to them (keepNodes).

    a place is held on a node ─> both annotations and the mark ─> none is held any more ─> removed

The mark lists the annotations that asched set, so that it removes no others: an annotation that was
there before, with any value, is left alone. Marks of an earlier process are found among the nodes.
Every write requires the version of the node that it was made from.

Bounds  nodes are compared every CHECK_S while there are holds or marks, and all of them searched
        for marks every SEARCH_S; WRITES_MAX writes at a time.
Source  kubernetes-sigs/cluster-autoscaler pkg/core/scaledown/eligibility,
        kubernetes-sigs/karpenter pkg/controllers/state/statenode.go (ValidateNodeDisruptable)
"""

from collections.abc import Generator, Iterator
from typing import Any, Final

from asched.batch.provisioning.book import OWNERS
from asched.core.cluster.facts import Answer, Done, Refused
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.extension import Work
from asched.core.framework.effects import Effect, Patch
from asched.core.model.kinds import NODE
from asched.core.model.node import Node
from asched.names import PREFIX

MARK: Final = f"{PREFIX}/kept-for-held-places"
KEEPS: Final = (
    "cluster-autoscaler.kubernetes.io/scale-down-disabled",
    "karpenter.sh/do-not-disrupt",
)
TRUE: Final = "true"
CHECK_S: Final = 1.0
SEARCH_S: Final = 60.0
WRITES_MAX: Final = 8
FORBIDDEN: Final = 403


class KeptNodes:
    """Nodes that have the mark, as far as known. Times are of turns."""

    def __init__(self, context: SchedulerContext) -> None:
        self._context = context
        self._is_on = False
        self._marked: set[str] = set()
        self._writing: set[str] = set()
        self._checked_s = self._searched_s = self._blocked_until_s = -SEARCH_S
        self._was_forbidden = False

    @property
    def next_s(self) -> float | None:
        """When nodes are to be compared next; None if no profile keeps nodes."""
        if not (self._is_on or self._marked):
            return None
        is_used = bool(self._marked or self._context.cluster.holds.by_row)
        return max(self._checked_s + (CHECK_S if is_used else SEARCH_S), self._blocked_until_s)

    def due(self, *, is_on: bool) -> Iterator[Work]:
        """Yield the writes to begin now. `is_on`: whether a profile keeps nodes."""
        now_s, cluster = self._context.now_s, self._context.cluster
        self._is_on = is_on
        if self.next_s is None or now_s < self.next_s:
            return
        self._checked_s = now_s
        node_at, holds, held = cluster.nodes.node_at, cluster.holds, set[str]()
        if is_on and now_s >= self._searched_s + SEARCH_S:
            self._searched_s = now_s
            nodes = filter(None, node_at)
            self._marked = {n.name for n in nodes if MARK in (n.metadata.annotations or ())}
        for row, owners in holds.by_row.items() if is_on else ():
            node = node_at[row]
            if node and any(owner.startswith(OWNERS) for owner in owners):
                held.add(node.name)
        changing = sorted((held ^ self._marked) - self._writing)
        for name in changing[: WRITES_MAX - len(self._writing)]:
            node = node_at[cluster.nodes.row_of[name]] if name in cluster.nodes.row_of else None
            annotations = {} if node is None else (_marked if name in held else _unmarked)(node)
            self._marked ^= {name}
            if node is not None and annotations:
                self._writing.add(name)
                yield Work(self._write(node, annotations), decides=False)

    def _write(self, node: Node, annotations: dict[str, Any]) -> Generator[Effect, Answer, None]:
        """Send one write; without success it is made again with the node as it is then."""
        metadata = node.metadata
        version = {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
        body = {"metadata": {**version, "annotations": annotations}}
        answer = yield Patch(kind=NODE, namespace="", name=node.name, body=body)
        self._writing.discard(node.name)
        if isinstance(answer, Done):
            return
        if annotations[MARK] is None:
            self._marked.add(node.name)
        else:
            self._marked.discard(node.name)
        if isinstance(answer, Refused) and answer.code == FORBIDDEN:
            self._blocked_until_s = self._context.now_s + SEARCH_S
            if not self._was_forbidden:
                self._was_forbidden = True
                self._context.observer.complaint(
                    f"cannot keep node {node.name} for held places: {answer.message}; add"
                    " deploy/components/held-nodes, or set keepNodes of CheckAndHold to false"
                )


def _marked(node: Node) -> dict[str, Any]:
    """The annotations to set; none if other clients have set all of them."""
    given = node.metadata.annotations or {}
    keys = [key for key in KEEPS if key not in given]
    return {**dict.fromkeys(keys, TRUE), MARK: ",".join(keys)} if keys else {}


def _unmarked(node: Node) -> dict[str, Any]:
    """The annotations to remove: those of the mark that still have asched's value."""
    given = node.metadata.annotations or {}
    keys = [
        key for key in given.get(MARK, "").split(",") if key in KEEPS and given.get(key) == TRUE
    ]
    return dict.fromkeys((*keys, MARK)) if MARK in given else {}
