#!/usr/bin/env python3
"""Manifests of the load test, one JSON object a line, for `kubectl create -f -`.

    manifests.py nodes COUNT    simulated nodes for KWOK, three zones
    manifests.py pods COUNT     pods for asched that only such nodes take

Only the standard library: it runs on any machine that runs kind (Python 3.11).
"""

import json
import sys

ZONES = ("a", "b", "c")
CPU_CORES = 32
MEMORY_GIB = 256
PODS_PER_NODE = 110
NAMESPACE = "asched-load"
TAINT = "kwok.x-k8s.io/node"


def node(number: int) -> dict[str, object]:
    """One node with KWOK's annotation and taint; KWOK makes it ready."""
    name = f"kwok-{number:05d}"
    amounts = {"cpu": str(CPU_CORES), "memory": f"{MEMORY_GIB}Gi", "pods": str(PODS_PER_NODE)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"},
            "labels": {
                "type": "kwok",
                "app": NAMESPACE,
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "topology.kubernetes.io/zone": f"zone-{ZONES[number % len(ZONES)]}",
            },
        },
        "spec": {"taints": [{"key": TAINT, "value": "fake", "effect": "NoSchedule"}]},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def pod(number: int) -> dict[str, object]:
    """One of three sizes; every third is spread over the zones."""
    size = number % 3
    spec: dict[str, object] = {
        "schedulerName": "asched",
        "nodeSelector": {"type": "kwok"},
        "tolerations": [{"key": TAINT, "operator": "Exists", "effect": "NoSchedule"}],
        "terminationGracePeriodSeconds": 0,
        "containers": [
            {
                "name": "pause",
                "image": "registry.k8s.io/pause:3.10",
                "resources": {
                    "requests": {"cpu": f"{100 * (size + 1)}m", "memory": f"{128 * (size + 1)}Mi"}
                },
            }
        ],
    }
    if size == 2:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 5,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"size": str(size)}},
            }
        ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"load-{number:06d}",
            "namespace": NAMESPACE,
            "labels": {"app": "asched-load", "size": str(size)},
        },
        "spec": spec,
    }


MAKERS = {"nodes": node, "pods": pod}


def main(words: list[str]) -> int:
    """Print them; 2 for wrong use."""
    if len(words) != 2 or words[0] not in MAKERS or not words[1].isdecimal():
        print("usage: manifests.py nodes|pods COUNT", file=sys.stderr)
        return 2
    for number in range(int(words[1])):
        print(json.dumps(MAKERS[words[0]](number)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
