"""Twin of ImageLocality."""

from typing import Any

from asched.core.model.node import Node
from asched.core.model.pod import Pod
from tests.conformance.twins.picture import Picture, Place

MIB = 1024 * 1024


def raw_score(pod: Pod, place: Place, picture: Picture, args: Any) -> int | None:
    spec = pod.spec
    containers = [*(spec.init_containers or ()), *(spec.containers or ())]
    images = [container.image for container in containers]
    images += [volume.image.reference for volume in spec.volumes or () if volume.image]
    total = 0
    for image in images:
        holders = [p for p in picture.places if _size(p.node, _full(image)) is not None]
        size = _size(place.node, _full(image))
        if size is not None:
            total += int(float(size) * (float(len(holders)) / float(len(picture.places))))
    low, high = 23 * MIB, 1000 * MIB * len(containers)
    return 100 * (min(max(total, low), high) - low) // (high - low)


def _full(image: str) -> str:
    return image if ":" in image.rsplit("/", 1)[-1] else image + ":latest"


def _size(node: Node, name: str) -> int | None:
    for image in node.status.images or ():
        if name in (image.names or ()):
            return image.size_bytes
    return None
