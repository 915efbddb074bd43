"""Changes of the volumes that a pod is bound to: the places where they are accessible."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from asched.core.cluster.pods import PodInfo
from asched.core.cluster.supposition import Supposition
from asched.core.model.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from asched.core.model.storage import storage_of
from asched.core.model.volume import PersistentVolume
from asched.insight.explain.deciding import Deciding
from asched.insight.explain.ways import SuggestedChange, Way
from asched.names import LABEL_BETA_REGION, LABEL_BETA_ZONE, LABEL_REGION, LABEL_ZONE

TRIES_MAX: Final = 64
#: Labels of a volume with its location.
PLACES: Final = (LABEL_ZONE, LABEL_REGION, LABEL_BETA_ZONE, LABEL_BETA_REGION)


class Tied(NamedTuple):
    """A claim of the pod whose volume is not accessible from every node."""

    claim: str
    volume: PersistentVolume


def volumes(deciding: Deciding) -> Iterator[Way]:
    """The fewest volumes that would have to be accessible elsewhere. Further pods have volumes of
    their own, or the same volumes.
    """
    tied = list(_tied(deciding, deciding.info(deciding.pod)))
    tries = 0
    for number in range(1, len(tied) + 1):
        for some in combinations(tied, number):
            tries += 1
            if tries > TRIES_MAX:
                return

            def anywhere(suppose: Supposition, some: tuple[Tied, ...] = some) -> None:
                for tie in some:
                    suppose.seen(PERSISTENT_VOLUME, _untied(tie.volume))

            with deciding.cluster.supposing() as suppose:
                anywhere(suppose)
                rows = np.flatnonzero(deciding.rows())
            if len(rows):
                yield Way(_suggestion(deciding, some, rows), of_cluster=anywhere)
                return


def _tied(deciding: Deciding, info: PodInfo) -> Iterator[Tied]:
    cluster = deciding.cluster
    for use in storage_of(info.pod).claims:
        claim = cluster.get(PERSISTENT_VOLUME_CLAIM, use.key)
        if claim is None or not claim.spec.volume_name:
            continue
        volume = cluster.get(PERSISTENT_VOLUME, claim.spec.volume_name)
        if volume is None:
            continue
        affinity = volume.spec.node_affinity
        has_label = any(place in (volume.metadata.labels or {}) for place in PLACES)
        if has_label or (affinity is not None and affinity.required is not None):
            yield Tied(claim.metadata.name, volume)


def _untied(volume: PersistentVolume) -> PersistentVolume:
    replace: Any = msgspec.structs.replace
    labels = {k: v for k, v in (volume.metadata.labels or {}).items() if k not in PLACES}
    metadata = replace(volume.metadata, labels=labels)
    changed: PersistentVolume = replace(
        volume, metadata=metadata, spec=replace(volume.spec, node_affinity=None)
    )
    return changed


def _suggestion(deciding: Deciding, some: tuple[Tied, ...], rows: Any) -> SuggestedChange:
    node = deciding.cluster.nodes.node_at[int(rows[0])]
    assert node is not None
    zone = node.labels.get(LABEL_ZONE, "")
    names = [f"{tie.volume.metadata.name} (claim {tie.claim})" for tie in some]
    where = f"node {node.name}{f' in zone {zone}' if zone else ''}"
    text = f"have volume {', '.join(names)} where it reaches {where}"
    details = {
        "volumes": [tie.volume.metadata.name for tie in some],
        "claims": [tie.claim for tie in some],
        "node": node.name,
        "zone": zone,
    }
    return SuggestedChange("volume", text, details, len(rows), node.name)
