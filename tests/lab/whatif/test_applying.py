"""A plan is applied whole, or nothing of it is left, whatever goes wrong on the way."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from asched.kube.session import ConnectionOptions, Session, connect
from asched_lab.apiserver.context import MODIFIED, Change
from asched_lab.apiserver.faults import Fault
from asched_lab.apiserver.resources import PODS
from asched_lab.apiserver.server import ApiServer
from asched_lab.whatif.applying import Applying
from asched_lab.whatif.engine import scheduler_of
from asched_lab.whatif.makers import GATE, NoPlanError
from asched_lab.whatif.plan import Plan, planned
from asched_lab.whatif.snapshot import listed
from tests.lab.whatif.clusters import a_deployment, a_node, a_pod

#: How long a plan waits for controllers that never come.
GIVES_UP_S = 3.0


class World:
    """An embedded server whose scheduler does as it is told: it binds what has no gate."""

    def __init__(self, server: ApiServer, session: Session) -> None:
        self.server = server
        self.session = session
        self.told: list[str] = []
        self.binds_to: str | None = None
        server.store.table(PODS.storage).listeners.append(self._see)

    def _see(self, change: Change) -> None:
        """Where the required node affinity says, as any scheduler does; or elsewhere."""
        pod = change.new.obj
        spec = pod["spec"]
        if change.type != MODIFIED or spec.get("schedulingGates") or spec.get("nodeName"):
            return
        if self.binds_to is None:
            return
        required = spec["affinity"]["nodeAffinity"]
        (term,) = required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        node = self.binds_to or term["matchFields"][0]["values"][0]
        self.server.ctx.put(PODS, {**pod, "spec": {**spec, "nodeName": node}})

    async def plan(self, *manifests: dict) -> Plan:
        snapshot = await listed(self.session)
        return planned(snapshot, manifests, scheduler_of(snapshot, manifests))[0]

    async def apply(self, plan: Plan) -> None:
        await Applying(self.session, plan, GIVES_UP_S, self.told.append).run()

    @property
    def pods(self) -> list[dict]:
        return self.server.list("pods")


@pytest_asyncio.fixture
async def world(tmp_path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as made:
        yield made


@asynccontextmanager
async def a_world(tmp_path, *, controllers: bool = False) -> AsyncIterator[World]:
    server = ApiServer(controllers=controllers)
    await server.start()
    for name in ("n1", "n2"):
        server.create("nodes", a_node(name))
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(server.kubeconfig(), encoding="utf-8")
    session = await connect(ConnectionOptions(kubeconfig=str(kubeconfig)))
    try:
        yield World(server, session)
    finally:
        await session.close()
        await server.stop()


async def test_pods_are_created_behind_a_gate_and_let_go_together(world: World) -> None:
    plan = await world.plan(*(a_pod(f"web-{number}", "1") for number in range(5)))
    world.binds_to = ""

    await world.apply(plan)

    assert {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in world.pods} == {
        pod["metadata"]["name"]: node for pod, node in plan.pods
    }
    assert {pod["metadata"]["annotations"][GATE] for pod in world.pods} == {plan.id}
    assert world.told == [
        "created 5 pods, held back",
        "all 5 pods have the nodes of the plan",
    ]


async def test_gates_of_others_stay(world: World) -> None:
    plan = await world.plan(a_pod("web"))
    ((pod, _),) = plan.pods
    pod["spec"]["schedulingGates"] = [{"name": "other"}]
    with pytest.raises(NoPlanError, match="1 of 1 pods have no node: default/web"):
        await world.apply(plan)
    assert world.pods == []


async def test_a_pod_that_is_not_placed_takes_all_back(world: World) -> None:
    plan = await world.plan(a_pod("web"), a_pod("more"))
    with pytest.raises(NoPlanError, match="2 of 2 pods have no node"):
        await world.apply(plan)
    assert world.pods == []


async def test_a_pod_that_is_put_elsewhere_takes_all_back(world: World) -> None:
    plan = await world.plan(a_pod("web"))
    world.binds_to = "n9"
    with pytest.raises(NoPlanError, match="default/web is on n9 instead of n"):
        await world.apply(plan)
    assert [pod for pod in world.pods if not pod["metadata"].get("deletionTimestamp")] == []


async def test_a_name_that_was_taken_meanwhile_is_not_touched(world: World) -> None:
    plan = await world.plan(a_pod("web"), a_pod("more"))
    world.server.create("pods", {"metadata": {"name": "more"}, "spec": a_pod("x")["spec"]})
    with pytest.raises(NoPlanError, match='Pod default/more: pods "more" already exists'):
        await world.apply(plan)
    assert [pod["metadata"]["name"] for pod in world.pods] == ["more"]


def a_template() -> dict:
    """Pods of a Job."""
    return {"spec": {**a_pod("t")["spec"], "restartPolicy": "Never"}}


@pytest.mark.parametrize(
    "manifest",
    [
        a_deployment("web", 3),
        {**a_deployment("web", 3), "kind": "ReplicaSet"},
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"parallelism": 3, "template": a_template()},
        },
    ],
    ids=["Deployment", "ReplicaSet", "Job"],
)
async def test_controllers_adopt_the_pods_of_a_plan(tmp_path, manifest: dict) -> None:
    async with a_world(tmp_path, controllers=True) as world:
        plan = await world.plan(manifest)
        world.binds_to = ""
        await world.apply(plan)
        assert {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in world.pods} == {
            pod["metadata"]["name"]: node for pod, node in plan.pods
        }
        for pod in world.pods:
            (owner,) = pod["metadata"]["ownerReferences"]
            assert owner["controller"]
        with pytest.raises(NoPlanError, match="web exists already"):
            await world.plan(manifest)


async def test_a_kind_without_a_controller_is_refused_at_once(tmp_path) -> None:
    async with a_world(tmp_path, controllers=True) as world:
        plan = await world.plan({**a_deployment("web", 3), "kind": "StatefulSet"})
        with pytest.raises(NoPlanError, match="runs no StatefulSet controller"):
            await world.apply(plan)
        assert world.pods == world.server.list("statefulsets") == []


async def test_pods_that_no_controller_adopts_are_deleted(world: World) -> None:
    """This server runs no controllers."""
    plan = await world.plan(a_deployment("web", 3))
    with pytest.raises(NoPlanError, match="3 of 3 pods have no controller"):
        await world.apply(plan)
    assert world.pods == []
    assert world.server.list("replicasets") == world.server.list("deployments") == []


async def test_an_answer_that_gets_lost_leaves_nothing_behind(world: World) -> None:
    """The request was carried out: what bears the plan's mark is found, and deleted."""
    plan = await world.plan(a_pod("web"), a_pod("more"))
    world.server.faults.add(Fault(method="POST", path="/pods", action="reset_after", count=1))
    with pytest.raises(NoPlanError, match="broke before the answer was complete"):
        await world.apply(plan)
    assert world.pods == []
