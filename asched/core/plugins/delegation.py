"""Extended resources that device classes stand for, where a node does not offer them itself.

A DeviceClass names one with `spec.extendedResourceName`; besides, every class stands for
`deviceclass.resource.kubernetes.io/<its name>`.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/dynamicresources/extended
"""

from collections.abc import Mapping
from typing import Final

from asched.core.model.claim import DeviceClass
from asched.core.model.kinds import DEVICE_CLASS
from asched.core.state.cluster import Cluster

IMPLICIT_PREFIX: Final = "deviceclass.resource.kubernetes.io/"


def names_of(device_class: DeviceClass) -> tuple[str, ...]:
    """The extended resources a class stands for, the implicit one first."""
    explicit = device_class.spec.extended_resource_name
    implicit = IMPLICIT_PREFIX + device_class.metadata.name
    return (implicit, explicit) if explicit else (implicit,)


class Delegation:
    """Resource name to class, gathered anew when some class has changed."""

    __slots__ = ("_classes", "_cluster", "_epoch")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._epoch = -1
        self._classes: dict[str, DeviceClass] = {}

    @property
    def epoch(self) -> int:
        """Moves whenever `classes` may have."""
        return self._cluster.epoch_of(DEVICE_CLASS)

    @property
    def classes(self) -> Mapping[str, DeviceClass]:
        """Of several classes for one resource the youngest counts, then the first by name."""
        if self._epoch != self.epoch:
            self._epoch = self.epoch
            listed = sorted(
                self._cluster.all(DEVICE_CLASS).values(),
                key=lambda c: c.metadata.name,
                reverse=True,
            )
            listed.sort(key=lambda c: c.metadata.creation_timestamp or "")
            self._classes = {name: c for c in listed for name in names_of(c)}
        return self._classes
