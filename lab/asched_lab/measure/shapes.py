"""More shapes of work that many clusters have, each in a large number.

gpu-claims     5,000 pods, each with a claim of one of the 20 GPUs of a node
namespaces     10,000 pods with affinity to pods of their team, which is spread over 100 of
               10,000 namespaces
budgets        500 preemptors on 500 full nodes, where each of 2,000 pods has a budget
waiting        5,000 pods, all different, wait for more than a node has, while another 5,000 are
               placed and 1,000 nodes a second change
departures     2,000 pods, all different, wait for more than a full node has after a pod has left;
               20 pods leave, one every two seconds, and a small pod takes each place
"""

from collections.abc import Awaitable, Callable
from random import Random

from asched.core.config.defaults import default_configuration
from asched_lab.bench.manifests import scheduled_by
from asched_lab.bench.run_decide import DecideWorld
from asched_lab.measure import engine
from asched_lab.measure.crowds import (
    HIGH,
    ZONE,
    Crowd,
    JsonObject,
    affinity,
    high,
    low,
    node,
    plain,
    pod,
)
from asched_lab.measure.engine import SCHEDULER, TIMEOUT_S
from asched_lab.measure.measurement import Row
from asched_lab.measure.million import node_facts

GPU_NODES, GPUS = 250, 20
NAMESPACES, TEAMS = 10_000, 100
#: All backoffs are over.
SETTLED_S = 20.0
WAITING, PLACED, CHANGES_PER_S = 5000, 5000, 1000
FULL, UNFIT, DEPARTURES = 300, 2000, 20


def gpu_objects() -> tuple[JsonObject, ...]:
    """A class of devices, a slice for each node, a claim for each pod."""
    made: list[JsonObject] = [_device_class()]
    for index in range(GPU_NODES):
        name = f"node-{index:06d}"
        devices = [{"name": f"gpu-{n}"} for n in range(GPUS)]
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "gpu.example.com", "nodeName": name, "pool": pool, "devices": devices}
        made.append(_resource("ResourceSlice", {"name": f"{name}-gpu"}, spec))
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    wanted = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    for index in range(GPU_NODES * GPUS):
        metadata = {"name": f"gpu-{index:06d}", "namespace": "bench"}
        made.append(_resource("ResourceClaim", metadata, wanted))
    return tuple(made)


def _device_class() -> JsonObject:
    is_gpu = {"cel": {"expression": 'device.driver == "gpu.example.com"'}}
    return _resource("DeviceClass", {"name": "gpu"}, {"selectors": [is_gpu]})


def _resource(kind: str, metadata: JsonObject, spec: JsonObject) -> JsonObject:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    }


def claiming(i: int, _nodes: int) -> JsonObject:
    claims = [{"name": "gpu", "resourceClaimName": f"gpu-{i:06d}"}]
    return pod(f"claiming-{i:06d}", resourceClaims=claims)


def namespaces() -> tuple[JsonObject, ...]:
    return tuple(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": f"ns-{i:05d}", "labels": {"team": f"team-{i % TEAMS}"}},
        }
        for i in range(NAMESPACES)
    )


def near_its_team(i: int, _nodes: int) -> JsonObject:
    rule = affinity("podAffinity", ZONE, {"part": "web"}, weight=10)
    (term,) = rule["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    of_team = {"matchLabels": {"team": f"team-{i % TEAMS}"}}
    term["podAffinityTerm"]["namespaceSelector"] = of_team
    made = pod(f"near-{i:06d}", labels={"part": "web"}, affinity=rule)
    made["metadata"]["namespace"] = f"ns-{i % NAMESPACES:05d}"
    return made


def budgets(count: int) -> tuple[JsonObject, ...]:
    return tuple(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"budget-{i:06d}", "namespace": "bench"},
            "spec": {"selector": {"matchLabels": {"app": f"low-{i}"}}},
            "status": {"disruptionsAllowed": i % 2},
        }
        for i in range(count)
    )


def low_with_label(i: int, nodes: int) -> JsonObject:
    made = low(i, nodes)
    made["metadata"]["labels"] = {"app": f"low-{i}"}
    return made


async def measure_waiting(name: str) -> Row:
    """Measures the placed pods; the cost of the waiting pods and the nodes is included."""
    row = Row(name, PLACED, PLACED)
    world, random, changed = DecideWorld(default_configuration(SCHEDULER)), Random(0), [0]
    world.add_facts(node_facts(*((i, "4") for i in range(PLACED))))
    unlike = (pod(f"unlike-{i:06d}", cpu=f"{5000 + i}m") for i in range(WAITING))
    await engine.create(world, (scheduled_by(pod, SCHEDULER) for pod in unlike), "bench")
    await world.until(lambda: world.facts()["attempts"] >= WAITING, TIMEOUT_S, "first attempts")
    world.forget_measured()
    before = world.facts()

    async def change() -> bool:
        changed[0] += 1
        world.add_facts(node_facts((random.randrange(PLACED), random.choice(("4", "3900m")))))
        return True

    world.every(1.0 / CHANGES_PER_S, change)
    pods = (scheduled_by(plain(i, PLACED), SCHEDULER) for i in range(PLACED))
    await engine.create(world, pods, "bench")
    await world.until(lambda: world.pods.scheduled_count >= PLACED, TIMEOUT_S, "all pods")
    facts = world.facts()
    row.bound = world.pods.scheduled_count
    row.last_s = round(facts["engine_s"], 3)
    row.rate = round(PLACED / facts["engine_s"], 1)
    row.cpu_ms_per_pod = round(facts["engine_s"] * 1000 / PLACED, 4)
    row.peak_rss_mb = facts["peak_rss_mb"]
    attempts = facts["results"].get("unschedulable", 0) - before["results"].get("unschedulable", 0)
    row.extra = {"nodes_changed": changed[0], "attempts_in_vain": attempts}
    row.extra["spared"] = facts["unneeded_attempts"] - before["unneeded_attempts"]
    await world.close()
    return row


async def measure_departures(name: str) -> Row:
    """Measures the departures, with the small pods; the waiting pods were tried before."""
    row = Row(name, FULL, DEPARTURES)
    world, random = DecideWorld(default_configuration(SCHEDULER)), Random(0)
    await engine.create(world, (node(i) for i in range(FULL)), "")
    quarters = (
        pod(f"run-{i:06d}", cpu="1", memory="1Mi", nodeName=f"node-{i % FULL:06d}")
        for i in range(4 * FULL)
    )
    await engine.create(world, quarters, "bench")
    unlike = (pod(f"unlike-{i:06d}", cpu=f"{3000 + i}m") for i in range(UNFIT))
    await engine.create(world, (scheduled_by(pod, SCHEDULER) for pod in unlike), "bench")
    await world.until(lambda: world.facts()["attempts"] >= UNFIT, TIMEOUT_S, "first attempts")
    await world.sleep(SETTLED_S)
    world.forget_measured()
    before = world.pods.scheduled_count
    for n, leaving in enumerate(random.sample(range(4 * FULL), DEPARTURES)):
        await world.delete("pods", "bench", f"run-{leaving:06d}")
        await world.sleep(1.0)
        small = pod(f"small-{n:06d}", cpu="1", memory="1Mi")
        await engine.create(world, (scheduled_by(small, SCHEDULER),), "bench")
        await world.sleep(1.0)
    facts = world.facts()
    row.bound = world.pods.scheduled_count - before
    row.cpu_ms_per_pod = round(facts["engine_s"] * 1000 / DEPARTURES, 4)
    row.peak_rss_mb = facts["peak_rss_mb"]
    row.extra = {"spared": facts["unneeded_attempts"]}
    await world.close()
    return row


def _crowd(crowd: Callable[[], Crowd]) -> Callable[[str], Awaitable[Row]]:
    return lambda name: engine.measure(name, crowd())


ROWS: dict[str, Callable[[str], Awaitable[Row]]] = {
    "decide-gpu-claims": _crowd(
        lambda: Crowd(GPU_NODES, ((claiming, GPU_NODES * GPUS),), also=gpu_objects())
    ),
    "decide-namespaces": _crowd(
        lambda: Crowd(5000, ((near_its_team, 10_000),), also=namespaces(), namespace="")
    ),
    "decide-budgets": _crowd(
        lambda: Crowd(
            500, ((high, 500),), placed=(low_with_label, 2000), also=(HIGH, *budgets(2000))
        )
    ),
    "decide-waiting": measure_waiting,
    "decide-departures": measure_departures,
}
