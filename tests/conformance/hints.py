"""Replays queueing hints: one object changes; may an unschedulable pod profit, in a plugin's view?

Where upstream leaves a pod asleep that would fit, ours may wake it; such cases agree all the same
and are marked (`wakes_more`), so that the parity page can count them.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from asched import names
from asched.core.cluster.changes import ACTION_TEXT, Change, Trigger
from asched.core.cluster.facts import Gone, Seen
from asched.core.framework.points import PreEnqueuePlugin
from asched.core.framework.registrations import Hint, Registration
from asched.core.framework.rejection import Rejection
from asched.core.framework.runner import NoNodesError, run_alone
from asched.core.framework.status import PointError
from asched.core.model.decode import decode
from asched.core.model.kinds import BY_PLURAL, POD, Kind
from asched.core.model.meta import Record
from asched.core.model.pod import Pod
from asched.core.preemption.under_way import Preemptor, UnderWay
from asched.core.queue import event_handlers
from tests.conformance.cases import Result, negative_selectors
from tests.conformance.world import World, build

KIND_NAMED = {kind.name: kind for kind in BY_PLURAL.values()}
ACTION_NAMED = {text: action for action, text in ACTION_TEXT.items()}


def replay(case: Mapping[str, Any]) -> Result:
    """Show the change to the cluster, ask the plugin, and see who wakes."""
    result = Result(case["name"], "hints")
    world = build(case["config"], case["objects"])
    pod = decode(Pod, case["pod"])
    world.cluster.apply(Seen(POD, pod))
    needed = {case["plugin"], *case["rejectors"]}
    result.missing = frozenset(needed & world.missing)
    if result.missing:
        return result
    kind = KIND_NAMED[case["kind"]]
    old = decode(kind.record, case["old"]) if case["old"] is not None else None
    new = decode(kind.record, case["new"]) if case["new"] is not None else None
    triggers = changes_of(kind, old, new)
    apply(world, kind, old, new)
    if case["rejected_at"] == "PreEnqueue" and case["plugin"] == names.DEFAULT_PREEMPTION:
        world.cluster.singleton(UnderWay).start(Preemptor.of_pod(pod, ""))
    now = new if kind is POD and isinstance(new, Pod) and new.uid == pod.uid else pod
    assert isinstance(now, Pod)
    _compare_hint(result, world, case, now, old, new)
    if not world.missing and not result.differences:
        _compare_consequences(result, world, case, now, triggers)
        if result.differences:
            result.declare(negative_selectors(world, now))
    return result


def changes_of(kind: Kind, old: Record | None, new: Record | None) -> list[Change]:
    """What the queue is told, in order."""
    found: list[Change] = []
    names = {"default-scheduler"}
    for step in event_handlers.steps(
        kind,
        old,
        new,
        owns=lambda pod: pod.spec.scheduler_name in names,
        is_assumed=lambda _: False,
    ):
        if isinstance(step, event_handlers.Announce):
            found.append(step.change)
        elif isinstance(step, event_handlers.Refresh):
            found += [
                Change(t, step.old, step.new)
                for t in event_handlers.pod_triggers(step.old, step.new)
            ]
    return found


def apply(world: World, kind: Kind, old: Record | None, new: Record | None) -> None:
    if new is not None:
        world.cluster.apply(Seen(kind, new))
    elif old is not None:
        world.cluster.apply(Gone(kind, old))


def _compare_hint(
    result: Result,
    world: World,
    case: Mapping[str, Any],
    pod: Pod,
    old: Record | None,
    new: Record | None,
) -> None:
    event = case["event"]
    if event is None:
        return
    trigger = Trigger(event["resource"], ACTION_NAMED[event["action"]])
    result.compare("label", trigger.label, event["label"])
    passed_old = old if "old" in event["passes"] else None
    passed_new = new if "new" in event["passes"] else None
    runner = world.runner_for(pod)
    registrations = runner.profile.registrations[case["plugin"]]
    answer = answer_of(registrations, trigger, pod, passed_old, passed_new)
    expect = case["expect"]
    result.compare("registered", answer is not None, expect["registered"])
    theirs = expect["hint"]
    if answer == "Queue" and theirs == "QueueSkip" and expect["would_fit"]:
        result.wakes_more = True
        return
    if answer == "Queue" and theirs == "Error":  # an error wakes like Queue
        return
    result.compare("hint", answer, theirs)


def answer_of(
    registrations: Iterable[Registration],
    trigger: Trigger,
    pod: Pod,
    old: Record | None,
    new: Record | None,
) -> str | None:
    """What the matching registrations of a plugin say together; None if none matches."""
    answer = None
    for registration in registrations:
        if not registration.trigger.matches(trigger):
            continue
        if registration.hint is None:
            return "Queue"
        try:
            said = registration.hint(pod, old, new).value
        except ValueError:
            said = "Error"
        if said != Hint.SKIP.value:
            return said
        answer = said
    return answer


def _compare_consequences(
    result: Result, world: World, case: Mapping[str, Any], pod: Pod, changes: list[Change]
) -> None:
    expect = case["expect"]
    fits = would_fit(world, pod)  # whatever becomes of a preemption under way
    result.compare("would_fit", fits, expect["would_fit"])
    if expect["woken"] is None:
        return
    if case["event"] is not None and case["event"]["delivery"] == "in-flight":
        return
    woken = is_woken(world, case, pod, changes)
    if woken and not expect["woken"] and expect["would_fit"]:
        result.wakes_more = True
        return
    result.compare("woken", woken, expect["woken"])


def is_woken(world: World, case: Mapping[str, Any], pod: Pod, changes: list[Change]) -> bool:
    """Whether any rejector finds any of the changes worth an attempt, or might and the pod fits."""
    profile = world.runner_for(pod).profile
    registrations, extra_events = profile.registrations, profile.extra_events
    gated = case["rejected_at"] == "PreEnqueue"
    for change in changes:
        if change.priority_at_most is not None and pod.priority > change.priority_at_most:
            continue
        for rejector in case["rejectors"]:
            said = answer_of(registrations[rejector], change.trigger, pod, change.old, change.new)
            if said in ("Queue", "Error"):
                return not gated or _passes_gates(world, pod)
            said = answer_of(extra_events[rejector], change.trigger, pod, change.old, change.new)
            if said in ("Queue", "Error") and would_fit(world, pod):
                return not gated or _passes_gates(world, pod)
    return False


def would_fit(world: World, pod: Pod) -> bool:
    """Whether a whole attempt finds a node now."""
    if not _passes_gates(world, pod, except_for=names.DEFAULT_PREEMPTION):
        return False
    runner = world.runner_for(pod)
    info = world.cluster.classes.info_of(pod)
    try:
        return not isinstance(run_alone(runner.schedule(info, 0)), Rejection)
    except (NoNodesError, PointError):
        return False  # an attempt that ends in an error finds no node either


def _passes_gates(world: World, pod: Pod, *, except_for: str = "") -> bool:
    plugins: Iterable[PreEnqueuePlugin] = world.runner_for(pod).profile.pre_enqueue
    return all(p.pre_enqueue(pod).is_success for p in plugins if p.name != except_for)
