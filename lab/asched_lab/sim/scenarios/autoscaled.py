"""Clusters with cluster-autoscaler or Karpenter: the right nodes, once.

In each world one of the two models runs (`autoscalers.py`). Pods are equal, so that the number of
nodes that they need is a division. Every node that was bought beyond it, nodes that the provider
did not deliver as asked aside, breaks a rule.
"""

from collections.abc import Iterator, Mapping
from math import ceil
from typing import ClassVar, Final

from asched.core.model.kinds import COSCHEDULING_GROUP
from asched.kube.transport import WireRequest
from asched_lab.sim.autoscalers import (
    CLUSTER_AUTOSCALER,
    KINDS,
    REQUESTS,
    ZONE,
    Autoscaler,
)
from asched_lab.sim.faults import Fault, LostAnswers, Restarts, StaleWatch
from asched_lab.sim.scenario import Scenario, profile
from asched_lab.sim.scenarios.gangs import CONFIG, GROUPS, coscheduled, labelled
from asched_lab.sim.scenarios.room import CLASS, consumer, template
from asched_lab.sim.steps import AddNodes, AddPods, Json, Step, Wait, pod_manifest, remove
from asched_lab.sim.wire import send
from asched_lab.sim.world import World

NODE_CPU: Final = 4
SHAPE: Final = {"cpu": str(NODE_CPU), "memory": "8Gi", "pods": "110"}
#: Of a request for new nodes, in seconds.
LIMIT_S: Final = 200
DELETED_SHARE: Final = 0.2


class Autoscaled(Scenario):
    """Base: a full cluster, and an autoscaler whose nodes come late."""

    faults: ClassVar[tuple[Fault, ...]] = (LostAnswers(rate=0.05), StaleWatch(lag_s_max=3))
    settle_s = 200.0
    #: As arguments of `Autoscaler`.
    cloud: ClassVar[Mapping[str, float]] = {}

    def setup(self, world: World) -> None:
        AddNodes(count=1, cpu=(1,), pods=(3,)).do(world)
        AddPods(count=1, cpu=("700m",)).do(world)
        while world.waiting():
            world.run_for(1.0)
        self.scaler = Autoscaler(world, world.rng.choice(KINDS), SHAPE, **self.cloud)  # type: ignore[arg-type]

    def needed(self, world: World) -> int:  # noqa: ARG002 - for subclasses
        """The number of nodes that the pods need beside those of the set-up."""
        return 0

    def check(self, world: World) -> None:
        scaler, needed = self.scaler, self.needed(world)
        useful = scaler.bought - scaler.lost - scaler.misplaced
        assert useful == needed, f"{scaler.kind} bought {useful} useful nodes, {needed} are needed"
        unused = {n["metadata"]["name"] for n in world.nodes()} - {
            pod["spec"].get("nodeName") for pod in world.pods()
        }
        bought = [name for name in unused if name.startswith("bought")]
        assert len(bought) <= scaler.misplaced, f"{bought} are empty"


class Burst(Autoscaled):
    """500 plain pods at once; some nodes never come, some in another zone."""

    cloud: ClassVar[Mapping[str, float]] = {
        "lost": 0.02,
        "misplaced": 0.02,
        "given_up_s": 200.0,
    }
    settle_s = 600.0
    count = 500

    def start(self, world: World) -> Iterator[Step]:
        for number in range(self.count):
            pod = pod_manifest(f"burst-{number}", "1")
            pod["spec"]["nodeSelector"] = {ZONE: "a"}
            world.server.create("pods", pod)
        yield Wait(wait_s=400.0)

    def needed(self, world: World) -> int:
        waiting = [pod["metadata"]["name"] for pod in world.waiting()]
        assert not waiting, f"{waiting[:3]} wait, and no node is bought for them"
        return ceil(self.count / NODE_CPU)


class GangBurst(Autoscaled):
    """A gang of 64 on a full cluster; pods of another one of two start meanwhile."""

    config: ClassVar[Json] = CONFIG
    count = 64

    def start(self, world: World) -> Iterator[Step]:
        self.create(world)
        yield Wait(wait_s=300.0)

    def create(self, world: World, first_cpu: str = "1") -> None:
        world.server.create(GROUPS, coscheduled("gang", minMember=self.count))
        for number in range(self.count):
            world.server.create("pods", labelled("gang", f"{number}", "1" if number else first_cpu))

    def needed(self, world: World) -> int:
        assert not world.waiting(), "the gang waits, and no node is bought for it"
        return ceil(self.count / NODE_CPU)


class GangAsksOnce(GangBurst):
    """The same with GroupScaleUp: one scale-up for the whole gang, by processes that die now and
    then. In some worlds the gang is deleted meanwhile, and in every fifth one of its pods fits on
    no node; Karpenter serves no requests.
    """

    faults = (*Autoscaled.faults, Restarts(every_s=60.0))
    config: ClassVar[Json] = profile(
        "Coscheduling",
        "GroupScaleUp",
        without="PrioritySort",
        GroupScaleUp={
            "nodeShapes": [
                {"name": "small", "allocatable": {"cpu": "500m"}},
                {"name": "usual", "labels": {ZONE: "a"}, "allocatable": SHAPE},
            ],
            "timeLimitSeconds": LIMIT_S,
        },
    )

    def start(self, world: World) -> Iterator[Step]:
        self.is_too_large = world.seed % 5 == 4
        self.create(world, str(NODE_CPU + 1) if self.is_too_large else "1")
        yield Wait(wait_s=world.rng.uniform(0.0, 60.0))
        self.is_deleted = world.rng.random() > 1.0 - DELETED_SHARE
        if self.is_deleted:
            group = COSCHEDULING_GROUP.object_path("default", "gang")
            send(world.server.ctx, WireRequest("DELETE", group, None))
            for number in range(self.count):
                remove(world, "pods", f"gang-{number}", "default")
        yield Wait(wait_s=300.0)

    def check(self, world: World) -> None:
        left = world.server.list(REQUESTS)
        assert not left, f"{left[0]['metadata']['name']} is not withdrawn"
        assert not world.server.list("podtemplates"), "templates are left"
        if self.is_too_large:
            assert not self.scaler.bought, "nodes are bought that do not help"
        if self.is_deleted or self.is_too_large:
            return
        super().check(world)
        if self.scaler.kind == CLUSTER_AUTOSCALER:
            assert len(self.scaler.scale_ups) == 1, self.scaler.scale_ups


class QuotaFull(Autoscaled):
    """Pods that their quota keeps out, and plain pods that need nodes."""

    config: ClassVar[Json] = profile("CapacityScheduling")

    def start(self, world: World) -> Iterator[Step]:
        world.server.create("namespaces", {"metadata": {"name": "full"}})
        limit = {"cpu": "1", "memory": "64Gi"}
        metadata = {"name": "quota", "namespace": "full"}
        spec = {"min": limit, "max": limit}
        world.server.create("elasticquotas", {"metadata": metadata, "spec": spec})
        world.run_for(3.0)
        for number in range(20):
            pod = pod_manifest(f"over-{number}", "2")
            pod["metadata"]["namespace"] = "full"
            world.server.create("pods", pod)
        self.count = world.rng.randint(0, 5)
        for number in range(self.count):
            world.server.create("pods", pod_manifest(f"plain-{number}", "3"))
        yield Wait(wait_s=300.0)

    def is_plain(self, pod: Json) -> bool:
        return bool(pod["metadata"]["namespace"] != "full")

    def needed(self, world: World) -> int:  # noqa: ARG002 - overrides
        return self.count


class HeldAndEmpty(Autoscaled):
    """Places are held on nodes that stay empty for longer than an autoscaler leaves them."""

    cloud: ClassVar[Mapping[str, float]] = {"empty_s": 60.0}
    config: ClassVar[Json] = profile(
        "CheckAndHold", CheckAndHold={"maxNamespacePercentage": 100, "keepNodes": True}
    )

    def setup(self, world: World) -> None:
        super().setup(world)
        self.holds = 0
        for number in range(2):
            amounts = {"capacity": SHAPE, "allocatable": SHAPE}
            world.server.create(
                "nodes", {"metadata": {"name": f"free-{number}"}, "status": amounts}
            )
        world.server.create("podtemplates", template("worker", "3"))
        self.scaler.on_removal.append(lambda node: self._removed(world, node))
        world.run_for(3.0)

    def start(self, world: World) -> Iterator[Step]:
        self._ask(world)
        yield Wait(wait_s=200.0)
        held = [hold for hold in world.parts.cluster.holds if not hold.is_lifted]
        assert len(held) == 2, "the request has no places"
        self._consume(world)
        yield Wait(wait_s=100.0)

    def _ask(self, world: World) -> None:
        pod_sets = [{"podTemplateRef": {"name": "worker"}, "count": 2}]
        spec = {"provisioningClassName": CLASS, "podSets": pod_sets}
        metadata = {"name": "job", "namespace": "default"}
        world.server.create("provisioningrequests", {"metadata": metadata, "spec": spec})

    def _consume(self, world: World) -> None:
        for number in range(2):
            world.server.create("pods", consumer(f"consumer-{number}", "3", "job"))

    def _removed(self, world: World, node: Json) -> None:
        name = node["metadata"]["name"]
        places = [p.node_name for hold in world.parts.cluster.holds for p in hold.places]
        if name in places:
            world.ledger.complain(f"{name} is removed while a place is held there")

    def check(self, world: World) -> None:
        super().check(world)
        assert not world.waiting(), "consumers wait"
        marks = [n for n in world.nodes() if n["metadata"].get("annotations")]
        assert not marks, f"{marks} are kept, and no place is held there"


class LateConsumers(HeldAndEmpty):
    """Pods come after their hold has ended and the nodes are gone: only Karpenter adds nodes."""

    def start(self, world: World) -> Iterator[Step]:
        self._ask(world)
        yield Wait(wait_s=800.0)
        assert not len(world.parts.cluster.holds), "the hold did not end"
        self._consume(world)
        yield Wait(wait_s=100.0)

    def needed(self, world: World) -> int:  # noqa: ARG002 - overrides
        return 0 if self.scaler.kind == CLUSTER_AUTOSCALER else 2

    def check(self, world: World) -> None:
        Autoscaled.check(self, world)
        assert len(world.waiting()) == (2 if self.scaler.kind == CLUSTER_AUTOSCALER else 0)
