"""A life with a whole API server: the embedded one always, a real one where its binaries are."""

import asyncio
import json
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from msgspec.structs import replace

from asched.core.cluster.facts import (
    Bound,
    Done,
    Gone,
    Listed,
    ReadGone,
    ReadPlaced,
    Refused,
    Unknown,
)
from asched.core.framework.effects import (
    Bind,
    DeletePod,
    EmitEvent,
    Patch,
    PatchPodStatus,
    PodRef,
    ReadPod,
)
from asched.core.leader.election import CreateLease, LeaseRecord, Term, WriteLease
from asched.core.model.kinds import KINDS, NAMESPACE, POD, POD_GROUP
from asched.core.model.meta import ObjectReference
from asched.host.lease_client import LeaseClient
from asched.kube.dispatch import Dispatcher
from asched.kube.errors import Conflict, ConnectError
from asched.kube.session import ConnectionOptions, connect
from asched.kube.watch import Reflector
from asched_lab.apiserver.faults import Fault
from tests.support import HANG_S
from tests.unit.kube.real_servers import running


@pytest.fixture
async def embedded(tmp_path):
    async with running(tmp_path) as server:
        yield server


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.real)])
async def cluster(request, tmp_path):
    """A session with a server and a namespace of its own."""
    async with AsyncExitStack() as stack:
        if request.param == "embedded":
            path = (await stack.enter_async_context(running(tmp_path))).path
        else:
            path = request.getfixturevalue("real_kubeconfig")
        session = await connect(ConnectionOptions(kubeconfig=str(path)))
        stack.push_async_callback(session.close)
        made = Cluster(session)
        reply = await session.general.request(
            "POST", NAMESPACE.path, json.dumps({"metadata": {"generateName": "t-"}}).encode()
        )
        made.namespace = json.loads(reply.body)["metadata"]["name"]
        yield made


class Cluster:
    def __init__(self, session):
        self.session = session
        self.namespace = ""
        self.facts = []
        self.answers = {}
        self._news = asyncio.Event()

    def put(self, fact):
        self.facts.append(fact)
        self._news.set()

    def hear(self, answer):
        self.answers[answer.effect_id] = answer
        self._news.set()

    async def until(self, condition):
        async with asyncio.timeout(HANG_S):
            while not condition():
                self._news.clear()
                await self._news.wait()

    async def create_pods(self, *names):
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        for name in names:
            pod = {
                "metadata": {"name": name},
                "spec": {"containers": [{"name": "c", "image": "x"}]},
            }
            reply = await self.session.general.request("POST", path, json.dumps(pod).encode())
            assert reply.status == 201, reply

    @property
    def pods(self):
        """What the facts make of our pods."""
        known = {}
        for fact in self.facts:
            if fact.kind is not POD:
                continue
            if isinstance(fact, Listed):
                known = {}
                objects = fact.objects
            else:
                objects = (fact.obj,)
            for obj in objects:
                if obj.metadata.namespace != self.namespace:
                    continue
                if isinstance(fact, Gone):
                    known.pop(obj.metadata.name, None)
                else:
                    known[obj.metadata.name] = obj
        return known

    def ref(self, name, uid=None):
        return PodRef(
            namespace=self.namespace,
            name=name,
            uid=self.pods[name].uid if uid is None else uid,
        )

    @asynccontextmanager
    async def watching(self, *kinds):
        reflectors = [Reflector(kind, self.session.general, self.put) for kind in kinds]
        tasks = [asyncio.ensure_future(reflector.run()) for reflector in reflectors]
        async with asyncio.timeout(HANG_S):
            await asyncio.gather(*(reflector.synced.wait() for reflector in reflectors))
        try:
            yield reflectors
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    @asynccontextmanager
    async def dispatching(self):
        dispatcher = Dispatcher(self.session, self.hear)
        task = asyncio.ensure_future(dispatcher.run())
        await asyncio.sleep(0)
        try:
            yield dispatcher
        finally:
            await dispatcher.drain(5.0)
            await task

    async def answer(self, dispatcher, effect):
        dispatcher.submit(effect)
        await self.until(lambda: effect.id in self.answers)
        return self.answers[effect.id]


async def test_every_kind_is_listed(cluster):
    async with cluster.watching(*KINDS, POD_GROUP):
        listed = {fact.kind.name for fact in cluster.facts if isinstance(fact, Listed)}
    assert listed == {kind.name for kind in (*KINDS, POD_GROUP)}


async def test_pods_are_bound_and_the_watch_confirms_it(cluster):
    names = [f"p{number}" for number in range(20)]
    async with cluster.watching(POD), cluster.dispatching() as dispatcher:
        await cluster.create_pods(*names)
        await cluster.until(lambda: len(cluster.pods) == 20)
        for number, name in enumerate(names, start=1):
            dispatcher.submit(Bind(id=number, pod=cluster.ref(name), node="n0"))
        await cluster.until(lambda: len(cluster.answers) == 20)
        assert set(map(type, cluster.answers.values())) == {Bound}
        await cluster.until(
            lambda: all(pod.spec.node_name == "n0" for pod in cluster.pods.values())
        )
        assert cluster.pods["p0"].condition("PodScheduled").status == "True"


async def test_every_outcome_of_a_binding_is_told_apart(cluster):
    async with cluster.watching(POD), cluster.dispatching() as dispatcher:
        await cluster.create_pods("a", "b")
        await cluster.until(lambda: len(cluster.pods) == 2)
        a, b = cluster.ref("a"), cluster.ref("b")
        assert await cluster.answer(dispatcher, Bind(id=1, pod=a, node="n0")) == Bound(1)
        again = await cluster.answer(dispatcher, Bind(id=2, pod=a, node="n1"))
        assert (again.code, again.reason) == (409, "Conflict")
        assert 'already assigned to node "n0"' in again.message
        stale = cluster.ref("b", uid="00000000-0000-0000-0000-000000000000")
        wrong = await cluster.answer(dispatcher, Bind(id=3, pod=stale, node="n0"))
        assert (type(wrong), wrong.code) == (Refused, 409)
        missing = PodRef(namespace=cluster.namespace, name="zz", uid="x")
        gone = await cluster.answer(dispatcher, Bind(id=4, pod=missing, node="n0"))
        assert (gone.code, gone.reason) == (404, "NotFound")
        placed = await cluster.answer(dispatcher, ReadPod(id=5, pod=a))
        assert placed == ReadPlaced(5, "n0")
        assert await cluster.answer(dispatcher, ReadPod(id=6, pod=stale)) == ReadGone(6)
        pending = await cluster.answer(dispatcher, ReadPod(id=7, pod=b))
        assert type(pending).__name__ == "ReadPending"


async def test_conditions_events_and_evictions_arrive(cluster):
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1 nodes are available",
        "lastProbeTime": None,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": 1,
    }
    async with cluster.watching(POD), cluster.dispatching() as dispatcher:
        await cluster.create_pods("a")
        await cluster.until(lambda: "a" in cluster.pods)
        pod = cluster.ref("a")
        patch = PatchPodStatus(id=1, pod=pod, condition=condition, nominated_node_name="n9")
        assert await cluster.answer(dispatcher, patch) == Done(1)
        await cluster.until(lambda: cluster.pods["a"].status.nominated_node_name == "n9")
        assert cluster.pods["a"].condition("PodScheduled").message == "0/1 nodes are available"
        changed = {"type": "PodScheduled", "message": "other"}
        order = ("PodScheduled",)
        patch = PatchPodStatus(
            id=2, pod=pod, condition=changed, condition_types=order, nominated_node_name=""
        )
        assert await cluster.answer(dispatcher, patch) == Done(2)
        await cluster.until(lambda: cluster.pods["a"].status.nominated_node_name == "")
        found = cluster.pods["a"].condition("PodScheduled")
        assert (found.message, found.reason) == ("other", "Unschedulable")
        regarding = ObjectReference(
            api_version="v1", kind="Pod", namespace=pod.namespace, name="a", uid=pod.uid
        )
        event = EmitEvent(
            regarding=regarding,
            type="Warning",
            reason="FailedScheduling",
            action="Scheduling",
            note="0/1 nodes are available",
            reporting_controller="asched",
        )
        dispatcher.submit(event)
        patch = Patch(
            id=3,
            kind=POD,
            namespace=pod.namespace,
            name="a",
            body={"metadata": {"annotations": {"a": "b"}}},
        )
        done = await cluster.answer(dispatcher, patch)
        assert done.obj["metadata"]["annotations"] == {"a": "b"}
        dispatcher.submit(event)
        assert isinstance(await cluster.answer(dispatcher, DeletePod(id=4, pod=pod)), Done)
        await cluster.until(lambda: "a" not in cluster.pods)
    events = await cluster.session.get_as(
        f"/apis/events.k8s.io/v1/namespaces/{cluster.namespace}/events", dict
    )
    (stored,) = [e for e in events["items"] if e["reason"] == "FailedScheduling"]
    assert stored["series"]["count"] == 2
    assert stored["reportingController"] == "asched"


async def test_a_condition_does_not_land_on_a_pod_made_anew(cluster):
    async with cluster.watching(POD), cluster.dispatching() as dispatcher:
        await cluster.create_pods("a")
        await cluster.until(lambda: "a" in cluster.pods)
        old = replace(cluster.ref("a"), uid="00000000-0000-0000-0000-000000000000")
        condition = {"type": "PodScheduled", "status": "False", "message": "of the one before"}
        refused = await cluster.answer(
            dispatcher, PatchPodStatus(id=1, pod=old, condition=condition)
        )
        assert (type(refused), refused.code) == (Refused, 422)
        assert "metadata.uid" in refused.message
        own = PatchPodStatus(id=2, pod=cluster.ref("a"), nominated_node_name="n1")
        assert await cluster.answer(dispatcher, own) == Done(2)
        await cluster.until(lambda: cluster.pods["a"].status.nominated_node_name == "n1")
        assert cluster.pods["a"].condition("PodScheduled") is None


async def test_a_lease_is_guarded_by_its_version(cluster):
    leases = LeaseClient(cluster.session, cluster.namespace, "l", timeout_s=5.0)
    assert await leases.get() is None
    stamp = "2026-01-01T00:00:00.000000Z"
    record, term = LeaseRecord("a", 15, stamp, stamp), Term(0, ("asched",))
    first = await leases.create(CreateLease(record, term))
    second = await leases.update(WriteLease(first, replace(record, holder="b"), term))
    assert second["spec"]["holderIdentity"] == "b"
    assert Term.of(second) == term
    with pytest.raises(Conflict):
        await leases.update(WriteLease(first, record, term))
    assert await leases.get() == second


async def test_a_wrong_token_is_named(embedded, tmp_path):
    path = tmp_path / "wrong"
    path.write_text(embedded.kubeconfig().replace("secret", "wrong"))
    with pytest.raises(ConnectError, match="does not accept the credentials"):
        await connect(ConnectionOptions(kubeconfig=str(path)))


async def test_a_binding_whose_answer_is_lost_is_settled_by_reading(embedded):
    session = await connect(ConnectionOptions(kubeconfig=str(embedded.path)))
    cluster = Cluster(session)
    cluster.namespace = "default"
    async with cluster.watching(POD), cluster.dispatching() as dispatcher:
        await cluster.create_pods("a")
        await cluster.until(lambda: "a" in cluster.pods)
        pod = cluster.ref("a")
        embedded.faults.add(Fault("reset_after", path="/binding$", count=1))
        answer = await cluster.answer(dispatcher, Bind(id=1, pod=pod, node="n0"))
        assert isinstance(answer, Unknown)
        assert await cluster.answer(dispatcher, ReadPod(id=2, pod=pod)) == ReadPlaced(2, "n0")
    await session.close()
