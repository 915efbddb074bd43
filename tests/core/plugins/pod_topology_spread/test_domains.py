"""Which nodes are counted, and when that is found out anew."""

from collections.abc import Callable
from typing import Any

import numpy as np

from asched.core.plugins.pod_topology_spread.domains import (
    Domains,
    DomainsKey,
    DomainsMemory,
    admission_of,
)
from asched.core.state.counters import CounterKey
from tests.topology_world import HOST, RACK, ZONE, World, a_node, a_pod


def a_world() -> World:
    return World(
        a_node("n0", "zone=a host=n0 disk=ssd"),
        a_node("n1", "zone=b host=n1", "gpu=yes:NoSchedule"),
        a_node("n2", "zone=a host=n2"),
        a_node("n3", "host=n3 disk=ssd"),
        *(a_pod(f"p{i}", "app=web", node=f"n{i % 4}") for i in range(8)),
    )


def domains(world: World, topology_key: str, *required: str, **spec: Any) -> Domains:
    cls = world.info(a_pod("new", **spec)).cls
    admission = admission_of(cls, honors_affinity=True, honors_taints=bool(spec.get("tolerations")))
    memory = DomainsMemory(world.cluster)
    memory.layout()
    return memory.get(DomainsKey(topology_key, frozenset(required), admission))


def counts(world: World, found: Domains) -> list[int]:
    everything = CounterKey((), counts_terminating=True)
    return [int(n) for n in found.counts(world.cluster.counter(everything))[1:]]


def test_every_node_with_the_key() -> None:
    world = a_world()
    found = domains(world, ZONE, ZONE)

    assert (found.is_whole, found.count, counts(world, found)) == (True, 2, [4, 2])
    assert found.least(found.counts(None)) == 0


def test_only_nodes_with_all_keys() -> None:
    world = a_world()
    found = domains(world, HOST, HOST, ZONE)

    assert (found.is_whole, found.count, counts(world, found)) == (False, 3, [2, 2, 2, 0])
    assert domains(world, ZONE, ZONE, HOST).is_whole
    assert domains(world, ZONE, ZONE, RACK).count == 0


def test_only_nodes_the_pod_may_go_to() -> None:
    world = a_world()
    found = domains(world, ZONE, ZONE, nodeSelector={"disk": "ssd"})

    assert (found.is_whole, found.count, counts(world, found)) == (False, 1, [2, 0])


def test_only_nodes_whose_taints_are_tolerated() -> None:
    world = a_world()
    other = [{"key": "other", "operator": "Exists"}]
    found = domains(world, ZONE, ZONE, tolerations=other)

    assert (found.count, counts(world, found)) == (1, [4, 0])
    assert domains(world, ZONE, ZONE, tolerations=[{"operator": "Exists"}]).is_whole


def test_the_layout_moves_with_labels_taints_and_nodes_alone() -> None:
    world = a_world()
    memory = DomainsMemory(world.cluster)
    seen = [memory.layout()]
    changes: tuple[Callable[[], None], ...] = (
        lambda: world.see(a_pod("more", "app=web", node="n0")),
        lambda: world.see(a_node("n0", "zone=b host=n0")),
        lambda: world.see(a_node("n0", "zone=b host=n0", "a=b:NoSchedule")),
        lambda: world.see(a_node("n9", "zone=c")),
        lambda: world.lose(world.nodes["n9"]),
    )
    for change in changes:
        change()
        seen.append(memory.layout())

    assert np.diff(seen).tolist() == [0, 1, 1, 1, 1]


def test_rows_that_carry_every_key() -> None:
    world = a_world()
    world.lose(world.nodes["n2"])
    memory = DomainsMemory(world.cluster)
    memory.layout()

    assert memory.complete(frozenset({ZONE, HOST})).tolist() == [True, True, False, False]
