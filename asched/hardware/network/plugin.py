"""NetworkTopology: place groups within a rack or a block, and other pods so that whole ones stay
free.

Offers    a pod group the domains of the level that it requires; or, from the level that it prefers
          upwards, the domains of each level up to the required one, and all nodes if it requires
          none. Placed pods restrict the rest of the group to their domain.
Prefers   of placements the lowest level, then the domain with least left. For pods of a group nodes
          near those of its placed pods; for other pods domains that are in use: 0.8 as much for
          each level up.
Input     required: the PodGroup's `schedulingConstraints`, or annotations of the PodGroup or its
          pods: Kueue's podset-required-topology, KAI's topology-required-placement, Volcano's
          network-topology-highest-tier with the mode hard; preferred: Kueue's
          podset-preferred-topology, KAI's topology-preferred-placement, Volcano's mode soft.
Retry     pods of a group are retried after backoff, as with TopologyPlacementGenerator, which it
          replaces.
Cost      a column a level; a placement for each domain. Pods of a group: the new pods are counted,
          and one pass over the rows if their shares of domains changed; other pods: one pass over
          the rows a level after each placement.
Source    kubernetes-sigs/kueue apis/kueue/v1beta1/topology_types.go, NVIDIA/KAI-Scheduler
          docs/topology, volcano-sh/volcano pkg/scheduler/plugins/network-topology-aware
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any, ClassVar, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from asched.core.model.kinds import COSCHEDULING_GROUP, POD_GROUP, Kind
from asched.core.model.requests import is_extended
from asched.hardware.network.placed_members import PlacedMembers
from asched.hardware.network.sources import HYPER_NODE, KAI_TOPOLOGY, KUEUE_TOPOLOGY
from asched.hardware.network.tree import NOWHERE, DomainShares, Tree
from asched.hardware.rows import Mask, right_to_watch
from asched.plugin import (
    COSCHEDULED,
    I64,
    Aspect,
    Assignments,
    Cluster,
    GroupPods,
    NodeView,
    Placement,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    PodInfo,
    Registration,
    ScorePlugin,
    Status,
    failure,
    group_key,
    is_coscheduled,
)

LABELS: Final = "Labels"
SOURCES: Final[Mapping[str, Kind | None]] = {
    LABELS: None,
    "Kueue": KUEUE_TOPOLOGY,
    "KAI": KAI_TOPOLOGY,
    "HyperNode": HYPER_NODE,
}
KUEUE: Final = "kueue.x-k8s.io/podset-"
KAI: Final = "kai.scheduler/topology-"
KAI_NAME: Final = "kai.scheduler/topology"
VOLCANO: Final = "volcano.sh/network-topology-"
SLICES: Final = KUEUE + "slice-required-topology"
HARD, SOFT = "hard", "soft"
#: Weight of a level, relative to the one below.
FADES: Final = 0.8


@dataclass(frozen=True, slots=True)
class NetworkTopologyArgs:
    """Where the tree of domains comes from.

    source: Labels, Kueue, KAI or HyperNode: what has the levels
    topology: name of the Topology of Kueue or KAI; only with these sources, and needed there
    levels: label keys of nodes from the top down; only with Labels, and needed there
    """

    source: str = LABELS
    topology: str = ""
    levels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.source not in SOURCES:
            raise ValueError(f'source "{self.source}" is none of {", ".join(SOURCES)}')
        has_object = self.source in {"Kueue", "KAI"}
        if has_object != bool(self.topology):
            raise ValueError(
                "topology is the name of the object of Kueue or KAI with the levels; other sources"
                " do not use it"
            )
        if (self.source == LABELS) != bool(self.levels):
            raise ValueError("levels are the label keys of the source Labels, and of no other")
        if len(set(self.levels)) < len(self.levels):
            raise ValueError("levels: a label key is listed twice")


class RequestedLevels(NamedTuple):
    """Names of levels; empty for none."""

    required: str = ""
    preferred: str = ""


class NetworkTopology(PlacementGeneratePlugin, PlacementScorePlugin, ScorePlugin):
    name = "NetworkTopology"
    depends_on = Aspect.LABELS | Aspect.LIVE
    serves_all_groups = True
    ignores_nodes = True
    rbac_rules: ClassVar[Sequence[Mapping[str, Any]]] = [
        right_to_watch(kind) for kind in SOURCES.values() if kind is not None
    ]

    def __init__(self, args: NetworkTopologyArgs, cluster: Cluster) -> None:
        self._cluster = cluster
        kind = SOURCES[args.source]
        self._topology = args.topology
        if kind is not None:
            self.kinds = (kind,)  # type: ignore[misc]
        self._tree = Tree(cluster, kind, args.topology, args.levels)
        self._shares = DomainShares(cluster, self._tree)
        self._placed_members: WeakKeyDictionary[GroupPods, PlacedMembers] = WeakKeyDictionary()
        self._versions = count(1)

    def registrations(self) -> Sequence[Registration]:
        return ()

    def generate_placements(self, group: str, parent: Placement) -> Sequence[Placement] | Status:
        self._tree.refresh()
        levels_wanted = self._requested_levels(group)
        if isinstance(levels_wanted, Status):
            return levels_wanted
        levels = {name: self._tree.source.level_of(name) for name in levels_wanted if name}
        for name, level in levels.items():
            if level is None:
                known = ", ".join(self._tree.source.names) or "none"
                return failure(f'there is no topology level "{name}"; there are {known}')
        top, low = levels.get(levels_wanted.required), levels.get(levels_wanted.preferred)
        placed = self._rows_of_placed(group)
        where = parent.mask(self._cluster.nodes)
        placements: list[Placement] = []
        if top is not None or low is not None:
            lowest = max(level for level in (top, low) if level is not None)
            for level in range(lowest, (top or 0) - 1, -1):
                placements += self._domains(level, where, placed)
        if top is None:
            placements.append(Placement(parent.name, parent.rows))
        elif not placements and placed:
            return failure(
                "cannot determine domain for already scheduled pods: no domain of level"
                f" {levels_wanted.required} has all of them"
            )
        return placements

    def _domains(self, level: int, where: Mask, placed: list[int]) -> Iterator[Placement]:
        """Domains of a level that have nodes, and contain all placed pods."""
        ids = np.where(where, self._tree.domains[level], NOWHERE)
        numbers = {int(self._tree.domains[level, row]) for row in placed}
        for number in np.unique(ids[ids != NOWHERE]).tolist():
            if not numbers or numbers == {number}:
                name = "/".join(self._tree.paths[level][number])
                yield Placement(f"{self._tree.source.names[level]}={name}", ids == number)

    def _rows_of_placed(self, group: str) -> list[int]:
        placed = self._cluster.placed
        pods = self._cluster.pod_groups.get(group).placed
        rows = {placed[uid].row for uid in pods if uid in placed}
        return [row for row in sorted(rows) if row >= 0]

    def _requested_levels(self, group: str) -> RequestedLevels | Status:
        """The levels requested by the group's object, else by its first pod."""
        if is_coscheduled(group):
            known = self._cluster.get(COSCHEDULING_GROUP, group.removeprefix(COSCHEDULED))
            constraint = ""
        else:
            known = self._cluster.get(POD_GROUP, group)
            constraint = known.topology_key if known is not None else ""
        if known is None:
            name = group.rpartition("/")[2]
            return failure(f'podgroup "{name}" not found')
        pods = self._cluster.pod_groups.get(group)
        first = next(chain(pods.unplaced.values(), pods.placed.values()), None)
        of_pod = first.metadata.annotations if first is not None else None
        annotations = {**(of_pod or {}), **(known.metadata.annotations or {})}
        other = annotations.get(KAI_NAME, self._topology)
        if other != self._topology:
            return failure(f'annotation {KAI_NAME} "{other}": this profile has no such topology')
        if SLICES in annotations:
            return failure(f"annotation {SLICES} is not implemented")
        mode = annotations.get(VOLCANO + "mode", "")
        tier = annotations.get(VOLCANO + "highest-tier", "")
        if mode not in {"", HARD, SOFT}:
            return failure(f'annotation {VOLCANO}mode "{mode}" is neither {HARD} nor {SOFT}')
        names = self._tree.source.names
        hard = (tier or next(iter(names), "")) if mode == HARD else ""
        near = next(reversed(names), "") if mode else ""
        required, preferred = (
            annotations.get(f"{KUEUE}{word}-topology")
            or annotations.get(f"{KAI}{word}-placement")
            or ""
            for word in ("required", "preferred")
        )
        return RequestedLevels(constraint or required or hard, preferred or near)

    def score_placement(self, group: str, assignments: Assignments) -> int:
        """Unlike other placement scores: encodes the level, and the free amount of the scarcest
        resource.
        """
        # the name of a tier may have any character, that of a domain has no "="
        level = self._tree.source.level_of(assignments.placement.name.rpartition("=")[0])
        rank = 0 if level is None or assignments.placement.rows is None else level + 1
        nodes = self._cluster.nodes
        resource = self._scarce(assignments)
        read, rows = nodes.columns.read, assignments.placement.mask(nodes)
        offered, requested = read("allocatable")[resource], read("requested")[resource]
        height = nodes.height
        free = int(np.maximum(offered[:height] - requested[:height], 0)[rows].sum())
        return rank * _FREE_MAX - min(free, _FREE_MAX - 1)

    def _scarce(self, assignments: Assignments) -> int:
        """The scarcest resource that the group's pods request: devices before CPU."""
        classes = {info.cls for info, _ in assignments.pods}
        for name in sorted({n for cls in classes for n, amount in cls.requests.items() if amount}):
            at = self._cluster.nodes.find_resource(name)
            if is_extended(name) and at is not None:
                return at
        return 0

    def normalize_placements(self, scores: Sequence[int]) -> Sequence[int]:
        """By rank: equals get the same score."""
        ranks = {score: at for at, score in enumerate(sorted(set(scores)))}
        return [100 * (ranks[score] + 1) // len(ranks) for score in scores]

    def share_key(self, pod: PodInfo) -> Hashable:
        return group_key(pod.pod)

    def stamp(self, pod: PodInfo, data: Any) -> Hashable:
        self._tree.refresh()
        placed = self._placed_members_of(pod)
        if placed is not None:
            return True, placed.version, self._tree.full_version
        self._shares.refresh()
        return False, self._shares.version, self._tree.full_version

    def _placed_members_of(self, pod: PodInfo) -> PlacedMembers | None:
        """Current counts, with a tree that is up to date; None for pods without a group, or without
        placed pods of it.
        """
        group = group_key(pod.pod)
        if not group:
            return None
        pods = self._cluster.pod_groups.get(group)
        placed = self._placed_members.get(pods)
        if placed is None:
            placed = self._placed_members[pods] = PlacedMembers(
                self._cluster, self._tree, self._versions
            )
        placed.refresh(pods)
        return placed if placed.total else None

    def score(self, pod: PodInfo, nodes: NodeView, data: Any) -> I64:
        self._tree.refresh()
        placed, height = self._placed_members_of(pod), self._tree.height
        if placed is None:
            self._shares.refresh()
        scores = np.zeros(nodes.size, dtype=np.float64)
        domains = self._tree.domains[:, nodes.row_numbers()]
        weights = [FADES ** (height - 1 - level) for level in range(height)]
        for level, weight in enumerate(weights):
            # the last entry of points is for rows in no domain
            if placed is not None:
                points = np.zeros(len(self._tree.paths[level]) + 1, dtype=np.float64)
                counts = placed.counts[level]
                points[list(counts)] = np.array(list(counts.values())) * 100 / placed.total
            else:
                points = np.append(self._shares.points[level], 0).astype(np.float64)
            scores += weight * points[domains[level]]
        total = sum(weights) or 1.0
        return np.floor(scores / total + 1e-9).astype(np.int64)


#: More than any placement has left, in the units of a resource.
_FREE_MAX: Final = 1 << 62
