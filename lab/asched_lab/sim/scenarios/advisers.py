"""HTTP extenders that are slow, down, malformed, or false."""

from collections.abc import Iterator
from typing import ClassVar

from asched import names
from asched.core.framework.effects import DeletePod, Effect
from asched_lab.sim.extenders import Judge
from asched_lab.sim.faults import LostAnswers, SickExtenders, SlowAnswers, StaleWatch
from asched_lab.sim.process import Process
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.steps import AddNodes, AddPods, Amend, Cordon, DeletePods, Json, Step
from asched_lab.sim.world import World

ROUNDS = 25
PRIORITIES = (0, 0, 0, 10)
TIMEOUT_NS = 2 * 10**9
PICKY = "picky"
PRECIOUS = "precious"


class Firm(Judge):
    """Manages all pods: picky pods need an ssd; precious pods are not evicted."""

    def passes(self, pod: Json, node: Json) -> bool:
        labels = pod["metadata"]["labels"]
        return PICKY not in labels or bool(node["metadata"]["labels"].get("disk") == "ssd")

    def score(self, pod: Json, node: Json) -> int:  # noqa: ARG002 - the same for all nodes
        return len(node["metadata"]["name"]) % 11

    def spares(self, victim: Json) -> bool:
        return PRECIOUS in victim["metadata"]["labels"]


class Soft(Judge):
    """Excludes zone c; it is ignorable."""

    def passes(self, pod: Json, node: Json) -> bool:  # noqa: ARG002 - the same for all pods
        labels = node["metadata"]["labels"]
        return bool(labels.get("topology.kubernetes.io/zone") != "c")


def _extender(prefix: str, **more: object) -> Json:
    verbs = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 2}
    return {"urlPrefix": f"http://{prefix}", "httpTimeout": TIMEOUT_NS, **verbs, **more}


class Advisers(Scenario):
    """No pod is bound where an extender did not agree, and no pod is lost while extenders fail.

    One extender is required and takes part in preemption, one is ignorable, one binds the pods that
    request a licence.
    """

    faults = (
        SickExtenders(rate=0.25),
        StaleWatch(lag_s_max=3),
        SlowAnswers(seconds_max=0.5),
        LostAnswers(rate=0.05),
    )
    judges = (Soft(), Firm(), Judge())
    moody = frozenset({names.EXTENDER})
    config: ClassVar[Json] = {
        "extenders": [
            _extender("soft", ignorable=True),
            _extender("firm", preemptVerb="preempt", nodeCacheCapable=True),
            {
                "urlPrefix": "http://binder",
                "bindVerb": "bind",
                "httpTimeout": TIMEOUT_NS,
                "managedResources": [{"name": "example.com/licence"}],
            },
        ]
    }

    def setup(self, world: World) -> None:
        world.on_effect.append(_must_be_named)
        AddNodes(count=world.rng.randint(3, 6), offers={"example.com/licence": "2"}).do(world)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(ROUNDS):
            priority = world.rng.choice(PRIORITIES)
            yield AddPods(count=world.rng.randint(1, 3), priority=priority, make=_labelled)
            yield Amend(count=world.rng.randint(1, 3))
            roll = world.rng.random()
            if roll < 0.3:
                yield DeletePods(count=2)
            elif roll < 0.4:
                yield AddNodes(offers={"example.com/licence": "2"})
            elif roll < 0.5:
                node = world.rng.choice(world.node_names())
                yield Cordon(node=node, unschedulable=roll < 0.45)

    def is_plain(self, pod: Json) -> bool:  # noqa: ARG002 - extenders filter all of them
        return False


def _labelled(world: World, pod: Json) -> None:
    labels = pod["metadata"]["labels"]
    if world.rng.random() < 0.3:
        labels[PICKY] = "yes"
    if world.rng.random() < 0.2:
        labels[PRECIOUS] = "yes"
    if world.rng.random() < 0.3:
        resources = pod["spec"]["containers"][0]["resources"]
        resources["requests"] = {**resources["requests"], "example.com/licence": "1"}
        resources["limits"] = {"example.com/licence": "1"}


def _must_be_named(process: Process, effect: Effect) -> None:
    """Only pods that the required extender named are evicted, and none of the highest priority."""
    if not isinstance(effect, DeletePod):
        return
    world = process.world
    victim = world.server.get("pods", effect.pod.namespace, effect.pod.name)
    if victim is None or victim["metadata"]["uid"] != effect.pod.uid:
        return
    assert world.extenders is not None
    if effect.pod.uid not in world.extenders.given_up:
        world.ledger.complain(f"{effect.pod.key} is evicted, and the extender did not name it")
    if victim["spec"].get("priority", 0) >= max(PRIORITIES):
        world.ledger.complain(f"{effect.pod.key} is evicted, and no pod outranks it")
