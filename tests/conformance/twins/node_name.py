"""Twin of NodeName."""

from typing import Any

from asched.core.model.pod import Pod
from tests.conformance.twins.picture import Picture, Place, Rejection


def reject(pod: Pod, place: Place, picture: Picture, args: Any) -> Rejection | None:
    if pod.spec.node_name and pod.spec.node_name != place.node.name:
        return ["node(s) didn't match the requested node name"], False
    return None
