"""Order of pods and names of nodes, all from one seed, as in the published runs.

Source  the simulator published with Weng et al., USENIX ATC 2023 (pkg/simulator): one generator
        for the order of the pods, the copies that raise demand, and the names of the nodes
"""

from typing import Final, NamedTuple

from asched.hardware.gpu.shares import WHOLE
from asched_lab.trace.go_random import GoRandom
from asched_lab.trace.openb import Trace, TraceNode, TracePod

#: The sum of the pods' requests is brought to this share of all devices.
RATIO: Final = 1.3
#: Numbers that other parts of the published runs drew before the nodes were renamed; found by
#: experiment, the same in all runs compared.
DRAWN_BEFORE: Final = 10


class Arrivals(NamedTuple):
    nodes: tuple[TraceNode, ...]  # by their new names: the first of equal nodes wins
    pods: tuple[TracePod, ...]
    devices: int  # of all nodes


def arrivals(trace: Trace, seed: int) -> Arrivals:
    """The order and names of one seed."""
    random = GoRandom(seed)
    random.uint64()  # drawn for a log line
    pods = list(trace.pods)
    random.shuffle(pods)
    devices = sum(node.devices for node in trace.nodes)
    _tune(pods, trace.pods, RATIO * float(devices * WHOLE), random)
    for _ in range(DRAWN_BEFORE):
        random.uint64()
    order = random.permutation(len(trace.nodes))
    renamed = sorted(
        node._replace(name=f"{number:04d}-{node.name}")
        for number, node in zip(order, trace.nodes, strict=True)
    )
    return Arrivals(tuple(renamed), tuple(pods), devices)


def _tune(
    pods: list[TracePod], raw_objects: tuple[TracePod, ...], target: float, random: GoRandom
) -> None:
    """Delete pods while they request too much; otherwise add copies until the next one may exceed
    the target; it counts with its share of one device.
    """
    requested = sum(pod.demand.total for pod in pods)
    if requested > target:
        while requested > target:
            requested -= pods.pop(random.below(len(pods))).demand.total
        return
    while True:
        pod = raw_objects[random.below(len(raw_objects))]
        if requested + pod.demand.milli > target:
            return
        pods.append(pod)
        requested += pod.demand.total
