"""Many pods and little room: nobody sleeps who fits, and few attempts are made in vain."""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from asched.core.config.defaults import configuration
from asched.core.cycle.observer import Observer
from asched.core.model.kinds import NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD
from asched.host.assemble import Parts, build_machine, build_runners
from tests.sim.api import Api
from tests.sim.labelled import Herds, Labelled
from tests.sim.making import Json, Making

STEPS = 80


class Sized(Labelled):
    """Each asks for another amount, too."""

    def of_herd(self, pod: Json) -> Json:
        (container,) = pod["spec"]["containers"]
        amounts = {**container["resources"]["requests"], "cpu": f"{self.rng.randint(1, 20)}00m"}
        sized = {**container, "resources": {"requests": amounts}}
        return super().of_herd({**pod, "spec": {**pod["spec"], "containers": [sized]}})


@pytest.mark.parametrize("herds", [Herds, Labelled, Sized])
def test_no_pod_sleeps_although_it_would_fit(herds: type[Herds]) -> None:
    world = herds(0)
    told = []
    for step in range(STEPS):
        chosen = world.rng.choice((None, Herds.add_pod, Herds.drop_pod, Herds.drop_pod))
        told.append(world.change() if chosen is None else chosen.__name__)
        if chosen is not None:
            chosen(world)
        world.rest()
        sleepers = world.sleepers()
        assert not sleepers, f"step {step}: {sleepers[0]}; last: {told[-3:]}"
    assert world.rescues.placed


class Attempts(Observer):
    def __init__(self) -> None:
        self.ended: Counter[str] = Counter()

    def attempt_ended(self, result: str, profile: str, duration_s: float) -> None:
        self.ended[result] += 1


def indexed(number: int) -> Json:
    """What the Job controller gives the pods of an Indexed Job."""
    index = {"batch.kubernetes.io/job-completion-index": str(number)}
    metadata = {"labels": {"batch.kubernetes.io/job-name": "j", **index}, "annotations": index}
    return {"metadata": metadata, "spec": {"hostname": f"j-{number}"}}


def stateful(number: int) -> Json:
    """What the StatefulSet controller gives its pods, with a claim for each."""
    labels = {
        "statefulset.kubernetes.io/pod-name": f"s-{number}",
        "apps.kubernetes.io/pod-index": str(number),
    }
    data = {"name": "data", "persistentVolumeClaim": {"claimName": f"data-s-{number}"}}
    spec = {"hostname": f"s-{number}", "subdomain": "s", "volumes": [data]}
    return {"metadata": {"labels": labels}, "spec": spec}


def sized(number: int) -> Json:
    requests = {"cpu": f"{911 + number}m", "memory": f"{1 + number}Mi"}
    return {"spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}}


def equal(_number: int) -> Json:
    return {"metadata": {"labels": {"job": "j"}}}


class Job:
    """One-CPU pods for one node; each ends a while after it was bound. `kind` tells them apart."""

    def __init__(self, pods: int, cpus: int, kind: Callable[[int], Json] = equal) -> None:
        self.kind = kind
        self.rng = random.Random(1)
        self.api = Api(self.rng, 0.0)
        self.attempts = Attempts()
        config = configuration({"profiles": [{"schedulerName": "ours"}]})
        parts = Parts.fresh()
        self.machine = build_machine(
            config,
            parts,
            build_runners(config, parts),
            monotonic_s=lambda: 0.0,
            observer=self.attempts,
        )
        self.now_s = 1000.0
        amounts = {"cpu": str(cpus), "memory": "64Gi", "pods": "110"}
        self.turn(
            self.api.put(NODE, {"metadata": {"name": "n"}, "status": {"allocatable": amounts}})
        )
        for number in range(pods):
            pod = self.pod(number)
            for volume in pod["spec"]["volumes"]:
                if "persistentVolumeClaim" in volume:
                    self.provide(volume["persistentVolumeClaim"]["claimName"])
            self.turn(self.api.put(POD, pod))
        self.ends_s: dict[str, float] = {}

    def pod(self, number: int) -> dict[str, Any]:
        container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
        own = self.kind(number)
        return {
            "metadata": {"name": f"p{number}", "namespace": "one", **own.get("metadata", {})},
            "spec": {
                "schedulerName": "ours",
                "containers": [container],
                # As the API server adds one to every pod: each has a name of its own.
                "volumes": [{"name": f"kube-api-access-{number}", "projected": {"sources": []}}],
                **own.get("spec", {}),
            },
            "status": {},
        }

    def provide(self, name: str) -> None:
        """A claim with its volume, bound."""
        made = Making(self.rng)
        claim = made.claim("one", name)
        of = {"namespace": "one", "name": name, "uid": f"uid-{name}"}
        claim["metadata"]["uid"] = of["uid"]
        volume = made.volume(**of)
        volume["metadata"]["name"] = f"pv-{name}"
        self.turn(
            self.api.put(PERSISTENT_VOLUME, volume), self.api.put(PERSISTENT_VOLUME_CLAIM, claim)
        )
        self.turn(self.api.bound(claim, f"pv-{name}"))

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


@pytest.mark.parametrize("kind", [equal, indexed, stateful, sized])
def test_a_freed_place_costs_no_attempt_in_vain(kind: Callable[[int], Json]) -> None:
    pods, cpus = 90, 8
    job = Job(pods, cpus, kind)
    first = pods - cpus  # each pod is tried once when it comes
    assert job.attempts.ended["unschedulable"] == first

    while job.api.all(POD):
        job.live()

    assert job.attempts.ended["scheduled"] == pods
    assert job.attempts.ended["unschedulable"] == first
    assert job.now_s - 1000.0 < 40.0, "and no pod waited for longer than it had to"
