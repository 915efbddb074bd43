"""Replays traces: a cluster that changes step by step, with attempts in between.

The incremental state must arrive at the same numbers as a fresh look at the cluster would.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from asched import names
from asched.core.cluster.facts import Seen
from asched.core.framework.rejection import NO_NODES, Rejection
from asched.core.framework.runner import NoNodesError, run_alone
from asched.core.model.decode import decode
from asched.core.model.kinds import NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD
from asched.core.model.pod import Pod
from tests.conformance.cases import Result, best_of, feasible_mask, negative_selectors
from tests.conformance.world import World, build


def replay(trace: Mapping[str, Any]) -> Result:
    """Run all steps; the first step that differs ends the trace, the rest would only follow it.

    Traces with a tag have it for the pods of some steps: only these are declared to differ.
    """
    result = Result(trace["name"], trace["family"])
    world = build(trace["config"], trace["objects"])
    result.missing = world.missing - {names.DEFAULT_PREEMPTION}  # no trace runs PostFilter
    if result.missing:
        return result
    for number, step in enumerate(trace["steps"]):
        if step["op"] == "schedule":
            _schedule(result, world, step, number)
            if result.differences:
                result.declare(negative_selectors(world, decode(Pod, step["pod"])))
        else:
            _change(world, step)
        if result.differences:
            break
    return result


def _change(world: World, step: Mapping[str, Any]) -> None:
    match step["op"]:
        case "add_node" | "update_node":
            world.see(NODE, step["node"])
        case "delete_node":
            node = world.cluster.node_of(step["name"])
            assert node is not None
            world.lose(NODE, node)
        case "delete_pod":
            key = f"{step['namespace']}/{step['name']}"
            world.lose(POD, world.cluster.pods_seen[key])
        case "update_pod":
            world.see(POD, step["pod"])
        case "add_pv" | "add_pvc":
            for kind, field in (
                (PERSISTENT_VOLUME, "persistentvolume"),
                (PERSISTENT_VOLUME_CLAIM, "persistentvolumeclaim"),
            ):
                if field in step:
                    world.see(kind, step[field])
        case other:
            raise ValueError(f"step {other!r} is not in the format of the corpus")


def _schedule(result: Result, world: World, step: Mapping[str, Any], number: int) -> None:
    """Compare one attempt; then the pod runs where kube-scheduler put it, or is forgotten."""
    pod = decode(Pod, step["pod"])
    expect = step["expect"]
    world.cluster.apply(Seen(POD, pod))
    _compare(result, world, pod, expect, number)
    if expect.get("fit_error") is None:
        world.cluster.apply(Seen(POD, pod.on(expect["chosen"])))
    else:
        world.lose(POD, pod)


def _compare(
    result: Result, world: World, pod: Pod, expect: Mapping[str, Any], number: int
) -> None:
    info = world.cluster.classes.info_of(pod)
    runner = world.runner_for(pod)
    where = f"step {number} ({pod.metadata.name})"
    try:
        found = run_alone(runner.schedule(info, number))
    except NoNodesError:
        result.compare(f"{where} fit_error", NO_NODES, expect.get("fit_error"))
        return
    if isinstance(found, Rejection):
        result.compare(f"{where} fit_error", found.message(), expect.get("fit_error"))
        return
    state = found.state  # the class may be told apart by now: waiting pods were tried
    mask = feasible_mask(world, runner, info, state)
    ranking = state.rank(info, mask)
    total = {}
    for row in np.flatnonzero(mask):
        node = world.cluster.nodes.node_at[row]
        assert node is not None
        total[node.name] = int(ranking[row])
    result.compare(f"{where} fits", found.node, expect.get("fit_error") or found.node)
    result.compare(f"{where} feasible_count", len(total), expect["feasible_count"])
    result.compare(f"{where} best", best_of(total), expect["best"])
    result.compare(f"{where} top_total", max(total.values(), default=0), expect["top_total"])
    if expect["best"] and found.node not in expect["best"]:
        result.compare(f"{where} chosen", found.node, expect["best"])
