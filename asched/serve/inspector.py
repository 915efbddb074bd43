"""Protocols of the data that pages show: read-only, implemented by the scheduler.

Tests may implement them by a table.
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
        """Every pod, with or without a node, as last received."""

    def queue_dump(self) -> AsyncIterator[tuple[str, list[Any]]]:
        """Queued pods in parts: (queue, some of its pods), and so on."""

    def cache_dump(self) -> AsyncIterator[tuple[str, list[Any]]]:
        """Nodes with their counts, in the same form."""

    def shadow(self) -> Mapping[str, Any] | None:
        """Comparison of a shadowed scheduler's decisions with ours; None if none is shadowed."""

    def audit_report(self) -> Mapping[str, Any]:
        """The findings of audits so far, and when each part was last audited."""

    async def audit_now(self) -> Mapping[str, Any]:
        """The same after an audit of everything, which starts now."""

    async def explain(
        self, namespace: str, name: str, against_node: str = "", *, tries_changes: bool = True
    ) -> Mapping[str, Any] | None:
        """A pod's history and last rejection, why not that node, and changes that would make it
        fit, which take longest; None for an unknown pod.
        """

    async def at_decision(
        self, namespace: str, name: str, against_node: str
    ) -> Mapping[str, Any] | None:
        """The rating of a node when the pod's node was chosen; None if unknown."""


class Audit(Protocol):
    """Compares cached objects with the API server."""

    def findings(self) -> Mapping[str, Any]:
        """The findings so far."""

    async def findings_now(self) -> Mapping[str, Any]:
        """The findings after an audit of everything, which starts now."""


class Viewer(Protocol):
    """The data of the live view; `serve/view/live.py` implements it."""

    async def view(self, names_of: int, since: int) -> Mapping[str, Any]:
        """All data of the view. `names_of`: the generation of node names that the client has;
        `since`: the last beat of the pulse that it has.
        """

    def node(self, name: str) -> Mapping[str, Any] | None:
        """A node, its usage and its pods; None if there is none."""

    def gang(self, key: str) -> Mapping[str, Any] | None:
        """A pod group ("namespace/name") and its pods; None if unknown."""
