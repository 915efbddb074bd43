"""Placements: parts of the cluster in which a pod group may be placed as a whole.

    placementGenerate   which parts exist; at most one plugin per profile
    placementScore      which of the parts in which the group fits is the best

A group is tried in every placement separately; its pods then see the nodes of that placement only.

Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/kube-scheduler/framework/interface.go and
        pkg/scheduler/framework/runtime/framework.go (RunPlacementGeneratePlugins,
        RunPlacementScorePlugins)
"""

from abc import abstractmethod
from collections.abc import Sequence
from operator import add, is_not
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import NodeTable
from asched.core.cluster.pods import PodInfo
from asched.core.framework.points import Plugin
from asched.core.framework.results.draw import draw
from asched.core.framework.status import (
    MISTAKES,
    Status,
    failure,
    raise_plugin_error,
    unschedulable,
)
from asched.core.model import arrays

I64 = arrays.I64
Mask = arrays.Mask

MAX_SCORE: Final = 100
#: Cached sets of placements: all of them, and those with room, for two labels.
KNOWN_MAX: Final = 4
BYTES_MAX: Final = 16 << 20
NO_PLACEMENTS: Final = unschedulable("no feasible placements found")


def is_within(row: int, within: Mask | None) -> bool:
    """Whether a row is in `within`; rows added later are not."""
    return within is None or (row < len(within) and bool(within[row]))


def narrowed(mask: Mask, within: Mask | None) -> Mask:
    """A copy of `mask` without rows outside `within`. Lengths may differ: nodes come and go while a
    trial pauses.
    """
    found: Mask = mask.copy()
    if within is not None:
        common = min(len(found), len(within))
        found[:common] &= within[:common]
        found[common:] = False
    return found


class Placement(NamedTuple):
    """`rows`: bool[N] of the nodes that belong to it; None for all nodes."""

    name: str = ""
    rows: Mask | None = None

    def mask(self, nodes: NodeTable) -> Mask:
        """bool[N]: the rows of its nodes."""
        return narrowed(nodes.columns.read("live")[: nodes.height], self.rows)


#: All nodes, without a division.
EVERYWHERE: Final = Placement()


class DisjointPlacements(NamedTuple):
    """Placements without common nodes, as one order of all their rows.

    order int64[M]: the rows of the first placement, then those of the next ...; starts int64[P]:
    the position in it at which each placement begins.
    """

    order: I64
    starts: I64

    def sums(self, by_row: I64) -> I64:
        """int64[..., N] summed over each placement: int64[..., P]."""
        found: I64 = np.add.reduceat(by_row[..., self.order], self.starts, axis=-1)
        return found

    def owner(self, height: int) -> I64:
        """int64[N]: the placement of each row, -1 for none."""
        found = np.full(height, -1, dtype=np.int64)
        ends = np.append(self.starts[1:], len(self.order))
        found[self.order] = np.repeat(np.arange(len(self.starts)), ends - self.starts)
        return found


class Divisions:
    """Cached parts of recently used placements: those of one label are the same for many groups, as
    are those of them with room left. For `Cluster.singleton`.
    Bounds  KNOWN_MAX sets, and BYTES_MAX of masks; the last set is cached whatever its size.
    """

    def __init__(self, _cluster: Cluster) -> None:
        self._known: list[tuple[list[Mask], DisjointPlacements | None]] = []
        #: recently used placements and the ones before: all, and those with room
        self._asked: tuple[tuple[Sequence[Placement], DisjointPlacements | None], ...] = ()

    def of(self, placements: Sequence[Placement]) -> DisjointPlacements | None:
        """None if placements share nodes, or one is empty."""
        for asked, answer in self._asked:
            if asked is placements:
                return answer
        found = self._of(placements)
        self._asked = ((placements, found), *self._asked[:1])
        return found

    def _of(self, placements: Sequence[Placement]) -> DisjointPlacements | None:
        masks = [placement.rows for placement in placements if placement.rows is not None]
        if len(masks) < len(placements):
            return None
        for known, parts in self._known:
            if len(masks) == len(known) and not any(map(is_not, masks, known)):
                return parts
        parts = _parts(masks)
        self._known = [(masks, parts), *self._known[: KNOWN_MAX - 1]]
        while len(self._known) > 1 and sum(map(_size, self._known)) > BYTES_MAX:
            self._known.pop()
        return parts


def _size(known: tuple[list[Mask], DisjointPlacements | None]) -> int:
    masks, _ = known
    return sum([mask.nbytes for mask in masks])


def _parts(masks: Sequence[Mask]) -> DisjointPlacements | None:
    owner = np.full(len(masks[0]), -1, dtype=np.int64)
    total = 0
    for part, mask in enumerate(masks):
        owner[mask] = part
        total += int(np.count_nonzero(mask))
    sizes = np.bincount(owner[owner >= 0], minlength=len(masks))
    if int(sizes.sum()) != total or not sizes.all():
        return None
    order = np.argsort(owner, kind="stable")[len(owner) - total :]
    return DisjointPlacements(
        order, np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes)[:-1]))
    )


class Assignments(NamedTuple):
    """The result of a trial of a group in a placement: (pod, node) of the placed pods."""

    placement: Placement
    pods: tuple[tuple[PodInfo, str], ...]


class RepeatedPlacements(Sequence[Assignments]):
    """Placements each of which takes the same pods: the results of trials, made on demand."""

    def __init__(
        self, placements: Sequence[Placement], pods: tuple[tuple[PodInfo, str], ...]
    ) -> None:
        self.placements = placements
        self.pods = pods

    def __len__(self) -> int:
        return len(self.placements)

    def __getitem__(self, index: Any) -> Any:
        found = self.placements[index]
        if isinstance(found, Placement):
            return Assignments(found, self.pods)
        return RepeatedPlacements(found, self.pods)


class PlacementGeneratePlugin(Plugin):
    #: Whether it also serves PodGroups of scheduling.x-k8s.io, and without the gate
    #: TopologyAwareWorkloadScheduling.
    serves_all_groups: ClassVar[bool] = False

    @abstractmethod
    def generate_placements(self, group: str, parent: Placement) -> Sequence[Placement] | Status:
        """The placements to try, each a part of `parent`; `group` is "namespace/name".

        None rejects the group. A status gives the reason.
        """


class PlacementScorePlugin(Plugin):
    #: Whether its scores ignore which nodes of a placement the pods get.
    ignores_nodes: ClassVar[bool] = False

    @abstractmethod
    def score_placement(self, group: str, assignments: Assignments) -> int | Status:
        """A raw score; 0..100 unless `normalize_placements` scales it."""

    def score_placements(
        self, group: str, candidates: Sequence[Assignments]
    ) -> Sequence[int] | Status:
        """The raw scores of all, in this order. For plugins that are faster for all at once."""
        raw = []
        for candidate in candidates:
            score = self.score_placement(group, candidate)
            if isinstance(score, Status):
                return score
            raw.append(score)
        return raw

    def normalize_placements(self, scores: Sequence[int]) -> Sequence[int] | Status:
        """All raw scores of this plugin to 0..100."""
        return scores


class PlacementScorer(NamedTuple):
    plugin: PlacementScorePlugin
    weight: int


def generate(
    plugins: Sequence[PlacementGeneratePlugin], group: str, parent: Placement = EVERYWHERE
) -> tuple[Placement, ...] | Status:
    """The placements of the generating plugin within `parent`; that itself without a plugin."""
    if not plugins:
        return (parent,)
    name = plugins[0].name
    try:
        found = plugins[0].generate_placements(group, parent)
        if isinstance(found, Status):
            return found.by(name)
        return tuple(found) or NO_PLACEMENTS.by(name)
    except MISTAKES as raised:
        raise_plugin_error(name, "placementGenerate", raised)


def choose(
    scorers: Sequence[PlacementScorer], group: str, candidates: Sequence[Assignments], seed: int
) -> int | Status:
    """The candidate with the largest sum of weighted scores; the seed decides ties."""
    count = len(candidates)
    totals = [0] * count
    try:
        for plugin, weight in scorers:
            raw = plugin.score_placements(group, candidates)
            if isinstance(raw, Status):
                return _failed("running PlacementScore plugins", plugin, raw)
            final = plugin.normalize_placements(raw)
            if isinstance(final, Status):
                where = "running NormalizePlacementScore on PlacementScore plugins"
                return _failed(where, plugin, final)
            if len(final) != count:
                said = f"{len(final)} scores for {count} placements"
                return _failed("running PlacementScore plugins", plugin, failure(said))
            least, most = min(final), max(final)
            if least < 0 or most > MAX_SCORE:
                score = next(score for score in final if not 0 <= score <= MAX_SCORE)
                return failure(
                    "applying score defaultWeights on PlacementScore plugins: plugin"
                    f' "{plugin.name}" returns an invalid score {score}, it should in the range of'
                    f" [0, {MAX_SCORE}] after normalizing"
                )
            if least < most:  # else all are equal
                points = (
                    map(int, final) if weight == 1 else [int(score) * weight for score in final]
                )
                totals = list(map(add, totals, points))
    except MISTAKES as raised:
        raise_plugin_error(plugin.name, "placementScore", raised)
    best = max(totals)
    tied = [index for index, total in enumerate(totals) if total == best]
    return tied[draw(seed, len(tied))]


def _failed(where: str, plugin: Plugin, status: Status) -> Status:
    return failure(f'{where}: plugin "{plugin.name}" failed with: {status.message}')
