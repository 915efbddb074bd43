"""Free PersistentVolumes for one kind of claim, smallest first.

A volume's place among the candidates is its rank. For each row the smallest rank is looked up among
those the row can reach:

    anywhere           one list of ranks
    label In (values)  per label key, lists of ranks by value; the row's value picks the list
    anything else      one list per distinct node affinity, for the rows it accepts

A list is a slice of sorted numbers `group * size + rank`, so that "the next rank after r in group
g" is one binary search for all rows together. A volume that is taken leaves its list, and ranks
stay what they are; one that comes makes the candidates stale.
"""

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np

from asched.core.cluster.change_logs import Reader
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import LabelColumn
from asched.core.cluster.view import NodeView
from asched.core.framework.points import I64, Mask
from asched.core.model.arrays import I32
from asched.core.model.kinds import PERSISTENT_VOLUME
from asched.core.model.lru import Lru
from asched.core.model.quantity import parse
from asched.core.model.selector import NodeSelector, Selector, compile_selector
from asched.core.model.storage import STORAGE, claim_class, volume_class
from asched.core.model.volume import PersistentVolume, PersistentVolumeClaim
from asched.core.plugins.volumes.topology import compiled, reachable, required_of, storage_request

#: No volume on this row, or not among these candidates.
NONE: Final = -1

AVAILABLE: Final = "Available"
FILESYSTEM: Final = "Filesystem"


class Needs(NamedTuple):
    """What claims of one kind require of a volume, on any node."""

    storage_class: str
    request: Fraction
    access_modes: frozenset[str]
    volume_mode: str
    attributes_class: str
    selector: Selector | None

    def may_take(self, volume: PersistentVolume) -> bool:
        """Whether class, mode and attributes match, it is large enough, and it is not being
        deleted.
        """
        spec = volume.spec
        return (
            volume.metadata.deletion_timestamp is None
            and self.volume_mode == (spec.volume_mode or FILESYSTEM)
            and self.attributes_class == (spec.volume_attributes_class_name or "")
            and self.storage_class == volume_class(volume)
            and size_of(volume) >= self.request
        )

    def is_free(self, volume: PersistentVolume) -> bool:
        """Whether it is unclaimed and meets the needs."""
        return (
            volume.spec.claim_ref is None
            and volume.status.phase == AVAILABLE
            and (self.selector is None or self.selector.matches(volume.metadata.labels or {}))
            and self.access_modes.issubset(volume.spec.access_modes or ())
        )


def needs_of(claim: PersistentVolumeClaim) -> Needs:
    """Raises ValueError for an invalid selector of the claim."""
    spec = claim.spec
    return Needs(
        claim_class(claim),
        parse(storage_request(claim) or 0),
        frozenset(spec.access_modes or ()),
        spec.volume_mode or FILESYSTEM,
        spec.volume_attributes_class_name or "",
        compile_selector(spec.selector),
    )


def size_of(volume: PersistentVolume) -> Fraction:
    return parse((volume.spec.capacity or {}).get(STORAGE, 0))


class VolumeCandidates:
    """`volumes` by rank; volumes that were taken since keep their rank, but are on no list."""

    def __init__(self, needs: Needs, volumes: Iterable[PersistentVolume]) -> None:
        self.needs = needs
        fitting = [v for v in volumes if needs.is_free(v) and needs.may_take(v)]
        fitting.sort(key=lambda volume: (size_of(volume), volume.metadata.name))
        self.volumes = fitting
        self.count = len(fitting)  # not taken
        self.is_stale = False
        self._size = max(len(fitting), 1)
        self._ranks = {volume.metadata.name: rank for rank, volume in enumerate(fitting)}
        self._by_label: dict[str, _Labelled] = {}
        everywhere: list[int] = []
        by_affinity: dict[NodeSelector, list[int]] = {}
        for rank, volume in enumerate(fitting):
            required = required_of(volume)
            terms = compiled(required)
            if required is None or terms is None:
                everywhere.append(rank)
            elif [[e.operator for e in term.expressions] for term in terms] == [["In"]]:
                only = terms[0].expressions[0]
                labelled = self._by_label.setdefault(only.key, _Labelled(self._size))
                labelled.entries.extend((value, rank) for value in only.values)
            else:
                by_affinity.setdefault(required, []).append(rank)
        self._everywhere: I64 = np.array(everywhere, dtype=np.int64)
        self._by_affinity = {k: np.array(ranks, dtype=np.int64) for k, ranks in by_affinity.items()}

    def rank_of(self, name: str) -> int:
        return self._ranks.get(name, NONE)

    def update(self, name: str, volume: PersistentVolume | None) -> None:
        """A volume was added, changed or deleted."""
        fits = volume is not None and self.needs.is_free(volume) and self.needs.may_take(volume)
        rank = self._ranks.get(name)
        if rank is None:
            self.is_stale = self.is_stale or fits
            return
        known = self.volumes[rank]
        if (
            volume is not None
            and fits
            and size_of(volume) == size_of(known)
            and required_of(volume) == required_of(known)
        ):
            self.volumes[rank] = volume
            return
        self._drop(name, rank)
        self.is_stale = self.is_stale or fits

    def first(self, nodes: NodeView) -> I32:
        """int32[M]: the smallest rank that each row can reach; NONE if there is none."""
        best = np.full(nodes.size, self._size, dtype=np.int64)
        if len(self._everywhere):
            best[:] = self._everywhere[0]
        for key, labelled in self._by_label.items():
            ids, column = nodes.label(key)
            np.minimum(best, labelled.firsts(column)[ids], out=best)
        for required, ranks in self._by_affinity.items():
            if len(ranks):
                mask = reachable(nodes, required)
                best[mask] = np.minimum(best[mask], ranks[0])
        best[best == self._size] = NONE
        return best.astype(np.int32)

    def first_after(self, nodes: NodeView, after: I32) -> I32:
        """int32[M]: the smallest rank above `after` that each row can reach; NONE if none."""
        best = np.full(nodes.size, self._size, dtype=np.int64)
        if len(self._everywhere):
            groups = np.zeros(nodes.size, dtype=np.int64)
            self._lower(best, self._everywhere, groups, after)
        for key, labelled in self._by_label.items():
            ids, column = nodes.label(key)
            self._lower(best, labelled.keys(column), ids.astype(np.int64), after)
        for required, ranks in self._by_affinity.items():
            groups = np.where(reachable(nodes, required), 0, 1)
            self._lower(best, ranks, groups, after)
        best[best == self._size] = NONE
        return best.astype(np.int32)

    def _lower(self, best: I64, keys: I64, groups: I64, after: I32) -> None:
        """Put the next rank of each row's group where it is smaller than the best so far."""
        if not len(keys):
            return
        places = np.searchsorted(keys, groups * self._size + after, side="right")
        found = keys[np.minimum(places, len(keys) - 1)]
        is_there: Mask = (places < len(keys)) & (found // self._size == groups)
        np.minimum(best, np.where(is_there, found % self._size, self._size), out=best)

    def _drop(self, name: str, rank: int) -> None:
        del self._ranks[name]
        self.count -= 1
        self._everywhere = self._everywhere[self._everywhere != rank]
        for labelled in self._by_label.values():
            labelled.drop(rank)
        for required, ranks in self._by_affinity.items():
            self._by_affinity[required] = ranks[ranks != rank]


class _Labelled:
    """Volumes tied to values of one label. New values of the label rebuild the lists."""

    def __init__(self, size: int) -> None:
        self.entries: list[tuple[str, int]] = []  # (value, rank)
        self._size = size
        self._keys: I64 = np.zeros(0, dtype=np.int64)
        self._firsts: I64 = np.zeros(0, dtype=np.int64)
        self._known_at: tuple[int, int] | None = None
        self._dropped: set[int] = set()

    def keys(self, column: LabelColumn) -> I64:
        """Sorted `value id * size + rank`; values that no node has are left out."""
        self._know(column)
        return self._keys

    def firsts(self, column: LabelColumn) -> I64:
        """int64[V]: the smallest rank for each value id, `size` where there is none."""
        self._know(column)
        return self._firsts

    def drop(self, rank: int) -> None:
        self._dropped.add(rank)
        stays = self._keys % self._size != rank
        gone = self._keys[~stays]
        self._keys = self._keys[stays]
        for group in (gone // self._size).tolist():
            place = int(np.searchsorted(self._keys, group * self._size))
            found = int(self._keys[place]) if place < len(self._keys) else -1
            is_there = found // self._size == group
            self._firsts[group] = found % self._size if is_there else self._size

    def _know(self, column: LabelColumn) -> None:
        if self._known_at == column.stamp:
            return
        self._known_at = column.stamp
        find, dropped = column.values.find, self._dropped
        found = ((find(value), rank) for value, rank in self.entries if rank not in dropped)
        keys = [value * self._size + rank for value, rank in found if value]
        self._keys = np.array(sorted(keys), dtype=np.int64)
        groups = self._keys // self._size
        starts = np.flatnonzero(np.diff(groups, prepend=-1))
        self._firsts = np.full(len(column.values), self._size, dtype=np.int64)
        self._firsts[groups[starts]] = self._keys[starts] % self._size


#: Kinds of claims whose candidates are cached. A guess: few classes, sizes and modes wait at the
#: same time.
CANDIDATES_MAX: Final = 64


class VolumeStore:
    """One per cluster (`Cluster.singleton`); assumed volumes count in their assumed version."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._changes = Reader(cluster.object_log)
        self._named: dict[tuple[str, str], dict[str, PersistentVolume]] = defaultdict(dict)
        self._claims: dict[str, tuple[str, str]] = {}  # volume -> the claim that it names
        self._candidates: Lru[Needs, VolumeCandidates] = Lru(CANDIDATES_MAX)

    def candidates(self, needs: Needs) -> VolumeCandidates:
        """The free volumes that could serve such claims."""
        self._follow()
        candidates = self._candidates.get(needs)
        if candidates is None or candidates.is_stale:
            volumes = self._cluster.all(PERSISTENT_VOLUME)
            candidates = VolumeCandidates(needs, volumes.values())
            self._candidates.put(needs, candidates)
        return candidates

    def made_for(self, claim: PersistentVolumeClaim) -> Iterable[PersistentVolume]:
        """Volumes that name the claim; a uid they name must be the claim's."""
        self._follow()
        key = (claim.metadata.namespace, claim.metadata.name)
        return [v for v in self._named.get(key, {}).values() if is_made_for(v, claim)]

    def _follow(self) -> None:
        entries = self._changes.unread()
        if entries is None:
            self._named.clear()
            self._claims.clear()
            self._candidates = Lru(CANDIDATES_MAX)
            for name, volume in self._cluster.all(PERSISTENT_VOLUME).items():
                self._put(name, volume)
            return
        changed = dict.fromkeys(k for what, k in entries if what == PERSISTENT_VOLUME.resource)
        for name in changed:
            volume = self._cluster.get(PERSISTENT_VOLUME, name)
            self._remove(name)
            if volume is not None:
                self._put(name, volume)
            for needs in self._candidates:
                candidates = self._candidates.get(needs)
                if candidates is not None:
                    candidates.update(name, volume)

    def _put(self, name: str, volume: PersistentVolume) -> None:
        ref = volume.spec.claim_ref
        if ref is not None:
            claim = self._claims[name] = (ref.namespace, ref.name)
            self._named[claim][name] = volume

    def _remove(self, name: str) -> None:
        claim = self._claims.pop(name, None)
        if claim is not None:
            del self._named[claim][name]
            if not self._named[claim]:
                del self._named[claim]


def is_made_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume names this claim; a uid it names must be the claim's."""
    ref = volume.spec.claim_ref
    return (
        ref is not None
        and ref.name == claim.metadata.name
        and ref.namespace == claim.metadata.namespace
        and ref.uid in ("", claim.metadata.uid)
    )
