"""Changes for gangs and equal pods, and budgets in their way: judged by dividing room by size."""

import random
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from asched.core.cluster.facts import Seen
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, POD, POD_DISRUPTION_BUDGET
from asched.insight.explain.changes import TAKES_MAX, changes
from asched.insight.explain.suggestions import SuggestedChange
from asched_lab.sim.checker import amount
from tests.playbook import Play

Json = dict[str, Any]
PRIORITIES = (0, 5, 10)
OWN_PRIORITY = 100
NODE_MILLIS_MAX = 8_000
PODS_MAX = 110


def a_node(name: str, cpu: int, *, is_tainted: bool) -> Json:
    taints = [{"key": "team", "value": "a", "effect": "NoSchedule"}] if is_tainted else []
    return {
        "metadata": {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {"taints": taints},
        "status": {"allocatable": {"cpu": f"{cpu}m", "memory": "64Gi", "pods": str(PODS_MAX)}},
    }


def a_pod(
    name: str, cpu: int, node: str = "", priority: int = OWN_PRIORITY, app: str = "w"
) -> Json:
    container = {"name": "main", "resources": {"requests": {"cpu": f"{cpu}m"}}}
    spec: Json = {"schedulerName": "default-scheduler", "containers": [container]}
    spec |= {"priority": priority, **({"nodeName": node} if node else {})}
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": {"app": app}}
    return {"metadata": metadata, "spec": spec}


class World:
    """Nodes with pods of some apps, budgets of these, and equal pods that wait. In milli-CPU."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(seed)
        self.cpu = {
            f"n{n}": rng.randrange(500, NODE_MILLIS_MAX, 250) for n in range(rng.randint(1, 4))
        }
        self.tainted = {name for name in self.cpu if rng.random() < 0.25}
        self.placed: list[Json] = []
        self.used: Counter[str] = Counter()
        self.pods: Counter[str] = Counter()
        for number in range(rng.randint(0, 10)):
            node, cpu = rng.choice(sorted(self.cpu)), rng.choice((250, 500, 1000))
            if self.used[node] + cpu <= self.cpu[node]:
                priority, app = rng.choice(PRIORITIES), rng.choice("xyz")
                self.placed.append(a_pod(f"p{number}", cpu, node, priority, app))
                self.used[node] += cpu
                self.pods[node] += 1
        self.allowed = {app: rng.randint(0, 2) for app in "xy" if rng.random() < 0.7}
        self.size = rng.choice((750, 1500, 2000, 3000, 4500))
        self.count = rng.randint(1, 12)
        self.play = Play()
        self.play.machine.is_active = False
        nodes = (a_node(n, c, is_tainted=n in self.tainted) for n, c in self.cpu.items())
        kinds = ((NODE, nodes), (POD, self.placed), (POD_DISRUPTION_BUDGET, self.budgets()))
        self.play.turn(
            *(Seen(kind, decode(kind.record, o)) for kind, found in kinds for o in found)
        )

    def budgets(self) -> Iterable[Json]:
        for app, allowed in self.allowed.items():
            yield {
                "metadata": {"name": f"of-{app}", "namespace": "default", "uid": app},
                "spec": {"selector": {"matchLabels": {"app": app}}},
                "status": {"disruptionsAllowed": allowed, "expectedPods": 9, "currentHealthy": 9},
            }

    def changes(self, needed: int) -> list[SuggestedChange]:
        context = self.play.machine.context
        pods = [decode(POD.record, a_pod(f"w{n}", self.size)) for n in range(self.count)]
        runner = context.runners["default-scheduler"]
        return changes(runner, context.nominator, pods[0], pods[1:], needed)

    # --- the slow reading ------------------------------------------------------------------------

    def free(self, name: str) -> int:
        return self.cpu[name] - self.used[name]

    def takes(
        self, size: Fraction | int, rooms: Iterable[int] = (), *, tolerates: bool = False
    ) -> int:
        """How many pods of a size find room, with rooms beside those of the nodes."""
        open_to = (name for name in self.cpu if tolerates or name not in self.tainted)
        here = ((self.free(name), PODS_MAX - self.pods[name]) for name in open_to)
        more = ((room, PODS_MAX) for room in rooms)
        return sum(min(int(room // size) if size else most, most) for room, most in (*here, *more))

    def leaving(self, node: str, level: int) -> list[Json]:
        return [
            pod
            for pod in self.placed
            if pod["spec"]["nodeName"] == node and pod["spec"]["priority"] <= level
        ]

    def fits_without(self, node: str, level: int) -> bool:
        gone = sum(amount(millis(pod)) for pod in self.leaving(node, level))
        return node not in self.tainted and self.free(node) + int(gone * 1000) >= self.size

    def broken(self, node: str, level: int) -> list[str]:
        apps = Counter(pod["metadata"]["labels"]["app"] for pod in self.leaving(node, level))
        return sorted(f"default/of-{app}" for app, n in self.allowed.items() if apps[app] > n)


def millis(pod: Json) -> str:
    cpu: str = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    return cpu


def judge_toleration(world: World, change: SuggestedChange, needed: int) -> int:
    assert world.takes(world.size) < needed
    found = world.takes(world.size, tolerates=True)
    assert found >= needed
    return found


def judge_request(world: World, change: SuggestedChange, needed: int) -> int:
    asked = amount(change.details["to"]) * 1000
    found = world.takes(asked)
    assert found >= needed
    assert world.takes(asked + 1) < needed, "less of less would do"
    return found


def judge_node(world: World, change: SuggestedChange, needed: int) -> int:
    like, count = world.cpu[change.details["like"]], change.details["count"]
    assert change.details["like"] not in world.tainted
    found = world.takes(world.size, [like] * count)
    assert found >= needed
    assert world.takes(world.size, [like] * (count - 1)) < needed
    for name, cpu in world.cpu.items():
        if name not in world.tainted and world.size <= cpu < like:
            assert world.takes(world.size, [cpu] * needed) < needed, "a smaller one would do"
    return found


def judge_eviction(world: World, change: SuggestedChange, needed: int) -> int:
    node, level = change.details["node"], change.details["priority"]
    assert world.fits_without(node, level)
    assert change.details["budgets"] == world.broken(node, level)
    lower = [one for one in PRIORITIES if one < level]
    assert not [(n, one) for n in world.cpu for one in lower if world.fits_without(n, one)]
    others = [n for n in world.cpu if world.fits_without(n, level) and world.leaving(n, level)]
    assert not world.broken(node, level) or all(world.broken(n, level) for n in others)
    fewest = [n for n in others if bool(world.broken(n, level)) == bool(world.broken(node, level))]
    assert len(world.leaving(node, level)) == min(len(world.leaving(n, level)) for n in fewest)
    gone = sum(int(amount(millis(pod)) * 1000) for pod in world.leaving(node, level))
    rest = sum(
        world.free(name) // world.size
        for name in world.cpu
        if name not in world.tainted and name != node
    )
    return rest + (world.free(node) + gone) // world.size


JUDGES = {
    "toleration": judge_toleration,
    "request": judge_request,
    "node": judge_node,
    "eviction": judge_eviction,
}


def judged(world: World, needed: int) -> list[str]:
    told = world.changes(needed)
    for change in told:
        takes = JUDGES[change.kind](world, change, needed)
        if world.count > 1:
            assert change.of == min(world.count, TAKES_MAX + 1)
            assert change.takes == min(takes, change.of), change
    kinds = [change.kind for change in told]
    if world.takes(world.size, tolerates=True) >= needed > world.takes(world.size):
        assert "toleration" in kinds
    if needed > world.takes(world.size) and world.takes(Fraction(1, 1000)) >= needed:
        assert "request" in kinds
    return kinds


def test_equal_pods_are_told_how_many_of_them_each_change_helps() -> None:
    kinds: Counter[str] = Counter()
    budgets = 0
    for seed in range(80):
        world = World(seed)
        if world.takes(world.size):
            assert world.changes(1) == []
            continue
        kinds.update(judged(world, 1))
        budgets += any(c.details.get("budgets") for c in world.changes(1))
    assert min(kinds[kind] for kind in JUDGES) > 2, kinds
    assert budgets > 1


def test_a_gang_is_told_of_the_smallest_change_with_which_enough_of_it_fit() -> None:
    kinds: Counter[str] = Counter()
    for seed in range(1000, 1080):
        world = World(seed)
        needed = world.rng.randint(1, world.count)
        if needed == 1 or world.takes(world.size) >= needed:
            continue
        kinds.update(judged(world, needed))
    assert kinds["eviction"] == 0
    assert min(kinds[kind] for kind in ("toleration", "request", "node")) > 2, kinds
