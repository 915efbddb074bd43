"""Queueing hints: decide whether a change is worth another attempt for a rejected pod.

Plugins register for changes, with or without a hint function. Only hints of the plugins that
rejected a pod are called. Plugins are data here: no plugin is known by name.

A hint that raises counts as Queue, as upstream. Equal errors are reported once.

Bounds  CAUSES_MAX different errors are reported between two reloads; all are counted. HEARD_MAX
        pairs of rejectors and changes are cached.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/backend/queue/scheduling_queue.go
        (isPodWorthRequeuing), pkg/scheduler/scheduler.go (buildQueueingHintMap)
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from asched.core.cluster.budget import OutOfTurn
from asched.core.cluster.changes import Change, Trigger
from asched.core.framework.points import Concerns, Hint, Registration
from asched.core.framework.status import MISTAKES
from asched.core.model.pod import Pod
from asched.core.queue.profile import QueueObserver
from asched.core.queue.queued import QueuedPod, Worth

if TYPE_CHECKING:
    from asched.core.framework.points import HintFunction
    from asched.core.queue.concerned import ConcernIndexes
    from asched.core.queue.unschedulable import GroupKey, RejectorGroup

#: Different errors that are reported. A guess.
CAUSES_MAX: Final = 256
#: Cached pairs of rejectors and changes. A guess: a few dozens are in use.
HEARD_MAX: Final = 4096
QUEUE_TEXT: Final = Hint.QUEUE.value
SKIP_TEXT: Final = Hint.SKIP.value

#: (class of pods, plugin) -> whether the hint returned Queue; for one change.
Memo = dict[tuple[Hashable, str], bool]


class TriggerEffect(NamedTuple):
    """For the pods of a group and a trigger: `hears`: a hint may return Queue; `profits`: an extra
    event may help; `concerns`: registrations that select classes, None if a plugin has none.
    """

    hears: bool
    profits: bool
    concerns: frozenset[Concerns] | None


class Listeners(NamedTuple):
    """Groups that a change may help, and the indexes to ask for each registration that selects
    classes; None if a plugin has no such registration.
    """

    groups: "tuple[tuple[RejectorGroup, TriggerEffect], ...]"
    concerns: "tuple[tuple[Concerns, tuple[ConcernIndexes, ...]], ...] | None"


class Interest:
    """The registrations of a profile's plugins, cached by trigger."""

    def __init__(self, registrations: Mapping[str, Sequence[Registration]]) -> None:
        self._registrations = registrations
        self._asked: dict[Trigger, dict[str, tuple[HintFunction | None, ...]]] = {}
        self._concerns: dict[Trigger, dict[str, tuple[Concerns, ...] | None]] = {}

    def asked(self, trigger: Trigger) -> "dict[str, tuple[HintFunction | None, ...]]":
        """Plugin -> hint functions of its matching registrations; None always means Queue."""
        found = self._asked.get(trigger)
        if found is None:
            found = self._asked[trigger] = {
                plugin: hints
                for plugin, registrations in self._registrations.items()
                if (hints := tuple(r.hint for r in registrations if r.trigger.matches(trigger)))
            }
        return found

    def concerns(self, trigger: Trigger) -> "dict[str, tuple[Concerns, ...] | None]":
        """Plugin -> its matching `Concerns`; None if a matching registration has none."""
        found = self._concerns.get(trigger)
        if found is None:
            found = self._concerns[trigger] = {}
            for plugin, registrations in self._registrations.items():
                matching = [r.concerns for r in registrations if r.trigger.matches(trigger)]
                if matching:
                    known = tuple(concern for concern in matching if concern is not None)
                    found[plugin] = known if len(known) == len(matching) else None
        return found


_NO_INTEREST: Final = Interest({})


class HintEvaluator:
    """Calls hints for a pod and a change. `counter_s` measures how long hint functions take."""

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
        self._reported: set[tuple[str, str]] = set()  # plugin, error
        self._heard: dict[tuple[GroupKey, Trigger], TriggerEffect] = {}
        self._of_interest: dict[Trigger, bool] = {}
        #: of the groups in `_asked_about`, by trigger
        self._listeners: dict[Trigger, Listeners] = {}
        self._asked_about: tuple[RejectorGroup, ...] = ()

    def is_of_interest(self, trigger: Trigger) -> bool:
        """Whether a plugin of any profile is registered for the trigger."""
        found = self._of_interest.get(trigger)
        if found is None:
            found = self._of_interest[trigger] = any(
                interest.asked(trigger)
                for interests in (self._interests, self._extra_events)
                for interest in interests.values()
            )
        return found

    def listeners(self, groups: "tuple[RejectorGroup, ...]", trigger: Trigger) -> Listeners:
        """The groups that such a change may help. One look-up if `groups` is the same tuple as in
        the last call, as when pods arrive while no pod becomes unschedulable.
        """
        if groups is not self._asked_about:
            self._asked_about = groups
            self._listeners = {}
        found = self._listeners.get(trigger)
        if found is None:
            heard = [(group, self.heard(group.key, trigger)) for group in groups]
            helped = [(group, known) for group, known in heard if known.hears or known.profits]
            by_concern: dict[Concerns, list[ConcernIndexes]] = {}
            for group, known in helped:
                for concern in known.concerns or ():
                    by_concern.setdefault(concern, []).append(group.concerned)
            is_open = any(known.concerns is None for _, known in helped)
            indexes = tuple((concern, tuple(some)) for concern, some in by_concern.items())
            found = self._listeners[trigger] = Listeners(
                tuple(helped), None if is_open else indexes
            )
        return found

    def heard(self, group: "GroupKey", trigger: Trigger) -> TriggerEffect:
        """The cached `TriggerEffect` of a group and a trigger."""
        found = self._heard.get((group, trigger))
        if found is None:
            if len(self._heard) >= HEARD_MAX:
                self._heard.clear()
            hears, profits = self.may_hear(group, trigger), self.may_profit(group, trigger)
            concerns = self._concerns(group, trigger)
            found = TriggerEffect(hears, profits, concerns)
            self._heard[group, trigger] = found
        return found

    def may_hear(self, group: "GroupKey", trigger: Trigger) -> bool:
        """False if no pod with these rejectors can be helped by such a change."""
        interest = self._interests.get(group.profile, _NO_INTEREST)
        if group.gated_by and group.gated_by not in interest.asked(trigger):
            return False
        if trigger.is_wildcard or group.profile not in self._interests:
            return True
        asked = interest.asked(trigger).keys()
        return not (asked.isdisjoint(group.rejected_by) and asked.isdisjoint(group.pending_on))

    def may_profit(self, group: "GroupKey", trigger: Trigger) -> bool:
        """Whether an extra event may help pods with these rejectors: a change without a hint, or a
        change that only plugins of `also_blamed` are registered for.
        """
        asked = self._extra_events.get(group.profile, _NO_INTEREST).asked(trigger).keys()
        if group.gated_by and group.gated_by not in asked:
            return False
        blamed = (group.rejected_by, group.pending_on, group.also_blamed)
        if not all(map(asked.isdisjoint, blamed)):
            return True
        heard = self._interests.get(group.profile, _NO_INTEREST).asked(trigger).keys()
        return not heard.isdisjoint(group.also_blamed)

    def _concerns(self, group: "GroupKey", trigger: Trigger) -> frozenset[Concerns] | None:
        """The `Concerns` of all plugins that may wake these pods after such a change; None if one
        of the plugins has a registration without.
        """
        found: set[Concerns] = set()
        blamed = (group.rejected_by, group.pending_on, group.also_blamed)
        for interests in (self._interests, self._extra_events):
            by_plugin = interests.get(group.profile, _NO_INTEREST).concerns(trigger)
            for plugin, concerns in by_plugin.items():
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
        """Whether an extra event might help the pod; a dry run decides whether it fits.

        `memo` as in `worth`.
        """
        profile, trigger = queued.pod.spec.scheduler_name, change.trigger
        rejectors, also = queued.rejectors, queued.also_blamed
        for plugin, hints in self._extra_events.get(profile, _NO_INTEREST).asked(trigger).items():
            if (plugin in rejectors or plugin in also) and self._may_help(
                plugin, hints, queued, change, second_memo
            ):
                return True
        heard = self._interests.get(profile, _NO_INTEREST).asked(trigger) if also else {}
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
        """Call hints without metrics; a hint that raises means a dry run."""
        key = (queued.class_key, plugin)
        if queued.class_key is None:
            memo = None
        if memo is not None and key in memo:
            return memo[key]
        pod, old, new = queued.pod, change.old, change.new
        try:
            helps = any(hint is None or hint(pod, old, new) is Hint.QUEUE for hint in hints)
        except MISTAKES:  # the dry run decides
            helps = True
        if memo is not None:
            memo[key] = helps
        return helps

    def worth(self, queued: QueuedPod, change: Change, memo: Memo | None = None) -> Worth:
        """The worth of a change for a pod. With a memo, pods of a class share the results; not for
        updates of the pod itself.
        """
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
            # `_value_`, since `value` is a Python function, and hints are called by the million
            answer = hint(pod, change.old, change.new)._value_ if hint else QUEUE_TEXT
        except OutOfTurn:  # the pod's own attempt has enough time
            answer = Hint.QUEUE.value
        except MISTAKES as error:  # an exception must not leave the pod unschedulable
            answer = "Error"
            self._report(plugin, pod, change.trigger.label, error)
        duration_s = self._counter_s() - start_s
        self._observer.hint_answered(plugin, change.trigger.label, answer, duration_s)
        return answer != SKIP_TEXT

    def _report(self, plugin: str, pod: Pod, label: str, error: BaseException) -> None:
        cause = plugin, repr(error)
        if cause in self._reported or len(self._reported) >= CAUSES_MAX:
            return
        self._reported.add(cause)
        error.add_note(f"hint for pod {pod.key} on {label}; reported once")
        self._observer.plugin_raised(plugin, "queueingHint", error)
