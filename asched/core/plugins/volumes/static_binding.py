"""Static binding: which existing volume a claim takes on each node.

A claim takes the volume that names it, if there is one; else the smallest that fits, those
excluded that smaller claims of the same pod take there.

Source  kubernetes/kubernetes v1.36 component-helpers/storage/volume/pv_helpers.go
        (FindMatchingVolume); equal volumes are taken by name, where upstream takes any
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from asched.core.cluster.view import NodeView
from asched.core.framework.points import Mask
from asched.core.model.arrays import I32
from asched.core.model.quantity import parse
from asched.core.model.volume import PersistentVolume, PersistentVolumeClaim
from asched.core.plugins.volumes.candidates import (
    NONE,
    Needs,
    VolumeCandidates,
    VolumeStore,
    needs_of,
)
from asched.core.plugins.volumes.topology import reachable, required_of, storage_request


class Match(NamedTuple):
    """One claim and the volume it takes on each row."""

    claim: PersistentVolumeClaim
    volumes: Sequence[PersistentVolume]
    ranks: I32  # int32[M] into volumes, NONE where there is no volume for the claim

    @property
    def found(self) -> Mask:
        found: Mask = self.ranks != NONE
        return found

    def volume_at(self, position: int) -> PersistentVolume | None:
        rank = int(self.ranks[position])
        return None if rank == NONE else self.volumes[rank]


def match_claims(
    claims: Iterable[PersistentVolumeClaim], store: VolumeStore, nodes: NodeView
) -> list[Match]:
    """Give each claim, the smallest first, a volume on every row where there is one."""
    matches: list[Match] = []
    gone: set[str] = set()  # a pod may name a claim twice; its volume serves once
    for claim in sorted(claims, key=lambda claim: parse(storage_request(claim) or 0)):
        needs = needs_of(claim)
        reserved = _made_for(claim, needs, store)
        if reserved is not None and reserved.metadata.name not in gone:
            gone.add(reserved.metadata.name)
            mask = reachable(nodes, required_of(reserved))
            matches.append(Match(claim, [reserved], np.where(mask, 0, NONE).astype(np.int32)))
            continue
        candidates = store.candidates(needs)
        ranks = _choose(candidates, matches, nodes)
        matches.append(Match(claim, candidates.volumes, ranks))
    return matches


def _made_for(
    claim: PersistentVolumeClaim, needs: Needs, store: VolumeStore
) -> PersistentVolume | None:
    """The volume that names the claim, if it can serve it; the first by name of several."""
    named = store.made_for(claim)
    fitting = (volume for volume in named if needs.may_take(volume))
    return min(fitting, key=lambda volume: volume.metadata.name, default=None)


def _choose(candidates: VolumeCandidates, earlier: Sequence[Match], nodes: NodeView) -> I32:
    """The smallest rank per row whose volume no earlier claim of the pod takes there."""
    ranks = candidates.first(nodes)
    if not candidates.count:
        return ranks
    taken = [_ranks_among(candidates, match) for match in earlier]
    for _ in taken:  # each earlier claim can push a row on by one volume
        clash: Mask = np.zeros(nodes.size, dtype=np.bool_)
        for taken_ranks in taken:
            clash |= (ranks == taken_ranks) & (ranks != NONE)
        if not clash.any():
            break
        ranks = np.where(clash, candidates.first_after(nodes, ranks), ranks).astype(np.int32)
    return ranks


def _ranks_among(candidates: VolumeCandidates, match: Match) -> I32:
    """int32[M]: what another claim takes, as ranks of these candidates; NONE if not among them."""
    if match.volumes is candidates.volumes:
        return match.ranks
    present, inverse = np.unique(match.ranks, return_inverse=True)
    by_volume = [
        NONE if rank == NONE else candidates.rank_of(match.volumes[rank].metadata.name)
        for rank in present.tolist()
    ]
    ranks: I32 = np.array(by_volume, dtype=np.int32)[inverse]
    return ranks
