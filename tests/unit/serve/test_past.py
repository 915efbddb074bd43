"""What another node came to at a decision: told later as it was seen then."""

import random
from collections.abc import Iterator
from typing import Any

from asched.core.cluster.facts import Gone, Seen
from asched.core.config.defaults import configuration
from asched.core.cycle.context import Attempt
from asched.core.cycle.history import DecisionStep, read
from asched.core.framework.effects import Bind
from asched.core.framework.results.ranking import NOT_FEASIBLE
from asched.core.framework.runner import Decision
from asched.core.model.kinds import NODE
from asched.host.configuration.reload import DesiredSetup
from asched.serve.past import Past
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod
from tests.plays.playbook import Play

Truth = dict[str, dict[str, int | None]]


def random_node(rng: random.Random, name: str) -> NodeBuilder:
    node = a_node(name).allocatable(cpu=rng.choice(("4", "8")), memory="16Gi")
    node.labels(zone=rng.choice("abc"), **{"kubernetes.io/hostname": name})
    if rng.random() < 0.2:
        node.taints(rng.choice(("team=a:NoSchedule", "spot=:PreferNoSchedule")))
    return node


def random_pod(rng: random.Random, name: str) -> PodBuilder:
    pod = a_pod(name).requests(cpu=rng.choice(("100m", "500m", "1")), memory="256Mi")
    app = rng.choice(("x", "y", "z"))
    pod.labels(app=app).priority(rng.choice((0, 0, 5)))
    same = {"labelSelector": {"matchLabels": {"app": app}}}
    if rng.random() < 0.4:
        soft = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
        pod.spec(topologySpreadConstraints=[{**soft, **same}])
    if rng.random() < 0.3:
        preferred = {"weight": 10, "podAffinityTerm": {**same, "topologyKey": "zone"}}
        kind = rng.choice(("podAffinity", "podAntiAffinity"))
        key = "preferredDuringSchedulingIgnoredDuringExecution"
        pod.spec(affinity={kind: {key: [preferred]}})
    return pod


class World:
    """A scheduler that decides amid changes, and what each decision really saw."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.nodes = [f"n{number}" for number in range(12)]
        self.play = Play(*(random_node(self.rng, name) for name in self.nodes))
        self.truth: Truth = {}
        self.play.machine.context.on_decision = self._decided
        self.bound: dict[str, PodBuilder] = {}

    def _decided(self, attempt: Attempt, decision: Decision) -> None:
        totals = decision.state.ranking.totals
        if decision.score is None or not decision.state.ranking.is_whole:
            return
        at = self.play.parts.cluster.nodes.node_at
        self.truth[attempt.pod.key] = {
            node.name: None if totals[row] == NOT_FEASIBLE else int(totals[row])
            for row, node in enumerate(at)
            if node is not None
        }

    def live(self, pods: int) -> None:
        for number in range(pods):
            pod = random_pod(self.rng, f"p{number}")
            self.play.see(pod)
            for bind in self.play.of(Bind):
                self.play.bound(bind)
                self.bound[bind.pod.name] = pod.on(bind.node)
                self.play.see(pod.on(bind.node).metadata(resourceVersion="2"))
            self.shake(f"p{number}")

    def shake(self, staying: str = "") -> None:
        """Maybe a pod goes, or a node changes or goes."""
        roll = self.rng.random()
        if roll < 0.3 and self.bound:
            gone = self.rng.choice(sorted(self.bound))
            if gone != staying:
                self.play.lose(self.bound.pop(gone))
        elif roll < 0.45:
            name = self.rng.choice(self.nodes)
            self.play.turn(Seen(NODE, random_node(self.rng, name).build()))
        elif roll < 0.5:
            name = self.rng.choice(self.nodes)
            self.play.turn(Gone(NODE, a_node(name).build()))

    def kept(self) -> Iterator[tuple[PodBuilder, dict[str, Any]]]:
        """Decisions that are kept, about pods that are still there."""
        for name, pod in self.bound.items():
            line = self.play.machine.context.histories.newest(
                f"default/{name}", (DecisionStep.NODE,)
            )
            assert line is not None
            chosen = read(line)
            assert chosen is not None
            yield pod, chosen.as_json()

    async def against(self, pod: PodBuilder, node: str, chosen: dict[str, Any]) -> dict[str, Any]:
        seen = self.play.parts.cluster.pods_seen[f"default/{pod.json['metadata']['name']}"]
        return await Past(self.play.machine.context).against(
            DesiredSetup(configuration({})).rebuild, seen, node, chosen
        )


async def test_what_is_told_is_what_the_decision_saw() -> None:
    told_exactly = differing = 0
    for seed in range(4):
        world = World(seed)
        world.live(60)
        for pod, chosen in world.kept():
            truth = world.truth.get(f"default/{pod.json['metadata']['name']}")
            if truth is None:
                continue
            node = world.rng.choice(world.nodes)
            told = await world.against(pod, node, chosen)
            assert told["exact"], (seed, pod.json["metadata"], told)
            if truth.get(node) is None:
                assert "refused" in told
            else:
                assert told["score"] == truth[node], (seed, pod.json["metadata"], node)
                assert told["score"] == sum(one["weighted"] for one in told["scores"])
                differing += told["score"] != truth[chosen["node"]]
            told_exactly += 1
    assert told_exactly > 60
    assert differing > 20
