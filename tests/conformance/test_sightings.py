"""hints.jsonl.gz: the changes that our event handlers make of each recorded pair of versions."""

from typing import Any, NamedTuple

from asched.core.cluster.changes import Change, Trigger
from asched.core.framework.profile import with_implicit
from asched.core.model.decode import decode
from asched.core.model.kinds import KINDS, POD
from asched.core.queue.event_handlers import Announce, Refresh, pod_triggers, steps
from asched.core.queue.hints import Interest
from tests.conformance.own_registrations import own_registrations
from tests.support import RECORDINGS, recorded_lines

KIND_OF = {kind.name: kind for kind in KINDS}


class Told(NamedTuple):
    trigger: Trigger
    label: str
    delivery: str
    passes: tuple[str, ...]


def derived(case: dict[str, Any]) -> list[Told]:
    """Everything our handlers make of the change, as the recording writes an event."""
    kind = KIND_OF[case["kind"]]
    old, new = (decode(kind.record, case[k]) if case[k] else None for k in ("old", "new"))
    version = case["new"] or case["old"]
    profiles = {version.get("spec", {}).get("schedulerName", "")} if kind is POD else set()
    told = []
    for step in steps(
        kind,
        old,
        new,
        owns=lambda pod: pod.spec.scheduler_name in profiles,
        is_assumed=lambda _: False,
    ):
        if isinstance(step, Announce):
            told.append(_told(step.change, "move"))
        elif isinstance(step, Refresh):
            itself = step.new.uid == case["pod"]["metadata"]["uid"]
            for trigger in pod_triggers(step.old, step.new):
                change = Change(trigger, step.old, step.new)
                told.append(_told(change, "self" if itself else "in-flight"))
    return told


def _told(change: Change, delivery: str) -> Told:
    passes = tuple(k for k, v in (("old", change.old), ("new", change.new)) if v is not None)
    return Told(change.trigger, change.trigger.label, delivery, passes)


def test_every_recorded_change_is_derived_and_no_other_is_heard() -> None:
    own = own_registrations(RECORDINGS / "conformance/registrations.json")
    interest = Interest({plugin: with_implicit(r) for plugin, r in own.items()})
    wrong = []
    for case in recorded_lines("conformance/hints.jsonl.gz"):
        told, event = derived(case), case["event"]
        if event is None:  # for pods and nodes none is made, for others none that is heard
            always_made = case["kind"] in ("Pod", "Node")
            agrees = not [one for one in told if always_made or interest.of_trigger(one.trigger)]
        else:
            recorded = event["label"], event["delivery"], tuple(event["passes"])
            agrees = recorded in [one[1:] for one in told]
        if not agrees:
            wrong.append(f"{case['name']}: recorded {event}, ours {told}")
    assert wrong == []
