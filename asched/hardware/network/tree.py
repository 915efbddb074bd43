"""The tree as columns: for each level the domain of every row, and the free amounts of each
domain.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from asched.core.model.kinds import Kind
from asched.hardware.network.sources import HYPER_NODE, Levels, Path, Tiers, Topology
from asched.hardware.rows import ByNode
from asched.plugin import (
    I64,
    Aspect,
    Cluster,
    Rows,
)

I32 = npt.NDArray[np.int32]

ASPECTS: Final = Aspect.LABELS | Aspect.LIVE
NOWHERE: Final = -1


class Tree(ByNode):
    """`domains` int32[L, N], from the top level down; NOWHERE in no domain of the level."""

    def __init__(
        self, cluster: Cluster, kind: Kind | None, topology: str, keys: tuple[str, ...]
    ) -> None:
        """`kind` is the source of the levels, from the object `topology` (all HyperNodes are read);
        None: the label keys given.
        """
        super().__init__(cluster, ASPECTS)
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

    def _reset(self, height: int) -> None:
        self.domains = np.full((self.height, height), NOWHERE, dtype=np.int32)
        self.paths = [[] for _ in self.source.names]
        self._numbers = [{} for _ in self.source.names]
        self.version += 1

    def _make_rows(self, _: None, rows: Rows) -> bool:
        """Empty domains are dropped with the next full pass."""
        self.version += 1
        super()._make_rows(None, rows)
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


class DomainShares:
    """Requested share of each domain's CPU; `version` changes with its points."""

    def __init__(self, cluster: Cluster, tree: Tree) -> None:
        self._nodes = cluster.nodes
        self._tree = tree
        self._seen = (-1, -1)
        #: by level, 0..100 for each domain
        self.points: list[I64] = []
        self.version = 0

    def refresh(self) -> None:
        self._tree.refresh()
        seen = self._nodes.log.end, self._tree.version
        if seen == self._seen:
            return
        self._seen = seen
        read, height = self._nodes.columns.read, self._nodes.height
        amounts = read("requested")[0, :height], read("allocatable")[0, :height]
        points = []
        for paths, domains in zip(self._tree.paths, self._tree.domains, strict=True):
            requested, offered = (
                np.bincount(domains + 1, amount, len(paths) + 1)[1:].astype(np.int64)
                for amount in amounts
            )
            points.append(np.clip(requested * 100 // np.maximum(offered, 1), 0, 100))
        same = len(points) == len(self.points) and all(map(np.array_equal, points, self.points))
        self.version += not same
        self.points = points
