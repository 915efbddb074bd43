"""A cluster with one default profile, to try preemption on; random ones for comparisons."""

import random
from typing import Any

from asched.core.cluster.facts import Gone, Seen
from asched.core.cluster.pods import PodInfo
from asched.core.config.defaults import configuration
from asched.core.framework.points import PostFilterResult
from asched.core.framework.preemption_trial import Candidate, Trial
from asched.core.framework.rejection import Rejection
from asched.core.framework.runner import Decision, run_alone
from asched.core.framework.waiting import WaitingPods
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, POD, POD_DISRUPTION_BUDGET
from asched.core.model.pod import Pod
from asched.core.model.workload import PodDisruptionBudget
from asched.core.plugins.default_preemption import DefaultPreemption
from asched.host.assemble import Parts, build_runners
from tests.builders import NodeBuilder, PodBuilder, a_node, a_pod

NAMESPACES = ("default", "team")
APPS = ("a", "b", "c")


class Stage:
    """Nodes and pods are shown to it as a watch would."""

    def __init__(self, preempts: str = "DefaultPreemption", **plugin_args: Any) -> None:
        """`preempts`: the plugin that makes room."""
        instead = {"disabled": [{"name": "DefaultPreemption"}], "enabled": [{"name": preempts}]}
        profile: dict[str, Any] = {
            "schedulerName": "default-scheduler",
            "plugins": {"multiPoint": instead},
        }
        if plugin_args:
            profile["pluginConfig"] = [{"name": "DefaultPreemption", "args": plugin_args}]
        parts = Parts.fresh()
        self.cluster, self.nominator = parts.cluster, parts.nominator
        self.runner = build_runners(configuration({"profiles": [profile]}), parts)[
            "default-scheduler"
        ]
        self.waiting = WaitingPods()
        plugin = self.runner.profile.plugins[preempts]
        assert isinstance(plugin, DefaultPreemption)
        self.plugin = plugin

    def nodes(self, *nodes: NodeBuilder) -> None:
        for node in nodes:
            self.cluster.apply(Seen(NODE, node.build()))

    def pod(self, pod: PodBuilder | Pod) -> Pod:
        built = pod.build() if isinstance(pod, PodBuilder) else pod
        self.cluster.apply(Seen(POD, built))
        return built

    def gone(self, pod: Pod) -> None:
        self.cluster.apply(Gone(POD, pod))

    def budget(self, name: str, namespace: str, app: str, allowed: int, *disrupted: str) -> None:
        self.cluster.apply(
            Seen(
                POD_DISRUPTION_BUDGET,
                decode(
                    PodDisruptionBudget,
                    {
                        "metadata": {"name": name, "namespace": namespace},
                        "spec": {"selector": {"matchLabels": {"app": app}}},
                        "status": {
                            "disruptionsAllowed": allowed,
                            "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z"),
                        },
                    },
                ),
            )
        )

    def wait_for(self, pod: PodBuilder, node: str) -> Pod:
        """A waiting pod that was promised a node."""
        built = self.pod(pod)
        self.nominator.add(built, node)
        return built

    def attempt(self, pod: Pod, seed: int = 0) -> Decision | Rejection:
        found: Decision | Rejection = run_alone(self.runner.schedule(self.info(pod), seed))
        return found

    def rejection(self, pod: Pod) -> Rejection:
        found = self.attempt(pod)
        assert isinstance(found, Rejection)
        return found

    def info(self, pod: Pod) -> PodInfo:
        return self.cluster.classes.info_of(pod)

    def trial(self, pod: Pod, seed: int = 0) -> Trial:
        state = self.runner.cache.state_of(self.info(pod))
        return self.runner.trial(state, self.waiting, seed, 1000.0)

    def post_filter(self, pod: Pod, seed: int = 0) -> PostFilterResult:
        """What all PostFilter plugins come to."""
        rejection = self.rejection(pod)
        steps = self.runner.post_filter(self.info(pod), rejection, self.trial(pod, seed))
        found: PostFilterResult = run_alone(steps)
        return found

    def candidates(self, pod: Pod) -> dict[str, Candidate]:
        return self.plugin.candidates(self.info(pod), self.rejection(pod), self.trial(pod))


def shown(candidates: dict[str, Candidate]) -> dict[str, tuple[list[str], int]]:
    return {
        node: ([info.pod.key for info in found.victims], found.violations)
        for node, found in candidates.items()
    }


def a_low(name: str, node: str, priority: int = 0, cpu: str = "1", start: int = 0) -> PodBuilder:
    """A running pod; `start` counts minutes of a certain hour."""
    return (
        a_pod(name)
        .requests(cpu=cpu)
        .spec(priority=priority)
        .status(startTime=f"2026-01-01T00:{start:02}:00Z")
        .on(node)
    )


def a_high(name: str, cpu: str = "2", priority: int = 1000) -> PodBuilder:
    return a_pod(name).requests(cpu=cpu).spec(priority=priority)


class RandomStage(Stage):
    """A full cluster that changes at random; everything follows from the seed."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.rng = random.Random(seed)
        self.running: list[Pod] = []
        self.nominated_amounts: list[Pod] = []
        self._serial = 0
        for number in range(self.rng.randint(2, 9)):
            node = a_node(f"n{number}").allocatable(
                cpu=str(self.rng.randint(2, 6)), memory="8Gi", pods=str(self.rng.randint(3, 9))
            )
            self.nodes(node.taints("gpu=yes:NoSchedule") if self.rng.random() < 0.1 else node)
        for _ in range(6 * self.cluster.nodes.count):
            self.add_running()
        for _ in range(self.rng.randint(0, 3)):
            self.change_budget()

    def change(self) -> None:
        """One thing that a watch might tell of."""
        self.rng.choice(
            (self.add_running, self.lose, self.change_budget, self.promise, self.keep, self.start)
        )()

    def add_running(self) -> None:
        node = self.rng.choice(sorted(self.cluster.nodes.row_of))
        started = f"2026-01-01T{self.rng.randint(0, 23):02}:{self.rng.randint(0, 59):02}:00Z"
        pod = self._pod(self.rng.choice((-10, 0, 0, 5, 100, 2000))).on(node)
        self.running.append(self.pod(pod.status(startTime=started)))

    def lose(self) -> None:
        if self.running:
            self.gone(self.running.pop(self.rng.randrange(len(self.running))))

    def start(self) -> None:
        """A running pod gets another start time."""
        if self.running:
            at = self.rng.randrange(len(self.running))
            pod = decode(Pod, _json(self.running[at], f"2026-02-01T00:{self._next() % 60:02}:00Z"))
            self.running[at] = self.pod(pod)

    def change_budget(self) -> None:
        disrupted = [p.metadata.name for p in self.running if self.rng.random() < 0.1]
        self.budget(
            f"b{self.rng.randint(0, 3)}",
            self.rng.choice(NAMESPACES),
            self.rng.choice(APPS),
            self.rng.randint(0, 2),
            *disrupted,
        )

    def promise(self) -> None:
        node = self.rng.choice([*sorted(self.cluster.nodes.row_of), "elsewhere"])
        self.nominated_amounts.append(
            self.wait_for(self._pod(self.rng.choice((0, 1000, 2000))), node)
        )

    def keep(self) -> None:
        """A promise is taken back."""
        if self.nominated_amounts:
            pod = self.nominated_amounts.pop()
            self.nominator.delete(pod.uid)
            self.gone(pod)

    def preemptor(self) -> Pod:
        return self.pod(self._pod(1000, cpu=self.rng.randint(1, 4)))

    def _pod(self, priority: int, cpu: int = 0) -> PodBuilder:
        amount = f"{cpu * 1000 or self.rng.choice((200, 500, 1000, 1500))}m"
        pod = a_pod(f"p{self._next()}", namespace=self.rng.choice(NAMESPACES))
        return (
            pod.requests(cpu=amount, memory="100Mi")
            .spec(priority=priority)
            .labels(app=self.rng.choice(APPS))
        )

    def _next(self) -> int:
        self._serial += 1
        return self._serial


def _json(pod: Pod, started: str) -> dict[str, Any]:
    container = (pod.spec.containers or ())[0]
    return {
        "metadata": {
            "name": pod.metadata.name,
            "namespace": pod.metadata.namespace,
            "uid": pod.uid,
            "labels": pod.labels,
        },
        "spec": {
            "nodeName": pod.spec.node_name,
            "priority": pod.spec.priority,
            "containers": [
                {
                    "name": container.name,
                    "image": container.image,
                    "resources": {"requests": {"cpu": f"{_milli(pod)}m", "memory": "100Mi"}},
                }
            ],
        },
        "status": {"startTime": started},
    }


def _milli(pod: Pod) -> int:
    from asched.core.model.requests import pod_requests

    return pod_requests(pod)["cpu"]
