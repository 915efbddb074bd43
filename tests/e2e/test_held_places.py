"""500 requests for places on a cluster in fragments, the scheduler killed in the middle of it.

What is checked is read off the API alone, at each of its versions: places that were promised and
not taken, and pods that are bound, never exceed a node.
"""

import asyncio
import json
import logging
import random
import signal
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
import yaml

from asched.batch.provisioning.requests import read
from asched.core.model.timestamp import microseconds
from asched_lab.apiserver.context import Options
from asched_lab.apiserver.resources import REQUESTS
from asched_lab.apiserver.server import ApiServer
from tests.e2e.control_plane import ControlPlane
from tests.e2e.inside import a_node
from tests.e2e.outside import ROOT, a_process
from tests.lab.apiserver.client import Client
from tests.support import HANG_S

Json = dict[str, Any]
log = logging.getLogger(__name__)

CONSUMES: Final = "autoscaling.x-k8s.io/consume-provisioning-request"
PATHS: Final = {
    "pods": "/api/v1/namespaces/default/pods",
    "podtemplates": "/api/v1/namespaces/default/podtemplates",
    "requests": "/apis/autoscaling.x-k8s.io/v1/namespaces/default/provisioningrequests",
}
CPUS: Final = (1, 2, 3)
NODE_CPU: Final = 16
POLL_S: Final = 0.1
#: A condition's time has whole seconds.
LATE_S: Final = 1.0


class Record:
    """All versions of pods and requests, as two watches tell them."""

    def __init__(self, client: Client, fillers: list[Json]) -> None:
        self._client = client
        self._fillers = fillers
        #: (version, seconds since 1970 when it was heard, type, kind, object)
        self.events: list[tuple[int, float, str, str, Json]] = []
        self.requests: dict[str, Json] = {}
        self.pods: dict[str, Json] = {}

    async def watch(self, kind: str, version: str) -> None:
        """Until cancelled; every version after this one."""
        known = self.pods if kind == "pods" else self.requests
        while True:
            query = {"watch": "1", "resourceVersion": version, "timeoutSeconds": "600"}
            async for line in self._lines(PATHS[kind], query):
                event = json.loads(line)
                obj = event["object"]
                assert event["type"] != "ERROR", obj
                metadata = obj["metadata"]
                version = metadata["resourceVersion"]
                self.events.append((int(version), time.time(), event["type"], kind, obj))
                if event["type"] == "DELETED":
                    known.pop(metadata["name"], None)
                else:
                    known[metadata["name"]] = obj

    async def _lines(self, path: str, query: Json) -> AsyncIterator[bytes]:
        url, none = self._client.url + path, aiohttp.ClientTimeout()
        async with self._client.session.get(url, params=query, timeout=none) as answer:
            async for line in answer.content:
                yield line

    def judged(self) -> None:
        """No version of the cluster had more promised and bound on a node than there is."""
        bound: dict[str, Json] = {pod["metadata"]["name"]: pod for pod in self._fillers}
        held: dict[str, Json] = {}
        for version, heard_s, type_, kind, obj in sorted(self.events, key=lambda e: e[0]):
            known = bound if kind == "pods" else held
            known.pop(obj["metadata"]["name"], None)
            if type_ != "DELETED" and (kind == "requests" or obj["spec"].get("nodeName")):
                known[obj["metadata"]["name"]] = obj
            used = in_use(bound.values(), held.values(), heard_s)
            over = {node: cpu for node, cpu in used.items() if cpu > NODE_CPU}
            assert not over, f"version {version}, {obj['metadata']['name']}: {over}"


def in_use(bound: Any, requests: Any, now_s: float) -> Counter[str]:
    """CPUs by node: of bound pods, and of places that none of them has."""
    used: Counter[str] = Counter()
    taken: dict[str, Counter[tuple[int, str]]] = defaultdict(Counter)
    for pod in bound:
        node, cpu = pod["spec"]["nodeName"], cpu_of(pod)
        used[node] += cpu
        name = pod["metadata"].get("annotations", {}).get(CONSUMES)
        if name:
            taken[name][cpu, node] += 1
    for request in requests:
        for cpu, node, count in promised(request, now_s):
            used[node] += cpu * max(count - taken[request["metadata"]["name"]][cpu, node], 0)
    return used


def promised(request: Json, now_s: float) -> list[tuple[int, str, int]]:
    """(CPUs, node, how many) of a request whose time is not up."""
    found = read(request.get("status", {}).get("provisioningClassDetails"))
    if found is None or says(request, "Provisioned") != "True" or is_over(request):
        return []
    places, until_s = found
    if until_s <= now_s:
        return []
    sets = request["spec"]["podSets"]
    return [(int(sets[p.pod_set]["podTemplateRef"]["name"][3:]), p.node, p.times) for p in places]


def says(request: Json, type_: str) -> str:
    conditions = request.get("status", {}).get("conditions", ())
    return next((str(c["status"]) for c in conditions if c["type"] == type_), "")


def is_over(request: Json) -> bool:
    return any(says(request, t) == "True" for t in ("Failed", "BookingExpired", "CapacityRevoked"))


def cpu_of(pod: Json) -> int:
    return int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])


def spec_of(cpu: int, **more: Any) -> Json:
    resources = {"requests": {"cpu": str(cpu)}}
    container = {"name": "main", "image": "app", "resources": resources}
    return {"containers": [container], "schedulerName": "asched", **more}


class Trial:
    """Requests come and go, with pods that consume them and some that do not."""

    def __init__(self, client: Client, nodes: int, requests: int, seed: int = 7) -> None:
        self.client = client
        self.rng = random.Random(seed)
        self.nodes, self.count = nodes, requests
        self.fillers: list[Json] = []

    async def made(self, kind: str, obj: Json) -> None:
        async with asyncio.timeout(HANG_S):
            while True:
                status, answer = await self.client.post(PATHS[kind], obj)
                if status == 201:
                    return
                assert status in (403, 404, 429), answer  # just installed, or not ready yet
                await asyncio.sleep(POLL_S)

    async def prepare(self) -> None:
        """30 % of the CPUs are in use, in pieces."""
        for number in range(self.nodes):
            node = a_node(f"node-{number}", cpu=str(NODE_CPU))
            status, answer = await self.client.post("/api/v1/nodes", node)
            assert status == 201, answer
        left = int(0.3 * self.nodes * NODE_CPU)
        while left > 0:
            node, cpu = f"node-{self.rng.randrange(self.nodes)}", self.rng.choice(CPUS)
            if sum(cpu_of(p) for p in self.fillers if p["spec"]["nodeName"] == node) > 12:
                continue
            spec = spec_of(cpu, nodeName=node)
            pod = {"metadata": {"name": f"filler-{len(self.fillers)}"}, "spec": spec}
            await self.made("pods", pod)
            self.fillers.append(pod)
            left -= cpu
        for cpu in CPUS:
            template = {"metadata": {}, "spec": spec_of(cpu)}
            await self.made(
                "podtemplates", {"metadata": {"name": f"of-{cpu}"}, "template": template}
            )

    async def run(self, record: Record) -> None:
        gate = asyncio.Semaphore(40)

        async def one(number: int) -> None:
            async with gate:
                await self.ask(f"job-{number}", record)

        async with asyncio.TaskGroup() as group:
            for number in range(self.count):
                group.create_task(one(number))

    async def ask(self, name: str, record: Record) -> None:
        """As Kueue: pods are made once their places are promised, if they are at all."""
        rng = self.rng
        sets = [(cpu, rng.randint(1, 6)) for cpu in rng.sample(CPUS, rng.randint(1, 2))]
        hold_s = rng.randint(2, 6)
        pod_sets = [{"podTemplateRef": {"name": f"of-{cpu}"}, "count": n} for cpu, n in sets]
        spec = {
            "provisioningClassName": "check-and-hold.asched.dev",
            "podSets": pod_sets,
            "parameters": {"holdSeconds": str(hold_s), "ValidUntilSeconds": "20"},
        }
        group_version = PATHS["requests"].removeprefix("/apis/").partition("/namespaces")[0]
        kind = {"apiVersion": group_version, "kind": "ProvisioningRequest"}
        await self.made("requests", {**kind, "metadata": {"name": name}, "spec": spec})
        request = await self.until(name, record, "Provisioned", "Failed", "BookingExpired")
        if says(request, "Provisioned") != "True" or rng.random() < 0.4:
            await self.until(name, record, "Failed", "BookingExpired")
            return
        pods = [f"{name}-{cpu}-{number}" for cpu, count in sets for number in range(count)]
        for pod in pods:
            cpu = int(pod.split("-")[-2])
            metadata = {"name": pod, "annotations": {CONSUMES: name}}
            await self.made("pods", {"metadata": metadata, "spec": spec_of(cpu)})
        await self.until(name, record, "Failed", "BookingExpired")
        await asyncio.sleep(rng.uniform(0.0, 2.0))
        for pod in pods:
            await self.client.ask("DELETE", f"{PATHS['pods']}/{pod}", {"gracePeriodSeconds": 0})

    async def until(self, name: str, record: Record, *types: str) -> Json:
        async with asyncio.timeout(HANG_S):
            while True:
                request = record.requests.get(name, {})
                if any(says(request, type_) == "True" for type_ in types):
                    return request
                await asyncio.sleep(POLL_S)


async def lives(trial: Trial, folder: Path, kubeconfig: str, kills: int) -> None:
    """The whole trial; the scheduler dies so often in the middle of it."""
    client = trial.client
    await trial.prepare()
    record = Record(client, trial.fillers)
    _, listed = await client.get(PATHS["requests"])
    version = listed["metadata"]["resourceVersion"]
    watches = [asyncio.create_task(record.watch(kind, version)) for kind in ("pods", "requests")]
    flags = (
        f"--config={ROOT / 'config' / 'kueue.yaml'}",
        "--leader-elect=false",
        "--secure-port=0",
    )
    work = asyncio.create_task(trial.run(record))
    down: list[tuple[float, float]] = []
    for life in range(kills + 1):
        home = folder / f"life-{life}"
        home.mkdir()
        environment = {"KUBECONFIG": kubeconfig}
        async with a_process(home, *flags, environment=environment) as asched:
            await asched.says("synced")
            if down:
                down[-1] = (down[-1][0], time.time())
            over = (life + 1) * trial.count // (kills + 1)
            while not work.done():
                ended = sum(is_over(request) for request in record.requests.values())
                if life < kills and ended >= over:
                    break
                await asyncio.sleep(POLL_S)
            assert "Traceback" not in asched.words, asched.words[-3000:]
            if life < kills:
                down.append((time.time(), 0.0))
                asched.signal(signal.SIGKILL)
                await asched.ended()
    await work
    await asyncio.sleep(1.0)
    for watch in watches:
        assert not watch.done(), watch.exception()
        watch.cancel()
    record.judged()
    told = Counter(reason_of(request) for request in record.requests.values())
    late = max_late_s(record, down)
    log.warning("%s, %d versions, at most %.1f s late", dict(told), len(record.events), late)
    held = told["CapacityIsConsumed"] + told["CapacityReservationTimeExpired"]
    assert held, "no place was held, so nothing was tried"
    assert told["CapacityReservationTimeExpired"]
    assert late <= LATE_S, f"a hold was ended {late:.1f} s late"


def reason_of(request: Json) -> str:
    conditions = {c["type"]: c for c in request["status"]["conditions"]}
    return str(
        next(conditions[t]["reason"] for t in ("BookingExpired", "Failed") if t in conditions)
    )


def max_late_s(record: Record, down: list[tuple[float, float]]) -> float:
    """How long after its time the scheduler said that a hold is over, while it was there."""
    until: dict[str, float] = {}
    late = 0.0
    for _, _, _, kind, obj in sorted(record.events, key=lambda e: e[0]):
        if kind != "requests":
            continue
        name = obj["metadata"]["name"]
        found = read(obj.get("status", {}).get("provisioningClassDetails"))
        if found is not None:
            until[name] = found[1]
        ended = next(
            (
                c
                for c in obj.get("status", {}).get("conditions", ())
                if c["type"] == "BookingExpired" and c["reason"] == "CapacityReservationTimeExpired"
            ),
            None,
        )
        if ended is not None and name in until:
            at_s = microseconds(ended["lastTransitionTime"]) / 1e6
            was_down = any(begun - 1 <= until[name] <= end + 1 for begun, end in down)
            if not was_down:
                late = max(late, at_s - until[name])
    return late


@asynccontextmanager
async def embedded(folder: Path) -> AsyncIterator[tuple[Client, str]]:
    server = ApiServer(options=Options(alpha=REQUESTS))
    await server.start()
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(server.kubeconfig(), encoding="utf-8")
    try:
        async with Client(server.url) as client:
            yield client, str(kubeconfig)
    finally:
        await server.stop()


async def test_places_are_promised_once(tmp_path: Path) -> None:
    async with embedded(tmp_path) as (client, kubeconfig):
        await lives(Trial(client, nodes=6, requests=30), tmp_path, kubeconfig, kills=1)


@pytest.mark.real
@pytest.mark.parametrize(
    ("version", "nodes", "requests", "kills"), [("v1", 20, 500, 4), ("v1beta1", 6, 40, 1)]
)
async def test_the_same_with_500_requests_on_a_real_api_server(
    version: str,
    nodes: int,
    requests: int,
    kills: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And with fewer where the server has them as v1beta1 alone."""
    monkeypatch.setitem(PATHS, "requests", PATHS["requests"].replace("/v1/", f"/{version}/"))
    async with ControlPlane.here() as plane, plane.open_client() as client:
        file = Path(__file__).parent / "crds" / "provisioning-requests.yaml"
        crd = yaml.safe_load(file.read_text(encoding="utf-8"))
        if version != "v1":
            served = [one for one in crd["spec"]["versions"] if one["name"] == version]
            crd["spec"]["versions"] = [{**one, "storage": True} for one in served]
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        status, answer = await client.post(path, crd)
        assert status == 201, answer
        async with asyncio.timeout(HANG_S):
            while (await client.get(PATHS["requests"]))[0] != 200:  # noqa: ASYNC110
                await asyncio.sleep(POLL_S)
        trial = Trial(client, nodes=nodes, requests=requests)
        await lives(trial, tmp_path, str(plane.kubeconfig), kills=kills)
