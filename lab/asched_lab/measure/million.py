"""A million nodes.

    python -m asched_lab.measure.million [--nodes 1000000] [--pods 20000] [--rows ...]

    plain           pods without constraints
    spread          pods that spread over zones, as far as possible
    node-affinity   pods that require one of two zones

on one core, as the decide mode counts: processor time of intake, decisions, confirmations.
`read_per_pod` is how many entries of a ranking a decision reads. With `--churn N`, N nodes per
second of that time change their allocatable resources. Nodes are passed to the machine and not
stored as API objects, so that the memory is the scheduler's own.
"""

import argparse
import asyncio
import gc
import json
import resource
import sys
from collections.abc import Callable
from random import Random
from typing import Any, Final

import orjson

from asched.core.cluster.facts import Seen
from asched.core.config.defaults import default_configuration
from asched.core.model.kinds import NODE
from asched.kube.codec import KindCodec
from asched_lab.bench.manifests import scheduled_by
from asched_lab.bench.run_decide import DecideWorld
from asched_lab.measure.crowds import SHAPES, JsonObject, node
from asched_lab.measure.engine import SCHEDULER, TIMEOUT_S, create

ROWS: Final[dict[str, Callable[[int, int], JsonObject]]] = {
    name: SHAPES[name] for name in ("plain", "spread", "node-affinity")
}
#: Pods decided before the measurement: columns and classes are made once.
WARM: Final = 100
#: Nodes passed to the machine at a time.
CHUNK: Final = 5000


_codec: Final = KindCodec(NODE, lambda *_: None)


def node_facts(*changed: tuple[int, str]) -> list[Seen]:
    """Facts of nodes with this CPU, decoded from bytes as from a watch: nothing is shared between
    nodes.
    """
    made = []
    for index, cpu in changed:
        made_node = node(index)
        made_node["status"]["allocatable"] = {**made_node["status"]["allocatable"], "cpu": cpu}
        made.append(made_node)
    return [Seen(NODE, record) for record in _codec.array(orjson.dumps(made)) or ()]


def entries_read(world: DecideWorld) -> int:
    """Entries of rankings read so far, to maintain their peaks and to find the best row."""
    (runner,) = world.runners.values()
    states = (kept.state for kept in runner.cache._by_keys.values())
    peaks = (getattr(state.ranking, "peaks", None) for state in states if state is not None)
    return sum(peak.looked for peak in peaks if peak is not None)


async def measure(name: str, nodes: int, pods: int, churn: int) -> dict[str, Any]:
    world = DecideWorld(default_configuration(SCHEDULER))
    for start in range(0, nodes, CHUNK):
        world.add_facts(node_facts(*((i, "4") for i in range(start, min(start + CHUNK, nodes)))))
        world.take_in()
    intake_s = world.engine_s
    world.forget_measured()
    random, changed = Random(0), [0]

    async def change() -> bool:
        changed[0] += 1
        world.add_facts(node_facts((random.randrange(nodes), random.choice(("4", "3900m")))))
        return True

    if churn:
        world.every(1.0 / churn, change)
    maker = ROWS[name]

    await create(world, (scheduled_by(maker(i, nodes), SCHEDULER) for i in range(WARM)), "bench")
    await world.until(lambda: world.pods.scheduled_count >= WARM, TIMEOUT_S, "the first pods")
    world.forget_measured()
    changed[0], before = 0, entries_read(world)
    await create(
        world, (scheduled_by(maker(i, nodes), SCHEDULER) for i in range(WARM, WARM + pods)), "bench"
    )
    await world.until(lambda: world.pods.scheduled_count >= WARM + pods, TIMEOUT_S, "all pods")
    facts = world.facts()
    found = {
        "pods_per_s": round(pods / facts["engine_s"], 1),
        "nodes_taken_in_per_s": round(nodes / intake_s, 1),
        "nodes_changed": changed[0],
        "engine_s": facts["engine_s"],
        "full_passes": facts["full_passes"],
        "rows": facts["rows"],
        "read_per_pod": round((entries_read(world) - before) / pods),
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    await world.close()
    gc.collect()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m asched_lab.measure.million", description=__doc__
    )
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--churn", type=int, default=0)
    parser.add_argument("--rows", nargs="*", choices=ROWS, default=list(ROWS))
    args = parser.parse_args()
    for name in args.rows:
        found = asyncio.run(measure(name, args.nodes, args.pods, args.churn))
        sys.stdout.write(json.dumps({"row": name, "nodes": args.nodes, **found}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
