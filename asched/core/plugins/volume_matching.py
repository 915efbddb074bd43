"""Static binding: which existing volume would a claim take on each node?

A claim takes the volume that was made for it, if there is one; else the smallest that fits, other
claims of the pod excluded. Volumes that would do stand on a `Shelf` in that order, their places
being ranks. For each row the smallest rank is looked up among the volumes that the row can reach:

    anywhere           one list of ranks
    label In (values)  per label key, lists of ranks by value; the row's value picks the list
    anything else      one list per distinct node affinity, for the rows it accepts

A list is a slice of sorted numbers `group * size + rank`, so that "the next rank after r in group
g" is one binary search for all rows together.

Source  kubernetes/kubernetes v1.36 component-helpers/storage/volume/pv_helpers.go
        (FindMatchingVolume); equal volumes are taken by name, where upstream takes any
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from asched.core.framework.points import I64, Mask
from asched.core.model.quantity import parse
from asched.core.model.selector import NodeSelector, Selector, compile_selector
from asched.core.model.storage import STORAGE, claim_class, volume_class
from asched.core.model.volume import PersistentVolume, PersistentVolumeClaim
from asched.core.plugins.volume_provisioning import storage_request
from asched.core.plugins.volume_topology import compiled, reachable
from asched.core.state.view import NodeView

I32 = npt.NDArray[np.int32]

#: No volume on this row.
NONE: Final = -1

AVAILABLE: Final = "Available"
FILESYSTEM: Final = "Filesystem"


class Needs(NamedTuple):
    """What a claim asks of a volume, wherever it is."""

    claim: PersistentVolumeClaim
    selector: Selector | None

    def may_take(self, volume: PersistentVolume) -> bool:
        """Large enough, of the same mode and attributes, and here to stay."""
        wanted, offered = self.claim.spec, volume.spec
        return (
            volume.metadata.deletion_timestamp is None
            and (wanted.volume_mode or FILESYSTEM) == (offered.volume_mode or FILESYSTEM)
            and (wanted.volume_attributes_class_name or "")
            == (offered.volume_attributes_class_name or "")
            and parse((offered.capacity or {}).get(STORAGE, 0))
            >= parse(storage_request(self.claim) or 0)
        )

    def is_free(self, volume: PersistentVolume) -> bool:
        """Up for grabs, and as the claim wants it."""
        modes = volume.spec.access_modes or ()
        return (
            volume.status.phase == AVAILABLE
            and (self.selector is None or self.selector.matches(volume.metadata.labels or {}))
            and all(mode in modes for mode in self.claim.spec.access_modes or ())
        )


def is_made_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume names this claim; a uid it names must be the claim's."""
    ref = volume.spec.claim_ref
    return (
        ref is not None
        and ref.name == claim.metadata.name
        and ref.namespace == claim.metadata.namespace
        and ref.uid in ("", claim.metadata.uid)
    )


class Shelf:
    """The volumes of the claim's class that could serve it, smallest first."""

    def __init__(self, claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume]) -> None:
        needs = Needs(claim, compile_selector(claim.spec.selector))
        fitting = [volume for volume in volumes if needs.may_take(volume)]
        fitting.sort(key=lambda volume: volume.metadata.name)
        made = [volume for volume in fitting if is_made_for(volume, claim)]
        self.is_reserved = bool(made)
        if not made:
            free = (v for v in fitting if v.spec.claim_ref is None and needs.is_free(v))
            made = sorted(free, key=lambda v: parse((v.spec.capacity or {}).get(STORAGE, 0)))
        else:
            del made[1:]
        self.volumes = made
        self._everywhere: list[int] = []
        self._by_label: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self._others: dict[NodeSelector, list[int]] = defaultdict(list)
        for rank, volume in enumerate(made):
            self._place(rank, volume)

    def _place(self, rank: int, volume: PersistentVolume) -> None:
        affinity = volume.spec.node_affinity
        required = affinity.required if affinity is not None else None
        terms = compiled(required)
        if required is None or terms is None:
            self._everywhere.append(rank)
            return
        if len(terms) == 1 and len(terms[0].expressions) == 1:
            only = terms[0].expressions[0]
            if only.operator == "In":
                self._by_label[only.key].extend((value, rank) for value in only.values)
                return
        self._others[required].append(rank)

    def first_after(self, nodes: NodeView, after: I32) -> I32:
        """int32[M]: the smallest rank above `after` that each row can reach; NONE if there is
        none.
        """
        best = np.full(nodes.size, len(self.volumes), dtype=np.int64)
        if self._everywhere:
            groups = np.zeros(nodes.size, dtype=np.int64)
            _lower(best, self._search(np.array(self._everywhere), groups, after))
        for key, entries in self._by_label.items():
            ids, column = nodes.label(key)
            found = ((column.values.find(value), rank) for value, rank in entries)
            keys = sorted(i * len(self.volumes) + rank for i, rank in found if i)
            if keys:
                _lower(best, self._search(np.array(keys), ids.astype(np.int64), after))
        for required, ranks in self._others.items():
            groups = np.where(reachable(nodes, required), 0, 1)
            _lower(best, self._search(np.array(ranks), groups, after))
        best[best == len(self.volumes)] = NONE
        return best.astype(np.int32)

    def _search(self, keys: I64, groups: I64, after: I32) -> I64:
        """int64[M]: the next rank of the row's group, or the number of volumes."""
        size = len(self.volumes)
        places = np.searchsorted(keys, groups * size + after, side="right")
        found = keys[np.minimum(places, len(keys) - 1)]
        return np.where((places < len(keys)) & (found // size == groups), found % size, size)


def _lower(best: I64, found: I64) -> None:
    np.minimum(best, found, out=best)


class Match(NamedTuple):
    """One claim and the volume it takes on each row."""

    claim: PersistentVolumeClaim
    shelf: Shelf
    ranks: I32  # int32[M] into shelf.volumes, NONE where there is no volume for it

    @property
    def found(self) -> Mask:
        found: Mask = self.ranks != NONE
        return found

    def volume_at(self, position: int) -> PersistentVolume | None:
        rank = int(self.ranks[position])
        return None if rank == NONE else self.shelf.volumes[rank]


def match_claims(
    claims: Iterable[PersistentVolumeClaim],
    volumes: Iterable[PersistentVolume],
    nodes: NodeView,
) -> list[Match]:
    """Give each claim, the smallest first, a volume on every row where there is one."""
    by_class: dict[str, list[PersistentVolume]] = defaultdict(list)
    ordered = sorted(claims, key=lambda claim: parse(storage_request(claim) or 0))
    wanted = {claim_class(claim) for claim in ordered}
    for volume in volumes:
        name = volume_class(volume)
        if name in wanted:
            by_class[name].append(volume)
    matches: list[Match] = []
    for claim in ordered:
        shelf = Shelf(claim, by_class[claim_class(claim)])
        matches.append(Match(claim, shelf, _choose(shelf, matches, nodes)))
    return matches


def _choose(shelf: Shelf, earlier: list[Match], nodes: NodeView) -> I32:
    """The smallest rank per row whose volume no earlier claim of the pod takes there."""
    ranks = np.full(nodes.size, NONE, dtype=np.int32)
    if not shelf.volumes:
        return ranks
    ranks = shelf.first_after(nodes, ranks)
    rank_of = {volume.metadata.name: rank for rank, volume in enumerate(shelf.volumes)}
    taken = []
    for match in earlier:
        here = [rank_of.get(volume.metadata.name, NONE) for volume in match.shelf.volumes]
        if any(rank != NONE for rank in here):
            taken.append(np.array([*here, NONE], dtype=np.int32)[match.ranks])
    for _ in taken:  # each earlier claim can push a row on by one volume
        clash = np.zeros(nodes.size, dtype=np.bool_)
        for others in taken:
            clash |= (ranks == others) & (ranks != NONE)
        if not clash.any():
            break
        ranks = np.where(clash, shelf.first_after(nodes, ranks), ranks).astype(np.int32)
    return ranks
