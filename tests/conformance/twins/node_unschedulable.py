"""Twin of NodeUnschedulable."""

from typing import Any

from asched.core.model.pod import Pod
from asched.core.model.taint import Taint
from tests.conformance.twins.picture import Picture, Place, Rejection
from tests.conformance.twins.taint_toleration import is_tolerated

CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def reject(pod: Pod, place: Place, picture: Picture, args: Any) -> Rejection | None:
    if place.node.spec.unschedulable and not is_tolerated(CORDON, pod):
        return ["node(s) were unschedulable"], False
    return None
