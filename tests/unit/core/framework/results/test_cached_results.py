"""Cached results against a fresh look: after any history both must say the same, to the word."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from asched.core.cluster.facts import Gone, Seen
from asched.core.cluster.pods import PodInfo
from asched.core.config.defaults import default_configuration
from asched.core.framework.rejection import Rejection
from asched.core.framework.runner import Decision, Runner, run_alone
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, POD, SERVICE
from asched.core.model.node import Node
from asched.core.model.pod import Pod
from asched.core.model.workload import Service
from asched.host.assemble import Parts, build_runners
from asched_lab.sim import mix

STEPS = 90


class World:
    """A cluster that changes at random, with one runner that lives through all of it."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.parts = Parts.fresh()
        self.runner = build_runners(default_configuration("s"), self.parts)["s"]
        self.templates = list(mix.pods(60, "s", seed))
        self.nodes = list(mix.nodes(24))
        self.placed: list[Pod] = []
        self.made = 0
        for node in self.nodes[: self.rng.randint(3, 18)]:
            self.see_node(node)

    @property
    def cluster(self) -> Any:
        return self.parts.cluster

    def see_node(self, mapping: dict[str, Any]) -> None:
        self.cluster.apply(Seen(NODE, decode(Node, mapping)))

    def pod(self) -> Pod:
        template = self.rng.choice(self.templates)
        self.made += 1
        metadata = {
            **template["metadata"],
            "name": f"p{self.made}",
            "uid": f"u{self.made}",
            "resourceVersion": str(self.made),
        }
        return decode(Pod, {**template, "metadata": metadata, "status": {}})

    def change(self) -> None:
        """One thing happens that is no placement."""
        roll = self.rng.randrange(10)
        if roll < 3 and self.placed:
            gone = self.placed.pop(self.rng.randrange(len(self.placed)))
            self.cluster.apply(Gone(POD, gone))
        elif roll < 5:
            self.see_node(self.rng.choice(self.nodes))
        elif roll < 7:
            self._change_a_node()
        elif roll < 8 and self.cluster.nodes.count > 2:
            name = self.rng.choice(list(self.cluster.nodes.row_of))
            self.cluster.apply(Gone(NODE, self.cluster.node_of(name)))
        elif roll < 9:
            selector = {"app": f"app-{self.rng.randrange(mix.APPS)}"}
            service = {
                "metadata": {"name": selector["app"], "namespace": "shop", "uid": selector["app"]},
                "spec": {"selector": selector},
            }
            self.cluster.apply(Seen(SERVICE, decode(Service, service)))

    def _change_a_node(self) -> None:
        mapping = self.rng.choice(self.nodes)
        spec = dict(mapping["spec"])
        labels = dict(mapping["metadata"]["labels"])
        what = self.rng.randrange(4)
        if what == 0:
            spec["unschedulable"] = self.rng.random() < 0.5
        elif what == 1:
            spec["taints"] = self.rng.choice([[], [mix.SPOT_TAINT], [mix.BATCH_TAINT]])
        elif what == 2:
            labels["topology.kubernetes.io/zone"] = self.rng.choice(mix.ZONES)
        status = dict(mapping["status"])
        if what == 3:
            status["allocatable"] = {**status["allocatable"], "cpu": str(self.rng.randint(1, 20))}
        self.see_node(
            {
                **mapping,
                "spec": spec,
                "status": status,
                "metadata": {**mapping["metadata"], "labels": labels},
            }
        )

    def place(self, pod: Pod, found: Decision) -> None:
        info = self.cluster.classes.info_of(pod)
        self.cluster.assume(info, found.node)
        bound = pod.on(found.node)
        if self.rng.random() < 0.7:
            self.cluster.apply(Seen(POD, bound))
            self.placed.append(bound)
        elif self.rng.random() < 0.5:
            self.cluster.forget(info)


def fresh(world: World) -> Runner:
    """A runner over the same cluster that has kept nothing."""
    return build_runners(default_configuration("s"), world.parts)["s"]


def ranking(runner: Runner, info: PodInfo) -> list[int]:
    state = runner.cache.state_of(info)
    state.update(info)
    return state.rank(info).tolist()


def told(found: Rejection) -> tuple[Any, ...]:
    return found.message(), sorted(found.unschedulable_plugins), found.candidates.tolist()


def attempts(world: World) -> Iterator[tuple[PodInfo, Any, Any]]:
    for _ in range(STEPS):
        if world.rng.random() < 0.25:
            world.change()
        pod = world.pod()
        info = world.cluster.classes.info_of(pod)
        kept = run_alone(world.runner.schedule(info, world.made))
        anew = run_alone(fresh(world).schedule(info, world.made))
        yield info, kept, anew
        if isinstance(kept, Decision):
            world.place(pod, kept)


@pytest.mark.parametrize("seed", range(4))
def test_an_attempt_with_kept_answers_equals_one_from_scratch(seed: int) -> None:
    world = World(seed)
    decisions = 0
    for info, kept, anew in attempts(world):
        assert type(kept) is type(anew), f"seed {seed}, {info}"
        if isinstance(kept, Rejection):
            assert told(kept) == told(anew), f"seed {seed}, {info}"
            continue
        decisions += 1
        assert (kept.node, kept.score, kept.feasible) == (anew.node, anew.score, anew.feasible), (
            f"seed {seed}, {info}"
        )
        if kept.feasible > 1:
            assert ranking(world.runner, info) == ranking(fresh(world), info), f"seed {seed}"
    assert decisions > STEPS / 4
