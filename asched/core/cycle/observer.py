"""What the machine reports while it works: counts and durations, never decisions.

`edge/telemetry` implements it with metrics and logs, benchmarks with plain lists. Durations come
from a counter that is handed in, in seconds.
"""

from typing import Protocol

from asched.core.framework.meter import PointObserver
from asched.core.framework.plugin_reports import PluginObserver, SilentPlugins
from asched.core.queue.observer import QueueObserver, SilentQueue


class Observer(QueueObserver, PointObserver, PluginObserver, Protocol):
    def attempt_ended(self, result: str, profile: str, duration_s: float) -> None:
        """`result` is scheduled, unschedulable or error; from the pop to the end of the attempt."""

    def algorithm_ran(self, duration_s: float) -> None:
        """Filters and scores of one attempt, without binding."""

    def group_attempt_ended(self, result: str, profile: str, duration_s: float) -> None:
        """`result` is scheduled, unschedulable, waiting_on_preemption or error."""

    def group_algorithm_ran(self, duration_s: float) -> None:
        """The trial of a whole pod group."""

    def pod_scheduled(
        self, profile: str, attempts: int, since_first_attempt_s: float, *, was_flushed: bool
    ) -> None:
        """A pod is bound. `was_flushed`: only a timer had woken it, so a hint was missing."""

    def pod_bound(self, pod_key: str, node: str, evaluated: int, feasible: int) -> None:
        """Where it is bound, and how many nodes were looked at and fitted."""

    def preemption_tried(self) -> None:
        """Preemption looks for room for a pod."""

    def preempting(self, victims: int) -> None:
        """Preemption found room: so many pods have to go."""

    def preempted(self, result: str, duration_s: float) -> None:
        """The evictions for one pod are through; `result` is success or error."""

    def preemption_failed(self, pod_key: str, message: str) -> None:
        """An eviction for the pod was refused, or its answer got lost."""

    def plugin_raised(self, plugin: str, point: str, error: BaseException) -> None:
        """A plugin failed by exception; its pod gets an error status."""

    def contained(self, part: str, about: str, error: BaseException) -> None:
        """An exception that no plugin raised cost what it is about one attempt, and no more. `part`
        of the scheduler names where: an extension point, or a feature such as `requests`.
        """

    def permit_waited(self, result: str, duration_s: float) -> None:
        """A pod waited on Permit; `result` is the status it ended with."""

    def fact_handled(self, label: str, duration_s: float) -> None:
        """A watched object was taken in, waking pods included."""

    def scheduling_failed(self, pod_key: str, reason: str, message: str) -> None:
        """An attempt found no node or ended in an error."""

    def binding_failed(self, pod_key: str, node: str, message: str) -> None:
        """A pod had a node but could not be bound to it."""


class SilentObserver(SilentQueue, SilentPlugins):
    """Hears everything, says nothing."""

    def attempt_ended(self, result: str, profile: str, duration_s: float) -> None: ...

    def algorithm_ran(self, duration_s: float) -> None: ...

    def group_attempt_ended(self, result: str, profile: str, duration_s: float) -> None: ...

    def group_algorithm_ran(self, duration_s: float) -> None: ...

    def pod_scheduled(
        self, profile: str, attempts: int, since_first_attempt_s: float, *, was_flushed: bool
    ) -> None: ...

    def point_ran(self, point: str, profile: str, status: str, duration_s: float) -> None: ...

    def points_passed(self, point: str, profile: str, status: str, times: int) -> None: ...

    def plugin_ran(self, plugin: str, point: str, status: str, duration_s: float) -> None: ...

    def evaluated(self, point: str, profile: str, plugins: tuple[str, ...], times: int) -> None: ...

    def pod_bound(self, pod_key: str, node: str, evaluated: int, feasible: int) -> None: ...

    def preemption_tried(self) -> None: ...

    def preempting(self, victims: int) -> None: ...

    def preempted(self, result: str, duration_s: float) -> None: ...

    def preemption_failed(self, pod_key: str, message: str) -> None: ...

    def plugin_raised(self, plugin: str, point: str, error: BaseException) -> None: ...

    def contained(self, part: str, about: str, error: BaseException) -> None: ...

    def permit_waited(self, result: str, duration_s: float) -> None: ...

    def fact_handled(self, label: str, duration_s: float) -> None: ...

    def scheduling_failed(self, pod_key: str, reason: str, message: str) -> None: ...

    def binding_failed(self, pod_key: str, node: str, message: str) -> None: ...
