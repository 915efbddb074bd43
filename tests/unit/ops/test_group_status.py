"""The status controller against an embedded API server: what it writes, when, and when not."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from asched.core.cluster.facts import Fact
from asched.core.config.args import CoschedulingArgs
from asched.core.model.kinds import COSCHEDULING_GROUP
from asched.kube.session import ConnectionOptions, Session, connect
from asched.kube.watch import Reflector
from asched.ops.group_status import GroupStatus
from asched_lab.apiserver.context import Options
from asched_lab.apiserver.resources import POD_GROUPS
from asched_lab.apiserver.server import ApiServer
from tests.support import HANG_S

GROUPS = "podgroups.scheduling.x-k8s.io"
MERGE = "application/merge-patch+json"


class World:
    """PodGroups and pods on a server without kubelets, and the controller beside them."""

    def __init__(self, server: ApiServer, session: Session) -> None:
        self.server = server
        self.session = session
        self.written: Counter[str] = Counter()
        self.may_act = True
        self.args = CoschedulingArgs()
        #: facts about groups that are late
        self.late: list[Fact] | None = None
        self.tasks: list[asyncio.Task[Any]] = []
        self.controller = GroupStatus(
            session,
            args=lambda: {"asched": self.args},
            may_act=lambda: self.may_act,
            spawn=lambda name, work: self.tasks.append(asyncio.create_task(work, name=name)),
            written=lambda phase: self.written.update((phase,)),
        )

    def group(self, name: str, minimum: int, namespace: str = "default", **spec: Any) -> None:
        manifest = {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"minMember": minimum, **spec},
        }
        self.server.create(GROUPS, manifest)

    def pod(self, name: str, group: str, namespace: str = "default") -> None:
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": "u"}
        metadata = {
            "name": name,
            "namespace": namespace,
            "labels": {"scheduling.x-k8s.io/pod-group": group},
            "ownerReferences": [owner],
        }
        spec = {"containers": [{"name": "c", "image": "i"}]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        self.server.create("pods", pod)

    async def tell(self, name: str, phase: str) -> None:
        """As the node's kubelet would."""
        body = json.dumps({"status": {"phase": phase}}).encode()
        path = f"/api/v1/namespaces/default/pods/{name}/status"
        reply = await self.session.general.request("PATCH", path, body, content_type=MERGE)
        assert reply.status == 200, reply.body

    def status(self, name: str, namespace: str = "default") -> dict[str, Any]:
        group = self.server.get(GROUPS, namespace, name)
        assert group is not None
        return group.get("status") or {}

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(HANG_S):
            while not holds():  # noqa: ASYNC110 - the controller does it when it likes
                await asyncio.sleep(0.01)

    async def phase(self, name: str, phase: str) -> None:
        await self.until(lambda: self.status(name).get("phase") == phase)

    def put(self, fact: Fact) -> None:
        if self.late is None:
            self.hear(fact)
        else:
            self.late.append(fact)

    def follow(self) -> None:
        """Begin to watch, and to write."""
        self.hear = self.controller.observing(lambda _: None)
        watch = Reflector(COSCHEDULING_GROUP, self.session.general, self.put)
        works = (watch.run(), self.controller.run())
        self.tasks += [asyncio.create_task(work) for work in works]


@asynccontextmanager
async def a_world(*, follows: bool = True) -> AsyncIterator[World]:
    server = ApiServer(kubelet=False, options=Options(alpha=POD_GROUPS))
    await server.start()
    session = await connect(ConnectionOptions(master=server.url))
    world = World(server, session)
    if follows:
        world.follow()
    try:
        yield world
    finally:
        for task in world.tasks:
            task.cancel()
        await asyncio.gather(*world.tasks, return_exceptions=True)
        await session.close()
        await server.stop()


async def test_a_group_is_told_its_phases_from_the_first_pod_to_the_last() -> None:
    async with a_world() as world:
        world.group("crew", 2)
        await world.phase("crew", "Pending")
        world.pod("a", "crew")
        world.pod("b", "crew")
        await world.phase("crew", "Scheduling")
        assert world.status("crew")["occupiedBy"] == "default/job"
        await world.tell("a", "Running")
        await world.until(lambda: world.status("crew").get("running") == 1)
        assert world.status("crew")["phase"] == "Scheduling"
        await world.tell("b", "Running")
        await world.phase("crew", "Running")
        await world.tell("a", "Succeeded")
        await world.until(lambda: world.status("crew").get("succeeded") == 1)
        await world.tell("b", "Succeeded")
        await world.phase("crew", "Finished")
        assert world.status("crew")["succeeded"] == 2
        assert world.status("crew").get("running", 0) == 0


async def test_a_failed_pod_that_no_other_watch_shows_fails_its_group() -> None:
    async with a_world() as world:
        world.group("crew", 1)
        world.pod("a", "crew")
        await world.tell("a", "Running")
        await world.phase("crew", "Running")
        await world.tell("a", "Failed")
        await world.phase("crew", "Failed")


async def test_pods_of_other_namespaces_do_not_count() -> None:
    async with a_world() as world:
        world.server.create("namespaces", {"metadata": {"name": "elsewhere"}})
        world.group("crew", 1)
        world.group("crew", 1, "elsewhere")
        world.pod("a", "crew", "elsewhere")
        await world.until(lambda: world.status("crew", "elsewhere").get("phase") == "Scheduling")
        assert world.status("crew")["phase"] == "Pending"


async def test_pods_that_go_bring_the_group_back() -> None:
    async with a_world() as world:
        world.group("crew", 1)
        world.pod("a", "crew")
        await world.phase("crew", "Scheduling")
        path = "/api/v1/namespaces/default/pods/a?gracePeriodSeconds=0"
        await world.session.general.request("DELETE", path)
        await world.phase("crew", "Pending")


async def test_nothing_is_written_twice_while_the_watch_is_behind() -> None:
    async with a_world() as world:
        for number in range(20):
            world.group(f"crew-{number}", 3)
        await world.until(lambda: world.written["Pending"] >= 20)
        # The watch shows the statuses before it shows this group, and groups are written in order.
        world.group("last", 3)
        await world.phase("last", "Pending")
        await world.until(lambda: world.written["Pending"] >= 21)
        assert world.written == {"Pending": 21}
