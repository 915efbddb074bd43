"""What the twins look at: plain objects, node by node. No columns, no counters, nothing kept.

A twin has up to three functions, each about one pending pod:

    reject(pod, place, picture, args)   the reasons and whether evicting pods could help, or None
    raw_score(pod, place, picture, args)   an integer, or None where the plugin leaves itself out
    normalized(raw)                     the raw scores of all feasible nodes to 0..100
"""

from dataclasses import dataclass

from asched.core.model.claim import DeviceClass
from asched.core.model.node import Node
from asched.core.model.pod import Pod


@dataclass(frozen=True)
class Place:
    """A node and the pods that run there."""

    node: Node
    pods: tuple[Pod, ...]


@dataclass(frozen=True)
class Picture:
    """The whole cluster."""

    places: tuple[Place, ...]
    device_classes: tuple[DeviceClass, ...] = ()


#: (reasons in the order in which they are told, whether evicting pods could help)
Rejection = tuple[list[str], bool]
