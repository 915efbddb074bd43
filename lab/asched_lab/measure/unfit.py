"""Make a recording of a cluster in which many pods fit nowhere, in process, for `asched replay`.

    python -m asched_lab.measure.unfit FILE --seconds 30

5,000 nodes of which 60 have GPUs; 50 pods a second, of which a quarter request GPUs (three
priorities), a twentieth more than any node has, more with spreading or anti-affinity; a third of
them is deleted again, and five nodes a second send heartbeats.
"""

import argparse
import asyncio
import random
import sys
from pathlib import Path

from asched.core.config.defaults import default_configuration
from asched_lab.bench.run_decide import DecideWorld
from asched_lab.measure.crowds import HOSTNAME, ZONE, JsonObject, node, pod

NODES, GPU_NODES, APPS = 5_000, 60, 40
GPU = "nvidia.com/gpu"
PAUSE_S = 0.02


def gpu_node(index: int) -> JsonObject:
    made = node(index)
    for part in ("capacity", "allocatable"):
        made["status"][part] = {**made["status"][part], GPU: "8"}
    return made


def arrival(index: int, draw: random.Random) -> JsonObject:
    name, app, kind = f"p{index:06d}", f"a{draw.randrange(APPS)}", draw.random()
    labels, like_it = {"app": app}, {"labelSelector": {"matchLabels": {"app": app}}}
    if kind < 0.5:
        return pod(name, cpu=draw.choice(["100m", "250m", "500m", "1"]), labels=labels)
    if kind < 0.6:
        rule = {"maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule", "topologyKey": ZONE, **like_it}
        return pod(name, labels=labels, topologySpreadConstraints=[rule])
    if kind < 0.7:
        term = {"topologyKey": HOSTNAME, **like_it}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        return pod(name, labels=labels, affinity={"podAntiAffinity": required})
    if kind < 0.95:
        (priority,) = draw.choices([0, 100, 1000], [6, 3, 1])
        made = pod(name, cpu=draw.choice(["100m", "500m"]), labels=labels, priority=priority)
        amount = {GPU: draw.choice(["1", "2", "4", "8"])}
        resources = made["spec"]["containers"][0]["resources"]
        resources["requests"].update(amount)
        resources["limits"] = amount
        return made
    return pod(name, cpu=draw.choice(["5", "6"]), labels=labels, priority=draw.choice([0, 100]))


async def record(out: Path, seconds: float) -> None:
    draw, world = random.Random(7), DecideWorld(default_configuration(), record=out)
    await world.create([gpu_node(i) if i < GPU_NODES else node(i) for i in range(NODES)])
    world.take_in()
    world.forget_measured()
    made, leaving, end_s = [0], list[tuple[float, str]](), world.now_s + seconds

    async def arrive() -> bool:
        pod = arrival(made[0], draw)
        made[0] += 1
        await world.create([pod], "default")
        if draw.random() < 1 / 3:
            leaving.append((world.now_s + draw.uniform(5, 60), pod["metadata"]["name"]))
        return world.now_s < end_s

    async def leave() -> bool:
        for _, name in [entry for entry in leaving if entry[0] <= world.now_s]:
            if world.objects.get("pods", "default", name) is not None:
                await world.delete("pods", "default", name)
        leaving[:] = [entry for entry in leaving if entry[0] > world.now_s]
        return world.now_s < end_s

    async def beat() -> bool:
        node = world.objects.get("nodes", "", f"node-{draw.randrange(NODES):06d}")
        assert node is not None
        alive = {"type": "Ready", "status": "True", "lastHeartbeatTime": str(world.now_s)}
        await world.replace({**node, "status": {**node["status"], "conditions": [alive]}}, "", ())
        return world.now_s < end_s

    for interval_s, step in ((PAUSE_S, arrive), (0.1, leave), (0.2, beat)):
        world.every(interval_s, step)
    await world.sleep(seconds)
    queue = world.machine.context.queue
    dry_runs = queue.due_filter
    sys.stdout.write(
        f"{made[0]} pods, {world.pods.scheduled_count} bound,"
        f" {queue.places.pending().unschedulable} wait;"
        f" {dry_runs.not_tried} dry runs without a node, {dry_runs.spared} spared,"
        f" {world.engine_s - world.measured_from_s:.1f} s of processor time\n"
    )
    await world.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seconds", type=float, default=30.0)
    args = parser.parse_args()
    asyncio.run(record(args.file, args.seconds))


if __name__ == "__main__":
    main()
