"""Pods that wait for volumes and devices."""

from collections.abc import Iterator
from typing import ClassVar, Final

from asched_lab.sim.devices import CLASSES, EXTENDED, REQUESTS, Devices
from asched_lab.sim.faults import (
    Conflicts,
    Fault,
    LostAnswers,
    Restarts,
    ServerErrors,
    SlowAnswers,
    StaleWatch,
)
from asched_lab.sim.scenario import Scenario, profile
from asched_lab.sim.steps import (
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
from asched_lab.sim.storage import Storage
from asched_lab.sim.world import World

FAILING: Final = (
    StaleWatch(lag_s_max=5),
    LostAnswers(rate=0.1),
    ServerErrors(rate=0.05),
    Conflicts(rate=0.05),
    SlowAnswers(seconds_max=0.5),
)


class _Volumes(Scenario):
    """Base of scenarios with volumes."""

    storage: Storage

    def _with_claims(self, world: World, pod: Json) -> None:
        number = world.rng.choice((0, 1, 1, 2))
        self.storage.mount(pod, [f"{pod['metadata']['name']}-{n}" for n in range(number)])


class LateVolumes(_Volumes):
    """Each volume has one claim, pods are where their volumes are, though drivers fail, and what a
    process that died has written arrives late.
    """

    rounds = 20
    faults = (
        StaleWatch(lag_s_max=5),
        LostAnswers(rate=0.1),
        ServerErrors(rate=0.05),
        Restarts(every_s=30),
    )

    def setup(self, world: World) -> None:
        self.storage = Storage(world)
        AddNodes(count=world.rng.randint(2, 5), cpu=(4,)).do(world)
        for node in world.node_names():
            for _ in range(world.rng.randint(0, 3)):
                self.storage.add_local_volume(node)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(self.rounds):
            yield AddPods(count=world.rng.randint(1, 3), make=self._with_claims)
            roll = world.rng.random()
            if roll < 0.2:
                yield DeletePods(count=2)
            elif roll < 0.4:
                self.storage.add_local_volume(world.rng.choice(world.node_names()))


class SlowVolumes(_Volumes):
    """A driver takes twice the binding timeout, fails, and nodes are deleted meanwhile: each volume
    has one claim, pods are where their volumes are, and each pod is tried until it has them.
    """

    faults = FAILING
    settle_s = 400.0  # each pod may wait for its volume several times over
    config: ClassVar[Json] = profile(VolumeBinding={"bindTimeoutSeconds": 15})

    def setup(self, world: World) -> None:
        self.storage = Storage(world, making_s_max=30.0)
        AddNodes(count=world.rng.randint(2, 5), cpu=(2, 4)).do(world)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(self.rounds):
            yield AddPods(count=world.rng.randint(1, 3), make=self._with_claims)
            roll = world.rng.random()
            node = world.rng.choice(world.node_names())
            if roll < 0.25:
                yield DeletePods(count=2)
            elif roll < 0.45:
                self.storage.add_local_volume(node)
            elif roll < 0.55:
                yield Cordon(node=node, unschedulable=roll < 0.5)
            elif roll < 0.6 and len(world.node_names()) > 2:
                yield RemoveNode(node=node)
            elif roll < 0.65:
                yield AddNodes(cpu=(4,))


class BusyDevices(Scenario):
    """No device is in two claims, no pod is bound without its devices, and free devices are used.

    Claims are shared, made from templates or for extended resources; slices and classes are created
    and deleted; writes of claims conflict, fail and get lost.
    """

    rounds = 30
    faults: ClassVar[tuple[Fault, ...]] = FAILING

    def setup(self, world: World) -> None:
        self.devices = Devices(world)
        for name in CLASSES:
            self.devices.add_class(name)
        AddNodes(count=world.rng.randint(2, 5), cpu=(4,)).do(world)
        for node in world.node_names():
            self.devices.publish(node)

    def start(self, world: World) -> Iterator[Step]:
        for _ in range(self.rounds):
            yield AddPods(count=world.rng.randint(1, 3), make=self._with_devices)
            yield from self._something_else(world)
        for name in CLASSES:
            self.devices.add_class(name)

    def _something_else(self, world: World) -> Iterator[Step]:
        roll = world.rng.random()
        if roll < 0.25:
            yield DeletePods(count=2)
        elif roll < 0.35:
            yield FinishPods(count=2)
        elif roll < 0.5:
            self.devices.publish(world.rng.choice(world.node_names()))
        elif roll < 0.55:
            self.devices.withdraw(world.rng.choice(world.node_names()))
        elif roll < 0.6:
            self.devices.delete_claim(f"shared-{world.rng.randrange(4)}")
        elif roll < 0.65:
            remove(world, "deviceclasses", world.rng.choice(tuple(CLASSES)))
        elif roll < 0.75:
            self.devices.add_class(world.rng.choice(tuple(CLASSES)))
        elif roll < 0.8:
            yield AddNodes(cpu=(4,))
            self.devices.publish(world.node_names()[-1])

    def _with_devices(self, world: World, pod: Json) -> None:
        rng, spec = world.rng, pod["spec"]
        if rng.random() < 0.15:
            resources = spec["containers"][0]["resources"]
            resources["requests"] = {**resources["requests"], EXTENDED: "1"}
            resources["limits"] = {EXTENDED: "1"}
            return
        references = []
        for number in range(rng.choice((0, 1, 1, 1, 2))):
            if rng.random() < 0.4:
                name = self.devices.add_claim(f"shared-{rng.randrange(4)}")
                references.append({"name": f"d{number}", "resourceClaimName": name})
            else:
                name = f"request-{rng.randrange(len(REQUESTS))}"
                references.append({"name": f"d{number}", "resourceClaimTemplateName": name})
        if references:
            spec["resourceClaims"] = references

    def is_plain(self, pod: Json) -> bool:
        return not pod["spec"].get("resourceClaims")

    def check(self, world: World) -> None:  # noqa: ARG002 - `devices` has the world
        found = self.devices.could_be_served()
        assert not found, found[0]


class InheritedDevices(BusyDevices):
    """The same, and the process dies: what it had allocated or was writing is its successor's."""

    faults: ClassVar[tuple[Fault, ...]] = (*FAILING, Restarts(every_s=20))
