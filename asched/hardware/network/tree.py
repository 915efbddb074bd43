"""The tree as columns: for each level the domain of every row, and the free amounts of each
domain.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from asched.core.model.kinds import Kind
from asched.hardware.network.sources import HYPER_NODE, Levels, Path, Tiers, Topology
from asched.plugin import Aspect, ByRow, Cluster

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

ASPECTS: Final = Aspect.LABELS | Aspect.LIVE
NOWHERE: Final = -1


class Tree(ByRow[None]):
    """`domains` int32[L, N], from the top level down; NOWHERE in no domain of the level."""

    def __init__(
        self, cluster: Cluster, kind: Kind | None, topology: str, keys: tuple[str, ...]
    ) -> None:
        """`kind` is the source of the levels, from the object `topology` (all HyperNodes are read);
        None: the label keys given.
        """
        super().__init__(cluster.nodes, int(ASPECTS))
        self._cluster = cluster
        self._kind = kind
        self._topology = topology
        self.source: Levels | Tiers = Levels(keys)
        self._read_at = -1
        self.domains: I32 = np.full((0, 0), NOWHERE, dtype=np.int32)
        #: by level, the path to each domain; its index is the domain's number
        self.paths: list[list[Path]] = []
        self._numbers: list[dict[Path, int]] = []
        #: changes whenever a row may be in another domain, or belong to another node
        self.version = 0

    def refresh(self) -> None:
        epoch = self._cluster.epoch_of(self._kind) if self._kind is not None else 0
        if self._kind is not None and epoch != self._read_at:
            self._read_at = epoch
            if self._kind is HYPER_NODE:
                self.source = Tiers(self._cluster.all(HYPER_NODE).values())
            else:
                topology: Topology | None = self._cluster.get(self._kind, self._topology)
                levels = topology.spec.levels if topology is not None else ()
                self.source = Levels([level.node_label for level in levels or ()])
        self.update(None, epoch)

    @property
    def height(self) -> int:
        """Number of levels."""
        return len(self.source.names)

    def _make_all(self, _: None) -> None:
        size = (self.height, self._nodes.height)
        self.domains = np.full(size, NOWHERE, dtype=np.int32)
        self.paths = [[] for _ in self.source.names]
        self._numbers = [{} for _ in self.source.names]
        self.version += 1
        for row in range(self._nodes.height):
            self._read(row)

    def _make_rows(self, _: None, rows: tuple[int, ...]) -> bool:
        """Empty domains are dropped with the next full pass."""
        self.version += 1
        for row in rows:
            self._read(row)
        return sum(map(len, self.paths)) <= 2 * (self.domains.size + 1)

    def _read(self, row: int) -> None:
        self.domains[:, row] = NOWHERE
        node = self._nodes.node_at[row]
        if node is None:
            return
        path = self.source.path(node)
        for level in range(len(path)):
            upto, numbers = path[: level + 1], self._numbers[level]
            number = numbers.get(upto)
            if number is None:
                number = numbers[upto] = len(self.paths[level])
                self.paths[level].append(upto)
            self.domains[level, row] = number


class DomainShares(ByRow[None]):
    """Requested share of each domain's CPU; `version` changes with its points."""

    def __init__(self, cluster: Cluster, tree: Tree) -> None:
        super().__init__(cluster.nodes, int(Aspect.POD_AMOUNTS | Aspect.ALLOCATABLE | ASPECTS))
        self._tree = tree
        self._of_row: I64 = np.zeros((2, 0), dtype=np.int64)
        self._domains: I32 = tree.domains
        self._sums: list[I64] = []
        #: by level, 0..100 for each domain
        self.points: list[I64] = []
        self.version = 0

    def refresh(self) -> None:
        self._tree.refresh()
        self.update(None, self._tree.full_version)

    def _row(self, row: int) -> tuple[int, int]:
        """Milli-CPU requested, and allocatable."""
        read = self._nodes.columns.read
        return int(read("requested")[0, row]), int(read("allocatable")[0, row])

    def _make_all(self, _: None) -> None:
        height = self._nodes.height
        read = self._nodes.columns.read
        self._of_row = np.stack((read("requested")[0, :height], read("allocatable")[0, :height]))
        self._domains = self._tree.domains.copy()
        self._sums = []
        for level, paths in enumerate(self._tree.paths):
            sums = np.zeros((2, len(paths)), dtype=np.int64)
            inside = self._domains[level] != NOWHERE
            for part in range(2):
                np.add.at(sums[part], self._domains[level, inside], self._of_row[part, inside])
            self._sums.append(sums)
        self._judge()

    def _make_rows(self, _: None, rows: tuple[int, ...]) -> bool:
        for row in rows:
            now = np.array(self._row(row), dtype=np.int64)
            for level, paths in enumerate(self._tree.paths):
                sums, before = self._sums[level], self._domains[level, row]
                if len(paths) > sums.shape[1]:
                    more = len(paths) - sums.shape[1]
                    sums = self._sums[level] = np.pad(sums, ((0, 0), (0, more)))
                if before != NOWHERE:
                    sums[:, before] -= self._of_row[:, row]
                after = self._tree.domains[level, row]
                self._domains[level, row] = after
                if after != NOWHERE:
                    sums[:, after] += now
            self._of_row[:, row] = now
        self._judge()
        return True

    def _judge(self) -> None:
        points = [
            np.clip(asked * 100 // np.maximum(offered, 1), 0, 100) for asked, offered in self._sums
        ]
        same = len(points) == len(self.points) and all(map(np.array_equal, points, self.points))
        if not same:
            self.version += 1
        self.points = points
