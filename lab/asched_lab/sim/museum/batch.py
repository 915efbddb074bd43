"""Incidents with groups: gangs, volumes, devices."""

from collections.abc import Iterator
from typing import ClassVar

from asched_lab.sim.devices import CLASSES, GPU, Devices, devices_of, spec_of
from asched_lab.sim.faults import LostAnswers, SlowAnswers, StaleWatch
from asched_lab.sim.museum.incident import Do, Incident, Json, over
from asched_lab.sim.scenario import profile
from asched_lab.sim.scenarios.gangs import create, member, pod_group
from asched_lab.sim.steps import AddNodes, AddPods, DeletePods, RemoveNode, Step, Wait, remove
from asched_lab.sim.storage import Storage
from asched_lab.sim.world import World


def add_gang(world: World, name: str, count: int, cpu: str) -> None:
    """A group that starts whole or not at all, its objects in any order."""
    pods = [("pods", member(name, number, cpu)) for number in range(count)]
    create(world, [("podgroups", pod_group(name, count)), *pods])


class Incident16(Incident):
    """Gangs of which only one fits at a time, and single pods beside them."""

    what = "gangs held room that none of them could use, and everything else waited behind them"
    threads = "scheduler-plugins#429, #358; Koordinator#872; Volcano#5805, #3869; HAMi#1832"
    recovers_in_s = 15.0
    config: ClassVar[Json] = profile("GangScheduling")
    faults = (StaleWatch(lag_s_max=2.0), LostAnswers(rate=0.05))

    def build(self, world: World) -> None:
        AddNodes(count=1, cpu=(6,), pods=(20,)).do(world)
        AddNodes(count=3, cpu=(2,), pods=(20,)).do(world)
        world.run_for(2.0)

    def start(self, world: World) -> Iterator[Step]:
        add_gang(world, "whole", 3, "4")  # 4 CPU fit on one node only
        for name in ("first", "second"):
            add_gang(world, name, world.rng.randint(3, 4), "1500m")
        yield Wait(wait_s=5.0)
        for _ in range(6):
            yield AddPods(count=1, cpu=("100m",), wait_s=world.rng.uniform(0.0, 3.0))
            if world.rng.random() < 0.4:
                yield DeletePods(count=2, waiting_too=False)
        yield Wait(wait_s=5.0)  # events are late by two seconds, and an answer may be lost
        singles = [p for p in world.waiting() if "schedulingGroup" not in p["spec"]]
        assert len(singles) < 3, f"{len(singles)} single pods wait behind gangs"
        yield AddNodes(count=3, cpu=(16,), pods=(20,), wait_s=0.0)
        yield over(self, wait_s=40.0)

    def check_end(self, world: World) -> None:
        waiting = [p["metadata"]["name"] for p in world.waiting()]
        assert not waiting, f"there is room for all, and {waiting} wait"


class Incident18(Incident):
    """The process dies between the provisioning of a volume and the binding of its pod."""

    what = "a restart between provisioning and binding put two replicas' volumes on one node"
    threads = "kubernetes#126499, #108560, #128164"
    recovers_in_s = 30.0  # a provisioner that fails four times, with our backoff between
    faults = (SlowAnswers(seconds_max=0.3),)

    def build(self, world: World) -> None:
        self.storage = Storage(world)
        AddNodes(count=3, cpu=(4,), pods=(20,)).do(world)
        for node in world.node_names():
            for _ in range(2):
                self.storage.add_local_volume(node)
        world.run_for(2.0)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(3):
            yield AddPods(count=1, make=self._replica, wait_s=world.rng.uniform(0.0, 1.5))
            yield Do(name="the process dies", act=lambda world: world.restart(), wait_s=0.0)
            if world.waiting():  # else it died too late to matter
                yield over(self, wait_s=0.0)
            yield Wait(wait_s=20.0)

    def _replica(self, world: World, pod: Json) -> None:  # noqa: ARG002 - the signature of `make`
        """No two of them on one node."""
        self.storage.mount(pod, [pod["metadata"]["name"]])
        pod["metadata"]["labels"] = {"app": "db"}
        term = {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": {"app": "db"}},
        }
        pod["spec"]["affinity"] = {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        }


class WithDevices(Incident):
    """Base of incidents with devices: in the end every claim that could be served is."""

    devices: Devices

    def is_plain(self, pod: Json) -> bool:
        return not pod["spec"].get("resourceClaims")

    def check_end(self, world: World) -> None:  # noqa: ARG002 - `devices` has the world
        found = self.devices.could_be_served()
        assert not found, found[0]


class Incident20(WithDevices):
    """As many claims as devices, all at once, with late and unordered events of allocations."""

    what = "one device went to two claims, and a shared claim was tried millions of times"
    threads = "kubernetes PR 136269, #137617, #137897, #140053"
    recovers_in_s = 15.0
    faults = (StaleWatch(lag_s_max=2.0), LostAnswers(rate=0.05))

    def build(self, world: World) -> None:
        self.devices = Devices(world)
        for name in CLASSES:
            self.devices.add_class(name)
        AddNodes(count=3, cpu=(16,), pods=(60,)).do(world)
        for node in world.node_names():
            self.devices.publish(node)
        world.run_for(2.0)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(10):
            yield AddPods(count=3, cpu=("100m",), make=self._with_device, wait_s=0.2)
            if world.rng.random() < 0.3:
                self.devices.publish(world.rng.choice(world.node_names()))
            if world.rng.random() < 0.3:
                yield DeletePods(count=2)
        yield Wait(wait_s=5.0)
        yield over(self, wait_s=0.0)
        yield AddPods(count=1, cpu=("100m",))

    def _with_device(self, world: World, pod: Json) -> None:
        name = self.devices.add_claim(f"claim-{world.rng.randrange(20)}")
        pod["spec"]["resourceClaims"] = [{"name": "d", "resourceClaimName": name}]


class IncidentN5(WithDevices):
    """Another scheduler allocates devices to its own claims; these devices are not allocated again
    once they are seen, and are available when they are free again.
    """

    what = "one device went to claims of two schedulers"
    threads = "follows from two writers of different claims' statuses"
    recovers_in_s = 20.0
    faults = (StaleWatch(lag_s_max=1.0),)

    def build(self, world: World) -> None:
        self.devices = Devices(world)
        self.devices.add_class("gpu")
        AddNodes(count=2, cpu=(16,), pods=(60,)).do(world)
        for node in world.node_names():
            devices = [{"name": f"d{n}", "attributes": {"size": {"int": 1}}} for n in range(3)]
            pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
            spec = {"driver": GPU, "nodeName": node, "pool": pool, "devices": devices}
            made = {"metadata": {"name": f"{node}-gpus"}, "spec": spec}
            world.server.create("resourceslices", made)
        world.run_for(5.0)

    def start(self, world: World) -> Iterator[Step]:  # noqa: ARG002 - the protocol of scenarios
        for number in range(4):
            yield Do(name="theirs", act=lambda w, n=number: self._take(w, n), wait_s=3.0)  # type: ignore[misc]
            yield AddPods(count=1, cpu=("100m",), make=self._with_device, wait_s=5.0)
        yield Wait(wait_s=15.0)
        yield Do(name="theirs are free again", act=self._free, wait_s=0.0)
        yield over(self, wait_s=0.0)
        yield AddPods(count=1, cpu=("100m",), make=self._with_device)

    def _take(self, world: World, number: int) -> None:
        allocated = {device for claim in self.devices.claims() for device in devices_of(claim)}
        free = [
            (GPU, node, f"d{n}")
            for node in world.node_names()
            for n in range(3)
            if (GPU, node, f"d{n}") not in allocated
        ]
        if free:
            self.devices.hold(f"theirs-{number}", world.rng.choice(free))

    def _free(self, world: World) -> None:
        for claim in self.devices.claims():
            if claim["metadata"]["name"].startswith("theirs"):
                remove(world, "resourceclaims", claim["metadata"]["name"], "default")

    def _with_device(self, world: World, pod: Json) -> None:
        spec = spec_of(((("gpu", 1),),))
        name = f"ours-{next(world.numbers)}"
        metadata = {"name": name, "namespace": "default"}
        world.server.create("resourceclaims", {"metadata": metadata, "spec": spec})
        pod["spec"]["resourceClaims"] = [{"name": "d", "resourceClaimName": name}]


class IncidentN4(Incident):
    """Pods of two schedulers use the same volumes, and both choose nodes for them."""

    what = "two schedulers chose nodes for one claim; the pod waited for a volume on the wrong one"
    threads = "follows from two writers of volume.kubernetes.io/selected-node"
    recovers_in_s = 20.0
    faults = (StaleWatch(lag_s_max=2.0), SlowAnswers(seconds_max=0.3))

    def build(self, world: World) -> None:
        self.storage = Storage(world)
        AddNodes(count=3, cpu=(4,), pods=(20,)).do(world)
        for node in world.node_names():
            self.storage.add_local_volume(node)
        world.run_for(2.0)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(6):
            yield AddPods(count=1, make=self._with_claim, wait_s=world.rng.uniform(0.0, 0.2))
            if world.rng.random() < 0.5 and len(world.node_names()) > 1:
                yield RemoveNode(node=world.rng.choice(world.node_names()))
                yield AddNodes(count=1, cpu=(4,), pods=(20,))
                self.storage.add_local_volume(world.node_names()[-1])
        yield Wait(wait_s=10.0)
        yield over(self, wait_s=0.0)
        yield AddPods(count=1, cpu=("100m",))

    def _with_claim(self, world: World, pod: Json) -> None:  # noqa: ARG002 - the signature of `make`
        self.storage.mount(pod, [pod["metadata"]["name"]])
