"""Which pods a run has placed, and how often."""

import asyncio

from asched.core.cluster import audit
from tests.e2e.inside import Cluster
from tests.support import HANG_S


def is_told(pod: dict) -> bool:
    """Whether the pod says that it cannot be scheduled."""
    return any(
        c["type"] == "PodScheduled" and c["status"] == "False" and c["reason"] == "Unschedulable"
        for c in pod["status"].get("conditions") or ()
    )


def assert_placed_once(cluster: Cluster) -> None:
    assert set(cluster.bindings.values()) == {1}
    assert cluster.broken_rules() == []
    assert not any(map(is_told, cluster.placed())), "a bound pod says that it cannot be scheduled"
    assert audit.recount(cluster.scheduler.machine.context.cluster) == []


async def settled(cluster: Cluster) -> None:
    """Wait until the scheduler knows what the server knows, and nothing is under way."""
    machine = cluster.scheduler.machine
    cluster.server.faults.clear()
    async with asyncio.timeout(HANG_S):
        while True:
            known = machine.context.cluster
            assumed = any(info.assumed for info in known.placed.values())
            seen = {uid for uid, info in known.placed.items() if not info.assumed}
            theirs = {pod["metadata"]["uid"] for pod in cluster.placed()}
            if machine.is_idle and not assumed and seen == theirs:
                return
            await asyncio.sleep(0.02)
