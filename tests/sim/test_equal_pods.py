"""Many equal pods and little room: nobody sleeps who fits, and few attempts are made in vain."""

import random
from collections import Counter
from typing import Any

import pytest

from asched.core.config.defaults import configuration
from asched.core.cycle.observer import Silent
from asched.core.model.kinds import NODE, POD
from asched.edge.host.assemble import Parts, build_machine, build_runners
from tests.sim.api import Api
from tests.sim.changing import Changing

STEPS = 80
#: Pods of one kind that come at once.
HERD = 6


class Herds(Changing):
    """Pods come in herds of equals, some of which need others to go."""

    def add_pod(self) -> None:
        pod = self.make.pod()
        for number in range(HERD):
            name = f"{pod['metadata']['name']}-{number}"
            self.put(POD, {**pod, "metadata": {**pod["metadata"], "name": name}})


@pytest.mark.parametrize("seed", range(10))
def test_no_pod_sleeps_although_it_would_fit(seed: int) -> None:
    world = Herds(seed)
    told = []
    for step in range(STEPS):
        chosen = world.rng.choice((None, Herds.add_pod, Herds.drop_pod, Herds.drop_pod))
        told.append(world.change() if chosen is None else chosen.__name__)
        if chosen is not None:
            chosen(world)
        world.rest()
        sleepers = world.sleepers()
        assert not sleepers, f"seed {seed}, step {step}: {sleepers[0]}; last: {told[-3:]}"
    assert world.rescues.placed, f"seed {seed}"


class Attempts(Silent):
    def __init__(self) -> None:
        self.ended: Counter[str] = Counter()

    def attempt_ended(self, result: str, profile: str, duration_s: float) -> None:
        self.ended[result] += 1


class Job:
    """Equal one-CPU pods for one node; each ends a while after it was bound."""

    def __init__(self, pods: int, cpus: int) -> None:
        self.rng = random.Random(1)
        self.api = Api(self.rng, 0.0)
        self.attempts = Attempts()
        config = configuration({"profiles": [{"schedulerName": "ours"}]})
        parts = Parts.fresh()
        self.machine = build_machine(
            config,
            parts,
            build_runners(config, parts),
            counter_s=lambda: 0.0,
            observer=self.attempts,
        )
        self.now_s = 1000.0
        amounts = {"cpu": str(cpus), "memory": "64Gi", "pods": "110"}
        self.turn(
            self.api.put(NODE, {"metadata": {"name": "n"}, "status": {"allocatable": amounts}})
        )
        for number in range(pods):
            self.turn(self.api.put(POD, self.pod(number)))
        self.ends_s: dict[str, float] = {}

    def pod(self, number: int) -> dict[str, Any]:
        container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
        return {
            "metadata": {"name": f"p{number}", "namespace": "one", "labels": {"job": "j"}},
            "spec": {
                "schedulerName": "ours",
                "containers": [container],
                # As the API server adds one to every pod: each has a name of its own.
                "volumes": [{"name": f"kube-api-access-{number}", "projected": {"sources": []}}],
            },
            "status": {},
        }

    def turn(self, *facts: Any) -> None:
        effects = self.machine.handle(facts, self.now_s)
        while effects:
            answers = [fact for effect in effects for fact in self.api.carry_out(effect)]
            effects = self.machine.handle(answers, self.now_s) if answers else []

    def live(self) -> None:
        """A twentieth of a second."""
        self.now_s += 0.05
        self.turn()
        for pod in self.api.all(POD):
            if pod["spec"].get("nodeName"):
                name = pod["metadata"]["name"]
                end_s = self.ends_s.setdefault(name, self.now_s + self.rng.uniform(1, 5))
                if end_s <= self.now_s:
                    self.turn(self.api.drop(POD, pod))


def test_a_freed_place_costs_at_most_one_attempt_in_vain() -> None:
    pods, cpus = 90, 8
    job = Job(pods, cpus)
    first = pods - cpus  # each pod is tried once when it comes
    assert job.attempts.ended["unschedulable"] == first

    while job.api.all(POD):
        job.live()

    ended = job.attempts.ended
    assert ended["scheduled"] == pods
    assert ended["unschedulable"] - first <= pods, "one for each place that was freed"
    assert job.now_s - 1000.0 < 60.0, "and no pod waited for longer than it had to"
