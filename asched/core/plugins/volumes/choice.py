"""How each node serves the claims of a pod: volumes to bind or provision, or why it cannot.

The verdict of a row is a set of bits, because one node can have several reasons. Claims are
evaluated in order, and the first that a row cannot serve decides its reason; a claim whose node was
selected before is tried there only, and skips the search for existing volumes.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/volumebinding/binder.go
        (FindPodVolumes)

Static binding: which existing volume a claim takes on each node.

A claim takes the volume that names it, if there is one; else the smallest that fits, those
excluded that smaller claims of the same pod take there.

Source  kubernetes/kubernetes v1.36 component-helpers/storage/volume/pv_helpers.go
        (FindMatchingVolume); equal volumes are taken by name, where upstream takes any
"""

from collections.abc import Iterable, Sequence
from enum import IntFlag
from typing import NamedTuple

import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.view import NodeView
from asched.core.framework.points import Codes, Mask
from asched.core.model.arrays import I32
from asched.core.model.kinds import PERSISTENT_VOLUME
from asched.core.model.quantity import parse
from asched.core.model.storage import SELECTED_NODE
from asched.core.model.volume import PersistentVolume, PersistentVolumeClaim
from asched.core.plugins.volumes.candidates import (
    NONE,
    Needs,
    VolumeCandidates,
    VolumeStore,
    is_made_for,
    needs_of,
)
from asched.core.plugins.volumes.claims import PodClaims, VolumeAffinity, accepts
from asched.core.plugins.volumes.topology import (
    Provision,
    provision,
    reachable,
    required_of,
    storage_request,
)


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


class Reject(IntFlag):
    """The bits of a code, in the order of the reasons in the message."""

    UNREACHABLE = 1  # a bound volume is elsewhere
    UNBINDABLE = 2  # a claim finds no volume, and none can be made
    NO_ROOM = 4  # one could be made, if there were room
    NO_VOLUME = 8  # a claim is bound to a volume that does not exist


class Making(NamedTuple):
    """A claim for which a volume would have to be made on some rows."""

    claim: PersistentVolumeClaim
    needed: Mask  # bool[M]
    provision: Provision


class VolumeChoice(NamedTuple):
    """The verdict, and the volumes to bind or make where it is 0."""

    codes: Codes
    matches: tuple[Match, ...] = ()
    makings: tuple[Making, ...] = ()


def choose(cluster: Cluster, claims: PodClaims, nodes: NodeView) -> VolumeChoice:
    """Evaluate every row of a view."""
    codes = _evaluate_bound(cluster, claims.bound, nodes)
    if not claims.delayed:
        return VolumeChoice(codes)
    possible, selected, unselected = _selected(claims.delayed, nodes)
    codes[~possible] |= Reject.UNBINDABLE
    matches: list[Match] = []
    if unselected:
        matches = match_claims(unselected, cluster.singleton(VolumeStore), nodes)
    for match in matches:
        if _is_being_bound(cluster, match):
            codes[possible & ~match.found] |= Reject.UNBINDABLE
            possible &= match.found
    wanted = [(claim, possible) for claim in selected]
    wanted += [(match.claim, possible & ~match.found) for match in matches]
    makings = []
    open_rows = possible.copy()
    for claim, needed in wanted:
        if not (needed & open_rows).any():
            continue
        made = provision(cluster, claim, nodes)
        makings.append(Making(claim, needed, made))
        refused = open_rows & needed & ~made.possible
        codes[refused] |= Reject.UNBINDABLE
        open_rows &= ~refused
        full = open_rows & needed & ~made.roomy
        codes[full] |= Reject.NO_ROOM
        open_rows &= ~full
    return VolumeChoice(codes, tuple(matches), tuple(makings))


def _is_being_bound(cluster: Cluster, match: Match) -> bool:
    """Whether another pod that uses the claim has a volume for it, which is not written yet: then
    no other volume may be made for it.
    """
    if len(match.volumes) != 1:
        return False
    (volume,) = match.volumes
    stored = cluster.stored(PERSISTENT_VOLUME, volume.metadata.name)
    return stored is not volume and is_made_for(volume, match.claim)


def _evaluate_bound(cluster: Cluster, bound: tuple[VolumeAffinity, ...], nodes: NodeView) -> Codes:
    codes = np.zeros(nodes.size, dtype=np.int32)
    for affinity in bound:
        if affinity.is_missing:
            codes[codes == 0] = Reject.NO_VOLUME
            break
        codes[(codes == 0) & ~accepts(affinity, nodes, cluster)] = Reject.UNREACHABLE
    return codes


def _selected(
    claims: tuple[PersistentVolumeClaim, ...], nodes: NodeView
) -> tuple[Mask, list[PersistentVolumeClaim], list[PersistentVolumeClaim]]:
    """(rows that no claim rules out, claims whose node was selected before, other claims)."""
    possible: Mask = np.ones(nodes.size, dtype=np.bool_)
    selected, unselected = [], []
    for claim in claims:
        node = (claim.metadata.annotations or {}).get(SELECTED_NODE)
        if node is None:
            unselected.append(claim)
            continue
        selected.append(claim)
        position = nodes.position_of(node)
        only: Mask = np.zeros(nodes.size, dtype=np.bool_)
        if position is not None:
            only[position] = True
        possible &= only
    return possible, selected, unselected
