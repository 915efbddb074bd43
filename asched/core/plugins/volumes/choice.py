"""How each node serves the claims of a pod: volumes to bind or provision, or why it cannot.

The verdict of a row is a set of bits, because one node can have several reasons. Claims are
evaluated in order, and the first that a row cannot serve decides its reason; a claim whose node was
selected before is tried there only, and skips the search for existing volumes
(`static_binding.py`).

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/volumebinding/binder.go
        (FindPodVolumes)
"""

from enum import IntFlag
from typing import NamedTuple

import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.view import NodeView
from asched.core.framework.points import Codes, Mask
from asched.core.model.kinds import PERSISTENT_VOLUME
from asched.core.model.storage import SELECTED_NODE
from asched.core.model.volume import PersistentVolumeClaim
from asched.core.plugins.volumes.candidates import VolumeStore, is_made_for
from asched.core.plugins.volumes.claims import PodClaims, VolumeAffinity, accepts
from asched.core.plugins.volumes.static_binding import Match, match_claims
from asched.core.plugins.volumes.topology import Provision, provision


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
