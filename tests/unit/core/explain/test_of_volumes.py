"""Volumes that would have to be elsewhere: judged by a rule of four lines that knows no plugin."""

import random
from collections import Counter
from itertools import combinations
from typing import Any

from asched.core.cluster.facts import Seen
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD
from asched.insight.explain.changes import changes
from asched.insight.explain.ways import SuggestedChange
from tests.plays.playbook import Play

Json = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"
ZONES = ("a", "b", "c")


class World:
    """Nodes of a few zones, and pods whose volumes are tied to some, by affinity or by label."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(seed)
        self.nodes = {
            f"n{number}": (rng.choice(ZONES), rng.randint(1, 4))
            for number in range(rng.randint(1, 5))
        }
        self.volumes = {f"pv-{n}": self.some_zones() for n in range(rng.randint(1, 4))}
        self.play = Play()
        kinds = (
            (NODE, map(self.node, self.nodes)),
            (PERSISTENT_VOLUME, map(self.volume, self.volumes)),
            (PERSISTENT_VOLUME_CLAIM, map(self.claim, self.volumes)),
        )
        self.play.turn(
            *(Seen(kind, decode(kind.record, o)) for kind, found in kinds for o in found)
        )

    def some_zones(self) -> tuple[str, ...]:
        return tuple(sorted(self.rng.sample(ZONES, self.rng.choice((1, 1, 2)))))

    def node(self, name: str) -> Json:
        zone, cpu = self.nodes[name]
        labels = {ZONE: zone, "kubernetes.io/hostname": name}
        amounts = {"cpu": str(cpu), "memory": "1Gi", "pods": "9"}
        metadata = {"name": name, "uid": name, "labels": labels}
        return {"metadata": metadata, "status": {"allocatable": amounts}}

    def volume(self, name: str) -> Json:
        zones = self.volumes[name]
        spec: Json = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {"namespace": "default", "name": f"c-{name}", "uid": f"c-{name}"},
        }
        metadata: Json = {"name": name, "uid": name}
        if self.rng.random() < 0.3:
            metadata["labels"] = {ZONE: "__".join(zones)}
        else:
            expression = {"key": ZONE, "operator": "In", "values": list(zones)}
            terms = [{"matchExpressions": [expression]}]
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
        return {"metadata": metadata, "spec": spec, "status": {"phase": "Bound"}}

    def claim(self, volume: str) -> Json:
        name = f"c-{volume}"
        annotations = {"pv.kubernetes.io/bind-completed": "yes"}
        metadata = {"name": name, "namespace": "default", "uid": name, "annotations": annotations}
        spec = {"volumeName": volume, "accessModes": ["ReadWriteOnce"]}
        return {"metadata": metadata, "spec": spec, "status": {"phase": "Bound"}}

    def changes(self, cpu: int, volumes: list[str]) -> list[SuggestedChange]:
        mounted = [{"name": v, "persistentVolumeClaim": {"claimName": f"c-{v}"}} for v in volumes]
        container = {"name": "main", "resources": {"requests": {"cpu": str(cpu)}}}
        pod = {
            "metadata": {"name": "w", "namespace": "default", "uid": "w"},
            "spec": {
                "schedulerName": "default-scheduler",
                "containers": [container],
                "volumes": mounted,
            },
        }
        context = self.play.machine.context
        runner = context.runners["default-scheduler"]
        return changes(runner, context.nominator, decode(POD.record, pod))

    def fitting(self, cpu: int, volumes: list[str], elsewhere: tuple[str, ...] = ()) -> list[str]:
        """Nodes that have the room and that every volume reaches, but for those elsewhere."""
        return [
            name
            for name, (zone, room) in self.nodes.items()
            if cpu <= room and all(zone in self.volumes[v] for v in volumes if v not in elsewhere)
        ]


def test_the_fewest_volumes_that_would_have_to_be_elsewhere() -> None:
    counts: Counter[int] = Counter()
    for seed in range(100):
        world = World(seed)
        some = world.rng.sample(sorted(world.volumes), world.rng.randint(1, len(world.volumes)))
        cpu = world.rng.randint(1, 4)
        told = [change for change in world.changes(cpu, some) if change.kind == "volume"]
        if world.fitting(cpu, some) or not world.fitting(cpu, some, tuple(some)):
            assert told == []
            continue
        (change,) = told
        moved = tuple(change.details["volumes"])
        fits = world.fitting(cpu, some, moved)
        assert change.node in fits
        assert change.nodes == len(fits)
        assert change.details["zone"] == world.nodes[change.node][0]
        assert not any(world.fitting(cpu, some, few) for few in combinations(some, len(moved) - 1))
        counts[len(moved)] += 1
    assert counts[1] > 12
    assert counts[2] > 2


def test_it_is_told_in_words() -> None:
    world = World(0)
    world.nodes, world.volumes = {"n1": ("a", 4)}, {"data": ("b",)}
    world.play = Play()
    world.play.turn(
        Seen(NODE, decode(NODE.record, world.node("n1"))),
        Seen(PERSISTENT_VOLUME, decode(PERSISTENT_VOLUME.record, world.volume("data"))),
        Seen(PERSISTENT_VOLUME_CLAIM, decode(PERSISTENT_VOLUME_CLAIM.record, world.claim("data"))),
    )
    found = {change.kind: change.text for change in world.changes(1, ["data"])}
    assert found["volume"] == "have volume data (claim c-data) where it reaches node n1 in zone a"
    assert world.play.machine.context.cluster.get(PERSISTENT_VOLUME, "data") is not None
