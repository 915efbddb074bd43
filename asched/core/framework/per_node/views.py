"""Views of one node and one pod for per-node plugins: properties over the columns.

Rules   a view shows what the columns contain now, tentative changes included, and must not be kept
        beyond the call; it is read-only.
Units   `cpu*` are cores (float), `memory*` bytes; `allocatable`, `requested` and `requests` map
        resource names to base units: milli-CPU for cpu, bytes, whole devices.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.pods import PodInfo
from asched.core.framework.rejection import Rejection
from asched.core.framework.status import Status
from asched.core.model import node as records
from asched.core.model.pod import Container, Pod
from asched.core.model.requests import CPU, MEMORY, pod_requests
from asched.core.model.taint import Taint, Toleration

MILLI: Final = 1000
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class _View:
    """Common to pods and nodes: the frozen API object and its metadata."""

    __slots__ = ("raw",)

    raw: Any

    @property
    def name(self) -> str:
        name: str = self.raw.metadata.name
        return name

    @property
    def labels(self) -> Mapping[str, str]:
        return self.raw.metadata.labels or NOTHING

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.raw.metadata.annotations or NOTHING


class PluginPod(_View):
    """A pod. `state` is shared by all points (and all per-node plugins) of one attempt."""

    __slots__ = ("_info", "_requests", "_state")

    raw: Pod

    def __init__(self, raw: Pod, info: PodInfo | None = None) -> None:
        self.raw = raw
        self._info = info
        self._requests: Mapping[str, int] | None = None
        self._state: dict[str, Any] | None = None

    @property
    def namespace(self) -> str:
        return self.raw.metadata.namespace

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return self.raw.key

    @property
    def uid(self) -> str:
        return self.raw.metadata.uid

    @property
    def priority(self) -> int:
        return self.raw.priority

    @property
    def scheduler_name(self) -> str:
        return self.raw.spec.scheduler_name

    @property
    def node_name(self) -> str:
        """The node on which it runs or will run; empty while it waits."""
        if self._info is not None and self._info.node_name:
            return self._info.node_name
        return self.raw.spec.node_name

    @property
    def node_selector(self) -> Mapping[str, str]:
        return self.raw.spec.node_selector or NOTHING

    @property
    def tolerations(self) -> tuple[Toleration, ...]:
        return self.raw.spec.tolerations or ()

    @property
    def containers(self) -> tuple[Container, ...]:
        """Without init containers; each with `name`, `image`, `ports`, `resources`."""
        return self.raw.spec.containers or ()

    @property
    def is_terminating(self) -> bool:
        return self.raw.is_terminating

    @property
    def requests(self) -> Mapping[str, int]:
        """Requested amounts in base units, init containers and overhead included."""
        if self._requests is None:
            info = self._info
            found = info.cls.requests if info is not None else pod_requests(self.raw)
            self._requests = MappingProxyType(found)
        return self._requests

    @property
    def cpu(self) -> float:
        """Requested cores."""
        return self.requests.get(CPU, 0) / MILLI

    @property
    def memory(self) -> int:
        """Requested bytes."""
        return self.requests.get(MEMORY, 0)

    @property
    def state(self) -> dict[str, Any]:
        """A dictionary for the duration of the attempt: from pre_filter to post_bind."""
        info = self._info
        if info is None:
            if self._state is None:
                self._state = {}
            return self._state
        if info.state is None:
            info.state = {}
        return info.state

    def __repr__(self) -> str:
        return f"<Pod {self.key}>"


class PluginNode(_View):
    """A node with the pods that run there or are being bound to it."""

    __slots__ = ("_cluster", "_row")

    raw: records.Node

    def __init__(self, cluster: Cluster, row: int, raw: records.Node) -> None:
        self._cluster = cluster
        self._row = row
        self.raw = raw

    @property
    def taints(self) -> tuple[Taint, ...]:
        """Each with `key`, `value`, `effect`."""
        return self.raw.spec.taints or ()

    @property
    def unschedulable(self) -> bool:
        """Whether it is cordoned."""
        return self.raw.spec.unschedulable

    @property
    def conditions(self) -> Mapping[str, str]:
        """Type to status, e.g. `{"Ready": "True"}`."""
        return {c.type: c.status for c in self.raw.status.conditions or ()}

    @property
    def pods(self) -> tuple[PluginPod, ...]:
        """The pods on the node, assumed and terminating ones included."""
        return tuple(
            PluginPod(info.pod, info) for info in self._cluster.pods_on(self._row).values()
        )

    @property
    def pod_count(self) -> int:
        return int(self._cluster.nodes.columns.read("pod_count")[self._row])

    @property
    def allowed_pods(self) -> int:
        return int(self._cluster.nodes.columns.read("allowed_pods")[self._row])

    @property
    def allocatable(self) -> Mapping[str, int]:
        """Allocatable amounts in base units, extended resources included."""
        return self._amounts("allocatable")

    @property
    def requested(self) -> Mapping[str, int]:
        """Amounts requested by its pods, in base units."""
        unlisted = self._cluster.nodes.pod_amounts.unlisted(self._row)
        return {**self._amounts("requested"), **unlisted}

    @property
    def cpu(self) -> float:
        """Allocatable cores."""
        return self._amount("allocatable", 0) / MILLI

    @property
    def cpu_requested(self) -> float:
        return self._amount("requested", 0) / MILLI

    @property
    def cpu_free(self) -> float:
        """Unrequested cores; negative if the node is overcommitted."""
        return (self._amount("allocatable", 0) - self._amount("requested", 0)) / MILLI

    @property
    def memory(self) -> int:
        """Allocatable bytes."""
        return self._amount("allocatable", 1)

    @property
    def memory_requested(self) -> int:
        return self._amount("requested", 1)

    @property
    def memory_free(self) -> int:
        return self._amount("allocatable", 1) - self._amount("requested", 1)

    def _amount(self, column: str, resource: int) -> int:
        return int(self._cluster.nodes.columns.read(column)[resource, self._row])

    def _amounts(self, column: str) -> Mapping[str, int]:
        nodes = self._cluster.nodes
        amounts = nodes.columns.read(column)[:, self._row].tolist()
        names = nodes.resources.values[1:]  # axis R may have unused places
        return {name: amount for name, amount in zip(names, amounts, strict=False) if amount}

    def __repr__(self) -> str:
        return f"<Node {self.name}>"


class LateNode(PluginNode):
    """A node for late points, found by name at each access, since nodes may come and go."""

    __slots__ = ()

    def __init__(self, cluster: Cluster, raw: records.Node) -> None:
        self._cluster = cluster
        self.raw = raw

    @property
    def _row(self) -> int:  # type: ignore[override]
        row = self._cluster.nodes.row_of.get(self.name)
        if row is None:
            raise LookupError(f"node {self.name} is gone")
        return row


class Rejected(Mapping[str, Status]):
    """Node name -> rejection, determined on access."""

    def __init__(self, rejection: Rejection, cluster: Cluster) -> None:
        self._rejection = rejection
        self._rows = cluster.nodes.row_of

    def __getitem__(self, name: str) -> Status:
        status = self._rejection.status_at(self._rows[name])
        if status is None:
            raise KeyError(name)
        return status

    def __iter__(self) -> Iterator[str]:
        return (n for n, row in self._rows.items() if self._rejection.status_at(row) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)
