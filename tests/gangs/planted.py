"""Large instances around a hidden placement, and twins of them that have none.

A hidden assignment fills nodes of a few shapes with pods of a few classes, up to a load; what each
node has to offer follows from that. Constraints are such that the hidden assignment meets them.
The twin takes room away until a count proves that the gang cannot fit: its certificate is the one
amount, of all nodes together, of which less is left than the gang needs.
"""

import random
from collections import Counter

from tests.gangs.instances import ZONE, Instance, Json, a_group, a_node, a_pod

CPU_M = (500, 1000, 1500, 2000, 3000, 4000, 6000)
MEMORY_MI = (512, 1024, 2048, 4096, 6144, 8192)


def planted(
    seed: int, nodes: int, *, load: float = 0.95, pods_max: int = 0, satisfiable: bool = True
) -> Instance:
    """`pods_max`: about so many pods at most, on as many nodes as that takes; the rest is full."""
    rng = random.Random(seed)
    classes = [_Class(rng, number) for number in range(rng.randint(1, 5))]
    zones = [f"z{i}" for i in range(3)]
    offers: list[tuple[int, int, int, str, bool]] = []
    counts: Counter[int] = Counter()
    for _ in range(nodes):
        zone = rng.choice(zones)
        tainted = rng.random() < 0.2
        size = rng.choice((4000, 8000, 16000)), rng.choice((8192, 16384, 32768))
        here: Counter[int] = Counter()
        cpu = memory = 0
        full = pods_max and counts.total() >= pods_max
        for _ in range(0 if full else 40):
            one = rng.choice(classes)
            fits = cpu + one.cpu <= size[0] * load and memory + one.memory <= size[1] * load
            if fits and one.may(here, zone, tainted):
                here[one.number] += 1
                cpu, memory = cpu + one.cpu, memory + one.memory
        counts.update(here)
        # What other pods hold of the node is left out: only what they leave is offered.
        offers.append((int(cpu / load), int(memory / load), here.total() + 3, zone, tainted))
    gang = [pod for one in classes for pod in one.pods(counts[one.number])]
    made = [_node(f"n{i}", *offer) for i, offer in enumerate(offers)]
    if not satisfiable:
        _take_away(rng, made, classes, counts)
    rng.shuffle(gang)
    return Instance(
        f"planted-{seed}-{nodes}" + ("" if satisfiable else "-twin"),
        made,
        gang,
        a_group(len(gang)),
        "feasible" if satisfiable else "infeasible",
    )


class _Class:
    def __init__(self, rng: random.Random, number: int) -> None:
        self.number = number
        self.cpu, self.memory = rng.choice(CPU_M), rng.choice(MEMORY_MI)
        self.alone = rng.random() < 0.2  # one of them a node
        self.zone = rng.choice(("", "", "", "z0", "z1"))
        self.tolerates = rng.random() < 0.6

    def may(self, here: Counter[int], zone: str, tainted: bool) -> bool:
        if tainted and not self.tolerates:
            return False
        return self.zone in ("", zone) and not (self.alone and here[self.number])

    def pods(self, count: int) -> list[Json]:
        more: Json = {"schedulingGroup": {"podGroupName": "gang"}}
        labels = {"class": f"c{self.number}"}
        if self.alone:
            term = {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": labels},
            }
            more["affinity"] = {
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            }
        if self.zone:
            more["nodeSelector"] = {ZONE: self.zone}
        if self.tolerates:
            more["tolerations"] = [{"key": "special", "operator": "Exists"}]
        asked = {"cpu": f"{self.cpu}m", "memory": f"{self.memory}Mi"}
        return [a_pod(f"c{self.number}-{i}", asked, labels, **more) for i in range(count)]


def _node(name: str, cpu: int, memory: int, pods: int, zone: str, tainted: bool) -> Json:
    node = a_node(name, {"cpu": f"{cpu}m", "memory": f"{memory}Mi", "pods": str(pods)})
    node["metadata"]["labels"][ZONE] = zone
    if tainted:
        node["spec"]["taints"] = [{"key": "special", "value": "yes", "effect": "NoSchedule"}]
    return node


def _take_away(
    rng: random.Random, nodes: list[Json], classes: list[_Class], counts: Counter[int]
) -> None:
    """Until all nodes together have less cpu than the gang needs."""
    needed = sum(one.cpu * counts[one.number] for one in classes)
    have = sum(int(node["status"]["allocatable"]["cpu"][:-1]) for node in nodes)
    while have >= needed:
        amounts = rng.choice(nodes)["status"]["allocatable"]
        have -= int(amounts["cpu"][:-1])
        amounts["cpu"] = "0m"
