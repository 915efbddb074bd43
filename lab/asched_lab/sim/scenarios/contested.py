"""A cluster at 95 % full in which a second scheduler binds at random, a little late."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from asched.core.framework.effects import Bind, PodRef
from asched.kube.writes import bind
from asched_lab.apiserver.resources import PODS
from asched_lab.apiserver.store import DELETED, Change
from asched_lab.sim.checker import EndState
from asched_lab.sim.faults import StaleWatch
from asched_lab.sim.requests import send
from asched_lab.sim.rules import amount
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.steps import AddNodes, Json, Step, is_through, pod_manifest
from asched_lab.sim.world import World

NODES: Final = 10
CPU: Final = 16
#: Requests of pods of both schedulers (milli-CPU), and the requested share of the cluster.
REQUESTS: Final = (250, 500, 1000, 2000)
FULL: Final = NODES * CPU * 950
ROUNDS: Final = 120
#: Age of the other scheduler's data (s).
LATE_S_MAX: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Turnover(Step):
    """As many pods of each side are deleted as created; a controller replaces refused pods of this
    scheduler and deletes them. `under_way`: what the other scheduler has chosen and not bound yet,
    by uid; it knows its own choices at once.
    """

    under_way: dict[str, tuple[Json, str]] = field(compare=False)

    def do(self, world: World) -> None:
        make_ours(world)
        theirs = _pod(world, "theirs")
        theirs["spec"]["schedulerName"] = "rival"
        made = world.server.create("pods", theirs)
        _make_way(world)
        end = EndState(world.nodes(), [p for p in world.pods() if not is_through(p)])
        for pod, node in self.under_way.values():
            end.place(pod, node)
        open_to_it = [name for name in end.nodes if end.has_place(name, made)]
        if open_to_it:
            node, late_s = world.rng.choice(open_to_it), world.rng.uniform(0.0, LATE_S_MAX)
            self.under_way[made["metadata"]["uid"]] = made, node
            world.clock.after(late_s, lambda: self._bind(world, made, node))

    def _bind(self, world: World, pod: Json, node: str) -> None:
        """Bind with old data; the kubelet detects conflicts."""
        metadata = pod["metadata"]
        del self.under_way[metadata["uid"]]
        ref = PodRef(namespace=metadata["namespace"], name=metadata["name"], uid=metadata["uid"])
        reply = send(world.server.ctx, bind(Bind(pod=ref, node=node)))
        world.figures["theirs"] += reply.status < 300


def make_ours(world: World) -> None:
    pod = _pod(world, "ours")
    name = pod["metadata"]["name"]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "controller": True}
    pod["metadata"]["ownerReferences"] = [{**owner, "uid": name}]
    world.server.create("pods", pod)


def _pod(world: World, owner: str) -> Json:
    return pod_manifest(f"{owner}-{next(world.numbers)}", f"{world.rng.choice(REQUESTS)}m")


def _asks(pod: Json) -> int:
    cpu: str = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    return int(amount(cpu) * 1000)


def _make_way(world: World) -> None:
    """Delete pods until running and waiting pods request no more than the target."""
    running = world.shuffled([pod for pod in world.placed() if not is_through(pod)])
    requested = sum(map(_asks, running)) + sum(_asks(p) for p in world.pods() if _waits(p))
    while requested > FULL and running:
        pod = running.pop()
        requested -= _asks(pod)
        _wipe(world, pod)


def _waits(pod: Json) -> bool:
    return not pod["spec"].get("nodeName")


def _wipe(world: World, pod: Json) -> None:
    record = world.server.ctx.get(PODS, pod["metadata"]["namespace"], pod["metadata"]["name"])
    if record is not None:
        world.inhabitants.remove(record)


class Contested(Scenario):
    """A pod that exceeds its node is refused by the kubelet; in the end no pod of this scheduler is
    left refused, and no node is overcommitted.
    """

    faults = (StaleWatch(lag_s_max=1.0),)

    def setup(self, world: World) -> None:
        world.inhabitants.refuses = True
        AddNodes(count=NODES, cpu=(CPU,), pods=(110,)).do(world)
        while sum(map(_asks, world.pods())) < FULL:
            make_ours(world)
        world.run_for(15.0)
        world.figures.clear()
        world.on_bound.append(lambda _: world.figures.update(ours=1))
        world.server.store.table(PODS.storage).listeners.append(lambda c: _see(world, c))

    def start(self, world: World) -> Iterator[Step]:
        under_way: dict[str, tuple[Json, str]] = {}
        for _ in range(ROUNDS):
            yield Turnover(under_way=under_way, wait_s=world.rng.uniform(0.0, 0.4))

    def check(self, world: World) -> None:
        refused = [
            p["metadata"]["name"] for p in world.pods() if p["status"].get("phase") == "Failed"
        ]
        assert not refused, f"{refused} were refused, and no controller replaced them"
        pods = [pod for pod in world.pods() if not is_through(pod)]
        broken = [line for line in EndState(world.nodes(), pods).broken_rules() if "over" in line]
        assert not broken, broken[0]


def _see(world: World, change: Change) -> None:
    pod = change.new.obj
    if change.type == DELETED or pod["status"].get("phase") != "Failed":
        return
    is_ours = pod["metadata"]["name"].startswith("ours-")
    world.figures["refused"] += 1
    world.figures["ours refused"] += is_ours
    if is_ours:
        world.clock.after(1.0, lambda: make_ours(world))
    world.clock.after(1.0, lambda: _wipe(world, pod))
