"""Rows of the decide mode: the engine in process, with the same crowds."""

import asyncio
import gc
import json
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from pathlib import Path

from asched.core.config.defaults import configuration, default_configuration
from asched.core.config.gates import DEFAULT_GATES
from asched.core.config.v1 import SchedulerConfiguration
from asched_lab.bench.manifests import scheduled_by
from asched_lab.bench.run_decide import DecideWorld
from asched_lab.bench.world import WorkloadFailedError
from asched_lab.measure.crowds import Crowd, JsonObject, member, node, pod_group
from asched_lab.measure.measurement import Row

SCHEDULER = "asched-bench"
CHUNK = 2000
TIMEOUT_S = 3600.0
#: Samples of a profile; a row takes some seconds.
SAMPLES_PER_S = 250


async def measure_apart(name: str, flames: Path | None = None) -> Row:
    """Measure a row in a process of its own, so that its memory is separate; with flame graphs
    py-spy samples it and stops it shortly at each sample.
    """
    watched: tuple[str, ...] = ()
    if flames is not None:
        picture = str(flames / f"{name}.svg")
        watched = ("py-spy", "record", "--rate", str(SAMPLES_PER_S), "--output", picture, "--")
    with tempfile.TemporaryDirectory(prefix="asched-bench-") as folder:
        out = Path(folder) / "row.json"
        arguments = ("-m", "asched_lab.measure", "--rows", name, "--here", "--json", str(out))
        child = await asyncio.create_subprocess_exec(
            *watched, sys.executable, *arguments, stdout=asyncio.subprocess.DEVNULL
        )
        await child.wait()
        if not out.exists():
            raise WorkloadFailedError(f"row {name} could not be measured")
        (fields,) = json.loads(out.read_text(encoding="utf-8"))["rows"]
        return Row(**fields)


async def measure(name: str, crowd: Crowd) -> Row:
    """Pods per second of engine time: intake, decisions, and the watch's confirmations."""
    row = Row(name, crowd.nodes, crowd.waiting_count)
    world = DecideWorld(default_configuration(SCHEDULER))
    await create(world, crowd.also, "")
    await create(world, (node(i) for i in range(crowd.nodes)), "")
    await create(world, crowd.placed_pods(), "bench")
    await world.sleep(0.0)
    world.forget_measured()
    before, started_s = world.pods.scheduled_count, world.now_s
    world.machine.is_active = False
    waiting = (scheduled_by(pod, SCHEDULER) for pod in crowd.waiting_pods())
    await create(world, waiting, crowd.namespace)
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


async def measure_freed_places(
    name: str, kind: Callable[[int], JsonObject], pods: int, cpus: int
) -> Row:
    """Pods of about one CPU wait for one node; when it is full, one running pod ends.
    `failed_per_pod`: failed attempts for each pod bound, without first attempts; `spared_per_pod`:
    dry runs that spared an attempt.
    """
    row = Row(name, 1, pods)
    world = await _one_node(cpus, default_configuration(SCHEDULER))
    waiting = (scheduled_by(kind(i), SCHEDULER) for i in range(pods))
    await create(world, waiting, "bench")
    await _until_all_were_tried(world, row)
    before = world.pods.scheduled_count
    await _until_all_are_bound(world, row, 1)
    return _of_freed_places(world, row, pods - before)


async def measure_freed_gangs(name: str, gangs: int, size: int, rounds: int) -> Row:
    """Gangs wait for one node with room for one of them; the pods of the running gang end one after
    the other. Otherwise as above.
    """
    row = Row(name, 1, gangs * size)
    gates = {**DEFAULT_GATES, "GenericWorkload": True, "GangScheduling": True}
    world = await _one_node(
        size, configuration({"profiles": [{"schedulerName": SCHEDULER}]}, gates)
    )
    for gang in range(gangs):
        await create(world, (pod_group(f"gang-{gang:04d}", size),), "bench")
        members = (member(f"gang-{gang:04d}", i) for i in range(size))
        await create(world, (scheduled_by(pod, SCHEDULER) for pod in members), "bench")
    await _until_all_were_tried(world, row)
    before = world.pods.scheduled_count
    await _until_all_are_bound(world, row, size, before + rounds * size)
    return _of_freed_places(world, row, world.pods.scheduled_count - before)


async def _one_node(cpus: int, config: SchedulerConfiguration) -> DecideWorld:
    world = DecideWorld(config)
    made = node(0)
    for amounts in (made["status"]["capacity"], made["status"]["allocatable"]):
        amounts["cpu"] = str(cpus)
    await create(world, (made,), "")
    return world


async def _until_all_were_tried(world: DecideWorld, row: Row) -> None:
    await world.until(lambda: world.facts()["attempts"] >= row.pods, TIMEOUT_S, "first attempts")
    await world.sleep(1.0)


async def _until_all_are_bound(
    world: DecideWorld, row: Row, step: int, wanted: int | None = None
) -> None:
    """End running pods one after the other until the next ones are bound."""
    wanted = row.pods if wanted is None else wanted
    facts = world.facts()
    tried_s, row.extra["first"] = world.now_s, facts["results"].get("unschedulable", 0)
    row.extra["spared"], row.extra["engine_s"] = facts["unneeded_attempts"], facts["engine_s"]
    while world.pods.scheduled_count < wanted:
        listed = await world.listed("pods", "bench")
        running = [p["metadata"]["name"] for p in listed if p["spec"].get("nodeName")]
        before = world.pods.scheduled_count
        for ended in sorted(running)[:step]:
            await world.delete("pods", "bench", ended)
            await world.sleep(0.0)
        await world.until(partial(_has_bound_more, world, before), TIMEOUT_S, "the next")
    await world.sleep(1.0)
    row.last_s = round(world.now_s - tried_s, 3)


def _of_freed_places(world: DecideWorld, row: Row, bound: int) -> Row:
    facts = world.facts()
    failed = facts["results"].get("unschedulable", 0) - row.extra["first"]
    spared = facts["unneeded_attempts"] - row.extra["spared"]
    row.bound = world.pods.scheduled_count
    row.cpu_ms_per_pod = round((facts["engine_s"] - row.extra["engine_s"]) * 1000 / bound, 4)
    row.peak_rss_mb = facts["peak_rss_mb"]
    row.extra = {
        "failed_per_pod": round(failed / bound, 3),
        "spared_per_pod": round(spared / bound, 1),
    }
    return row


def _has_bound_more(world: DecideWorld, before: int) -> bool:
    return world.pods.scheduled_count > before


async def create(world: DecideWorld, objects: Iterable[JsonObject], namespace: str) -> None:
    """Create objects in chunks, each taken in before the next is made."""
    iterator = iter(objects)
    while chunk := list(islice(iterator, CHUNK)):
        await world.create(chunk, namespace)
        world.take_in()
