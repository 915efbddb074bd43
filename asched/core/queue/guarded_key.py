"""Queue sort keys of users' plugins, made safe to keep in a heap.

A key that cannot be made or compared counts by the default order instead (priority, then time), so
that a plugin's bug misplaces pods and does no more.
"""

from collections.abc import Callable
from typing import Any

from asched.core.framework.status import MISTAKES
from asched.core.model.pod import Pod
from asched.core.queue.observer import QueueObserver

SortKey = Callable[[Pod, float], Any]


class GuardedKey:
    """A key with a substitute. It reports its first failure only: sorting compares often."""

    __slots__ = ("_guard", "has_failed", "substitute", "value")

    def __init__(self, guard: "Guard", value: Any, substitute: tuple[int, float]) -> None:
        self._guard = guard
        self.value = value
        self.substitute = substitute
        self.has_failed = value is guard

    def __eq__(self, other: object) -> bool:
        return self._compare(other, lambda mine, its: mine == its)

    def __lt__(self, other: object) -> bool:
        return self._compare(other, lambda mine, its: mine < its)

    def __hash__(self) -> int:
        return hash(self.substitute)

    def _compare(self, other: object, rule: Callable[[Any, Any], Any]) -> bool:
        assert isinstance(other, GuardedKey)
        if not (self.has_failed or other.has_failed):
            try:
                return bool(rule(self.value, other.value))
            except MISTAKES as error:  # whatever a user's comparison raises
                self.has_failed = True
                self._guard.report(error)
        return bool(rule(self.substitute, other.substitute))


class Guard:
    """Stands before the `sort_key` of one plugin."""

    def __init__(self, plugin: str, sort_key: SortKey, observer: QueueObserver) -> None:
        self._plugin = plugin
        self._sort_key = sort_key
        self._observer = observer

    def __call__(self, pod: Pod, timestamp_s: float) -> GuardedKey:
        value: Any
        try:
            value = self._sort_key(pod, timestamp_s)
        except MISTAKES as error:  # a plugin's bug must not stop the queue
            self.report(error)
            value = self  # stands for none
        return GuardedKey(self, value, (-pod.priority, timestamp_s))

    def report(self, error: BaseException) -> None:
        self._observer.plugin_raised(self._plugin, "queueSort", error)
