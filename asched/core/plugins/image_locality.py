"""ImageLocality: prefer nodes that already have a pod's images.

Prefers   nodes by the bytes of the pod's images they have, each image weighed by how widely it is
          spread, so that one node with a rare big image does not draw every pod.
Retry     nothing: it rejects no pod.
Cost      one pass over the rows that have each wanted image; nothing if no node has any.
Source    kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/imagelocality
"""

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from asched import names
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.nodes import Aspect
from asched.core.cluster.pods import PodClass, PodInfo
from asched.core.cluster.view import NodeView
from asched.core.config.gates import DEFAULT_GATES
from asched.core.framework.per_class import PerClass
from asched.core.framework.points import I64, ScorePlugin
from asched.core.framework.registrations import Registration

MIB: Final = 1 << 20
#: Fewer bytes than this score 0.
BYTES_MIN: Final = 23 * MIB
#: More bytes per container (since 1.37 also per image volume) add nothing to the score.
CONTAINER_BYTES_MAX: Final = 1000 * MIB


class Images(NamedTuple):
    """Image names as nodes list them, with repetitions, and how many of them raise the limit."""

    names: tuple[str, ...]
    counted: int


class ImageLocality(ScorePlugin):
    name = names.IMAGE_LOCALITY
    depends_on = Aspect.IMAGES | Aspect.LIVE

    def __init__(self, cluster: Cluster, gates: Mapping[str, bool] = DEFAULT_GATES) -> None:
        self._cluster = cluster
        counts_volumes = gates["image-volumes-raise-the-limit"]
        self._images = PerClass(partial(_images_of, counts_volumes=counts_volumes))

    def registrations(self) -> Sequence[Registration]:
        return ()

    def share_key(self, pod: PodInfo) -> Hashable:
        return self._images(pod.cls)

    def stamp(self, pod: PodInfo, data: Any) -> Hashable:
        """The number of nodes, and of nodes with each image: both affect the score of every row."""
        known = self._cluster.nodes.images
        if not known:
            return 0
        spread = [
            (known[name].size_bytes, len(known[name].rows)) if name in known else None
            for name in self._images(pod.cls).names
        ]
        return (self._cluster.nodes.count, *spread) if any(spread) else 0

    def score(self, pod: PodInfo, nodes: NodeView, data: Any) -> I64:
        images = self._images(pod.cls)
        node_bytes = np.zeros(nodes.size, dtype=np.int64)
        known = nodes.table.images
        for name in images.names:
            state = known.get(name)
            if state is not None:
                # The division comes before the multiplication, in floating point, as upstream.
                worth = int(float(state.size_bytes) * (len(state.rows) / nodes.total))
                node_bytes[nodes.positions(state.rows)] += worth
        bytes_max = CONTAINER_BYTES_MAX * images.counted
        if bytes_max <= BYTES_MIN:  # no containers
            return np.zeros(nodes.size, dtype=np.int64)
        clamped = np.clip(node_bytes, BYTES_MIN, bytes_max)
        return 100 * (clamped - BYTES_MIN) // (bytes_max - BYTES_MIN)


def _images_of(cls: PodClass, *, counts_volumes: bool) -> Images:
    spec = cls.example.spec
    containers = (*(spec.init_containers or ()), *(spec.containers or ()))
    volumes = [v.image.reference for v in spec.volumes or () if v.image is not None]
    wanted = [container.image for container in containers] + volumes
    counted = len(containers) + (len(volumes) if counts_volumes else 0)
    return Images(tuple([_with_tag(image) for image in wanted]), counted)


def _with_tag(image: str) -> str:
    """The name with `:latest` if it has neither tag nor digest; the colon of a registry's port is
    no tag.
    """
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
