"""Twin of NodeDeclaredFeatures."""

from typing import Any

from asched.core.model.pod import Pod
from tests.conformance.twins.picture import Picture, Place, Rejection


def reject(pod: Pod, place: Place, picture: Picture, args: Any) -> Rejection | None:
    spec = pod.spec
    needed = []
    if spec.host_network and spec.host_users is False:
        needed.append("UserNamespacesHostNetworkSupport")
    containers = (*(spec.containers or ()), *(spec.init_containers or ()))
    rules = [rule for c in containers for rule in c.restart_policy_rules or ()]
    if any(rule.action == "RestartAllContainers" for rule in rules):
        needed.append("RestartAllContainersOnContainerExits")
    if all(feature in (place.node.status.declared_features or ()) for feature in needed):
        return None
    return ["node(s) didn't match Pod's required features"], False
