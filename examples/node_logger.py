"""A filter that logs CPU and memory of every node it is called with, and rejects none.

Run it against the demo:

    asched demo --nodes 3 --pods 5 --plugin examples/node_logger.py --log /dev/stderr

or in a cluster: mount this file and pass `--plugin-dir /etc/asched/plugins` to `asched run`.
"""

from asched.plugin import Node, Pod, logger

log = logger("NodeLogger")
MIB = 1 << 20


class NodeLogger:
    def filter(self, pod: Pod, node: Node) -> None:
        log.info(
            "node",
            extra={
                "pod": pod.key,
                "node": node.name,
                "cpuCores": node.cpu,
                "cpuFreeCores": node.cpu_free,
                "memoryMiB": node.memory // MIB,
                "memoryFreeMiB": node.memory_free // MIB,
            },
        )
