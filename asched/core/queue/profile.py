"""What the queue uses of a profile: its sort key, its gates, and the receiver of reports.

Gates are PreEnqueue plugins: they decide whether a pod may become active at all. They run whenever
a pod is about to leave the unschedulable pods for the active queue or for backoff; a pod that
leaves backoff has passed already. The plugin that gated the pod last runs first, because it most
likely still rejects the pod. Nothing is written to the API about a gated pod.

A plugin that makes room gates a pod after filters rejected it, and those filters are notified of
freed room. If the rejectors are not known any more, because the profile was changed or removed for
a time, all plugins of the profile count as rejectors.

The sort keys of users' plugins are wrapped, so that they are safe in a heap: a key that cannot be
made or compared is replaced by the default order (priority, then time), so that a bug of the plugin
only changes the order of pods.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/backend/queue/scheduling_queue.go
        (runPreEnqueuePlugins), pkg/scheduler/metrics (queue_incoming_pods_total,
        unschedulable_pods, queueing_hint_execution_duration_seconds)
"""

from collections import ChainMap
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from asched.core.framework.expecting import NONE_EXPECTED, Expecting
from asched.core.framework.points import PreEnqueuePlugin
from asched.core.framework.pool_profiles import BY_SCHEDULER_NAME, ProfileOf
from asched.core.framework.registrations import Registration
from asched.core.framework.status import MISTAKES, SUCCESS, Status
from asched.core.model.pod import Pod
from asched.core.queue.queued import QueuedPod

T = TypeVar("T")
SortKey = Callable[[Pod, float], Any]


class QueueProfile(msgspec.Struct, frozen=True):
    """The parts of a profile that the queue uses; no plugin is known by name.

    The sort key of the first profile is used for all profiles; `sorted_by` names its plugin.
    `extra_events`: further changes, after which a pod is tried only if it fits.
    """

    sort_key: SortKey
    registrations: Mapping[str, Sequence[Registration]]
    pre_enqueue: Sequence[PreEnqueuePlugin] = ()
    extra_events: Mapping[str, Sequence[Registration]] = msgspec.field(default_factory=dict)
    sorted_by: str = ""


class QueueObserver:
    """Receives reports, from which metrics are made; ignores all of them."""

    def incoming(self, queue: str, label: str, queued: QueuedPod | None = None) -> None:
        """A pod entered "active", "backoff" or "unschedulable" by a change of this label."""

    def unschedulable(self, plugin: str, profile: str, by: int) -> None:
        """One pod more (1) or fewer (-1) is unschedulable because of this plugin."""

    def hint_answered(self, plugin: str, label: str, hint: str, duration_s: float) -> None:
        """A hint function returned "Queue" or "QueueSkip", or raised ("Error")."""

    def gates_ran(self, profile: str, duration_s: float) -> None:
        """The PreEnqueue plugins of a profile ran for a pod."""

    def plugin_raised(self, plugin: str, point: str, error: BaseException) -> None:
        """A plugin raised an exception, which affects one pod only."""

    def complaint(self, message: str) -> None:
        """An internal invariant was violated and repaired."""


class Gates:
    """The PreEnqueue plugins of all profiles. `profile_of`: which of them decides for a pod."""

    def __init__(
        self,
        profiles: Mapping[str, QueueProfile],
        observer: QueueObserver,
        monotonic_s: Callable[[], float] = lambda: 0.0,
        profile_of: ProfileOf = BY_SCHEDULER_NAME,
    ) -> None:
        self._plugins = {name: profile.pre_enqueue for name, profile in profiles.items()}
        self._registered = {name: frozenset(p.registrations) for name, p in profiles.items()}
        #: plugins that evict victims, which not every PostFilter plugin does
        self._makers = {
            plugin.name
            for plugins in self._plugins.values()
            for plugin in plugins
            if plugin.preempts
        }
        #: by profile: plugins that report for which pods room is being made
        self._expectant = {
            name: [
                plugin
                for plugin in plugins
                if getattr(plugin.expecting, "__func__", None) is not PreEnqueuePlugin.expecting
            ]
            for name, plugins in self._plugins.items()
        }
        self._observer = observer
        self._monotonic_s = monotonic_s
        self._profile_of = profile_of

    def admit(self, queued: QueuedPod) -> bool:
        """Run the plugins of the profile that decides for the pod now; the first that rejects it
        becomes its gate.
        """
        pod, started_s = queued.pod, self._monotonic_s()
        profile, last, gate = self._profile_of(pod), queued.gated_by, ""
        if profile != queued.profile:
            self._take_over(queued, profile)
        plugins = self._plugins.get(profile, ())
        for plugin in sorted(plugins, key=lambda p: p.name != last) if last else plugins:
            try:
                status = plugin.pre_enqueue(pod)
                if status is SUCCESS or status.is_success:  # `is` saves a call for most pods
                    continue
            except MISTAKES as error:  # the plugin's exception gates its pod
                self._observer.plugin_raised(plugin.name, "preEnqueue", error)
            gate = plugin.name
            for name in self._rejectors(plugin, queued, profile) - queued.rejectors:
                self._observer.unschedulable(name, profile, 1)
                queued.rejected_by |= {name}
            break
        queued.gated_by = gate
        self._observer.gates_ran(profile, self._monotonic_s() - started_s)
        return not gate

    def _take_over(self, queued: QueuedPod, profile: str) -> None:
        for plugin in queued.rejectors:
            self._observer.unschedulable(plugin, queued.profile, -1)
            self._observer.unschedulable(plugin, profile, 1)
        queued.profile = profile

    def refuses(self, queued: QueuedPod) -> bool:
        """Whether the plugin that gated the pod last would reject it again."""
        for plugin in self._plugins.get(queued.profile, ()):
            if plugin.name == queued.gated_by:
                ask = partial(plugin.pre_enqueue, queued.pod)
                return not self._answer(plugin, "preEnqueue", ask, Status, SUCCESS).is_success
        return False

    def holding(self, profile: str, plugin: str) -> Collection[str]:
        """Keys of pods that a gate is certain to reject again."""
        for candidate in self._plugins.get(profile, ()):
            if candidate.name == plugin:
                return self._answer(candidate, "holding", candidate.holding, Collection, ())
        return ()

    def expecting(self, departed: Pod) -> dict[str, Expecting]:
        """The pods that room is being made for, and their nodes, by profile."""
        by_profile = {}
        for profile, plugins in self._expectant.items():
            answers = [
                self._answer(p, "expecting", partial(p.expecting, departed), Expecting, None)
                for p in plugins
            ]
            expecting = [answer for answer in answers if answer]
            by_profile[profile] = expecting[0] if expecting else NONE_EXPECTED
            if len(expecting) > 1:
                by_profile[profile] = Expecting(ChainMap(*(each.node_of for each in expecting)))
        return by_profile

    def _rejectors(self, gate: PreEnqueuePlugin, queued: QueuedPod, profile: str) -> frozenset[str]:
        """The plugins whose events may help a pod that this gate rejects."""
        own = frozenset((gate.name,))
        if gate.name in self._makers:
            further = self._registered[profile] - own
            if further.isdisjoint(queued.rejectors):
                return own | further
        return own

    def _answer(
        self,
        plugin: PreEnqueuePlugin,
        point: str,
        ask: Callable[[], T],
        kind: type[Any],
        otherwise: T,
    ) -> T:
        """Call a plugin; `otherwise` if it raises or returns another type, which is reported."""
        try:
            answer = ask()
            if not isinstance(answer, kind):
                raise TypeError(f"{type(answer).__name__} is no {kind.__name__}")
        except MISTAKES as error:
            self._observer.plugin_raised(plugin.name, point, error)
            return otherwise
        return answer


class GuardedKey:
    """A key with a substitute. Reports only its first failure, because sorting compares often."""

    __slots__ = ("_guard", "has_failed", "substitute", "value")

    def __init__(self, guard: "Guard", value: Any, substitute: tuple[int, float]) -> None:
        self._guard = guard
        self.value = value
        self.substitute = substitute
        self.has_failed = value is guard

    def __eq__(self, other: object) -> bool:
        return self._compare(other, lambda left, right: left == right)

    def __lt__(self, other: object) -> bool:
        return self._compare(other, lambda left, right: left < right)

    def __hash__(self) -> int:
        return hash(self.substitute)

    def _compare(self, other: object, rule: Callable[[Any, Any], Any]) -> bool:
        assert isinstance(other, GuardedKey)
        if not (self.has_failed or other.has_failed):
            try:
                return bool(rule(self.value, other.value))
            except MISTAKES as error:  # a user's comparison may raise anything
                self.has_failed = True
                self._guard.report(error)
        return bool(rule(self.substitute, other.substitute))


class Guard:
    """Wraps the `sort_key` of one plugin."""

    def __init__(self, plugin: str, sort_key: SortKey, observer: QueueObserver) -> None:
        self._plugin = plugin
        self._sort_key = sort_key
        self._observer = observer

    def __call__(self, pod: Pod, timestamp_s: float) -> GuardedKey:
        value: Any
        try:
            value = self._sort_key(pod, timestamp_s)
        except MISTAKES as error:  # the queue must go on
            self.report(error)
            value = self  # marks a missing key
        return GuardedKey(self, value, (-pod.priority, timestamp_s))

    def report(self, error: BaseException) -> None:
        self._observer.plugin_raised(self._plugin, "queueSort", error)
