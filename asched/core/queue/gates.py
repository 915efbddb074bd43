"""Gates: PreEnqueue plugins decide whether a pod may become active at all.

They run whenever a pod is about to leave the unschedulable pods for the active queue or for
backoff; a pod that leaves backoff has passed already. The plugin that gated the pod last runs
first, because it most likely still rejects the pod. Nothing is written to the API about a gated
pod.

A plugin that makes room gates a pod after filters rejected it, and those filters are notified of
freed room. If the rejectors are not known any more, because the profile was changed or removed for
a time, all plugins of the profile count as rejectors.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/backend/queue/scheduling_queue.go
        (runPreEnqueuePlugins)
"""

from collections import ChainMap
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from asched.core.framework.points import NONE_EXPECTED, Expecting, PreEnqueuePlugin
from asched.core.framework.status import MISTAKES, SUCCESS, Status
from asched.core.model.pod import Pod
from asched.core.queue.profile import QueueObserver, QueueProfile
from asched.core.queue.queued import QueuedPod

T = TypeVar("T")


class Gates:
    def __init__(
        self,
        profiles: Mapping[str, QueueProfile],
        observer: QueueObserver,
        counter_s: Callable[[], float] = lambda: 0.0,
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
            name: [plugin for plugin in plugins if _overrides_expecting(plugin)]
            for name, plugins in self._plugins.items()
        }
        self._observer = observer
        self._counter_s = counter_s

    def admit(self, queued: QueuedPod) -> bool:
        """Run the plugins of the pod's profile; the first that rejects it becomes its gate."""
        pod, started_s = queued.pod, self._counter_s()
        profile, last, gate = pod.spec.scheduler_name, queued.gated_by, ""
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
        self._observer.gates_asked(profile, self._counter_s() - started_s)
        return not gate

    def refuses(self, queued: QueuedPod) -> bool:
        """Whether the plugin that gated the pod last would reject it again."""
        for plugin in self._plugins.get(queued.pod.spec.scheduler_name, ()):
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
        return {
            profile: self._expecting(plugins, departed)
            for profile, plugins in self._expectant.items()
        }

    def _expecting(self, plugins: Sequence[PreEnqueuePlugin], departed: Pod) -> Expecting:
        answers = [
            self._answer(
                plugin, "expecting", partial(plugin.expecting, departed), Expecting, NONE_EXPECTED
            )
            for plugin in plugins
        ]
        expecting = [answer for answer in answers if answer]
        if len(expecting) <= 1:
            return expecting[0] if expecting else NONE_EXPECTED
        return Expecting(ChainMap(*(answer.node_of for answer in expecting)))

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


def _overrides_expecting(plugin: PreEnqueuePlugin) -> bool:
    return getattr(plugin.expecting, "__func__", None) is not PreEnqueuePlugin.expecting
