"""What remains of names that come and go: the machine in process, over weeks of churn.

    python -m asched_lab.measure.churn [--names N] [--looking-back STEPS | --plain]

Each round one node is replaced by another with other names in labels, taints, features, images and
resources; pods with names of their own come with a namespace, and go some rounds later. Ten times
on the way all pods are removed and everything the machine keeps is counted: entries of containers,
bytes of arrays, and the memory of the process. The last column shows the growth since the first
count.

The history of pods is kept on purpose. It is bounded in lines and bytes, which takes millions of
names to reach. `--looking-back` bounds it to so many steps: any growth is then a leak. `--plain`
leaves the bounds of production and creates a hundred plain pods per round, which reach them in a
minute of processor time: the first count comes when the history drops its oldest line, and N names
come after it.

Exit status: 0 if the end has at most a tenth more than the first count, 1 otherwise.
"""

# ruff: noqa: T201 - a command prints

import argparse
import gc
import resource
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from asched.core.cluster.facts import Gone, Seen
from asched.core.cycle.history import Histories
from asched.core.model.decode import decode
from asched.core.model.kinds import NAMESPACE
from asched.core.model.workload import Namespace
from asched.testing import World, given, node, pod
from asched_lab.bench.report import commit, machine_line
from asched_lab.measure.retained import entries_of, weigh

Json = dict[str, Any]

NODES = 12
#: Rounds between the creation of pods, and of their namespace, and their end.
LIFE = 4
#: Pods of a round with `plain`: as many as fit on the nodes.
PLAIN = 100
HOSTNAME = "kubernetes.io/hostname"
STEPS = 10
LABELS = 100
#: The first count comes after this share of the names: what is bounded in bytes is full then.
WARM = 0.5
GROWTH_MAX = 0.1


class Churn:
    """`turn(count)` runs rounds; `names` counts the names that were used."""

    def __init__(self, labels: int = 8, looking_back: int = 0, *, plain: bool = False) -> None:
        """`labels`: how many each node has under keys of its own. `looking_back`: steps of pods and
        objects in the history, 0 for the bound of production. `plain`: the pods of a round request
        nothing, so that more of them come in the same time.
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
        """Count what the machine keeps after every pod has gone."""
        for number in sorted(self._pods):
            self._end(number)
        self.world.wait(60)
        self._forget_effects()
        gc.collect()
        return weigh(self.world._machine, self.world._parts)

    @property
    def is_full(self) -> bool:
        """Whether the history has begun to drop its oldest lines."""
        return bool(self.world._machine.context.histories._start > 0)

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
        self._forget_effects()

    def _end(self, number: int) -> None:
        for gone in self._pods.pop(number):
            if f"{gone['metadata']['namespace']}/{gone['metadata']['name']}" in self.world._pods:
                self.world.remove(gone)
        self.world._settle([Gone(NAMESPACE, _namespace(number))])

    def _forget_effects(self) -> None:
        """Forget the effects and events that the world of tests records."""
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
        """A pod for each kind of request."""
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


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m asched_lab.measure.churn", description=__doc__)
    parser.add_argument("--names", type=int, default=1_000_000, metavar="N")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--looking-back", type=int, default=0, metavar="STEPS")
    how.add_argument("--plain", action="store_true")
    args = parser.parse_args(argv)
    wanted = args.names
    print(machine_line(), f"commit {commit() or 'unknown'}", sep="; ", flush=True)
    print(f"{'names':>10} {'entries':>10} {'array kB':>9} {'RSS MB':>8} {'growth':>8}")
    churn = Churn(LABELS, args.looking_back, plain=args.plain)
    while args.plain and not churn.is_full:
        churn.turn(10)
    begun, share = (churn.names, 0.0) if args.plain else (0, WARM)
    first = last = 0
    for step in range(STEPS + 1):
        goal = begun + wanted * (share + (1 - share) * step / STEPS)
        while churn.names < goal:
            churn.turn(10)
        held = churn.weigh()
        last = entries_of(held)
        first = first or last
        print(
            f"{churn.names:>10} {last:>10} {held['bytes'] // 1024:>9} {rss_mb():>8.1f}"
            f" {last / first - 1:>8.1%}",
            flush=True,
        )
    return 0 if last <= first * (1 + GROWTH_MAX) else 1


def rss_mb() -> float:
    """Resident memory now, in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


if __name__ == "__main__":
    sys.exit(main())
