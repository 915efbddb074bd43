"""Alternatives to the smallest volumes for a pod's claims, for gangs whose placement depends on
them.

Claims are served in the order of `matching.py`, each by every volume that no earlier claim has; a
claim without a free volume has one provisioned. Of volumes that are equal to all rules only one is
tried at a time.

Bounds  VOLUMES_MAX volumes tried, in one go.
"""

from collections.abc import Hashable, Iterator
from itertools import islice
from typing import Final

import numpy as np

from asched.core.cluster.cluster import Cluster
from asched.core.cluster.view import NodeView
from asched.core.model.migration import plugin_of
from asched.core.model.volume import PersistentVolume
from asched.core.plugins.volumes.candidates import NONE, VolumeCandidates, needs_of, size_of
from asched.core.plugins.volumes.choice import Making, VolumeChoice
from asched.core.plugins.volumes.matching import Match
from asched.core.plugins.volumes.provisioning import provision
from asched.core.plugins.volumes.store import VolumeStore, is_made_for

#: Some 20 ms. A guess.
VOLUMES_MAX: Final = 500
TRY_STEPS: Final = 2


def alternatives(
    cluster: Cluster, first: VolumeChoice, node: NodeView, most: int
) -> tuple[list[VolumeChoice], bool]:
    """Up to `most` choices for a view of one row that takes the pod, whose `first` choice is given;
    and whether these are all. The work is charged to the budget.
    """
    trying = _Trying(cluster, first, node)
    found = list(islice(trying.after((), ()), most)) or [first]
    cluster.budget.note(TRY_STEPS * (VOLUMES_MAX - trying.tries_left))
    return found, len(found) < most and trying.tries_left >= 0


class _Trying:
    def __init__(self, cluster: Cluster, first: VolumeChoice, node: NodeView) -> None:
        self._cluster = cluster
        self._store = cluster.singleton(VolumeStore)
        self._first = first
        self._node = node
        matched = {match.claim.metadata.key for match in first.matches}
        self._selected = tuple(m for m in first.makings if m.claim.metadata.key not in matched)
        self.tries_left = VOLUMES_MAX

    def after(self, matches: tuple[Match, ...], made: tuple[Making, ...]) -> Iterator[VolumeChoice]:
        """Choices that follow once the first claims are served in this way."""
        if len(matches) == len(self._first.matches):
            yield VolumeChoice(self._first.codes, matches, (*self._selected, *made))
            return
        given = self._first.matches[len(matches)]
        if len(given.volumes) == 1 and is_made_for(given.volumes[0], given.claim):
            own = tuple(m for m in self._first.makings if m.claim is given.claim)
            yield from self.after((*matches, given), (*made, *own))
            return
        candidates = self._store.candidates(needs_of(given.claim))
        is_served = False
        for rank in self._ranks(candidates, matches):
            is_served = True
            match = Match(given.claim, candidates.volumes, np.array([rank], dtype=np.int32))
            yield from self.after((*matches, match), made)
        if not is_served:
            nothing = Match(given.claim, candidates.volumes, np.array([NONE], dtype=np.int32))
            how = provision(self._cluster, given.claim, self._node)
            if how.possible[0] and how.roomy[0]:
                making = Making(given.claim, np.ones(1, dtype=np.bool_), how)
                yield from self.after((*matches, nothing), (*made, making))

    def _ranks(self, candidates: VolumeCandidates, matches: tuple[Match, ...]) -> Iterator[int]:
        """Ranks of free volumes that the row can reach, one of each equivalent group."""
        taken = {v.metadata.name for match in matches if (v := match.volume_at(0)) is not None}
        seen: set[Hashable] = set()
        ranks = candidates.first(self._node, self._store.reach)
        while ranks[0] != NONE and self.tries_left >= 0:
            self.tries_left -= 1
            volume = candidates.volumes[ranks[0]]
            group = _equivalence_key(volume)
            if volume.metadata.name not in taken and group not in seen:
                seen.add(group)
                yield int(ranks[0])
            ranks = candidates.first_after(self._node, ranks, self._store.reach)


def _equivalence_key(volume: PersistentVolume) -> Hashable:
    """Everything that rules read of an unused volume, except its name."""
    spec, labels = volume.spec, volume.metadata.labels or {}
    modes = frozenset(spec.access_modes or ()), spec.volume_mode, spec.volume_attributes_class_name
    where = spec.node_affinity.required if spec.node_affinity is not None else None
    driver = spec.csi.driver if spec.csi is not None else ""
    moved = plugin_of(volume)
    disk = driver if moved is None else (moved.plugin, volume.metadata.name)
    return size_of(volume), *modes, frozenset(labels.items()), where, disk
