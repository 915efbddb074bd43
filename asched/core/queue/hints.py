"""Hints: is a change worth another attempt for a pod that was rejected?

Plugins register for changes, with or without a hint function. Only the plugins that rejected a pod
are asked about it. Plugins are data here: names are compared, never known.

A hint that raises counts as Queue, as upstream has it. What it raised is told once, not at every
change.

Bounds  CAUSES_MAX different errors are told between two reloads; all are counted. HEARD_MAX pairs
        of rejectors and changes are kept.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/backend/queue/scheduling_queue.go
        (isPodWorthRequeuing), pkg/scheduler/scheduler.go (buildQueueingHintMap)
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from asched.core.framework.points import Concerns, Hint, Registration
from asched.core.framework.status import MISTAKES
from asched.core.model.kinds import (
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    DEVICE_CLASS,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    STORAGE_CLASS,
    VOLUME_ATTACHMENT,
)
from asched.core.model.pod import Pod
from asched.core.queue.observer import QueueObserver
from asched.core.queue.queued import QueuedPod
from asched.core.state.budget import OutOfTurn
from asched.core.state.changes import WILDCARD, Action, Change, Trigger

if TYPE_CHECKING:
    from asched.core.framework.points import HintFunction
    from asched.core.queue.concerned import Concerned
    from asched.core.queue.unschedulable import GroupKey, RejectorGroup

#: What a plugin listens to that does not say what it listens to.
EVERYTHING: Final = tuple(
    Registration(Trigger(kind.resource, Action.ALL))
    for kind in (
        POD,
        NODE,
        PERSISTENT_VOLUME,
        PERSISTENT_VOLUME_CLAIM,
        STORAGE_CLASS,
        CSI_NODE,
        CSI_DRIVER,
        CSI_STORAGE_CAPACITY,
        VOLUME_ATTACHMENT,
        RESOURCE_CLAIM,
        RESOURCE_SLICE,
        DEVICE_CLASS,
    )
)
#: Of different errors. A guess: nobody reads more of them.
CAUSES_MAX: Final = 256
#: Of rejectors and changes of which is kept who hears of them. A guess: a few dozens are in use.
HEARD_MAX: Final = 4096
QUEUE_TEXT: Final = Hint.QUEUE.value
SKIP_TEXT: Final = Hint.SKIP.value
_NODE_TAINT: Final = Trigger(NODE.resource, Action.UPDATE_NODE_TAINT)

#: (class of pods, plugin) -> whether it said Queue; lives as long as one change.
Memo = dict[tuple[Hashable, str], bool]


class Heard(NamedTuple):
    """Whether pods with some rejectors may hear of a change, whether it may be overlooked
    otherwise, and whom it can concern among them: None if that is not told.
    """

    hears: bool
    profits: bool
    concerns: frozenset[Concerns] | None


class Listeners(NamedTuple):
    """Groups of which somebody may hear of a change, and whom it can concern, with the groups that
    say so; None if one of them does not tell.
    """

    told: "tuple[tuple[RejectorGroup, Heard], ...]"
    concerns: "tuple[tuple[Concerns, tuple[Concerned, ...]], ...] | None"


class Worth(IntEnum):
    """What to do with a pod after a change; the greater wins."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


def registered(registrations: Sequence[Registration] | None) -> tuple[Registration, ...]:
    """What a plugin's registrations amount to.

    None means everything, and so does the wildcard resource. Whoever listens to new nodes but not
    to their taints hears of every change of taints as well: a node may count as new for a pod once
    a taint goes.
    """
    if registrations is None:
        return EVERYTHING
    resolved: list[Registration] = []
    hears_new_nodes = hears_taints = False
    for registration in registrations:
        trigger = registration.trigger
        if trigger.resource == WILDCARD:
            resolved.extend(EVERYTHING)
            hears_taints = True
            continue
        resolved.append(registration)
        if trigger.resource == NODE.resource:
            hears_new_nodes |= bool(trigger.action & Action.ADD)
            hears_taints |= bool(trigger.action & Action.UPDATE_NODE_TAINT)
    if hears_new_nodes and not hears_taints:
        resolved.append(Registration(_NODE_TAINT))
    return tuple(resolved)


def watched(profiles: Iterable[Mapping[str, Sequence[Registration]]]) -> dict[str, Action]:
    """Resource -> every action that some plugin of some profile listens to."""
    union: dict[str, Action] = {}
    for registrations in profiles:
        for one_plugin in registrations.values():
            for resource, action, _ in (registration.trigger for registration in one_plugin):
                union[resource] = union.get(resource, Action(0)) | action
    return union


class Interest:
    """Who in a profile is asked about which trigger. Answers are remembered per trigger."""

    def __init__(self, registrations: Mapping[str, Sequence[Registration]]) -> None:
        self._registrations = registrations
        self._asked: dict[Trigger, dict[str, tuple[HintFunction | None, ...]]] = {}
        self._concerns: dict[Trigger, dict[str, tuple[Concerns, ...] | None]] = {}

    def asked(self, trigger: Trigger) -> "dict[str, tuple[HintFunction | None, ...]]":
        """Plugin -> hint functions of its matching registrations; None stands for always Queue."""
        found = self._asked.get(trigger)
        if found is None:
            found = self._asked[trigger] = {
                plugin: hints
                for plugin, registrations in self._registrations.items()
                if (hints := tuple(r.hint for r in registrations if r.trigger.matches(trigger)))
            }
        return found

    def concerns(self, trigger: Trigger) -> "dict[str, tuple[Concerns, ...] | None]":
        """Plugin -> whom such a change can concern; None where a registration does not tell."""
        found = self._concerns.get(trigger)
        if found is None:
            found = self._concerns[trigger] = {}
            for plugin, registrations in self._registrations.items():
                told = [r.concerns for r in registrations if r.trigger.matches(trigger)]
                if told:
                    known = tuple(one for one in told if one is not None)
                    found[plugin] = known if len(known) == len(told) else None
        return found


_NOBODY_ASKED: Final = Interest({})


class HintEvaluator:
    """Decides for one pod and one change. `counter_s` measures how long hint functions take."""

    def __init__(
        self,
        interests: Mapping[str, Interest],
        observer: QueueObserver,
        counter_s: Callable[[], float],
        extra_events: Mapping[str, Interest] | None = None,
    ) -> None:
        self._interests = interests
        self._extra_events = extra_events or {}
        self._observer = observer
        self._counter_s = counter_s
        self._told: set[tuple[str, str]] = set()  # plugin, error
        self._heard: dict[tuple[GroupKey, Trigger], Heard] = {}
        self._of_interest: dict[Trigger, bool] = {}
        #: of the groups asked about last
        self._listeners: dict[Trigger, Listeners] = {}
        self._asked_about: tuple[RejectorGroup, ...] = ()

    def is_of_interest(self, trigger: Trigger) -> bool:
        """Whether any plugin of any profile would be asked."""
        found = self._of_interest.get(trigger)
        if found is None:
            found = self._of_interest[trigger] = any(
                interest.asked(trigger)
                for interests in (self._interests, self._extra_events)
                for interest in interests.values()
            )
        return found

    def listeners(self, groups: "tuple[RejectorGroup, ...]", trigger: Trigger) -> Listeners:
        """Those groups of which somebody may hear of such a change: one look-up where the same
        tuple was asked about last, as of each pod that comes while nobody else begins to rest.
        """
        if groups is not self._asked_about:
            self._asked_about = groups
            self._listeners = {}
        found = self._listeners.get(trigger)
        if found is None:
            heard = [(group, self.heard(group.key, trigger)) for group in groups]
            told = [(group, one) for group, one in heard if one.hears or one.profits]
            by_concern: dict[Concerns, list[Concerned]] = {}
            for group, one in told:
                for concerns in one.concerns or ():
                    by_concern.setdefault(concerns, []).append(group.concerned)
            is_open = any(one.concerns is None for _, one in told)
            who = tuple((concerns, tuple(some)) for concerns, some in by_concern.items())
            found = self._listeners[trigger] = Listeners(tuple(told), None if is_open else who)
        return found

    def heard(self, group: "GroupKey", trigger: Trigger) -> Heard:
        """What is to be known of such a change before any of these pods is asked about."""
        found = self._heard.get((group, trigger))
        if found is None:
            if len(self._heard) >= HEARD_MAX:
                self._heard.clear()
            hears, profits = self.may_hear(group, trigger), self.may_profit(group, trigger)
            concerns = self._concerns(group, trigger)
            found = Heard(hears, profits, concerns)
            self._heard[group, trigger] = found
        return found

    def may_hear(self, group: "GroupKey", trigger: Trigger) -> bool:
        """False if no pod with these rejectors can be helped by such a change."""
        interest = self._interests.get(group.profile, _NOBODY_ASKED)
        if group.gated_by and group.gated_by not in interest.asked(trigger):
            return False
        if trigger.is_wildcard or group.profile not in self._interests:
            return True
        asked = interest.asked(trigger).keys()
        return not (asked.isdisjoint(group.rejected_by) and asked.isdisjoint(group.pending_on))

    def may_profit(self, group: "GroupKey", trigger: Trigger) -> bool:
        """The same for what is overlooked otherwise: changes that hints say nothing of, and those
        that only plugins hear of which were blamed after the attempt.
        """
        asked = self._extra_events.get(group.profile, _NOBODY_ASKED).asked(trigger).keys()
        if group.gated_by and group.gated_by not in asked:
            return False
        everybody = (group.rejected_by, group.pending_on, group.also_blamed)
        if not all(map(asked.isdisjoint, everybody)):
            return True
        heard = self._interests.get(group.profile, _NOBODY_ASKED).asked(trigger).keys()
        return not heard.isdisjoint(group.also_blamed)

    def _concerns(self, group: "GroupKey", trigger: Trigger) -> frozenset[Concerns] | None:
        """Whom such a change can concern among pods with these rejectors, all who hear of it taken
        together; None if that is not told of one of them.
        """
        found: set[Concerns] = set()
        blamed = (group.rejected_by, group.pending_on, group.also_blamed)
        for interests in (self._interests, self._extra_events):
            told = interests.get(group.profile, _NOBODY_ASKED).concerns(trigger)
            for plugin, concerns in told.items():
                if any(plugin in some for some in blamed):
                    if concerns is None:
                        return None
                    found.update(concerns)
        return frozenset(found)

    def profits(
        self,
        queued: QueuedPod,
        change: Change,
        memo: Memo | None = None,
        second_memo: Memo | None = None,
    ) -> bool:
        """Whether such a change might help the pod, which is for its fit to decide.

        `memo` is that of `worth`.
        """
        profile, trigger = queued.pod.spec.scheduler_name, change.trigger
        rejectors, also = queued.rejectors, queued.also_blamed
        for plugin, hints in self._extra_events.get(profile, _NOBODY_ASKED).asked(trigger).items():
            if (plugin in rejectors or plugin in also) and self._may_help(
                plugin, hints, queued, change, second_memo
            ):
                return True
        heard = self._interests.get(profile, _NOBODY_ASKED).asked(trigger) if also else {}
        return any(
            plugin in also and self._says_queue(plugin, hints, queued, change, memo)
            for plugin, hints in heard.items()
        )

    def _may_help(
        self,
        plugin: str,
        hints: "tuple[HintFunction | None, ...]",
        queued: QueuedPod,
        change: Change,
        memo: Memo | None,
    ) -> bool:
        """The quick way: no metrics, and a hint that raises calls for a look."""
        key = (queued.class_key, plugin)
        if queued.class_key is None:
            memo = None
        if memo is not None and key in memo:
            return memo[key]
        pod, old, new = queued.pod, change.old, change.new
        try:
            helps = any(hint is None or hint(pod, old, new) is Hint.QUEUE for hint in hints)
        except MISTAKES:  # the look tells what the hint could not
            helps = True
        if memo is not None:
            memo[key] = helps
        return helps

    def worth(self, queued: QueuedPod, change: Change, memo: Memo | None = None) -> Worth:
        """With a memo, pods of a class share answers; not for updates of the pod itself."""
        rejectors = queued.rejectors
        trigger = change.trigger
        if not rejectors:
            return Worth.AFTER_BACKOFF
        if trigger.is_wildcard:
            aimed_at = change.new
            missed = isinstance(aimed_at, Pod) and aimed_at.uid != queued.pod.uid
            return Worth.SKIP if missed else Worth.AFTER_BACKOFF
        interest = self._interests.get(queued.pod.spec.scheduler_name)
        if interest is None:
            return Worth.AFTER_BACKOFF
        worth = Worth.SKIP
        for plugin, hints in interest.asked(trigger).items():
            if plugin not in rejectors or not self._says_queue(plugin, hints, queued, change, memo):
                continue
            if plugin in queued.pending_on:
                return Worth.IMMEDIATELY
            worth = Worth.AFTER_BACKOFF
            if not queued.pending_on:
                break
        return worth

    def _says_queue(
        self,
        plugin: str,
        hints: "tuple[HintFunction | None, ...]",
        queued: QueuedPod,
        change: Change,
        memo: Memo | None,
    ) -> bool:
        key = (queued.class_key, plugin)
        if memo is None or queued.class_key is None:
            return any(self._ask(plugin, hint, queued.pod, change) for hint in hints)
        if key not in memo:
            memo[key] = any(self._ask(plugin, hint, queued.pod, change) for hint in hints)
        return memo[key]

    def _ask(self, plugin: str, hint: "HintFunction | None", pod: Pod, change: Change) -> bool:
        start_s = self._counter_s()
        try:
            # `value` is a Python function, and hints are asked by the million
            answer = hint(pod, change.old, change.new)._value_ if hint else QUEUE_TEXT
        except OutOfTurn:  # its own attempt tells, when it has time for that
            answer = Hint.QUEUE.value
        except MISTAKES as error:  # a plugin's surprise must not keep a pod asleep
            answer = "Error"
            self._tell(plugin, pod, change.trigger.label, error)
        duration_s = self._counter_s() - start_s
        self._observer.hint_answered(plugin, change.trigger.label, answer, duration_s)
        return answer != SKIP_TEXT

    def _tell(self, plugin: str, pod: Pod, label: str, error: BaseException) -> None:
        cause = plugin, repr(error)
        if cause in self._told or len(self._told) >= CAUSES_MAX:
            return
        self._told.add(cause)
        error.add_note(f"asked for pod {pod.key} on {label}; told once")
        self._observer.plugin_raised(plugin, "queueingHint", error)
