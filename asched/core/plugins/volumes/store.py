"""Index of the cluster's volumes: by kind of claim, and by the claim they name.

It follows the log of changed objects, so that a decision costs the volumes that changed since the
last one. Candidates are shared by all claims with the same needs.

Bounds  CANDIDATES_MAX of them; the least recently used is dropped.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from typing import Final

from asched.core.cluster.changes import Reader
from asched.core.cluster.cluster import Cluster
from asched.core.model.kinds import PERSISTENT_VOLUME
from asched.core.model.storage import volume_class
from asched.core.model.volume import PersistentVolume, PersistentVolumeClaim
from asched.core.plugins.volumes.candidates import Needs, VolumeCandidates

#: Kinds of claims whose candidates are cached. A guess: few classes, sizes and modes wait at the
#: same time.
CANDIDATES_MAX: Final = 64


class VolumeStore:
    """One per cluster (`Cluster.singleton`); assumed volumes count in their assumed version."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._changes = Reader(cluster.object_log)
        self._by_class: dict[str, dict[str, PersistentVolume]] = defaultdict(dict)
        self._named: dict[tuple[str, str], dict[str, PersistentVolume]] = defaultdict(dict)
        self._places: dict[str, tuple[str, tuple[str, str] | None]] = {}
        self._candidates: OrderedDict[Needs, VolumeCandidates] = OrderedDict()

    def candidates(self, needs: Needs) -> VolumeCandidates:
        """The free volumes that could serve such claims."""
        self._follow()
        candidates = self._candidates.get(needs)
        if candidates is None or candidates.is_stale:
            volumes = self._by_class.get(needs.storage_class, {})
            candidates = self._candidates[needs] = VolumeCandidates(needs, volumes.values())
            if len(self._candidates) > CANDIDATES_MAX:
                self._candidates.popitem(last=False)
        self._candidates.move_to_end(needs)
        return candidates

    def made_for(self, claim: PersistentVolumeClaim) -> Iterable[PersistentVolume]:
        """Volumes that name the claim; a uid they name must be the claim's."""
        self._follow()
        key = (claim.metadata.namespace, claim.metadata.name)
        return [v for v in self._named.get(key, {}).values() if is_made_for(v, claim)]

    def _follow(self) -> None:
        entries = self._changes.news()
        if entries is None:
            self._by_class.clear()
            self._named.clear()
            self._places.clear()
            self._candidates.clear()
            for name, volume in self._cluster.all(PERSISTENT_VOLUME).items():
                self._put(name, volume)
            return
        changed = dict.fromkeys(k for what, k in entries if what == PERSISTENT_VOLUME.resource)
        for name in changed:
            volume = self._cluster.get(PERSISTENT_VOLUME, name)
            self._remove(name)
            if volume is not None:
                self._put(name, volume)
            for candidates in self._candidates.values():
                candidates.update(name, volume)

    def _put(self, name: str, volume: PersistentVolume) -> None:
        ref = volume.spec.claim_ref
        named = (ref.namespace, ref.name) if ref is not None else None
        place = (volume_class(volume), named)
        self._places[name] = place
        self._by_class[place[0]][name] = volume
        if named is not None:
            self._named[named][name] = volume

    def _remove(self, name: str) -> None:
        place = self._places.pop(name, None)
        if place is None:
            return
        storage_class, named = place
        self._by_class[storage_class].pop(name, None)
        if not self._by_class[storage_class]:
            del self._by_class[storage_class]
        if named is not None:
            self._named[named].pop(name, None)
            if not self._named[named]:
                del self._named[named]


def is_made_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume names this claim; a uid it names must be the claim's."""
    ref = volume.spec.claim_ref
    return (
        ref is not None
        and ref.name == claim.metadata.name
        and ref.namespace == claim.metadata.namespace
        and ref.uid in ("", claim.metadata.uid)
    )
