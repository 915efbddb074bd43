"""Preemption where budgets protect pods."""

from collections.abc import Iterator

from asched.core.framework.effects import DeletePod, Effect, EmitEvent, MarkVictim
from asched.lab.apiserver.resources import find
from asched.lab.sim.checker import EndState
from asched.lab.sim.faults import LostAnswers, ServerErrors, SlowAnswers
from asched.lab.sim.process import Process
from asched.lab.sim.rules import selected
from asched.lab.sim.scenario import Scenario
from asched.lab.sim.steps import (
    APPS,
    AddNodes,
    AddPods,
    DeletePods,
    FinishPods,
    Json,
    Step,
    is_through,
)
from asched.lab.sim.world import World

ROUNDS = 20
PRIORITIES = (0, 0, 10, 100)
BUDGETS = find("poddisruptionbudgets")
#: How often the controller of budgets looks.
LOOK_S = 1.0


class Budgets(Scenario):
    """A budget is broken only where no node could have been freed without; nobody is evicted who
    is not outranked.

    News are on time here: who does not know the budgets cannot be blamed.
    """

    faults = (LostAnswers(rate=0.1), ServerErrors(rate=0.1), SlowAnswers(seconds_max=0.5))

    def setup(self, world: World) -> None:
        #: (pod's uid, node) -> when an attempt at it ended last with that node promised to it
        self.decided: dict[tuple[str, str], float] = {}
        #: victim's uid -> who was promised its node when it was decided that it has to go
        self.gone_for: dict[str, set[str]] = {}
        world.on_effect.append(self._look)
        AddNodes(count=world.rng.randint(2, 5), cpu=(1, 2)).do(world)
        for app in APPS:
            if world.rng.random() < 0.7:
                world.server.create("poddisruptionbudgets", a_budget(app, world.rng.randint(1, 4)))
        AddPods(count=12, make=_of_an_app).do(world)
        keep_budgets(world)
        world.run_for(10.0)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(ROUNDS):
            priority = world.rng.choice(PRIORITIES)
            number = world.rng.randint(1, 2)
            yield AddPods(count=number, priority=priority, make=_of_an_app)
            roll = world.rng.random()
            if roll < 0.2:
                yield DeletePods(count=2)
            elif roll < 0.3:
                yield FinishPods(count=2)
            elif roll < 0.4:
                yield AddNodes(cpu=(1, 2))

    def _look(self, process: Process, effect: Effect) -> None:
        """Judge a victim at the moment at which it was decided that it has to go. An attempt that
        fails says so at once; its last victim may be written about much later.
        """
        if isinstance(effect, EmitEvent):
            uid = effect.regarding.uid
            told = process.parts.nominator.node_of(uid)
            self.decided[uid, told or ""] = process.world.clock.now_s()
        if not isinstance(effect, DeletePod | MarkVictim):
            return
        world = process.world
        victim = world.server.get("pods", effect.pod.namespace, effect.pod.name)
        if victim is None or victim["metadata"]["uid"] != effect.pod.uid:
            return
        node = victim["spec"].get("nodeName", "")
        nominated_amounts = list(process.parts.nominator.on(node).values())
        if not nominated_amounts:
            return  # whoever it was for is placed or gone by now
        most = max(nominated_amounts, key=lambda pod: pod.priority)
        if victim["spec"].get("priority", 0) >= most.priority:
            world.ledger.complain(f"{effect.pod.key} is evicted for a pod of {most.priority}")
        uids = {pod.uid for pod in nominated_amounts}
        if not uids.isdisjoint(self.gone_for.get(effect.pod.uid, ())):
            return  # tried again, and somebody else may be promised the node by now
        self.gone_for[effect.pod.uid] = uids
        if self.decided.get((most.uid, node)) != world.clock.now_s():
            return  # decided before, in another world
        if is_protected(world, victim):
            spared = node_without_victims(process, most.key)
            if spared:
                text = f"breaks a budget, and {spared} could have been freed without"
                world.ledger.complain(f"evicting {effect.pod.key} {text}")


def is_protected(world: World, pod: Json) -> bool:
    """Whether a budget speaks of the pod and allows no disruption."""
    return any(
        not budget["status"].get("disruptionsAllowed")
        for budget in world.server.list("poddisruptionbudgets")
        if selected(budget["spec"]["selector"], pod)
    )


def node_without_victims(process: Process, key: str) -> str:
    """A node that pods of no budget could make room on; empty if there is none.

    Nodes on which room is promised to others are left out: to whom it belongs is not our business.
    So are those from which a pod went and the process has not heard of it.
    """
    world, cluster = process.world, process.parts.cluster
    pod = world.server.get("pods", *key.split("/"))
    if pod is None:
        return ""
    mine = pod["spec"].get("priority", 0)
    kept = []
    for other in world.pods():
        info = cluster.placed.get(other["metadata"]["uid"])
        if info is None or is_through(other):
            continue
        labels = other["metadata"]["labels"]
        is_free = f"budget-{labels['app']}" not in {
            budget["metadata"]["name"] for budget in world.server.list("poddisruptionbudgets")
        }
        is_bound = bool(other["spec"].get("nodeName")) and not info.assumed  # it was told, too
        ends = other["metadata"].get("deletionTimestamp")
        may_go = is_free and is_bound and not ends and other["spec"].get("priority", 0) < mine
        if not may_go:
            kept.append({**other, "spec": {**other["spec"], "nodeName": info.node_name}})
    end = EndState(world.nodes(), kept)
    there = {other["metadata"]["uid"] for other in world.pods()}
    left_out = {info.node_name for uid, info in cluster.placed.items() if uid not in there}
    left_out |= process.parts.nominator.nodes().keys()
    left_out |= {other["status"].get("nominatedNodeName", "") for other in world.pods()}  # till now
    return next((n for n in end.nodes if n not in left_out and end.has_place(n, pod)), "")


def keep_budgets(world: World) -> None:
    """The controller of budgets: what may be disrupted is what is more than needed."""
    for budget in world.server.list("poddisruptionbudgets"):
        healthy = [
            pod
            for pod in world.placed()
            if selected(budget["spec"]["selector"], pod) and not is_through(pod)
        ]
        allowed = max(len(healthy) - budget["spec"]["minAvailable"], 0)
        status = {**(budget.get("status") or {}), "disruptionsAllowed": allowed}
        if status != budget.get("status"):
            world.server.ctx.put(BUDGETS, {**budget, "status": status})
    world.clock.after(LOOK_S, lambda: keep_budgets(world))


def a_budget(app: str, least: int) -> Json:
    return {
        "metadata": {"name": f"budget-{app}", "namespace": "default"},
        "spec": {"minAvailable": least, "selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": 0},
    }


def _of_an_app(world: World, pod: Json) -> None:
    pod["metadata"]["labels"] = {"app": world.rng.choice(APPS)}
