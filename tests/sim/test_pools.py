"""Processes that share pools: the pools are spread, taken over, handed on, and sealed."""

from collections.abc import Callable

from asched import names
from asched.core.framework.effects import LANDS_WITHIN_S, Bind
from asched.core.leader.pools import lease_of_pool
from asched.kube.writes import bind as bind_request
from asched_lab.sim.leases import LEASE
from asched_lab.sim.process import LEASE_NAME, LEASE_S, Process
from asched_lab.sim.scenarios.pools import DEFAULT, POOLS, TEAM, Pools, labels_for
from asched_lab.sim.steps import pod_manifest, priority_class
from asched_lab.sim.wire import send
from asched_lab.sim.world import World

ALL = (*POOLS, DEFAULT)
#: A pool that is taken is used after its holder has seen the others' acknowledgements.
USED_S = 3.0


def shared(seed: int = 1) -> World:
    """A world in which each pool has a node and a namespace of its name."""
    world = World(seed, (), Pools.config, replicas=3)
    for pool in ALL:
        namespace = {"name": f"of-{pool}", "labels": labels_for(pool, TEAM)}
        world.server.create("namespaces", {"metadata": namespace})
        amounts = {"cpu": "4", "memory": "8Gi", "pods": "10"}
        labels = {"kubernetes.io/hostname": f"n-{pool}", **labels_for(pool, names.POOL_LABEL)}
        status = {"capacity": amounts, "allocatable": amounts}
        node = {"metadata": {"name": f"n-{pool}", "labels": labels}, "status": status}
        world.server.create("nodes", node)
    world.run_for(30.0)
    return world


def add(world: World, name: str) -> None:
    """A pod for each pool."""
    for pool in ALL:
        create(world, pool, name)


def create(world: World, pool: str, name: str, cpu: str = "100m", priority: int = 0) -> None:
    pod = pod_manifest(name, cpu)
    pod["metadata"]["namespace"] = f"of-{pool}"
    if priority:
        pod["spec"]["priorityClassName"] = priority_class(world, priority)
    world.server.create("pods", pod)


def bound(world: World, name: str) -> dict[str, str]:
    """By pool the node of its pod of this name."""
    found = {}
    for pool in ALL:
        pod = world.server.get("pods", f"of-{pool}", name)
        assert pod is not None
        if node := pod["spec"].get("nodeName"):
            found[pool] = node
    return found


def held(process: Process) -> set[str]:
    return {pool for pool in ALL if process.holds(pool)}


def until(world: World, condition: Callable[[], object], within_s: float) -> None:
    end_s = world.clock.now_s() + within_s
    while not condition():
        world.run_for(0.1)
        assert world.clock.now_s() < end_s, list(world.trace)[-10:]


def test_the_pools_are_spread_and_all_are_used() -> None:
    with shared() as world:
        assert sorted(len(held(process)) for process in world.processes) == [1, 1, 2]
        add(world, "p")
        world.run_for(1.0)
        assert bound(world, "p") == {pool: f"n-{pool}" for pool in ALL}
        assert not world.ledger.broken


def test_only_the_pools_of_a_replica_that_dies_wait() -> None:
    with shared() as world:
        before = list(world.processes)
        world.restart()
        (dead,) = set(before) - set(world.processes)
        lost = set(ALL) - {pool for process in world.processes for pool in held(process)}
        add(world, "p")
        world.run_for(1.0)
        assert bound(world, "p").keys() == set(ALL) - lost
        until(world, lambda: bound(world, "p").keys() == set(ALL), LEASE_S + 3.0 + USED_S)
        assert dead not in world.processes
        assert not world.ledger.broken


def test_a_replica_that_loses_one_pool_goes_on_with_the_others() -> None:
    with shared() as world:
        loser = max(world.processes, key=lambda process: len(held(process)))
        lost, *kept = sorted(held(loser))
        name = lease_of_pool(LEASE_NAME, lost)
        record = world.server.ctx.get(LEASE, "kube-system", name)
        assert record is not None
        spec = {**record.obj["spec"], "holderIdentity": "another"}
        world.server.ctx.put(LEASE, {**record.obj, "spec": spec})
        until(world, lambda: lost not in held(loser), LEASE_S)
        add(world, "p")
        world.run_for(1.0)
        assert bound(world, "p").keys() == set(ALL) - {lost}
        assert held(loser) == set(kept)
        until(world, lambda: bound(world, "p").keys() == set(ALL), LEASE_S + 3.0 + USED_S)
        assert loser in world.processes


def test_a_replica_that_stops_hands_its_pools_on() -> None:
    with shared() as world:
        leaver = max(world.processes, key=lambda process: len(held(process)))
        leaver.scheduler.stop()
        world.run_for(4.0)
        add(world, "p")
        world.run_for(USED_S)
        assert bound(world, "p").keys() == set(ALL)
        assert not held(leaver)
        assert not world.ledger.broken


def test_a_binding_of_a_dead_holder_that_arrives_late_is_refused() -> None:
    with shared() as world:
        sent: list[Bind] = []

        def see(process: Process, bind: Bind) -> None:
            world.on_sent.remove(see)
            sent.append(bind)
            world.clock.after(0.0, lambda: die(process))

        def die(process: Process) -> None:
            process.wire.close()
            world.starts_over(process, "it died")

        world.on_sent.append(see)
        create(world, "web", "late", "4")
        until(world, lambda: sent, 5.0)
        create(world, "web", "first", "4", priority=10)
        statuses: list[int] = []

        def arrive(_: Process, bind: Bind) -> None:
            assert bind.pod.name == "first"
            statuses.append(send(world.server.ctx, bind_request(sent[0])).status)

        world.on_sent.append(arrive)
        until(world, lambda: statuses, LANDS_WITHIN_S)
        assert statuses == [409]
        world.run_for(1.0)
        assert not world.ledger.broken
