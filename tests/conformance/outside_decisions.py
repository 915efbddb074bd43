"""Replays decisions that `python -m asched_lab.record` saw from outside of a scheduler.

What was seen is compared, and nothing else: the nodes that passed the filters, the choices, the
message, the plugins that the pod waits for, the candidates of a preemption, and what came of it. A
choice must be one of the best nodes after the points of the recording's extender were added; of
several outcomes of a preemption that are equally good, ours may be another.
"""

from collections.abc import Mapping
from typing import Any

from asched.core.cluster.facts import Seen
from asched.core.cluster.pods import PodInfo
from asched.core.config.versions import BASE, MINORS
from asched.core.framework.runner import Runner, run_alone
from asched.core.framework.waiting import WaitingPods
from asched.core.model.decode import decode
from asched.core.model.kinds import POD
from asched.core.model.pod import Pod
from tests.conformance.cases import (
    Evaluation,
    Result,
    candidates_of,
    evaluate,
    event_message,
    negative_selectors,
    rules_for,
)
from tests.conformance.world import build

#: What a point of an extender adds to a node: its weight (1) times the ratio of both scales.
POINT = 10
#: Attempts with other seeds; of ten equally good outcomes of a preemption each comes up.
SEEDS = range(100)


def replay(case: Mapping[str, Any], minor: str = "") -> Result:
    """Decide by the rules of a minor version (that of the scheduler, if none is given), compare."""
    result = Result(case["name"], case["family"])
    minor = minor or minor_of(case["scheduler"])
    world = build(None, case["objects"], None, rules_for(case, minor))
    pod = decode(Pod, case["pod"])
    world.cluster.apply(Seen(POD, pod))
    runner, info = world.runner_for(pod), world.cluster.classes.info_of(pod)
    evaluation = evaluate(world, runner, info)
    _compare(result, runner, info, evaluation, case["seen"])
    result.declare(negative_selectors(world, pod))
    return result


def _compare(
    result: Result,
    runner: Runner,
    info: PodInfo,
    evaluation: Evaluation,
    seen: Mapping[str, Any],
) -> None:
    result.compare("fits", evaluation.rejection is None, "choices" in seen)
    if result.differences:
        return
    if "feasible" in seen:
        result.compare("feasible", evaluation.feasible, seen["feasible"])
    for choice in seen.get("choices", ()):
        _compare_choice(result, evaluation, choice)
    if evaluation.rejection is not None:
        _compare_rejection(result, runner, info, evaluation, seen)
    else:
        result.compare("event", event_of_binding(info.pod), seen["event"])


def minor_of(version: str) -> str:
    """The minor version of `v1.37.0`; the one that recordings are of, if it is not known."""
    minor = ".".join(version.removeprefix("v").split(".")[:2])
    return minor if minor in MINORS else BASE


def event_of_binding(pod: Pod) -> dict[str, str]:
    """The node, which may differ, is left out of recordings."""
    return {"reason": "Scheduled", "note": f"Successfully assigned {pod.key} to "}


def _compare_choice(result: Result, evaluation: Evaluation, choice: Mapping[str, Any]) -> None:
    points = choice.get("points") or {}
    total = {node: own + POINT * points.get(node, 0) for node, own in evaluation.total.items()}
    top = max(total.values())
    if total.get(choice["node"]) != top:
        best = sorted(node for node, sum_ in total.items() if sum_ == top)
        result.compare(f"best with {points}", best, choice["node"])


def _compare_rejection(
    result: Result,
    runner: Runner,
    info: PodInfo,
    evaluation: Evaluation,
    seen: Mapping[str, Any],
) -> None:
    rejection = evaluation.rejection
    assert rejection is not None
    if "plugins" in seen:
        waits_for = sorted(rejection.unschedulable_plugins | rejection.pending_plugins)
        result.compare("plugins", waits_for, seen["plugins"])
    if "candidates" in seen:
        result.compare("candidates", candidates_of(runner, info, evaluation), seen["candidates"])
    outcome = seen.get("nominated", ""), seen.get("victims", [])
    outcomes = []
    for seed in SEEDS:
        trial = runner.trial(evaluation.state, WaitingPods(), seed, 0.0)
        found = run_alone(runner.post_filter(info, rejection, trial))
        outcomes.append((found.nomination.node or "", sorted(found.victims)))
        if outcomes[-1] == outcome:
            break
    else:
        result.compare("preemption", sorted(set(map(str, outcomes))), outcome)
    _, message = event_message(rejection, found)
    condition = {"reason": "Unschedulable", "message": message}
    result.compare("condition", condition, seen["condition"])
    event = {"reason": "FailedScheduling", "note": message}
    result.compare("event", event, seen["event"])
