"""What the pages may look at: read-only answers, made by whoever runs the scheduler.

A test may answer from a table.
"""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Protocol

from asched.core.model.pod import Pod


class Inspector(Protocol):
    """`inspection.py` implements it."""

    def is_leader(self) -> bool:
        """Whether this process schedules. Always true without leader election."""

    def configuration(self) -> Mapping[str, Any]:
        """The effective KubeSchedulerConfiguration."""

    def pods(self) -> Iterable[Pod]:
        """Every pod, placed or not, as last seen."""

    def queue_dump(self) -> AsyncIterator[tuple[str, list[Any]]]:
        """Who waits where: (place, some of those in it), and so on."""

    def cache_dump(self) -> AsyncIterator[tuple[str, list[Any]]]:
        """Nodes with what is counted on them, in the same manner."""

    def shadow(self) -> Mapping[str, Any] | None:
        """How the decisions of a shadowed scheduler compare with ours; None if none is shadowed."""

    def audit_report(self) -> Mapping[str, Any]:
        """What audits found so far, and when each of their parts was done last."""

    async def audit_now(self) -> Mapping[str, Any]:
        """The same after an audit of everything, which begins now."""

    async def explain(
        self, namespace: str, name: str, against_node: str = "", *, tries_changes: bool = True
    ) -> Mapping[str, Any] | None:
        """A pod's history and its last rejection, why not that node, and what would make it fit,
        which takes longest; None if nothing is known of it.
        """

    async def at_decision(
        self, namespace: str, name: str, against_node: str
    ) -> Mapping[str, Any] | None:
        """What a node came to when the pod's node was chosen; None if nothing is known of that."""


class Audit(Protocol):
    """Compares what is known with the API server."""

    def told(self) -> Mapping[str, Any]:
        """What was found so far."""

    async def told_now(self) -> Mapping[str, Any]:
        """The same once everything is compared, which begins now."""


class Viewer(Protocol):
    """What the live view shows; `serve/view/live.py` implements it."""

    async def view(self, names_of: int, since: int) -> Mapping[str, Any]:
        """Everything at a glance. `names_of`: the generation of nodes whose names the asker has;
        `since`: the last beat of the pulse that it has.
        """

    def node(self, name: str) -> Mapping[str, Any] | None:
        """A node, how full it is, and its pods; None if there is none."""

    def gang(self, key: str) -> Mapping[str, Any] | None:
        """A pod group ("namespace/name") and where its pods are; None if nobody knows it."""
