"""Tentative changes of the cluster: pods added or removed, objects replaced.

    with cluster.supposing().gone(victims, row) as suppose:     on a row: columns change,
        suppose.there((guest,), row)                              cached results do not
        suppose.back()
    with cluster.supposing().without(pods): ...                 as a fact: cached results
    with cluster.supposing().seen(NODE, node): ...                are updated, too

Each step can be undone separately, the last one first; the end of the block undoes the remaining
steps, also after an exception. Suppositions may be nested, but not overlap.

"On a row" is for questions about that row only, answered by the filters directly: upstream's dry
runs and nominated pods are evaluated this way, and by upstream's rules (a port is free with one of
its users, a terminating pod counts). "As a fact" is for all other questions: it costs twice what
the fact would.

The block must not let other work run: facts that arrive must find the real state.
(`batch/groups/preemption.py` is cut into slices between which no fact is processed and nothing is
decided, and `Cluster.is_supposed` is set for readers.) A place that is reserved while other work
runs, as a gang's, is not a supposition but an assumed pod.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol, Self

from asched.core.cluster.facts import Fact, Gone, Seen
from asched.core.cluster.pod_groups import PodGroups
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.topology import TopologyCounters
from asched.core.cluster.usage import Occupancy, PortsUsed
from asched.core.model.kinds import NODE, Kind
from asched.core.model.node import Node


class Supposable(Protocol):
    """What a supposition uses of the `Cluster`."""

    occupancy: Occupancy
    topology: TopologyCounters
    pod_groups: PodGroups

    def apply(self, fact: Fact) -> object: ...
    def get(self, kind: Kind, key: str) -> Any: ...
    def stored(self, kind: Kind, key: str) -> Any: ...
    def node_of(self, name: str) -> Node | None: ...
    def assume_object(self, kind: Kind, obj: Any) -> None: ...


class Supposition:
    """The steps of a supposition: see `Cluster.supposing`.

    `count` updates columns and indexes for a pod; `place` and `displace` add and remove a pod as
    facts do.
    """

    __slots__ = ("_cluster", "_count", "_displace", "_place", "_steps")

    def __init__(
        self,
        cluster: Supposable,
        count: Callable[[PodInfo, int, int], None],
        place: Callable[[PodInfo, str], None],
        displace: Callable[[PodInfo], None],
    ) -> None:
        self._cluster = cluster
        self._count = count
        self._place = place
        self._displace = displace
        self._steps: list[Callable[[], object]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._steps:
            self.back()

    def __len__(self) -> int:
        """The number of steps not undone."""
        return len(self._steps)

    def back(self) -> None:
        """Undo the last step."""
        self._steps.pop()()

    def also(self, undo: Callable[[], object]) -> None:
        """Register a change made elsewhere; `undo` reverts it."""
        self._steps.append(undo)

    # --- on a row --------------------------------------------------------------------------------

    def there(self, pods: Iterable[PodInfo], row: int) -> Self:
        """Count pods on a row; they may also be elsewhere, or nowhere."""
        return self._move(tuple(pods), row, 1)

    def gone(self, pods: Iterable[PodInfo], row: int) -> Self:
        """Remove pods from a row."""
        return self._move(tuple(pods), row, -1)

    def _move(self, pods: tuple[PodInfo, ...], row: int, sign: int) -> Self:
        occupancy, topology = self._cluster.occupancy, self._cluster.topology
        ports = occupancy.ports_of(pods, row)
        topology.begin_trial()
        done: list[PodInfo] = []
        self._steps.append(partial(self._move_back, done, row, sign, ports))
        try:
            for info in pods:
                self._count(info, row, sign)
                done.append(info)
        except BaseException:  # the block may not have begun
            self.__exit__()
            raise
        return self

    def _move_back(self, done: list[PodInfo], row: int, sign: int, ports: PortsUsed) -> None:
        for info in reversed(done):
            self._count(info, row, -sign)
        self._cluster.occupancy.put_back(ports, row)
        self._cluster.topology.end_trial()

    # --- as facts --------------------------------------------------------------------------------

    def without(self, pods: Iterable[PodInfo]) -> Self:
        """Remove placed pods from their nodes."""
        assert not self._cluster.topology.on_trial
        groups = self._cluster.pod_groups
        for info in tuple(pods):
            is_held = groups.holds(info.pod)
            self._steps.append(partial(self._return, info, info.node_name, is_held=is_held))
            self._displace(info)
        return self

    def _return(self, info: PodInfo, node: str, *, is_held: bool) -> None:
        self._place(info, node)
        if is_held:  # it continues to wait for the rest of its gang
            self._cluster.pod_groups.hold(info.pod)

    def placed(self, info: PodInfo, node: str) -> Self:
        """Place a pod without a node on a node."""
        assert not self._cluster.topology.on_trial
        self._steps.append(partial(self._displace, info))
        self._place(info, node)
        return self

    def seen(self, kind: Kind, obj: Any) -> Self:
        """Replace or add an object, also in place of an assumed version."""
        cluster, key = self._cluster, obj.metadata.key
        assert not cluster.topology.on_trial
        before = cluster.node_of(key) if kind is NODE else cluster.stored(kind, key)
        assumed = None if kind is NODE else cluster.get(kind, key)
        undo = Gone(kind, obj) if before is None else Seen(kind, before)
        self._steps.append(partial(cluster.apply, undo))
        cluster.apply(Seen(kind, obj))
        if assumed is not None and assumed is not before:
            self._steps.append(partial(cluster.assume_object, kind, assumed))
            cluster.assume_object(kind, obj)
        return self
