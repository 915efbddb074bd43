"""Gates: PreEnqueue plugins decide whether a pod may become active at all.

They are asked whenever a pod is about to leave its rest, for the active lane or for backoff; a pod
that leaves backoff has passed already. The plugin that gated the pod last is asked first, because
most likely it still does. Nothing is written to the API about a gated pod.

A plugin that makes room holds a pod back after filters rejected it, and those hear of the room that
comes free. Where nobody knows any more who they were, since the profile has changed or was gone for
a while, it may be any of the profile.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/backend/queue/scheduling_queue.go
        (runPreEnqueuePlugins)
"""

from collections import ChainMap
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from asched.core.framework.expecting import NOBODY_EXPECTS, Expecting
from asched.core.framework.points import PreEnqueuePlugin
from asched.core.framework.status import MISTAKES, SUCCESS, Status
from asched.core.model.pod import Pod
from asched.core.queue.observer import QueueObserver
from asched.core.queue.profile import QueueProfile
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
        #: those that make room as well, which is more than to take part in PostFilter
        self._makers = {
            one.name for plugins in self._plugins.values() for one in plugins if one.preempts
        }
        #: by profile: those that tell for whom room is being made
        self._expectant = {
            name: [one for one in plugins if _tells_whom_it_expects(one)]
            for name, plugins in self._plugins.items()
        }
        self._observer = observer
        self._counter_s = counter_s

    def admit(self, queued: QueuedPod) -> bool:
        """Ask all plugins of the pod's profile; the first that says no becomes its gate."""
        profile = queued.pod.spec.scheduler_name
        started_s = self._counter_s()
        is_admitted = self._ask(queued, profile)
        self._observer.gates_asked(profile, self._counter_s() - started_s)
        return is_admitted

    def refuses(self, queued: QueuedPod) -> bool:
        """Whether the gate that refused the pod last would do so again."""
        for plugin in self._plugins.get(queued.pod.spec.scheduler_name, ()):
            if plugin.name == queued.gated_by:
                ask = partial(plugin.pre_enqueue, queued.pod)
                return not self._told(plugin, "preEnqueue", ask, Status, SUCCESS).is_success
        return False

    def holding(self, profile: str, plugin: str) -> Collection[str]:
        """Keys of pods that a gate would surely go on to refuse."""
        for candidate in self._plugins.get(profile, ()):
            if candidate.name == plugin:
                return self._told(candidate, "holding", candidate.holding, Collection, ())
        return ()

    def expecting(self, departed: Pod) -> dict[str, Expecting]:
        """For whom room is being made, and where, by profile."""
        return {
            profile: self._expecting(plugins, departed)
            for profile, plugins in self._expectant.items()
        }

    def _expecting(self, plugins: Sequence[PreEnqueuePlugin], departed: Pod) -> Expecting:
        told = [
            self._told(
                one, "expecting", partial(one.expecting, departed), Expecting, NOBODY_EXPECTS
            )
            for one in plugins
        ]
        some = [one for one in told if one]
        if len(some) <= 1:
            return some[0] if some else NOBODY_EXPECTS
        return Expecting(ChainMap(*(one.node_of for one in some)))

    def _ask(self, queued: QueuedPod, profile: str) -> bool:
        pod = queued.pod
        for plugin in self._in_turn(profile, queued.gated_by):
            try:
                status = plugin.pre_enqueue(pod)
                if status is SUCCESS or status.is_success:  # the former spares a call for each pod
                    continue
            except MISTAKES as error:  # a plugin's bug gates its pod, the queue lives
                self._observer.plugin_raised(plugin.name, "preEnqueue", error)
            queued.gated_by = plugin.name
            for name in self._rejectors(plugin, queued, profile) - queued.rejectors:
                self._observer.unschedulable(name, profile, 1)
                queued.rejected_by |= {name}
            return False
        queued.gated_by = ""
        return True

    def _in_turn(self, profile: str, gated_by: str) -> Sequence[PreEnqueuePlugin]:
        """The plugin that gated a pod last comes first."""
        plugins = self._plugins.get(profile, ())
        return sorted(plugins, key=lambda one: one.name != gated_by) if gated_by else plugins

    def _rejectors(self, gate: PreEnqueuePlugin, queued: QueuedPod, profile: str) -> frozenset[str]:
        """Who has to hear of what may help a pod that this gate refuses."""
        itself = frozenset((gate.name,))
        if gate.name in self._makers:
            everybody = self._registered[profile] - itself
            if everybody.isdisjoint(queued.rejectors):
                return itself | everybody
        return itself

    def _told(
        self,
        plugin: PreEnqueuePlugin,
        point: str,
        ask: Callable[[], T],
        kind: type[Any],
        otherwise: T,
    ) -> T:
        """What a plugin says beside its verdicts; its bug costs it that, and nobody a turn."""
        try:
            said = ask()
            if not isinstance(said, kind):
                raise TypeError(f"{type(said).__name__} is no {kind.__name__}")
        except MISTAKES as error:  # as above
            self._observer.plugin_raised(plugin.name, point, error)
            return otherwise
        return said


def _tells_whom_it_expects(plugin: PreEnqueuePlugin) -> bool:
    return getattr(plugin.expecting, "__func__", None) is not PreEnqueuePlugin.expecting
