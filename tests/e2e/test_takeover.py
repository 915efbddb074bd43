"""A leader is killed while its bindings are on their way, or while pods wait: its successor
overcommits no node, and tries pods in the order of the queue.

With the embedded API server always; with a real one where KUBEBUILDER_ASSETS names its binaries.
"""

import asyncio
import signal

import pytest

from asched_lab.measure.late_proxy import BINDING, STATUS
from asched_lab.measure.replicas import Replicas
from tests.e2e.control_plane import SERVERS
from tests.e2e.inside import a_pod
from tests.e2e.replicated import (
    CLASSES,
    NODES,
    PODS,
    SHORT,
    a_node,
    objects,
    served,
    until,
)

HIGH = {"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"}


class World:
    """A server, two replicas, and what is done with them."""

    def __init__(self, cluster, replicas):
        self.cluster = cluster
        self.replicas = replicas
        self.arrives = {}

    @property
    def late(self):
        """Requests that are held, or were."""
        return [one for replica in self.replicas.all for one in replica.proxy.late]

    def hold(self, replica, ending):
        """Its requests with such a path arrive when `deliver` names their pods."""

        def hold(path):
            if not path.endswith(ending):
                return None
            return self.arrives.setdefault(path.split("/")[-2], asyncio.Event()).wait()

        replica.proxy.hold = hold

    async def until_held(self, names, ending=BINDING):
        """Wait until such requests about these pods are on their way."""

        async def are_sent():
            return set(names) <= {one.pod for one in self.late if one.path.endswith(ending)}

        await until(self.replicas, are_sent)

    async def deliver(self, names):
        """Bindings arrive in this order, one after the other; returns the server's answers."""
        for name in names:
            self.arrives[name].set()
            await until(self.replicas, lambda name=name: self._answer(name))
        return [await self._answer(name) for name in names]

    async def _answer(self, name):
        return next(
            one.status for one in self.late if one.pod == name and one.path.endswith(BINDING)
        )

    async def until_placed(self, *, count):
        async def are_placed():
            return len(await self.cluster.placed()) >= count

        await until(self.replicas, are_placed)

    async def until_refused(self, names):
        """Wait until these pods have a condition that says why they have no node."""

        async def are_refused():
            pods = await self.cluster.items(PODS)
            refused = {
                pod["metadata"]["name"]
                for pod in pods
                for condition in pod["status"].get("conditions") or ()
                if condition["type"] == "PodScheduled" and condition["status"] == "False"
            }
            return set(names) <= refused

        await until(self.replicas, are_refused)


@pytest.fixture(params=SERVERS)
async def world(request, tmp_path):
    async with (
        served(request.param, tmp_path) as kubeconfig,
        objects(kubeconfig) as cluster,
        Replicas("asched", kubeconfig, tmp_path, SHORT) as replicas,
    ):
        await cluster.create(CLASSES, [HIGH])
        await replicas.until_ready()
        yield World(cluster, replicas)


async def leader_dies_with_bindings_under_way(world, names):
    """A leader binds these pods; it is killed before the server has received the bindings."""
    leader = await world.replicas.until_leading()
    world.hold(leader, BINDING)
    await world.cluster.create(PODS, (a_pod(name, "1") for name in names))
    await world.until_held(names)
    leader.kill()
    leader.proxy.hold = lambda _path: None


async def test_a_late_binding_of_a_killed_leader_does_not_overcommit_a_node(world):
    await world.cluster.create(NODES, [a_node("n1", cpu="1")])
    await leader_dies_with_bindings_under_way(world, ["late"])
    rival = a_pod("rival", "1", priorityClassName="high")
    await world.cluster.create(PODS, [rival])

    await world.until_placed(count=1)
    answers = await world.deliver(["late"])

    assert await world.cluster.placed() == {"rival": "n1"}
    assert answers == [409]


async def test_a_successor_that_ends_before_it_has_sealed_does_not_hand_the_lease_on(world):
    await world.cluster.create(NODES, [a_node("n1", cpu="1")])
    leader = await world.replicas.until_leading()
    (successor,) = (replica for replica in world.replicas.all if replica is not leader)
    world.hold(successor, STATUS)
    await leader_dies_with_bindings_under_way(world, ["late"])
    await world.until_held(["late"], STATUS)
    await world.replicas.until_ready()
    successor.signal(signal.SIGTERM)
    rival = a_pod("rival", "1", priorityClassName="high")
    await world.cluster.create(PODS, [rival])

    await world.until_placed(count=1)
    answers = await world.deliver(["late"])

    assert await world.cluster.placed() == {"rival": "n1"}
    assert answers == [409]


async def test_late_bindings_in_another_order_count_once_or_not_at_all(world):
    """One arrives before the successor leads, the others after it has filled the node."""
    await world.cluster.create(NODES, [a_node("n1", cpu="3")])
    names = [f"late-{number}" for number in range(3)]
    await leader_dies_with_bindings_under_way(world, names)
    rivals = [a_pod(f"rival-{number}", "1", priorityClassName="high") for number in range(3)]
    answers = await world.deliver(["late-2"])
    await world.cluster.create(PODS, rivals)

    await world.until_placed(count=3)
    answers += await world.deliver(["late-1", "late-0"])

    placed = set(await world.cluster.placed())
    assert (len(placed), placed & set(names)) == (3, {"late-2"})
    assert answers == [201, 409, 409]


async def test_a_successor_tries_pods_in_the_order_of_their_priorities(world):
    leader = await world.replicas.until_leading()
    low = [f"low-{number}" for number in range(5)]
    high = [f"high-{number}" for number in range(3)]
    await world.cluster.create(PODS, (a_pod(name, "1") for name in low))
    await world.cluster.create(PODS, (a_pod(name, "1", priorityClassName="high") for name in high))
    await world.until_refused(low + high)
    leader.kill()
    await world.cluster.create(NODES, [a_node("n1", pods="3")])

    await world.until_placed(count=3)

    assert set(await world.cluster.placed()) == set(high)
