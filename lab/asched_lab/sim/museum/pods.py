"""Incidents with pods: malformed, lost and outdated ones, and room that did not exist."""

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from asched.core.framework.effects import Bind
from asched_lab.apiserver.resources import PODS
from asched_lab.sim.faults import SlowAnswers, StaleWatch
from asched_lab.sim.museum.incident import Do, Incident, Json, break_watches, over
from asched_lab.sim.scenario import profile
from asched_lab.sim.steps import (
    AddNodes,
    AddPods,
    DeletePods,
    Rival,
    Step,
    Wait,
    cordon,
    end_pods,
    pod_manifest,
    remove,
    runs,
    wipe,
)
from asched_lab.sim.world import World

#: The label of a pod on which a plugin raises.
SORES: Final = ("error", "recursion", "division", "memory", "nonsense")


class Sore:
    """A filter that raises on some pods."""

    def filter(self, pod: Any, node: Any) -> Any:  # noqa: ARG002
        sore = pod.labels.get("sore", "")
        if sore == "error":
            raise RuntimeError("nil pointer")
        if sore == "recursion":
            return self.filter(pod, self)
        if sore == "division":
            return 1 // 0
        if sore == "memory":
            raise MemoryError
        return 7 if sore == "nonsense" else None


class Incident01(Incident):
    """A kubelet still counts a pod that has ended for a while, and refuses pods that use its room;
    their controller creates a new one each time.
    """

    what = "kubelets counted pods that had ended, and controllers made refused pods without end"
    threads = "kubernetes#104560, #106884, #115325, #106419"
    recovers_in_s = 40.0  # the longest time for which a refusal excludes the owner's pods

    def build(self, world: World) -> None:
        world.inhabitants.refuses = True
        world.inhabitants.holds_s = world.rng.uniform(3.0, 25.0)
        self.made_s: list[float] = []
        AddNodes(name="node-1", cpu=(4,), pods=(20,)).do(world)
        world.server.create("pods", pod_manifest("first", "4"))
        world.run_for(5.0)
        world.server.store.table(PODS.storage).listeners.append(
            lambda change: self._control(world, change.new.obj)
        )

    def start(self, world: World) -> Iterator[Step]:
        yield Do(name="first ends", act=_ends, wait_s=0.01)
        yield Do(name="its successor comes", act=self._make, wait_s=0.0)
        yield Wait(wait_s=world.inhabitants.holds_s)
        if world.waiting():  # else the successor is bound, and will be admitted
            yield over(self, wait_s=60.0)

    def _make(self, world: World) -> None:
        pod = pod_manifest(f"pod-{len(self.made_s)}", "4")
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web"}
        pod["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
        self.made_s.append(world.clock.now_s())
        world.server.create("pods", pod)

    def _control(self, world: World, pod: Json) -> None:
        """Replace a failed pod, once."""
        name = pod["metadata"]["name"]
        is_last = name == f"pod-{len(self.made_s) - 1}"
        if is_last and pod["status"].get("phase") == "Failed":
            world.clock.after(0.1, lambda: self._make(world))

    def check_end(self, world: World) -> None:
        assert any(runs(pod) for pod in world.pods()), "no pod of the owner runs"
        for at, begun_s in enumerate(self.made_s):
            within = sum(begun_s <= other_s < begun_s + 60 for other_s in self.made_s[at:])
            assert within <= 4, f"{within - 1} pods of one owner were refused within a minute"


def _ends(world: World) -> None:
    for pod in world.pods():
        world.server.ctx.put(PODS, {**pod, "status": {**pod["status"], "phase": "Succeeded"}})


class Incident02(Incident):
    """A pod on which a plugin raises is tried first, again and again; the other pods are bound all
    the same, and the pod has a condition.
    """

    what = "one pod crashed the scheduler again and again, and nothing else was scheduled"
    threads = "kubernetes#110726, #82796, #92050"
    recovers_in_s = 5.0
    plugins = (Sore,)
    config: ClassVar[Json] = profile("Sore")

    def build(self, world: World) -> None:
        AddNodes(count=3, cpu=(64,), pods=(110,)).do(world)
        world.run_for(1.0)

    def start(self, world: World) -> Iterator[Step]:
        yield AddPods(count=world.rng.randint(1, 5), make=_sore, wait_s=0.0)
        yield over(self, wait_s=0.0)  # it exists all the time, and must not matter
        for _ in range(6):
            yield AddPods(count=10, cpu=("100m",))
            if world.rng.random() < 0.3:
                yield Do(name="the process dies", act=lambda world: world.restart())
        yield Wait(wait_s=60.0)
        yield Do(name="the odd ones go", act=self._end_odd, wait_s=30.0)

    def _end_odd(self, world: World) -> None:
        for pod in world.waiting():
            assert "sore" in pod["metadata"]["labels"], f"{pod['metadata']['name']} waits, too"
            reasons = [c.get("reason") for c in pod["status"].get("conditions") or ()]
            assert "SchedulerError" in reasons, f"{pod['metadata']['name']} has {reasons}"
        end_pods(world, world.waiting())


def _sore(world: World, pod: Json) -> None:
    pod["metadata"]["labels"]["sore"] = world.rng.choice(SORES)


class Incident03(Incident):
    """Another scheduler binds to the same nodes, and its bindings are seen late; where both were
    too fast, the kubelet refuses a pod, and both see it.
    """

    what = "two schedulers filled one node, and the kubelet refused the later pods for good"
    threads = "kubernetes#72043, #60469, #98928; kube-batch#868; KAI-Scheduler#1454"
    recovers_in_s = 15.0
    faults = (StaleWatch(lag_s_max=5.0),)

    def build(self, world: World) -> None:
        world.inhabitants.refuses = True
        AddNodes(count=4, cpu=(4,), pods=(30,)).do(world)
        world.run_for(1.0)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(12):
            yield AddPods(count=world.rng.randint(1, 3), wait_s=world.rng.uniform(0.0, 0.3))
            yield Rival(count=world.rng.randint(1, 2), takes_ours=0.0)
            yield DeletePods(count=2)
        yield Wait(wait_s=10.0)
        yield AddNodes(count=1, cpu=(64,), pods=(110,), wait_s=8.0)
        yield over(self, wait_s=0.0)
        yield AddPods(count=2)


class Incident05(Incident):
    """Fifty pods run; the watch breaks, forty are deleted, twenty are created again under their
    names, and only the new list shows it.
    """

    what = "missed deletions left the cache full of pods that were long gone"
    threads = "kubernetes#69926, #85726, #124109, PR 106102"
    recovers_in_s = 10.0

    def build(self, world: World) -> None:
        AddNodes(count=5, cpu=(10,), pods=(60,)).do(world)
        for number in range(50):
            world.server.create("pods", pod_manifest(f"old-{number}", "1"))
        world.run_for(20.0)

    def start(self, world: World) -> Iterator[Step]:
        yield Do(name="cut off", act=lambda world: world.acting.cut_off(30.0), wait_s=0.5)
        gone = world.some(world.pods(), 40)
        yield Do(name="forty go", act=lambda world: _wipe(world, gone), wait_s=1.0)
        for pod in gone[: world.rng.randint(10, 20)]:
            yield AddPods(name=pod["metadata"]["name"], cpu=("1",), wait_s=0.0)
        for _ in range(15):
            yield AddPods(cpu=("1",), wait_s=0.0)
        yield Do(name="the server compacts its history", act=_forget, wait_s=30.0)
        yield over(self, wait_s=0.0)
        yield AddPods(count=1, cpu=("1",))


def _forget(world: World) -> None:
    """Watches from an earlier version get 410."""
    world.server.store.begin_history()


def _wipe(world: World, pods: list[Json]) -> None:
    """Delete pods at once."""
    for pod in pods:
        wipe(world, pod)


class Incident06(Incident):
    """Nominated pods or their nodes are deleted, or the room is taken by other pods: no stale
    nomination stays, and no pod waits behind one.
    """

    what = "a stale nomination blocked a node, or starved the pod it was made for"
    threads = "kubernetes#85677, #106780, #109236, #102339, #85447, #95752, #72124"
    recovers_in_s = 20.0
    faults = (StaleWatch(lag_s_max=2.0),)

    def build(self, world: World) -> None:
        AddNodes(count=2, cpu=(4,), pods=(20,)).do(world)
        AddPods(count=4, cpu=("2",)).do(world)
        world.run_for(10.0)

    def start(self, world: World) -> Iterator[Step]:
        yield AddPods(name="high", cpu=("3",), priority=10, wait_s=world.rng.uniform(0.0, 3.0))
        script = world.rng.randrange(5)
        if script == 0:  # the nominated node is deleted
            node = world.rng.choice(world.node_names())
            yield Do(name=f"{node} goes", act=lambda world: remove(world, "nodes", node))
        elif script == 1:  # a more important pod takes the room without an eviction
            yield AddPods(count=2, cpu=("1500m",), priority=100)
        elif script == 2:  # the pod is deleted while its attempt is under way
            yield Do(name="high goes", act=lambda world: _end(world, "high"), wait_s=0.0)
        elif script == 3:  # the node is cordoned
            node = world.rng.choice(world.node_names())
            yield Do(name=f"{node} closes", act=lambda w: cordon(w, node, unschedulable=True))
        else:  # the pod is created again under its name
            yield Do(name="high goes", act=lambda world: _end(world, "high"), wait_s=0.0)
            yield AddPods(name="high", cpu=("3",), priority=10)
        yield Wait(wait_s=40.0)
        yield AddNodes(count=1, cpu=(16,), pods=(60,), wait_s=3.0)
        yield over(self, wait_s=0.0)
        yield AddPods(count=2, cpu=("100m",))


def _end(world: World, name: str) -> None:
    end_pods(world, [pod for pod in world.pods() if pod["metadata"]["name"] == name])


class Incident07(Incident):
    """An event that would help a pod arrives during its attempt: before, during, after the
    decision.
    """

    what = "an event during an attempt was lost, and the pod slept for five minutes"
    threads = "kubernetes#73216, #72122, #72925; PR 120413, PR 120334"
    recovers_in_s = 12.0
    faults = (SlowAnswers(seconds_max=0.5), StaleWatch(lag_s_max=1.0))

    def build(self, world: World) -> None:
        AddNodes(count=1, cpu=(2,), pods=(20,)).do(world)
        AddPods(count=1, cpu=("2",)).do(world)
        world.run_for(5.0)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(8):
            yield AddPods(count=world.rng.randint(1, 3), wait_s=world.rng.uniform(0.0, 0.02))
            yield Do(name="room", act=_make_room, wait_s=world.rng.uniform(0.0, 15.0))
        yield Wait(wait_s=15.0)
        yield over(self, wait_s=0.0)
        yield AddNodes(cpu=(64,), pods=(110,), wait_s=0.0)
        yield AddPods(count=1)


def _make_room(world: World) -> None:
    if world.rng.random() < 0.5:
        AddNodes(count=1, cpu=(1,), pods=(3,)).do(world)
    else:
        end_pods(world, world.some(world.placed(), 1))


class Incident15(Incident):
    """A pod is deleted and created again under its name while its failure is handled."""

    what = "a pod was popped again before its first attempt was done, and was never seen again"
    threads = "kubernetes#138316, PR 138324; #139186, PR 139450"
    recovers_in_s = 15.0
    faults = (SlowAnswers(seconds_max=0.3), StaleWatch(lag_s_max=0.5))

    def build(self, world: World) -> None:
        AddNodes(count=1, cpu=(1,), pods=(5,)).do(world)
        world.run_for(1.0)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(30):
            yield AddPods(name="again", cpu=("4",), wait_s=world.rng.uniform(0.0, 0.05))
            yield Do(name="wiped", act=_wipe_waiting, wait_s=world.rng.uniform(0.0, 0.02))
        yield AddPods(name="again", cpu=("4",), wait_s=5.0)
        yield over(self, wait_s=0.0)
        yield AddNodes(count=1, cpu=(8,), pods=(10,))

    def counts(self, bind: Bind) -> bool:
        return bind.pod.name == "again"


def _wipe_waiting(world: World) -> None:
    _wipe(world, world.waiting())


class Incident19(Incident):
    """A node is deleted and another is created under its name, smaller or with other labels, while
    pods of the old one still exist.
    """

    what = "a node made anew under its name was taken for the old one"
    threads = "kubernetes#63262, #51313, #119967, #56261, PR 86919"
    recovers_in_s = 15.0
    faults = (StaleWatch(lag_s_max=1.0),)

    def build(self, world: World) -> None:
        for number in range(3):
            AddNodes(name=f"node-{number}", cpu=(4,), pods=(20,)).do(world)
        self._chosen: set[str] = set()  # uids of nodes at the time a pod was bound to them
        world.on_bound.append(lambda bind: self._choose(world, bind.node))
        AddPods(count=8).do(world)
        world.run_for(10.0)

    def is_checked(self, node: Json) -> bool:
        """Pods of the old node may exceed the new one; they are not moved."""
        return node["metadata"]["uid"] in self._chosen

    def _choose(self, world: World, name: str) -> None:
        node = world.server.get("nodes", "", name)
        if node is not None:
            self._chosen.add(node["metadata"]["uid"])

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(10):
            name = f"node-{world.rng.randrange(3)}"
            yield Do(
                name=f"{name} goes",
                act=lambda world, name=name: remove(world, "nodes", name),  # type: ignore[misc]
                wait_s=world.rng.uniform(0.0, 2.0),
            )
            yield AddPods(count=2, wait_s=world.rng.uniform(0.0, 1.0))
            yield AddNodes(name=name, cpu=(4, 8), pods=(20,))
            if world.rng.random() < 0.3:
                yield Do(name="streams break", act=break_watches)
        yield Wait(wait_s=30.0)
        yield over(self, wait_s=0.0)
        yield AddNodes(count=1, cpu=(32,), pods=(60,), wait_s=2.0)
        yield AddPods(count=1)
