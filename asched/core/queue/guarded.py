"""Wrap the queue sort keys of users' plugins, so that they are safe in a heap.

A key that cannot be made or compared is replaced by the default order (priority, then time), so
that a bug of the plugin only changes the order of pods.
"""

from collections.abc import Callable
from typing import Any

from asched.core.framework.status import MISTAKES
from asched.core.model.pod import Pod
from asched.core.queue.profile import QueueObserver

SortKey = Callable[[Pod, float], Any]


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
