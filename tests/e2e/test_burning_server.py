"""When the API server burns, every pod is still bound exactly once: over sockets.

The same in virtual time, with a scheduler that dies as well: tests/test_every_pod_is_bound_once.py.
"""

from pathlib import Path

from asched_lab.apiserver.faults import Fault
from tests.e2e.inside import a_cluster
from tests.e2e.placements import assert_placed_once, is_told, settled

BINDING = r"/pods/[^/]+/binding$"
PODS = 40

FIRES = {
    "connections break before anything is written": Fault("reset_before", BINDING, count=25),
    "connections break after the binding was written": Fault("reset_after", BINDING, count=25),
    "one request in three breaks": Fault("reset_after", "/pods/", "POST", rate=0.3),
    "the server is overloaded": Fault("refuse", BINDING, count=6, retry_after_s=1),
    "the server fails": Fault(
        "refuse", BINDING, count=25, status=500, retry_after_s=None, text="etcd is away"
    ),
    "answers come later than anybody waits": Fault("delay", BINDING, count=20, seconds=2.5),
    "reading back fails as well": Fault("reset_before", r"/pods/[^/]+(/binding)?$", count=50),
    "watches of pods break": Fault("drop_watch", r"/pods$", count=5),
    "watches of pods expire": Fault("expire_watch", r"/pods$", count=5),
    "watches of everything expire": Fault("expire_watch", "", count=10),
}


async def test_all_of_it_at_once(tmp_path: Path) -> None:
    """1. Everything burns. 2. The fire ends. 3. Who fits is placed once, the rest is told why."""
    async with a_cluster(tmp_path, nodes=2, cpu="3") as cluster:
        for fault in FIRES.values():
            cluster.server.faults.add(
                Fault(
                    fault.action,
                    fault.path,
                    fault.method,
                    rate=0.15,
                    status=fault.status,
                    retry_after_s=fault.retry_after_s,
                    text=fault.text,
                    seconds=fault.seconds,
                )
            )
        cluster.add_pods(PODS, cpu="200m")
        await cluster.until_bound(15)
        cluster.server.faults.clear()
        await cluster.until_bound(30)
        await cluster.until(lambda: sum(map(is_told, cluster.pods())) == PODS - 30)

        await settled(cluster)
        assert_placed_once(cluster)
        assert len(cluster.placed()) == 30


async def test_places_of_lost_bindings_are_not_given_away(tmp_path: Path) -> None:
    """1. Two pods fit. 2. Both bindings are written and nobody hears of it. 3. The third waits."""
    async with a_cluster(tmp_path, nodes=1, cpu="1") as cluster:
        cluster.server.faults.add(Fault("reset_after", BINDING))
        cluster.add_pods(3, cpu="450m")
        await cluster.until(lambda: any(map(is_told, cluster.pods())))

        await settled(cluster)
        assert len(cluster.placed()) == 2
        assert_placed_once(cluster)
