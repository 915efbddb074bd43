"""Cached rankings against a new computation, over histories that are long enough to reuse them: a
few shapes of pods come again and again, and between two of a shape little changes.
"""

import random
from typing import Any

import pytest

from asched.core.cluster.facts import Gone, Seen
from asched.core.config.defaults import default_configuration
from asched.core.framework.rejection import Rejection
from asched.core.framework.runner import Decision, Runner, run_alone
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, POD
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.host.assemble import Parts, build_runners
from asched.testing import node, pod

NODES, STEPS, SEEDS = 30, 500, 16
ZONE, HOSTNAME = "zone", "kubernetes.io/hostname"
#: An image that some nodes have; its size counts in ImageLocality.
IMAGE = {"names": ["app:latest"], "sizeBytes": 3000 << 20}
Json = dict[str, Any]


def spread(app: str, key: str, *, is_hard: bool, skew: int = 1) -> Json:
    return {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule" if is_hard else "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": app}},
    }


def near(app: str, key: str, kind: str, weight: int = 0) -> Json:
    """A term of pod affinity (or anti-affinity), preferred if it has a weight."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    if not weight:
        return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    weighted = [{"weight": weight, "podAffinityTerm": term}]
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}


def prefers(**weights: int) -> Json:
    """Preferred node affinity: values of the label `tier`, with their weights."""
    terms = [
        {
            "weight": weight,
            "preference": {"matchExpressions": [{"key": "tier", "operator": "In", "values": [v]}]},
        }
        for v, weight in weights.items()
    ]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}


#: Fields of the spec by app. Some count pods of another app, so that its pods change their scores.
SHAPES: dict[str, Json] = {
    "plain": {},
    "prefers": {"affinity": prefers(gold=5, silver=2)},
    "zones": {"topologySpreadConstraints": [spread("zones", ZONE, is_hard=True)]},
    "soft": {"topologySpreadConstraints": [spread("soft", ZONE, is_hard=False)]},
    "follows": {"affinity": near("zones", ZONE, "podAffinity", 3)},
    "both": {
        "topologySpreadConstraints": [spread("zones", ZONE, is_hard=True, skew=2)],
        "affinity": prefers(gold=5),
    },
    "hosts": {"topologySpreadConstraints": [spread("hosts", HOSTNAME, is_hard=False)]},
    "avoids": {"affinity": near("avoids", HOSTNAME, "podAntiAffinity", 3)},
    "alone": {"affinity": near("alone", HOSTNAME, "podAntiAffinity")},
    "layers": {
        "topologySpreadConstraints": [
            spread("layers", ZONE, is_hard=True),
            spread("hosts", HOSTNAME, is_hard=False),
        ]
    },
}


class History:
    """A cluster that changes at random, and one runner that decides all the time."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.parts = Parts.fresh()
        (self.runner,) = build_runners(default_configuration(), self.parts).values()
        self.versions = 0
        self.placed: list[Json] = []
        self.nodes = [
            {
                "labels": {ZONE: f"z{number % 3}", "tier": self._tier()},
                "taints": [],
                "images": [],
            }
            for number in range(NODES)
        ]
        for number in range(NODES):
            self.see_node(number)

    def _tier(self) -> str:
        """Seldom another one: most changes of a label leave the best tier where it was."""
        return self.rng.choice(["none"] * 14 + ["gold", "silver"])

    def see_node(self, number: int) -> None:
        known = self.nodes[number]
        manifest = node(f"n{number}", cpu=16, labels=known["labels"], taints=known["taints"])
        manifest["status"]["images"] = known["images"]
        self.parts.cluster.apply(Seen(NODE, decode(Node, self._versioned(manifest))))

    def _versioned(self, manifest: Json) -> Json:
        self.versions += 1
        manifest["metadata"]["resourceVersion"] = str(self.versions)
        return manifest

    def change(self) -> bool:
        """One change that is no decision; False if a pod is to be decided."""
        dice, rng = self.rng.random(), self.rng
        number = rng.randrange(NODES)
        known = self.nodes[number]
        if dice < 0.08:
            known["labels"]["tier"] = self._tier()
        elif dice < 0.16:
            effects = ["x=y:PreferNoSchedule", "x=y:NoSchedule"]
            known["taints"] = [] if known["taints"] else [rng.choice(effects)]
        elif dice < 0.20:
            known["images"] = [] if known["images"] else [IMAGE]
        elif dice < 0.42 and self.placed:
            gone = self.placed.pop(rng.randrange(len(self.placed)))
            self.parts.cluster.apply(Gone(POD, decode(Pod, gone)))
            return True
        else:
            return False
        self.see_node(number)
        return True

    def pod(self) -> Json:
        app = self.rng.choice(list(SHAPES))
        cpu = self.rng.choice(["100m", "500m"])
        manifest = pod(f"p{self.versions}", cpu=cpu, labels={"app": app}, **SHAPES[app])
        return self._versioned(manifest)

    def place(self, manifest: Json, node_name: str) -> None:
        manifest["spec"]["nodeName"] = node_name
        self.parts.cluster.apply(Seen(POD, decode(Pod, self._versioned(manifest))))
        self.placed.append(manifest)


def judged(runner: Runner, record: Pod) -> Any:
    """The totals of all nodes, or why none is left."""
    info = runner.cluster.classes.info_of(record)
    state = runner.cache.state_of(info)
    if state.update(info).rejection is None and state.feasible_count:
        return state.rank(info).tolist()
    found = run_alone(runner.schedule(info, 0))
    assert isinstance(found, Rejection)
    return found.message()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_totals_of_a_long_history_are_those_of_a_new_runner(seed: int) -> None:
    history = History(seed)
    decided = 0
    for step in range(STEPS):
        if history.change():
            continue
        manifest = history.pod()
        record = decode(Pod, manifest)
        new = Runner(history.runner.profile, history.parts.cluster, history.parts.nominator)
        found, expected = judged(history.runner, record), judged(new, record)
        assert found == expected, f"step {step}, {manifest['metadata']['labels']}"
        choice = run_alone(
            history.runner.schedule(history.parts.cluster.classes.info_of(record), step)
        )
        if isinstance(choice, Decision):
            decided += 1
            history.place(manifest, choice.node)
    assert decided > STEPS / 4
