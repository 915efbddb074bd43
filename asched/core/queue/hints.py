"""Queueing hints: decide whether a change is worth another attempt for a rejected pod.

Plugins register for changes, with or without a hint function. Only hints of the plugins that
rejected a pod are called. Plugins are data here: no plugin is known by name.

A hint that raises counts as Queue, as upstream. Equal errors are reported once.

Bounds  CAUSES_MAX different errors are reported between two reloads; all are counted. EFFECTS_MAX
        pairs of rejectors and changes are cached.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/backend/queue/scheduling_queue.go
        (isPodWorthRequeuing), pkg/scheduler/scheduler.go (buildQueueingHintMap)
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Final, NamedTuple

from asched.core.cluster.budget import OutOfTurn
from asched.core.cluster.changes import Change, Trigger
from asched.core.framework.registrations import Concerns, Hint, Registration
from asched.core.framework.status import MISTAKES
from asched.core.model.pod import Pod
from asched.core.queue.profile import QueueObserver
from asched.core.queue.queued import QueuedPod, Worth

if TYPE_CHECKING:
    from asched.core.framework.registrations import HintFunction
    from asched.core.queue.concern_indexes import ConcernIndexes
    from asched.core.queue.unschedulable import GroupKey, RejectorGroup

Matching = tuple[Registration, ...]

#: Different errors that are reported. A guess.
CAUSES_MAX: Final = 256
#: Cached pairs of rejectors and changes. A guess: a few dozens are in use.
EFFECTS_MAX: Final = 4096
QUEUE_TEXT: Final = Hint.QUEUE.value
SKIP_TEXT: Final = Hint.SKIP.value

#: (profile, class of pods, plugin) -> whether the hint returned Queue; for one change.
Memo = dict[tuple[str, Hashable, str], bool]


class TriggerEffect(NamedTuple):
    """For the pods of a group and a trigger: `has_hint`: a hint may return Queue; `profits`: an
    extra event may help; `concerns`: registrations that select classes, None if a plugin has none.
    """

    has_hint: bool
    profits: bool
    concerns: frozenset[Concerns] | None


class Listeners(NamedTuple):
    """Groups that a change may help, and the indexes to ask for each registration that selects
    classes; None if a plugin has no such registration.
    """

    groups: "tuple[tuple[RejectorGroup, TriggerEffect], ...]"
    concerns: "tuple[tuple[Concerns, tuple[ConcernIndexes, ...]], ...] | None"


class Interest:
    """The registrations of a profile's plugins. `of_trigger`: those that match a trigger, by
    plugin.
    """

    def __init__(self, registrations: Mapping[str, Sequence[Registration]]) -> None:
        self.of_trigger = cache(partial(_matching, registrations))


Interests = Mapping[str, Interest]


def _matching(
    registrations: Mapping[str, Sequence[Registration]], trigger: Trigger
) -> dict[str, Matching]:
    return {
        plugin: matching
        for plugin, registered in registrations.items()
        if (matching := tuple(r for r in registered if r.trigger.matches(trigger)))
    }


_NO_INTEREST: Final = Interest({})


class HintEvaluator:
    """Calls hints for a pod and a change. `monotonic_s` measures how long hint functions take.

    `effect`: the `TriggerEffect` of a group and a trigger; `is_of_interest`: whether a plugin of
    any profile is registered for a trigger.
    """

    def __init__(
        self,
        interests: Interests,
        observer: QueueObserver,
        monotonic_s: Callable[[], float],
        extra_events: Interests,
    ) -> None:
        self._interests = interests
        self._extra_events = extra_events
        self._observer = observer
        self._monotonic_s = monotonic_s
        self._reported: set[tuple[str, str]] = set()  # plugin, error
        self.effect = lru_cache(EFFECTS_MAX)(partial(_effect, interests, extra_events))
        of_all = (*interests.values(), *extra_events.values())
        self.is_of_interest = cache(partial(_is_of_interest, of_all))
        #: of the groups in `_cached_groups`, by trigger
        self._listeners: dict[Trigger, Listeners] = {}
        self._cached_groups: tuple[RejectorGroup, ...] = ()

    def listeners(self, groups: "tuple[RejectorGroup, ...]", trigger: Trigger) -> Listeners:
        """The groups that such a change may help. One look-up if `groups` is the same tuple as in
        the last call, as when pods arrive while no pod becomes unschedulable.
        """
        if groups is not self._cached_groups:
            self._cached_groups = groups
            self._listeners = {}
        listeners = self._listeners.get(trigger)
        if listeners is None:
            effects = [(group, self.effect(group.key, trigger)) for group in groups]
            helped = [(group, known) for group, known in effects if known.has_hint or known.profits]
            by_concern: dict[Concerns, list[ConcernIndexes]] = {}
            for group, known in helped:
                for concern in known.concerns or ():
                    by_concern.setdefault(concern, []).append(group.concerned)
            is_open = any(known.concerns is None for _, known in helped)
            indexes = tuple((concern, tuple(some)) for concern, some in by_concern.items())
            listeners = self._listeners[trigger] = Listeners(
                tuple(helped), None if is_open else indexes
            )
        return listeners

    def profits(self, queued: QueuedPod, change: Change) -> bool:
        """Whether an extra event might help the pod; a dry run decides."""
        extra = self._extra_events.get(queued.profile, _NO_INTEREST)
        return any(
            plugin in queued.rejectors
            and _shared(_may_help, plugin, matching, queued, change, memo=None)
            for plugin, matching in extra.of_trigger(change.trigger).items()
        )

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
        interest = self._interests.get(queued.profile)
        if interest is None:
            return Worth.AFTER_BACKOFF
        worth = Worth.SKIP
        for plugin, matching in interest.of_trigger(trigger).items():
            if plugin not in rejectors:
                continue
            if not _shared(self._ask, plugin, matching, queued, change, memo):
                continue
            if plugin in queued.pending_on:
                return Worth.IMMEDIATELY
            worth = Worth.AFTER_BACKOFF
            if not queued.pending_on:
                break
        return worth

    def _ask(self, plugin: str, hint: "HintFunction | None", pod: Pod, change: Change) -> bool:
        start_s = self._monotonic_s()
        try:
            # `_value_`, since `value` is a Python function, and hints are called by the million
            answer = hint(pod, change.old, change.new)._value_ if hint else QUEUE_TEXT
        except OutOfTurn:  # the pod's own attempt has enough time
            answer = Hint.QUEUE.value
        except MISTAKES as error:  # an exception must not leave the pod unschedulable
            answer = "Error"
            self._report(plugin, pod, change.trigger.label, error)
        duration_s = self._monotonic_s() - start_s
        self._observer.hint_answered(plugin, change.trigger.label, answer, duration_s)
        return answer != SKIP_TEXT

    def _report(self, plugin: str, pod: Pod, label: str, error: BaseException) -> None:
        cause = plugin, repr(error)
        if cause in self._reported or len(self._reported) >= CAUSES_MAX:
            return
        self._reported.add(cause)
        error.add_note(f"hint for pod {pod.key} on {label}; reported once")
        self._observer.plugin_raised(plugin, "queueingHint", error)


def _shared(
    ask: "Callable[[str, HintFunction | None, Pod, Change], bool]",
    plugin: str,
    matching: Matching,
    queued: QueuedPod,
    change: Change,
    memo: Memo | None,
) -> bool:
    """Whether a hint of the plugin says Queue, by `ask`; the memo shares that within a class."""
    key = (queued.profile, queued.class_key, plugin)
    if memo is None or queued.class_key is None:
        return any(ask(plugin, r.hint, queued.pod, change) for r in matching)
    if key not in memo:
        memo[key] = any(ask(plugin, r.hint, queued.pod, change) for r in matching)
    return memo[key]


def _may_help(_plugin: str, hint: "HintFunction | None", pod: Pod, change: Change) -> bool:
    """Call a hint without metrics; one that raises means a dry run."""
    try:
        return hint is None or hint(pod, change.old, change.new) is Hint.QUEUE
    except MISTAKES:  # the dry run decides
        return True


def _is_of_interest(interests: Sequence[Interest], trigger: Trigger) -> bool:
    return any(interest.of_trigger(trigger) for interest in interests)


def _effect(
    interests: Interests, extra_events: Interests, group: "GroupKey", trigger: Trigger
) -> TriggerEffect:
    hinting = interests.get(group.profile, _NO_INTEREST).of_trigger(trigger)
    extra = extra_events.get(group.profile, _NO_INTEREST).of_trigger(trigger)
    rejectors = group.rejected_by | group.pending_on
    is_any = trigger.is_wildcard or group.profile not in interests
    has_hint = is_any or not hinting.keys().isdisjoint(rejectors)
    profits = not extra.keys().isdisjoint(rejectors)
    if group.gated_by:
        has_hint = has_hint and group.gated_by in hinting
        profits = profits and group.gated_by in extra
    concerns = {
        registration.concerns
        for by_plugin in (hinting, extra)
        for plugin, matching in by_plugin.items()
        if plugin in rejectors
        for registration in matching
    }
    known = frozenset(concern for concern in concerns if concern is not None)
    return TriggerEffect(has_hint, profits, known if len(known) == len(concerns) else None)
