"""queue.jsonl.gz: replay recorded traces of kube-scheduler's queue, step by step.

The handlers and the queue are ours; attempts, and what the hints answer, are recorded.
"""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from asched.core.cluster.changes import ASSIGNED_POD_DELETE, Action, Change, Trigger
from asched.core.cluster.nominated import Nominator
from asched.core.framework.points import PreEnqueuePlugin
from asched.core.framework.registrations import Hint, HintFunction
from asched.core.framework.status import SUCCESS, Status, unresolvable
from asched.core.model.decode import decode
from asched.core.model.kinds import KINDS, NODE, POD, Kind
from asched.core.model.meta import Record
from asched.core.model.pod import Pod
from asched.core.queue.backoff import BackoffTimes
from asched.core.queue.event_handlers import (
    Announce,
    Enqueue,
    Refresh,
    Release,
    Step,
    Withdraw,
    pod_triggers,
    steps,
)
from asched.core.queue.profile import QueueProfile
from asched.core.queue.queue import SchedulingQueue
from asched.core.queue.queued import QueuedPod
from tests.conformance.registrations import load

PROFILE = "default-scheduler"
KIND_OF = {kind.name: kind for kind in KINDS}

Json = dict[str, Any]
Heard = tuple[str, Action, int, int]  # resource, action, identity of the old and the new version


def replay(path: Path) -> list[tuple[str, bool, str]]:
    """(case, whether every state agreed, the first difference) for each trace."""
    return [(trace["name"], *_outcome(trace, path)) for trace in _traces(path)]


def _traces(path: Path) -> Iterator[Json]:
    with gzip.open(path, "rt") as lines:
        for line in lines:
            yield json.loads(line)


def _outcome(trace: Json, path: Path) -> tuple[bool, str]:
    player = Player(trace, path.parent / "registrations.json")
    for number, step in enumerate(trace["steps"]):
        difference = player.play(step)
        if difference:
            return False, f"step {number} ({step['op']}): {difference}"
    return True, ""


class SchedulingGates(PreEnqueuePlugin):
    name = "SchedulingGates"

    def pre_enqueue(self, pod: Pod) -> Status:
        return unresolvable("waiting for gates") if pod.spec.scheduling_gates else SUCCESS


class Player:
    """One trace: the world as the informers know it, and the queue."""

    def __init__(self, trace: Json, registrations: Path) -> None:
        config = trace["config"]
        self.pods: dict[str, Pod] = {}
        self.assumed: set[str] = set()
        self.heard: dict[Heard, Json] = {}
        self.kept: list[Record] = []  # identities must not be reused
        profile = QueueProfile(
            sort_key=lambda pod, timestamp_s: (-pod.priority, timestamp_s),
            registrations=load(registrations, self.recorded_hint),
            pre_enqueue=[SchedulingGates()],
        )
        self.queue = SchedulingQueue(
            {PROFILE: profile},
            Nominator(self.pods.get),
            backoff=BackoffTimes(
                config["podInitialBackoffSeconds"], config["podMaxBackoffSeconds"]
            ),
            max_in_unschedulable_s=config["podMaxInUnschedulablePodsDuration"],
        )

    def recorded_hint(self, plugin: str, registered: Trigger) -> HintFunction:
        def hint(pod: Pod, old: Record | None, new: Record | None) -> Hint:
            for resource in (registered.resource, "AssignedPod", "UnschedulablePod"):
                answers = self.heard.get((resource, registered.action, id(old), id(new)))
                if answers is not None:
                    named = answers.get(f"{pod.key} {pod.uid}", answers.get(pod.key, ()))
                    return Hint.QUEUE if plugin in named else Hint.SKIP
            raise AssertionError(f"{plugin} was asked about an unrecorded change: {registered}")

        return hint

    # --- one step ---------------------------------------------------------------------------------

    def play(self, step: Json) -> str:
        """Perform a step; the difference to the recorded state, or ""."""
        now_s = float(step["t"])
        self.events = list(step.get("events", ()))
        problem = getattr(self, f"on_{step['op']}")(step, now_s)
        if problem:
            return str(problem)
        if self.events:
            return f"changes not derived: {[event['label'] for event in self.events]}"
        return _difference(step["state"], self.state(step["state"]))

    def on_add(self, step: Json, now_s: float) -> str:
        return self.sight(KIND_OF[step["kind"]], step, now_s)

    on_update = on_delete = on_bound = on_add

    def sight(self, kind: Kind, step: Json, now_s: float) -> str:
        old, new = (decode(kind.record, step[k]) if step.get(k) else None for k in ("old", "new"))
        self.kept += [record for record in (old, new) if record is not None]
        is_assumed = self.assumed.__contains__
        todo = steps(
            kind,
            old,
            new,
            owns=lambda pod: pod.spec.scheduler_name == PROFILE,
            is_assumed=is_assumed,
        )
        if isinstance(new, Pod):
            self.pods[new.key] = new
            if new.spec.node_name:
                self.assumed.discard(new.uid)
        elif isinstance(old, Pod):
            self.pods.pop(old.key, None)
        for one in todo:
            problem = self.perform(one, now_s)
            if problem:
                return problem
        return ""

    def perform(self, step: Step, now_s: float) -> str:
        match step:
            case Enqueue(pod):
                self.queue.add(pod, now_s)
            case Refresh(old, new):
                # A pod that is tried or rests hears its own update; elsewhere nobody is asked.
                for trigger in pod_triggers(old, new):
                    self.expect(Change(trigger, old, new))
                self.queue.update(old, new, now_s)
            case Withdraw(pod):
                self.queue.delete(pod)
            case Release(pod):
                self.assumed.discard(pod.uid)
            case Announce(change):
                return self.announce(change, now_s)
        return ""

    def announce(self, change: Change, now_s: float, except_uid: str = "") -> str:
        old, new = (msgspec.structs.replace(r) if r else None for r in (change.old, change.new))
        self.kept += [record for record in (old, new) if record is not None]
        change = msgspec.structs.replace(change, old=old, new=new)
        problem = self.expect(change)
        self.queue.move(change, now_s, except_uid=except_uid)
        return problem

    def expect(self, change: Change) -> str:
        """The next recorded change is this one; learn what the hints say of it."""
        label = change.trigger.label
        if not self.events or self.events[0]["label"] != label:
            return f"derived {label}, recorded {[event['label'] for event in self.events]}"
        recorded = self.events.pop(0)
        passes = [k for k, v in (("old", change.old), ("new", change.new)) if v is not None]
        heard = (*change.trigger[:2], id(change.old), id(change.new))
        self.heard[heard] = recorded["hints"]
        return "" if passes == recorded["passes"] else f"{label} passes {passes}"

    # --- attempts ---------------------------------------------------------------------------------

    def on_pop(self, step: Json, now_s: float) -> str:
        places = self.queue.places
        origin = "active" if len(places.active) else "backoff" if len(places.backoff) else "blocks"
        queued = self.queue.pop(now_s)
        popped = queued.key if queued else None
        wanted = step["from"], step.get("pod", "").split(" ")[0] or None
        return "" if (origin, popped) == wanted else f"took {popped} from {origin}"

    def on_fail(self, step: Json, now_s: float) -> None:
        queued = self.flying(step["pod"])
        pod_now = self.pods.get(queued.key)
        if pod_now is None or pod_now.spec.node_name:
            self.queue.done(queued.pod.uid)
        elif pod_now.uid != queued.pod.uid:
            self.queue.done(queued.pod.uid)
            return
        else:
            rejectors, pending = step.get("plugins", ()), step.get("pending", ())
            self.queue.return_failed(queued, pod_now, rejectors, pending, now_s)
        self.queue.nominator.add(queued.pod, step.get("nominate"))

    def on_assume(self, step: Json, now_s: float) -> None:
        queued = self.flying(step["pod"])
        self.binding = {**getattr(self, "binding", {}), queued.pod.uid: (queued, step["node"])}
        self.assumed.add(queued.pod.uid)
        self.queue.nominator.delete(queued.pod.uid)

    def on_done(self, step: Json, now_s: float) -> None:
        self.queue.done(self.bound(step["pod"])[0].pod.uid)

    def on_bind_failed(self, step: Json, now_s: float) -> str:
        queued, node = self.bound(step["pod"])
        self.assumed.discard(queued.pod.uid)
        freed = Change(ASSIGNED_POD_DELETE, queued.pod.on(node), None)
        failed = {**step, "nominate": ""}
        if "plugins" not in step:
            problem = self.announce(freed, now_s)
            self.fail_binding(queued, failed, now_s)
            return problem
        self.fail_binding(queued, failed, now_s)
        return self.announce(freed, now_s, except_uid=queued.pod.uid)

    def fail_binding(self, queued: QueuedPod, step: Json, now_s: float) -> None:
        self.failing = queued
        self.on_fail(step, now_s)
        del self.failing

    def on_activate(self, step: Json, now_s: float) -> None:
        known = [self.pods[key] for key in step["pods"] if key in self.pods]
        self.queue.activate(known, now_s)

    def on_advance(self, step: Json, now_s: float) -> None:
        """Time passed; nothing else."""

    def on_flush_backoff(self, step: Json, now_s: float) -> None:
        self.queue.flush_backoff(now_s)

    def on_flush_unschedulable(self, step: Json, now_s: float) -> None:
        self.queue.flush_unschedulable(now_s)

    def flying(self, name: str) -> QueuedPod:
        if hasattr(self, "failing"):
            return self.failing
        return _named(name, self.queue.in_flight.pods())

    def bound(self, name: str) -> tuple[QueuedPod, str]:
        queued = _named(name, [queued for queued, _ in self.binding.values()])
        return self.binding[queued.pod.uid]

    # --- the state --------------------------------------------------------------------------------

    def state(self, recorded: Json) -> Json:
        """Our state in the words of the recording."""
        listing = self.queue.places.listing()
        flying = self.queue.in_flight
        nominated = self.queue.nominator.nodes()
        waiting = [{"pod": q.key, "until": q.backoff_until_s} for q in listing.backoff]
        errors = [
            {"pod": q.key, "until": q.backoff_until_s, "error": True} for q in listing.error_backoff
        ]
        named = {q.key: q for part in listing for q in part}
        for queued in flying.pods():
            name = queued.key
            named[f"{name} {queued.pod.uid}" if name in named else name] = queued
        return {
            "active": [q.key for q in listing.active],
            "backoff": waiting + sorted(errors, key=lambda entry: (entry["until"], entry["pod"])),
            "unschedulable": [q.key for q in listing.unschedulable],
            "gated": [q.key for q in listing.gated],
            "in_flight": [
                f"pod {entry.key}"
                if isinstance(entry, QueuedPod)
                else f"event {entry.trigger.label}"
                for entry in flying.entries()
            ],
            "nominated": {
                node: [pod.key for pod in pods.values()] for node, pods in nominated.items()
            },
            "pods": {name: _record(queued) for name, queued in named.items()},
        }


def _named(name: str, candidates: list[QueuedPod]) -> QueuedPod:
    key, _, uid = name.partition(" ")
    return next(q for q in candidates if q.key == key and uid in ("", q.pod.uid))


def _record(queued: QueuedPod) -> Json:
    record: Json = {
        "attempts": queued.attempts,
        "unschedulable_count": queued.unschedulable_count,
        "consecutive_errors": queued.consecutive_errors,
        "timestamp": queued.timestamp_s,
        "initial_attempt": queued.initial_attempt_s,
        "backoff_until": queued.backoff_until_s,
        "rejectors": sorted(queued.rejected_by),
    }
    if queued.pending_on:
        record["pending"] = sorted(queued.pending_on)
    if queued.gated_by:
        record["gated_by"] = queued.gated_by
    if queued.was_flushed:
        record["flushed"] = True
    return record


def _difference(recorded: Json, ours: Json, path: str = "") -> str:
    for key in recorded.keys() | ours.keys():
        theirs, mine = recorded.get(key), ours.get(key)
        if theirs != mine:
            if isinstance(theirs, dict) and isinstance(mine, dict):
                return _difference(theirs, mine, f"{path}{key}.")
            return f"{path}{key}: recorded {theirs}, ours {mine}"
    return ""


assert NODE.name in KIND_OF
assert POD.name in KIND_OF
