"""What the pages may look at: read-only answers, made by whoever runs the scheduler.

`edge/host/inspection.py` implements it; a test may answer from a table.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from asched.core.model.pod import Pod


class Inspector(Protocol):
    def is_leader(self) -> bool:
        """Whether this process schedules. Always true without leader election."""

    def configuration(self) -> Mapping[str, Any]:
        """The effective KubeSchedulerConfiguration."""

    def pods(self) -> Iterable[Pod]:
        """Every pod, placed or not, as last seen."""

    def queue_dump(self) -> Mapping[str, Any]:
        """Who waits where."""

    def cache_dump(self) -> Mapping[str, Any]:
        """Nodes with what is counted on them."""

    def explain(
        self, namespace: str, name: str, against_node: str = ""
    ) -> Mapping[str, Any] | None:
        """A pod's history and its last rejection, and why not that node; None if nothing is known
        of it.
        """
