"""Agents that tell late, pods that others placed: the kubelet refuses none of ours, and nodes do
not stay unused for ever.

    LIVES=1000 python -m pytest tests/unit/hardware/numa/test_late_agents.py    a longer look
"""

import os
import random
from heapq import heappop, heappush
from typing import Any

import pytest

from asched.core.cluster.facts import Gone
from asched.core.model.decode import decode
from asched.core.model.kinds import POD
from asched.core.model.pod import Pod
from asched.hardware.numa.args import CacheArgs, NodeResourceTopologyMatchArgs
from asched.hardware.numa.fingerprint import fingerprint
from asched.hardware.numa.match import NodeResourceTopologyMatch
from tests.builders import all_rows
from tests.unit.hardware.numa.worlds import Json, World, a_node, a_pod, a_topology, a_zone

ZONES, CPUS, GIB = 2, 8, 32
LATE_S = 6.0
RESYNC_S = 5
#: Of each block.
LIVES = int(os.environ.get("LIVES", "10"))


class Kubelet:
    """A node: who runs in which zone. It admits a pod if one zone has room for all of it."""

    def __init__(self, name: str, scope: str) -> None:
        self.name, self.scope = name, scope
        self.free = [[CPUS, GIB] for _ in range(ZONES)]
        self.running: dict[str, tuple[int, int, int]] = {}

    def admit(self, pod: str, cpu: int, gib: int, rng: random.Random) -> bool:
        fitting = [at for at, (c, g) in enumerate(self.free) if c >= cpu and g >= gib]
        if not fitting:
            return False
        at = rng.choice(fitting)  # nobody else can know
        self.free[at][0] -= cpu
        self.free[at][1] -= gib
        self.running[pod] = (at, cpu, gib)
        return True

    def end(self, pod: str) -> None:
        at, cpu, gib = self.running.pop(pod)
        self.free[at][0] += cpu
        self.free[at][1] += gib

    def word(self) -> Json:
        zones = [a_zone(at, cpu=str(c), memory=f"{g}Gi") for at, (c, g) in enumerate(self.free)]
        signed = fingerprint(("default", pod) for pod in self.running)
        return a_topology(self.name, *zones, scope=self.scope, fingerprint=signed)


class Life:
    """A run: pods are placed by us and by others, start late, are told of late, and end."""

    def __init__(self, seed: int, *, with_others: bool) -> None:
        self.rng = random.Random(seed)
        self.with_others = with_others
        self.world = World()
        self.now_s = 1_800_000_000.0
        self.events: list[tuple[float, int, Any]] = []
        self.number = 0
        self.heard_s: dict[str, float] = {}  # what is told in order arrives in order
        self.refused: list[str] = []
        self.intruded_s: dict[str, float] = {}
        self.placed = 0
        scope = self.rng.choice(("pod", "container"))
        self.kubelets = {name: Kubelet(name, scope) for name in ("n1", "n2", "n3")}
        self.world.cluster.begin_turn(self.now_s, is_quiet=True)
        for name, kubelet in self.kubelets.items():
            self.world.add(a_node(name))
            self.world.tell(kubelet.word())
        args = NodeResourceTopologyMatchArgs(cache_resync_period_seconds=RESYNC_S)
        self.plugin = NodeResourceTopologyMatch(args, self.world.cluster)

    def after(self, seconds: float, act: Any) -> None:
        self.number += 1
        heappush(self.events, (self.now_s + seconds, self.number, act))

    def tell(self, stream: str, act: Any) -> None:
        """Late, but in order within a stream."""
        at_s = max(self.now_s + self.rng.random() * LATE_S, self.heard_s.get(stream, 0.0))
        self.heard_s[stream] = at_s
        self.after(at_s - self.now_s, act)

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.after(self.rng.random() * 60, self.decide)
            if self.with_others and self.rng.random() < 0.2:
                self.after(self.rng.random() * 60, self.intrude)
        self.until_quiet()

    def until_quiet(self) -> None:
        while self.events:
            self.now_s, _, act = heappop(self.events)
            self.world.cluster.begin_turn(self.now_s, is_quiet=True)
            act()

    def ask(self, cpu: int, gib: int) -> list[str]:
        """Where one more pod would fit, as far as we know."""
        pod = a_pod(f"q{self.number}", {"cpu": str(cpu), "memory": f"{gib}Gi"})
        info = self.world.pending(pod)
        self.plugin.stamp(info, None)
        codes = self.plugin.filter(info, all_rows(self.world.cluster), None)
        return [node.name for row, node in self.world.cluster.nodes.nodes() if not codes[row]]

    def decide(self) -> None:
        cpu, gib = self.rng.randrange(1, 5), self.rng.randrange(1, 17)
        fitting = self.ask(cpu, gib)
        if not fitting:
            return
        node = self.rng.choice(fitting)
        self.number += 1
        name = f"p{self.number}"
        info = self.world.pending(a_pod(name, {"cpu": str(cpu), "memory": f"{gib}Gi"}))
        self.world.cluster.assume(info, node)
        self.plugin.reserve(info, node, None)
        if self.rng.random() < 0.1:  # its binding fails
            self.plugin.unreserve(info, node)
            self.world.cluster.forget(info)
            return
        self.placed += 1
        at_s = self.now_s
        self.tell("pods", lambda: self.world.see(self.as_seen(name, node, cpu, gib, "Pending")))
        self.after(
            self.rng.random() * LATE_S, lambda: self.start(name, node, cpu, gib, at_s, ours=True)
        )

    def intrude(self) -> None:
        """Another scheduler places a pod; we see that at once, but not what zone it takes."""
        cpu, gib = self.rng.randrange(1, 4), self.rng.randrange(1, 9)
        node = self.rng.choice(list(self.kubelets))
        at_s = self.intruded_s[node] = self.now_s
        self.number += 1
        name = f"other{self.number}"
        self.world.see(self.as_seen(name, node, cpu, gib, "Pending"))
        self.after(
            self.rng.random() * LATE_S, lambda: self.start(name, node, cpu, gib, at_s, ours=False)
        )

    def start(
        self, name: str, node: str, cpu: int, gib: int, decided_s: float, *, ours: bool
    ) -> None:
        kubelet = self.kubelets[node]
        if not kubelet.admit(name, cpu, gib, self.rng):
            if ours and self.intruded_s.get(node, 0.0) <= decided_s:
                self.refused.append(name)  # nobody came between who could not be foreseen
            self.gone(name, node, cpu, gib)
            return
        self.tell("pods", lambda: self.world.see(self.as_seen(name, node, cpu, gib, "Running")))
        self.report(kubelet)
        self.after(5 + self.rng.random() * 60, lambda: self.end(name, node, cpu, gib))

    def end(self, name: str, node: str, cpu: int, gib: int) -> None:
        self.kubelets[node].end(name)
        self.gone(name, node, cpu, gib)
        self.report(self.kubelets[node])

    def gone(self, name: str, node: str, cpu: int, gib: int) -> None:
        last = decode(Pod, self.as_seen(name, node, cpu, gib, "Succeeded"))
        self.tell("pods", lambda: self.world.cluster.apply(Gone(POD, last)))

    def report(self, kubelet: Kubelet) -> None:
        word = kubelet.word()
        self.tell("topologies", lambda: self.world.tell(word))

    def as_seen(self, name: str, node: str, cpu: int, gib: int, phase: str) -> Json:
        pod = a_pod(name, {"cpu": str(cpu), "memory": f"{gib}Gi"}, on=node)
        pod["status"]["phase"] = phase
        return pod


@pytest.mark.parametrize("block", range(4))
@pytest.mark.parametrize("with_others", [False, True])
def test_the_kubelet_refuses_no_pod_of_ours(block: int, *, with_others: bool) -> None:
    placed = 0
    for seed in range(LIVES * block, LIVES * (block + 1)):
        life = Life(seed, with_others=with_others)
        life.run(40)
        assert not life.refused, f"seed {seed}"
        placed += life.placed
    assert placed > LIVES * 15  # it is not that nothing is placed


@pytest.mark.parametrize("seed", range(6))
def test_an_empty_cluster_is_whole_again_once_all_was_told(seed: int) -> None:
    life = Life(seed, with_others=True)
    life.run(40)
    life.now_s += 2 * RESYNC_S  # two periods after the last word
    life.world.cluster.begin_turn(life.now_s, is_quiet=True)
    assert life.ask(CPUS, GIB) == ["n1", "n2", "n3"]


def test_believing_every_word_at_once_would_be_refused() -> None:
    """That the model can tell: without the cache pods are refused."""
    refused = 0
    for seed in range(10):
        life = Life(seed, with_others=False)
        life.plugin = NodeResourceTopologyMatch(NodeResourceTopologyMatchArgs(), life.world.cluster)
        life.run(40)
        refused += len(life.refused)
    assert refused > 10


def test_pods_of_others_count_only_if_they_are_to() -> None:
    """With `foreignPodsDetect: None` a node stays in use beside pods nobody has told of."""
    used = {}
    for detect in ("All", "OnlyExclusiveResources", "None"):
        life = Life(1, with_others=False)
        args = NodeResourceTopologyMatchArgs(
            cache_resync_period_seconds=RESYNC_S, cache=CacheArgs(foreign_pods_detect=detect)
        )
        life.plugin = NodeResourceTopologyMatch(args, life.world.cluster)
        life.ask(1, 1)
        shared = a_pod("shared", {"cpu": "500m", "_burst": True}, on="n1")
        pinned = a_pod("pinned", {"cpu": "1", "memory": "1Gi"}, on="n2")
        for pod in (shared, pinned):
            pod["status"]["phase"] = "Pending"
            life.world.see(pod)
        used[detect] = life.ask(1, 1)
    assert used == {
        "All": ["n3"],
        "OnlyExclusiveResources": ["n1", "n3"],
        "None": ["n1", "n2", "n3"],
    }


def test_nodes_with_pods_on_their_way_are_left_out_if_that_is_asked_for() -> None:
    life = Life(1, with_others=False)
    args = NodeResourceTopologyMatchArgs(discard_reserved_nodes=True)
    life.plugin = plugin = NodeResourceTopologyMatch(args, life.world.cluster)
    assert len(life.ask(1, 1)) == 3
    info = life.world.pending(a_pod("p", {"cpu": "1", "memory": "1Gi"}))
    life.world.cluster.assume(info, "n2")
    plugin.reserve(info, "n2", None)
    assert life.ask(1, 1) == ["n1", "n3"]
    plugin.post_bind(info, "n2")
    assert len(life.ask(1, 1)) == 3


def test_fingerprints_are_those_of_the_agents() -> None:
    """The example of k8stopologyawareschedwg/podfingerprint's own tests, in any order."""
    pods = [("ns1", "n1"), ("ns1", "n2"), ("ns2", "n1"), ("ns3", "n1"), ("ns3", "n2")]
    assert fingerprint(pods) == fingerprint(reversed(pods)) == "pfp0v001b92008c14168b3a6"
