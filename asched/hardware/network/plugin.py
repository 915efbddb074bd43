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

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice, takewhile
from typing import Any, ClassVar, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from asched.core.model.kinds import COSCHEDULING_GROUP, POD_GROUP, Kind
from asched.core.model.meta import ApiObject, LabelSelector, Record
from asched.core.model.node import Node
from asched.core.model.requests import is_extended
from asched.core.model.selector import compile_selector
from asched.hardware.rows import ByNode, Mask, right_to_watch
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
    Rows,
    ScorePlugin,
    Status,
    failure,
    group_key,
    is_coscheduled,
)

# The tree as columns: for each level the domain of every row, and the free amounts of each
# domain.

# Sources of the network topology: node labels, Kueue's or KAI's Topology, Volcano's HyperNodes.
#
# All give the same result: for each node its domains from the top level down, each named by the
# path to it, so that rack 1 of block a is not rack 1 of block b. A node that lacks a level is in no
# domain of that and the lower levels.
#
#     labels     the levels are label keys, named in the args or by a Topology object
#     HyperNode  the levels are tiers, the highest number on top; a node is in the HyperNodes that
#                name it, and in those that hold them. Of two in one tier the first by name counts
#
# Source  kueue.x-k8s.io/v1beta1 Topology, kai.scheduler/v1alpha1 Topology,
#         topology.volcano.sh/v1alpha1 HyperNode
# Bounds  LEVELS_MAX levels; DEPTH_MAX HyperNodes one in the other

LEVELS_MAX: Final = 16
DEPTH_MAX: Final = 32
#: From the top level down; shorter if a level is missing.
Path = tuple[str, ...]


class TopologyLevel(Record, frozen=True, gc=False):
    node_label: str = ""


class TopologySpec(Record, frozen=True, gc=False):
    levels: tuple[TopologyLevel, ...] | None = None


class Topology(ApiObject, frozen=True, gc=False):
    """Kueue's, which KAI's copies."""

    spec: TopologySpec = TopologySpec()


class ExactMatch(Record, frozen=True, gc=False):
    name: str = ""


class RegexMatch(Record, frozen=True, gc=False):
    pattern: str = ""


class MemberSelector(Record, frozen=True, gc=False):
    exact_match: ExactMatch | None = None
    regex_match: RegexMatch | None = None
    label_match: LabelSelector | None = None


class TopologyMember(Record, frozen=True, gc=False):
    type: str = ""
    selector: MemberSelector = MemberSelector()


class HyperNodeSpec(Record, frozen=True, gc=False):
    tier: int = 0
    tier_name: str = ""
    members: tuple[TopologyMember, ...] | None = None


class HyperNode(ApiObject, frozen=True, gc=False):
    spec: HyperNodeSpec = HyperNodeSpec()


KUEUE_TOPOLOGY: Final = Kind.of(
    Topology, "kueue.x-k8s.io/v1beta1", plural="topologies", namespaced=False
)
KAI_TOPOLOGY: Final = Kind.of(
    Topology, "kai.scheduler/v1alpha1", plural="topologies", namespaced=False
)
HYPER_NODE: Final = Kind.of(HyperNode, "topology.volcano.sh/v1alpha1", namespaced=False)

#: Whether a member includes a node of this name with these labels.
Matcher = Callable[[str, Mapping[str, str]], bool]


class Levels:
    """Levels by label keys."""

    def __init__(self, keys: Sequence[str]) -> None:
        self.names = tuple(keys[:LEVELS_MAX])

    def level_of(self, name: str) -> int | None:
        """From the top; None if there is no such level."""
        return self.names.index(name) if name in self.names else None

    def path(self, node: Node) -> Path:
        labels = node.labels
        return tuple([labels[key] for key in takewhile(labels.__contains__, self.names)])


class Tiers:
    """Levels by HyperNodes. Invalid patterns match nothing."""

    def __init__(self, hyper_nodes: Iterable[HyperNode]) -> None:
        self._by_name = {node.metadata.name: node for node in hyper_nodes}
        self._exact: dict[str, set[str]] = {}  # name of a node -> HyperNodes that hold it
        self._patterns: list[tuple[Matcher, str]] = []
        self._parents: dict[str, set[str]] = {}
        self._tiers = sorted({node.spec.tier for node in self._by_name.values()}, reverse=True)
        self._tiers = self._tiers[-LEVELS_MAX:]
        self._named: dict[str, int] = {}  # the name of a tier is optional in each HyperNode
        for name in sorted(self._by_name):
            self._read(name)
        self._above: dict[str, frozenset[str]] = {}
        first = {tier: name for name, tier in reversed(self._named.items())}
        self.names = tuple(first.get(tier) or str(tier) for tier in self._tiers)

    def level_of(self, name: str) -> int | None:
        """By number or name of the tier."""
        if name in self.names:
            return self.names.index(name)
        tier = self._named.get(name)
        if tier is None and name.isascii() and name.isdigit() and len(name) < 10:
            tier = int(name)
        return self._tiers.index(tier) if tier in self._tiers else None

    def path(self, node: Node) -> Path:
        held_by = set(self._exact.get(node.name, ()))
        held_by.update(name for matches, name in self._patterns if matches(node.name, node.labels))
        containing = set[str]().union(*map(self._with_above, held_by))
        names = sorted(containing, reverse=True)
        by_tier = {self._by_name[name].spec.tier: name for name in names}
        return tuple([by_tier[tier] for tier in takewhile(by_tier.__contains__, self._tiers)])

    def _read(self, name: str) -> None:
        spec = self._by_name[name].spec
        if spec.tier_name:
            self._named.setdefault(spec.tier_name, spec.tier)
        for member in spec.members or ():
            selector = member.selector
            exact = selector.exact_match.name if selector.exact_match is not None else ""
            if member.type == "Node":
                if exact:
                    self._exact.setdefault(exact, set()).add(name)
                for matches in _matchers(selector):
                    self._patterns.append((matches, name))
            elif member.type == "HyperNode":
                if exact in self._by_name:
                    self._parents.setdefault(exact, set()).add(name)
                if selector.regex_match is not None:
                    matches_name = _pattern(selector.regex_match.pattern)
                    for other in filter(matches_name, self._by_name):
                        self._parents.setdefault(other, set()).add(name)

    def _with_above(self, name: str) -> frozenset[str]:
        """A HyperNode and all that contain it, cycles included once."""
        known = self._above.get(name)
        if known is None:
            found, new = {name}, {name}
            for _ in range(DEPTH_MAX):
                new = {up for child in new for up in self._parents.get(child, ())} - found
                if not new:
                    break
                found |= new
            known = self._above[name] = frozenset(found)
        return known


def _matchers(selector: MemberSelector) -> Iterable[Matcher]:
    if selector.regex_match is not None:
        matches_name = _pattern(selector.regex_match.pattern)
        yield lambda name, _: matches_name(name)
    if selector.label_match is not None:
        try:
            chosen = compile_selector(selector.label_match)
        except ValueError:
            return
        if chosen is not None:
            yield lambda _, labels: chosen.matches(labels)


def _pattern(text: str) -> Callable[[str], bool]:
    """Like Go's MatchString: anywhere in the name, in linear time."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        found: Any = re2.compile(text, options).search
    except re2.error:
        return lambda _: False
    return lambda name: found(name) is not None


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


# Number of placed pods of a group in each domain of each level.
#
# A gang is placed one pod after the other, and each pod needs the domains of those before it. New
# pods are counted incrementally; all are counted again only if a pod left, or nodes moved in the
# tree.
#
# Bounds  a table for each group that was requested, as long as it has pods: a number for each
#         domain with pods of the group.


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
    """`source`: where the levels come from; `topology`: the name of Kueue's or KAI's object;
    `levels`: label keys from the top down.
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
