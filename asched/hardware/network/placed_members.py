"""Number of placed pods of a group in each domain of each level.

A gang is placed one pod after the other, and each pod needs the domains of those before it. New
pods are counted incrementally; all are counted again only if a pod left, or nodes moved in the
tree.

Bounds  a table for each group that was requested, as long as it has pods: a number for each
        domain with pods of the group.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

from asched.hardware.network.tree import NOWHERE, Tree
from asched.plugin import (
    Cluster,
    GroupPods,
)


class PlacedMembers:
    """The pods of one group whose node is known."""

    def __init__(self, cluster: Cluster, tree: Tree, versions: Iterator[int]) -> None:
        self._cluster = cluster
        self._tree = tree
        self._versions = versions
        self._seen = self._moves = 0
        self._made_with = -1
        #: by level, domain -> number of pods
        self.counts: list[dict[int, int]] = []
        self.total = 0
        #: Changes when the share of a domain does; never equal to that of another group.
        self.version = 0

    def refresh(self, pods: GroupPods) -> None:
        """Count new pods."""
        came, tree_version = len(pods.placed) - self._seen, self._tree.version
        if self._made_with != tree_version or pods.moves - self._moves != came:
            self.counts, self.total = [{} for _ in range(self._tree.height)], 0
            self._count(pods.placed)
            self.version = next(self._versions)
        elif came:
            self._count(islice(reversed(pods.placed), came))
        self._seen, self._moves, self._made_with = len(pods.placed), pods.moves, tree_version

    def _count(self, uids: Iterable[str]) -> None:
        before = self._alone()
        for uid in uids:
            known = self._cluster.placed.get(uid)
            if known is None or known.row < 0:
                continue
            self.total += 1
            for counts, number in zip(self.counts, self._tree.domains[:, known.row], strict=True):
                if number != NOWHERE:
                    counts[int(number)] = counts.get(int(number), 0) + 1
        after = self._alone()
        if after is None or after != before:
            self.version = next(self._versions)

    def _alone(self) -> list[list[int]] | None:
        """By level the only domain with pods, or none; None if they are in several."""
        if all(len(level) < 2 and sum(level.values()) in (0, self.total) for level in self.counts):
            return [list(counts) for counts in self.counts]
        return None
