"""What several plugins share: values by row of the node table, logs of changed objects, times,
rights, and args as in upstream's files.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from asched.core.model.decode import MalformedError, parse
from asched.core.model.kinds import Kind
from asched.core.model.pod import Pod
from asched.core.model.timestamp import seconds
from asched.plugin import Aspect, ByRow, Cluster, RowLog, Rows

F64 = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
SWEEP_FROM: Final = 64


@dataclass(frozen=True, slots=True)
class UpstreamArgs:
    """Optional apiVersion and kind, as in upstream's files. Raises ValueError if they are wrong."""

    api_version: str = ""
    kind: str = ""

    def __post_init__(self) -> None:
        own_kind = type(self).__name__
        if self.kind not in {"", own_kind} or self.api_version not in {"", API_VERSION}:
            given = f"{self.api_version or API_VERSION} {self.kind or own_kind}"
            raise ValueError(f"these are args of {given}, not of {API_VERSION} {own_kind}")


class ByNode(ByRow[None]):
    """Values that are read row by row from the cluster."""

    def __init__(self, cluster: Cluster, aspects: Aspect, *logs: RowLog) -> None:
        super().__init__(cluster.nodes, int(aspects), *logs)
        self._cluster = cluster

    def refresh(self) -> None:
        """Update the rows that changed. Not in a trial, whose changes must not be stored."""
        if not self._cluster.topology.on_trial:
            self.update(None)

    @abstractmethod
    def _reset(self, height: int) -> None:
        """Make room for so many rows; all of them are read then."""

    @abstractmethod
    def _read(self, row: int) -> None: ...

    def _make_all(self, _: None) -> None:
        height = self._nodes.height
        self._reset(height)
        for row in range(height):
            self._read(row)

    def _make_rows(self, _: None, rows: Rows) -> bool:
        for row in rows:
            self._read(row)
        return True


class ChangedRows(RowLog):
    """The rows of changed objects of one kind that have the names of nodes, as a log for `ByRow`;
    call `follow` before each update.
    """

    __slots__ = ("_cluster", "_kind", "_seen")

    def __init__(self, cluster: Cluster, kind: Kind) -> None:
        super().__init__()
        self._cluster = cluster
        self._kind = kind
        self._seen = cluster.object_log.end

    def follow(self) -> None:
        """Process the changes since the last call."""
        log = self._cluster.object_log
        if log.end == self._seen:
            return
        changes = log.since(self._seen)
        self._seen = log.end
        if changes is None:
            self.forget()
            return
        row_of, own_resource = self._cluster.nodes.row_of, self._kind.resource
        for resource, name in changes:
            row = row_of.get(name) if resource == own_resource else None
            if row is not None:
                self.add(row, 1)


class ExpiringReports(ByNode):
    """Values from objects that have the names of nodes, `expires_s` valid."""

    def __init__(self, cluster: Cluster, aspects: Aspect, kind: Kind, expires_s: float) -> None:
        self._changes = ChangedRows(cluster, kind)
        super().__init__(cluster, aspects, self._changes)
        self._expires_s = expires_s
        self._next_s = np.inf
        #: float64[N]: when each report was made, in seconds since 1970; -inf without one
        self.made_s: F64 = np.zeros(0)
        #: bool[N]: has a valid report
        self.is_valid: Mask = np.zeros(0, dtype=np.bool_)
        #: Changes when a report comes or expires.
        self.version = 0

    def refresh(self) -> None:
        """Process new reports, and drop expired ones."""
        self._changes.follow()
        super().refresh()
        if self._cluster.wall_clock_s >= self._next_s:
            self._check_age()

    def _make_all(self, _: None) -> None:
        self.made_s = np.full(self._nodes.height, -np.inf)
        super()._make_all(None)
        self._check_age()

    def _make_rows(self, _: None, rows: Rows) -> bool:
        before = self.made_s[list(rows)]
        super()._make_rows(None, rows)
        if (before != self.made_s[list(rows)]).any():
            self._check_age()
        return True

    def _check_age(self) -> None:
        until_s = self.made_s + self._expires_s
        self.is_valid = until_s > self._cluster.wall_clock_s
        self._next_s = float(until_s[self.is_valid].min(initial=np.inf))
        self.version += 1


def sweep(by_uid: dict[str, Any], cluster: Cluster) -> None:
    """Drop values of pods that have left their nodes, once they may be more than the others."""
    if len(by_uid) > 2 * len(cluster.placed) + SWEEP_FROM:
        for uid in by_uid.keys() - cluster.placed.keys():
            del by_uid[uid]


def scheduled_s(pod: Pod, now_s: float) -> float:
    """When a pod was scheduled, according to the API server; now if it does not say."""
    condition = pod.condition("PodScheduled")
    if condition is None or condition.status != "True":
        return now_s
    return seconds(condition.last_transition_time, now_s)


def decoded_json(text: str | None, kind: Any) -> Any:
    """The JSON of an annotation; None if it is absent or invalid."""
    try:
        return parse(partial(msgspec.json.decode, type=kind), text or "")
    except MalformedError:
        return None


def right_to(group: str, plural: str, *verbs: str) -> Mapping[str, Any]:
    """A rule for `rbac_rules`."""
    return {"apiGroups": [group], "resources": [plural], "verbs": list(verbs)}


def right_to_watch(kind: Kind) -> Mapping[str, Any]:
    """The rule for the objects of a kind, which are listed where they cannot be watched."""
    verbs = ("list",) if kind.poll_s else ("list", "watch")
    return right_to(kind.group_version.rpartition("/")[0], kind.plural, *verbs)
