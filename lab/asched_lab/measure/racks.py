"""The cost of a required rack for a gang: python -m asched_lab.measure.racks

5,000 nodes of 16 cores in 50 racks and five blocks. A gang of pods of one core arrives as a whole,
with a profile without NetworkTopology, and with one that has it, where the gang requires or prefers
one rack. Processor time from the first pod seen to the last binding, of the whole machine: the
queue, the trial, the bindings. Prints a line per size.
"""

import sys
import time
from typing import Any, Final

from asched.core.cluster.facts import Seen
from asched.core.framework.effects import Bind
from asched.core.model.decode import decode
from asched.core.model.kinds import COSCHEDULING_GROUP, POD
from asched.core.model.pod import Pod
from asched.core.model.workload import CoschedulingGroup
from asched.hardware.network.plugin import NetworkTopology
from asched.testing import given, node, pod

NODES, RACKS = 5000, 50
SIZES: Final = (125, 250, 500, 1000)
REQUESTS: Final = {
    "without": None,
    "required": {"kueue.x-k8s.io/podset-required-topology": "rack"},
    "preferred": {"kueue.x-k8s.io/podset-preferred-topology": "rack"},
}
GROUP: Final = "scheduling.x-k8s.io/pod-group"


def a_run(size: int, request: dict[str, str] | None) -> float:
    """Seconds of processor time."""
    plugins: list[type[Any]] = [NetworkTopology] if request else []
    names = [*(plugin.__name__ for plugin in plugins), "Coscheduling"]
    profile = {
        "multiPoint": {
            "enabled": [{"name": name} for name in names],
            "disabled": [{"name": "PrioritySort"}],
        }
    }
    places = [{"block": f"b{at % RACKS // 10}", "rack": f"r{at % RACKS}"} for at in range(NODES)]
    nodes = [node(f"n{at}", cpu=16, labels=place) for at, place in enumerate(places)]
    args = {plugin.__name__: {"levels": ["block", "rack"]} for plugin in plugins}
    world = given(nodes, plugins=plugins, args=args, profile=profile)
    metadata = {"name": "crew", "namespace": "default", "annotations": request or {}}
    group = decode(CoschedulingGroup, {"metadata": metadata, "spec": {"minMember": size}})
    manifests = [pod(f"w{at}", cpu=1, labels={GROUP: "crew"}) for at in range(size)]
    seen = [Seen(POD, decode(Pod, manifest)) for manifest in manifests]
    machine, began_s = world._machine, time.process_time()
    effects = machine.handle([Seen(COSCHEDULING_GROUP, group), *seen], world.now_s)
    bound = {effect.pod.uid for effect in effects if isinstance(effect, Bind)}
    while len(bound) < size:
        effects = machine.handle([], world.now_s)
        bound |= {effect.pod.uid for effect in effects if isinstance(effect, Bind)}
    return time.process_time() - began_s


def main() -> None:
    for size in SIZES:
        took = {name: a_run(size, request) for name, request in REQUESTS.items()}
        times = ", ".join(f"{name} {1000 * s:.0f} ms" for name, s in took.items())
        sys.stdout.write(f"gang of {size}: {times}\n")


if __name__ == "__main__":
    main()
