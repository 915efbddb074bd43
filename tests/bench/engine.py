"""Rows of the decide mode: the engine in process, with the same crowds."""

import asyncio
import gc
import json
import sys
import tempfile
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from asched.core.config.defaults import default_configuration
from asched.lab.bench.manifests import scheduled_by
from asched.lab.bench.run_decide import DecideWorld
from asched.lab.bench.world import WorkloadFailedError
from tests.bench.crowds import Crowd, JsonObject, node, pod
from tests.bench.measure import Row

SCHEDULER = "asched-bench"
CHUNK = 2000
TIMEOUT_S = 3600.0


async def measure_apart(name: str) -> Row:
    """A row in a process of its own, so that its memory is its own as well."""
    with tempfile.TemporaryDirectory(prefix="asched-bench-") as folder:
        out = Path(folder) / "row.json"
        arguments = ("-m", "tests.bench", "--rows", name, "--here", "--json", str(out))
        child = await asyncio.create_subprocess_exec(
            sys.executable, *arguments, stdout=asyncio.subprocess.DEVNULL
        )
        await child.wait()
        if not out.exists():
            raise WorkloadFailedError(f"row {name} could not be measured")
        (fields,) = json.loads(out.read_text(encoding="utf-8"))["rows"]
        return Row(**fields)


async def measure(name: str, crowd: Crowd) -> Row:
    """Pods per second of engine time: taking them in, deciding, and the watch's confirmations."""
    row = Row(name, crowd.nodes, crowd.waiting_count)
    world = DecideWorld(default_configuration(SCHEDULER))
    await _create(world, crowd.also, "")
    await _create(world, (node(i) for i in range(crowd.nodes)), "")
    await _create(world, crowd.placed_pods(), "bench")
    await world.sleep(0.0)
    world.forget_measured()
    before, started_s = world.pods.scheduled_count, world.now_s
    world.machine.is_active = False
    waiting = (scheduled_by(pod, SCHEDULER) for pod in crowd.waiting_pods())
    await _create(world, waiting, "bench")
    world.take_in()
    intake_s = world.now_s - started_s
    world.machine.is_active = True
    await world.until(
        lambda: world.pods.scheduled_count >= before + row.pods, TIMEOUT_S, "all pods to be bound"
    )
    times_s = [s.scheduled_s for s in world.pods.pods.values() if s.scheduled_s is not None]
    span_s = max(times_s) - started_s
    facts = world.facts()
    row.bound = world.pods.scheduled_count - before
    row.last_s = round(span_s, 3)
    row.rate = round(row.bound / span_s, 1)
    row.cpu_ms_per_pod = round(facts["engine_s"] * 1000 / row.pods, 4)
    row.peak_rss_mb = facts["peak_rss_mb"]
    row.extra = {key: facts[key] for key in ("rows", "full_passes", "row_passes")}
    row.extra["attempts_per_pod"] = round(facts["attempts"] / max(row.bound, 1), 3)
    row.extra["intake_ms_per_pod"] = round(intake_s * 1000 / row.pods, 4)
    await world.close()
    gc.collect()
    return row


async def measure_freed_places(name: str, pods: int, cpus: int) -> Row:
    """Equal pods of one CPU wait for one node; whenever as many run as can, one of them ends.
    `failed_per_pod`: attempts in vain for each pod bound, first attempts aside.
    """
    row = Row(name, 1, pods)
    world = DecideWorld(default_configuration(SCHEDULER))
    made = node(0)
    for amounts in (made["status"]["capacity"], made["status"]["allocatable"]):
        amounts["cpu"] = str(cpus)
    await _create(world, (made,), "")
    waiting = (
        scheduled_by(pod(f"job-{i:06d}", cpu="1", memory="1Mi"), SCHEDULER) for i in range(pods)
    )
    await _create(world, waiting, "bench")
    await world.until(lambda: world.pods.scheduled_count >= cpus, TIMEOUT_S, "the first pods")
    await world.sleep(1.0)
    tried_s, first = world.now_s, world.facts()["results"].get("unschedulable", 0)
    for ended in range(pods - cpus):
        running = min(
            (p for p in await world.listed("pods", "bench") if p["spec"].get("nodeName")),
            key=lambda p: p["metadata"]["name"],
        )
        await world.delete("pods", "bench", running["metadata"]["name"])
        due = cpus + ended + 1
        await world.until(lambda due=due: world.pods.scheduled_count >= due, TIMEOUT_S, "the next")
    await world.sleep(1.0)
    facts = world.facts()
    row.bound = world.pods.scheduled_count
    row.last_s = round(world.now_s - tried_s, 3)
    row.cpu_ms_per_pod = round(facts["engine_s"] * 1000 / pods, 4)
    row.peak_rss_mb = facts["peak_rss_mb"]
    failed = facts["results"].get("unschedulable", 0) - first
    row.extra = {"failed_per_pod": round(failed / (pods - cpus), 3)}
    await world.close()
    gc.collect()
    return row


async def _create(world: DecideWorld, objects: Iterable[JsonObject], namespace: str) -> None:
    """A chunk at a time, each taken in before the next is made."""
    iterator = iter(objects)
    while chunk := list(islice(iterator, CHUNK)):
        await world.create(chunk, namespace)
        world.take_in()
