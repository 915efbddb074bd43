"""A small cluster that lives for a long time: names come and go, and never come back.

Each round one node is replaced by another with other names in labels, taints, features, images and
resources; a few pods with names of their own come, and those of some rounds ago go.
"""

import gc
from collections import Counter
from typing import Any

from asched.core.cluster.facts import Gone, Seen
from asched.core.cycle.history import Histories
from asched.core.model.decode import decode
from asched.core.model.kinds import NAMESPACE
from asched.core.model.workload import Namespace
from asched.testing import World, given, node, pod
from tests.weigh import weigh

Json = dict[str, Any]

NODES = 12
#: Rounds that pods, and their namespace, live.
LIFE = 4
#: Pods of a round that are all plain: what fits on the nodes.
PLAIN = 100
HOSTNAME = "kubernetes.io/hostname"


class Churn:
    """`turn(count)` lets rounds pass; `names` counts the names that were used."""

    def __init__(self, labels: int = 8, looking_back: int = 0, *, plain: bool = False) -> None:
        """`labels`: how many each node has under keys of its own. `looking_back`: so many steps of
        pods and objects are kept, 0 as many as in production. `plain`: the pods of a round ask for
        nothing but have names of their own, so more of them come in the same time.
        """
        self.world: World = given()
        if looking_back:
            self.world._machine.context.histories = Histories(looking_back)
        self._labels, self._plain = labels, plain
        self.names = 0
        self._round = 0
        self._nodes: dict[int, Json] = {}
        self._pods: dict[int, list[Json]] = {}

    def turn(self, rounds: int) -> None:
        for _ in range(rounds):
            self._pass()

    def weigh(self) -> Counter[str]:
        """What the deciding half holds, once every pod has gone."""
        for number in sorted(self._pods):
            self._end(number)
        self.world.wait(60)
        self._forget_asked()
        gc.collect()
        return weigh(self.world._machine, self.world._parts)

    @property
    def is_full(self) -> bool:
        """Whether what is kept for looking back has begun to drop its oldest."""
        return self.world._machine.context.histories._start > 0

    def _pass(self) -> None:
        number = self._round
        self._round += 1
        if number >= LIFE and number - LIFE in self._pods:
            self._end(number - LIFE)
        old = self._nodes.pop(number % NODES, None)
        if old is not None:
            self.world.remove(old)
        self._nodes[number % NODES] = self._node(number)
        self.world.add(self._nodes[number % NODES])
        self.world._settle([Seen(NAMESPACE, _namespace(number))])
        self.names += 1
        self._pods[number] = self._crowd(number)
        self.world.add(*self._pods[number])
        self.world.wait(1)
        self._forget_asked()

    def _end(self, number: int) -> None:
        for gone in self._pods.pop(number):
            if f"{gone['metadata']['namespace']}/{gone['metadata']['name']}" in self.world._pods:
                self.world.remove(gone)
        self.world._settle([Gone(NAMESPACE, _namespace(number))])

    def _forget_asked(self) -> None:
        """The world of tests remembers what was asked of it."""
        self.world.effects.clear()
        self.world.events.clear()

    def _name(self, text: str) -> str:
        self.names += 1
        return text

    def _node(self, number: int) -> Json:
        name = self._name
        made = node(name(f"node-{number}"), cpu=8)
        made["metadata"]["labels"] = {
            HOSTNAME: f"node-{number}",
            "zone": f"z{number % 3}",
            "seen": name(str(number)),
            **{
                name(f"job-{number}-{k}.example.com/x"): name(f"v{number}-{k}")
                for k in range(self._labels)
            },
        }
        made["spec"]["taints"] = [
            {"key": key, "value": name(f"{key}-{number}"), "effect": "PreferNoSchedule"}
            for key in ("deleted-at", "seen-at", "cordoned-at")
        ]
        status = made["status"]
        status["allocatable"][name(f"example.com/r{number}")] = "4"
        status["declaredFeatures"] = [name(f"Feature{number}")]
        status["images"] = [{"names": [name(f"registry/app:{number}")], "sizeBytes": 5 << 20}]
        return made

    def _crowd(self, number: int) -> list[Json]:
        """A pod for each thing that can be asked."""
        name, space = self._name, f"team-{number}"
        app = name(f"app-{number}")

        def a_pod(shape: str, **spec: Any) -> Json:
            labels = {"app": app, "pod": name(f"{shape}-{number}-x")}
            return pod(name(f"{shape}-{number}"), namespace=space, labels=labels, **spec)

        if self._plain:
            return [a_pod(f"plain-{k}") for k in range(PLAIN)]
        selector = {"matchLabels": {"app": app}}
        unknown = [name(f"unknown-{number}-{k}") for k in range(4)]
        spread = [
            {
                "maxSkew": 1,
                "topologyKey": key,
                "whenUnsatisfiable": action,
                "labelSelector": selector,
                "nodeTaintsPolicy": "Honor",
            }
            for key, action in (
                (HOSTNAME, "DoNotSchedule"),
                ("zone", "ScheduleAnyway"),
                (unknown[0], "ScheduleAnyway"),
            )
        ]
        term = {"topologyKey": HOSTNAME, "labelSelector": selector}
        preferred = [
            {"weight": 1, "preference": {"matchExpressions": [{"key": k, "operator": "Exists"}]}}
            for k in unknown
        ]
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        liked = "preferredDuringSchedulingIgnoredDuringExecution"
        near = {"weight": 3, "podAffinityTerm": {**term, "topologyKey": unknown[1]}}
        asked = a_pod("asks")
        asked["spec"]["containers"][0]["resources"] = {
            "requests": {"cpu": "100m", name(f"example.com/none{number}"): "1"}
        }
        port = a_pod("port")
        port["spec"]["containers"][0]["ports"] = [{"hostPort": 1024 + number % 60_000}]
        return [
            a_pod("plain", tolerations=[{"key": "seen-at", "value": name(f"t{number}")}]),
            a_pod("spread", topologySpreadConstraints=spread),
            a_pod("apart", affinity={"podAntiAffinity": {required: [term]}}),
            a_pod("near", affinity={"podAffinity": {liked: [near]}}),
            a_pod("likes", affinity={"nodeAffinity": {liked: preferred}}),
            a_pod("never", nodeSelector={unknown[2]: "x"}, priority=number % 100_000),
            a_pod("big", priority=1 + number % 50, nodeSelector={"seen": str(number)}),
            asked,
            port,
            a_pod("hand", nodeName=f"node-{number}", **_asking(f"example.com/h{number}")),
            a_pod("lost", nodeName=name(f"nowhere-{number}")),
            a_pod(
                "disk",
                volumes=[
                    {"name": "a", "persistentVolumeClaim": {"claimName": name(f"claim-{number}")}}
                ],
            ),
        ]


def _asking(resource: str) -> Json:
    return {"containers": [{"name": "c", "image": "i", "resources": {"requests": {resource: "1"}}}]}


def _namespace(number: int) -> Namespace:
    name = f"team-{number}"
    return decode(Namespace, {"metadata": {"name": name, "uid": name, "labels": {"team": name}}})
