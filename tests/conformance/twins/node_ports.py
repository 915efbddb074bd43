"""Twin of NodePorts."""

from typing import Any

from asched.core.model.pod import Pod
from tests.conformance.twins.picture import Picture, Place, Rejection


def reject(pod: Pod, place: Place, picture: Picture, args: Any) -> Rejection | None:
    used = [entry for other in place.pods for entry in _ports(other)]
    for ip, protocol, port in _ports(pod):
        for used_ip, used_protocol, used_port in used:
            same = (protocol, port) == (used_protocol, used_port)
            if same and (ip == used_ip or "0.0.0.0" in (ip, used_ip)):
                return ["node(s) didn't have free ports for the requested pod ports"], True
    return None


def _ports(pod: Pod) -> list[tuple[str, str, int]]:
    containers = list(pod.spec.containers or ())
    containers += [c for c in pod.spec.init_containers or () if c.restart_policy == "Always"]
    return [
        (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for container in containers
        for port in container.ports or ()
        if port.host_port > 0
    ]
