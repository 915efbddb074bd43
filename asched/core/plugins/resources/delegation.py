"""Extended resources that device classes stand for, cached while no class changes.

Where a node does not offer such a resource itself, NodeResourcesFit leaves the decision to
DynamicResources.
"""

from collections.abc import Mapping

from asched.core.cluster.cluster import Cluster
from asched.core.dra.ledger import IMPLICIT_PREFIX, classes_by_resource
from asched.core.model.claim import DeviceClass
from asched.core.model.kinds import DEVICE_CLASS


def names_of(device_class: DeviceClass) -> set[str]:
    """The extended resources a class stands for."""
    implicit = IMPLICIT_PREFIX + device_class.metadata.name
    return {implicit, device_class.spec.extended_resource_name or implicit}


class Delegation:
    """Resource name -> class, rebuilt when a class has changed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._epoch = -1
        self._classes: dict[str, DeviceClass] = {}

    @property
    def epoch(self) -> int:
        """Changes whenever `classes` may have changed."""
        return self._cluster.epoch_of(DEVICE_CLASS)

    @property
    def classes(self) -> Mapping[str, DeviceClass]:
        if self._epoch != self.epoch:
            self._epoch = self.epoch
            self._classes = classes_by_resource(self._cluster.all(DEVICE_CLASS).values())
        return self._classes
