"""Important pods in a full cluster, without and with budgets that protect pods."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from asched.core.framework.effects import DeletePod, Effect, EmitEvent, MarkVictim
from asched.core.model.kinds import POD_DISRUPTION_BUDGET
from asched_lab.apiserver.resources import find
from asched_lab.sim.checker import EndState, is_through, selected
from asched_lab.sim.faults import BrokenWatches, LostAnswers, ServerErrors, SlowAnswers, StaleWatch
from asched_lab.sim.process import Process
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.steps import (
    APPS,
    AddNodes,
    AddPods,
    Cordon,
    DeletePods,
    FinishPods,
    Json,
    RemoveNode,
    Step,
    remove,
)
from asched_lab.sim.world import World

PREEMPTORS_PRIORITIES = (0, 10, 100)


class Preemptors(Scenario):
    """Important pods preempt other pods; victims take time to end, and their events are late."""

    rounds = 15
    faults = (LostAnswers(rate=0.1), StaleWatch(lag_s_max=5), BrokenWatches(every_s=40))

    def setup(self, world: World) -> None:
        AddNodes(count=world.rng.randint(1, 4)).do(world)
        AddPods(count=12).do(world)
        if world.rng.random() < 0.5:
            self._protect(world)
        world.run_for(5.0)

    def _protect(self, world: World) -> None:
        """A budget over all pods; preemption may violate it only where it must."""
        allowed = world.rng.randint(0, 2)
        world.server.create(
            "poddisruptionbudgets",
            {
                "metadata": {"name": "budget", "namespace": "default"},
                "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "pod"}}},
                "status": {"disruptionsAllowed": allowed},
            },
        )

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(self.rounds):
            number = world.rng.randint(1, 3)
            yield AddPods(count=number, priority=world.rng.choice(PREEMPTORS_PRIORITIES))
            roll = world.rng.random()
            nodes = world.node_names()
            if roll < 0.2:
                yield DeletePods(count=2)
            elif roll < 0.3:
                yield AddNodes()
            elif roll < 0.4 and nodes:
                yield Cordon(node=world.rng.choice(nodes), unschedulable=roll < 0.35)
            elif roll < 0.45 and len(nodes) > 1:
                yield RemoveNode(node=world.rng.choice(nodes))

    def check(self, world: World) -> None:
        """No pod waits where it could preempt pods of lower priority."""
        pods = [pod for pod in world.pods() if not is_through(pod)]
        for waiting in world.waiting():
            mine = waiting["spec"].get("priority", 0)
            remaining = [
                p
                for p in pods
                if p["spec"].get("nodeName") and p["spec"].get("priority", 0) >= mine
            ]
            end = EndState(world.nodes(), remaining)
            room = [name for name in end.nodes if end.has_place(name, waiting)]
            name = waiting["metadata"]["name"]
            assert not room, f"pod {name} of priority {mine} could push others out of {room}"


BUDGETS_PRIORITIES = (0, 0, 10, 100)
BUDGETS = find("poddisruptionbudgets")
#: All budgets are in the first namespace.
NAMESPACES = ("default", "default", "kube-public")
#: Period of the controller of budgets.
SYNC_S = 1.0
#: A process has received a budget by then, even if its stream breaks meanwhile.
NEWS_S = 3.0


@dataclass(frozen=True, slots=True)
class ChangeBudget(Step):
    """An app gets a budget, loses it, or the budget changes."""

    def do(self, world: World) -> None:
        app = world.rng.choice(APPS)
        new = a_budget(app, world)
        known = world.server.get("poddisruptionbudgets", "default", f"budget-{app}")
        if known is None:
            world.server.create("poddisruptionbudgets", new)
        elif world.rng.random() < 0.5:
            remove(world, "poddisruptionbudgets", f"budget-{app}", "default")
        else:
            world.server.ctx.put(BUDGETS, {**known, "spec": new["spec"]})


class Budgets(Scenario):
    """A budget is violated only where no node could have been freed without it; no pod is evicted
    that is not outranked.

    Events are on time: a scheduler that does not know a budget cannot respect it.
    """

    rounds = 30
    faults = (LostAnswers(rate=0.1), ServerErrors(rate=0.1), SlowAnswers(seconds_max=0.5))

    def setup(self, world: World) -> None:
        #: (pod's uid, node) -> when an attempt ended last with that node nominated
        self.decided: dict[tuple[str, str], float] = {}
        #: victim's uid -> the pod nominated to its node when the eviction was decided
        self.gone_for: dict[str, set[str]] = {}
        self.changed_s = 0.0  # when a budget changed last
        changes = world.server.store.table(BUDGETS.storage).listeners
        changes.append(lambda _: setattr(self, "changed_s", world.clock.now_s()))
        world.on_effect.append(self._check_victim)
        AddNodes(count=world.rng.randint(2, 5), cpu=(1, 2)).do(world)
        for app in APPS:
            if world.rng.random() < 0.7:
                world.server.create("poddisruptionbudgets", a_budget(app, world))
        AddPods(count=12, make=_of_an_app).do(world)
        keep_budgets(world)
        world.run_for(10.0)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(self.rounds):
            priority = world.rng.choice(BUDGETS_PRIORITIES)
            number = world.rng.randint(1, 2)
            yield AddPods(count=number, priority=priority, make=_of_an_app)
            roll = world.rng.random()
            if roll < 0.2:
                yield DeletePods(count=2)
            elif roll < 0.3:
                yield FinishPods(count=2)
            elif roll < 0.4:
                yield AddNodes(cpu=(1, 2))
            elif roll < 0.7:
                yield ChangeBudget()

    def _check_victim(self, process: Process, effect: Effect) -> None:
        """Check a victim at the moment its eviction was decided. A failed attempt is reported at
        once; its last victim may be written much later.
        """
        if isinstance(effect, EmitEvent):
            uid = effect.regarding.uid
            nominated = process.parts.nominator.node_of(uid)
            self.decided[uid, nominated or ""] = process.world.clock.now_s()
        if not isinstance(effect, DeletePod | MarkVictim):
            return
        world = process.world
        victim = world.server.get("pods", effect.pod.namespace, effect.pod.name)
        if victim is None or victim["metadata"]["uid"] != effect.pod.uid:
            return
        if victim["metadata"].get("deletionTimestamp"):
            return  # it terminates already, for a pod that may be placed elsewhere by now
        node = victim["spec"].get("nodeName", "")
        nominated_amounts = list(process.parts.nominator.on(node).values())
        if not nominated_amounts:
            return  # the preemptor is placed or deleted by now
        most = max(nominated_amounts, key=lambda pod: pod.priority)
        uids = {pod.uid for pod in nominated_amounts}
        if not uids.isdisjoint(self.gone_for.get(effect.pod.uid, ())):
            return  # tried again, and another pod may be nominated to the node by now
        self.gone_for[effect.pod.uid] = uids
        now_s = world.clock.now_s()
        if [uid for uid in uids if self.decided.get((uid, node)) == now_s] != [most.uid]:
            return  # decided before, in another state, or for another pod at this very moment
        if victim["spec"].get("priority", 0) >= most.priority:
            world.ledger.complain(f"{effect.pod.key} is evicted for a pod of {most.priority}")
        is_old_news = now_s - self.changed_s >= NEWS_S or knows_budgets(process)
        if is_old_news and is_protected(world, victim):
            spared = node_without_victims(process, most.key)
            if spared:
                text = f"breaks a budget, and {spared} could have been freed without"
                world.ledger.complain(f"evicting {effect.pod.key} {text}")


def knows_budgets(process: Process) -> bool:
    """Whether a process has the current version of all budgets."""
    cached = process.parts.cluster.all(POD_DISRUPTION_BUDGET)
    known = {key: budget.metadata.resource_version for key, budget in cached.items()}
    stored = process.world.server.list("poddisruptionbudgets")
    return known == {_name(budget): budget["metadata"]["resourceVersion"] for budget in stored}


def budgets_of(world: World, pod: Json) -> list[Json]:
    """Budgets that select a pod."""
    budgets = world.server.list("poddisruptionbudgets")
    return [budget for budget in budgets if is_of_budget(pod, budget)]


def is_of_budget(pod: Json, budget: Json) -> bool:
    """Whether a budget selects a pod."""
    is_near = pod["metadata"]["namespace"] == budget["metadata"]["namespace"]
    return is_near and selected(budget["spec"]["selector"], pod)


def is_protected(world: World, pod: Json) -> bool:
    """Whether a budget selects the pod and allows no disruption."""
    return any(not budget["status"].get("disruptionsAllowed") for budget in budgets_of(world, pod))


def node_without_victims(process: Process, key: str) -> str:
    """A node that could be freed without violating a budget; empty if there is none. Either no
    budget selects the victims, or each allows all its pods there to be disrupted.

    Left out are nodes with nominated pods of other owners; and nodes from which a pod was deleted,
    or which are new, before the process has seen it.
    """
    world, cluster = process.world, process.parts.cluster
    pod = world.server.get("pods", *key.split("/"))
    if pod is None:
        return ""
    mine = pod["spec"].get("priority", 0)
    lower, remaining, needed = list[tuple[Json, str]](), list[Json](), Counter[tuple[str, str]]()
    for other in world.pods():
        info = cluster.placed.get(other["metadata"]["uid"])
        if info is None or is_through(other):
            continue
        is_bound = (
            bool(other["spec"].get("nodeName")) and not info.assumed
        )  # and the process saw it
        ends = other["metadata"].get("deletionTimestamp")
        seen = {**other, "spec": {**other["spec"], "nodeName": info.node_name}}
        if is_bound and not ends and other["spec"].get("priority", 0) < mine:
            lower.append((seen, info.node_name))
            needed.update((info.node_name, _name(budget)) for budget in budgets_of(world, other))
        else:
            remaining.append(seen)
    allowed = {
        _name(budget): budget["status"].get("disruptionsAllowed", 0)
        for budget in world.server.list("poddisruptionbudgets")
    }
    strict = {node for (node, name), count in needed.items() if count > allowed[name]}
    remaining += [other for other, node in lower if node in strict and budgets_of(world, other)]
    end = EndState(world.nodes(), remaining)
    existing = {other["metadata"]["uid"] for other in world.pods()}
    left_out = {info.node_name for uid, info in cluster.placed.items() if uid not in existing}
    left_out |= process.parts.nominator.nodes().keys()
    left_out |= {other["status"].get("nominatedNodeName", "") for other in world.pods()}  # till now
    known = (n for n in cluster.nodes.row_of if n in end.nodes and n not in left_out)
    return next((n for n in known if end.has_place(n, pod)), "")


def _name(budget: Json) -> str:
    return f"{budget['metadata']['namespace']}/{budget['metadata']['name']}"


def keep_budgets(world: World) -> None:
    """The controller of budgets: it allows as many disruptions as there are surplus pods."""
    pods = [pod for pod in world.placed() if not is_through(pod)]
    for budget in world.server.list("poddisruptionbudgets"):
        healthy = [pod for pod in pods if is_of_budget(pod, budget)]
        ends = sum("deletionTimestamp" in pod["metadata"] for pod in healthy)
        spec = budget["spec"]
        least = spec.get("minAvailable", len(healthy) - spec.get("maxUnavailable", 0))
        standing = len(healthy) - ends
        status = {
            **(budget.get("status") or {}),
            "observedGeneration": budget["metadata"].get("generation", 0),
            "currentHealthy": standing,
            "desiredHealthy": least,
            "disruptionsAllowed": max(standing - least, 0),
        }
        if status != budget.get("status"):
            world.server.ctx.put(BUDGETS, {**budget, "status": status})
    world.clock.after(SYNC_S, lambda: keep_budgets(world))


def a_budget(app: str, world: World) -> Json:
    """A budget: usually one or a few pods may be disrupted, or a number has to stay."""
    rng = world.rng
    limit = {"maxUnavailable": rng.choice((0, 1, 1, 2))}
    if rng.random() < 0.5:
        limit = {"minAvailable": rng.randint(0, 6)}
    return {
        "metadata": {"name": f"budget-{app}", "namespace": "default"},
        "spec": {**limit, "selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": 0},
    }


def _of_an_app(world: World, pod: Json) -> None:
    pod["metadata"]["labels"] = {"app": world.rng.choice(APPS)}
    pod["metadata"]["namespace"] = world.rng.choice(NAMESPACES)
