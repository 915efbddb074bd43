"""Two replicas as processes, the leader killed at full load: nothing bound twice, nothing lost.

With the embedded API server always; with a real one where KUBEBUILDER_ASSETS names its binaries.
"""

import asyncio
import time
from collections import Counter

import pytest

from asched_lab.measure.replicas import Replicas
from tests.e2e.control_plane import SERVERS
from tests.e2e.inside import a_pod
from tests.e2e.replicated import (
    NODES,
    PODS,
    SHORT,
    a_node,
    objects,
    served,
    until,
)

NODES_COUNT = 40
PODS_COUNT = 600
#: The leader dies when so many are bound.
KILL_AT = 100
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_killed_leader_is_replaced_in_time_and_no_pod_suffers(kind, tmp_path):
    async with (
        served(kind, tmp_path) as kubeconfig,
        objects(kubeconfig) as cluster,
        Replicas("asched", kubeconfig, tmp_path, SHORT) as replicas,
    ):
        await cluster.create(NODES, (a_node(f"n{i}") for i in range(NODES_COUNT)))
        await replicas.until_ready()
        leader = await replicas.until_leading()
        first = await cluster.holder()
        pods = (a_pod(f"p{i}", "1m") for i in range(PODS_COUNT))
        creating = asyncio.ensure_future(cluster.create(PODS, pods))

        async def enough():
            placed = await cluster.placed()
            return placed if len(placed) >= KILL_AT else None

        await until(replicas, enough)
        leader.kill()
        killed_s = time.monotonic()
        at_death = await cluster.placed()

        async def is_taken_over():
            return await cluster.holder() not in ("", first)

        await until(replicas, is_taken_over)
        gap_s = time.monotonic() - killed_s
        await creating

        async def all_placed():
            placed = await cluster.placed()
            return placed if len(placed) == PODS_COUNT else None

        placed = await until(replicas, all_placed)

        assert gap_s < SHORT.lease_s + 3.0
        assert {name: placed[name] for name in at_death} == at_death
        assert max(Counter(placed.values()).values()) <= 60

        async def some_told():  # events are written last
            events = await cluster.items(EVENTS)
            return Counter(e["regarding"]["uid"] for e in events if e["reason"] == "Scheduled")

        told = await until(replicas, some_told)
        assert max(told.values()) == 1
        assert not any("Traceback" in replica.log for replica in replicas.all)
