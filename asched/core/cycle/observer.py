"""The interface for reports of the machine: counts and durations.

`serve/telemetry` implements it with metrics and logs, benchmarks with plain lists. Durations are
measured with the context's counter, in seconds.
"""

from asched.core.framework.meter import PluginObserver, PointObserver
from asched.core.model.kinds import Kind
from asched.core.queue.profile import QueueObserver


class Observer(QueueObserver, PointObserver, PluginObserver):
    """Ignores all reports; subclasses override what they use."""

    def attempt_ended(self, result: str, profile: str, duration_s: float) -> None:
        """An attempt ended. `result` is scheduled, unschedulable or error; `duration_s` since the
        pop.
        """

    def algorithm_ran(self, duration_s: float) -> None:
        """The filters and scores of one attempt ran."""

    def group_attempt_ended(self, result: str, profile: str, duration_s: float) -> None:
        """An attempt at a pod group ended. `result` is scheduled, unschedulable,
        waiting_on_preemption or error.
        """

    def group_algorithm_ran(self, duration_s: float) -> None:
        """The trial of a whole pod group ran."""

    def pod_scheduled(
        self, profile: str, attempts: int, since_first_attempt_s: float, *, was_flushed: bool
    ) -> None:
        """A pod is bound. `was_flushed`: only a timer woke it, so a queueing hint was missing."""

    def pod_bound(self, pod_key: str, node: str, evaluated: int, feasible: int) -> None:
        """A pod is bound to a node, after `evaluated` nodes were filtered and `feasible` fitted."""

    def preemption_tried(self) -> None:
        """Preemption searches victims for a pod."""

    def preempting(self, victims: int, violations: int, disruptions: int) -> None:
        """Preemption found this many victims, which violate so many disruption budgets; of these
        victims `disruptions` belong to groups.
        """

    def placements_generated(self, profile: str, count: int) -> None:
        """A pod group has this many placements to choose from."""

    def placements_evaluated(
        self, profile: str, *, is_feasible: bool, duration_s: float, times: int = 1
    ) -> None:
        """As many placements of a pod group were found to take it or not, each in this time."""

    def group_preempting(
        self, code: str, victims: int, duration_s: float, violations: int, disruptions: int
    ) -> None:
        """The search for victims for a whole group ended with this status, and found this many."""

    def preempted(self, result: str, duration_s: float, preemptor: str) -> None:
        """The evictions for a preemptor (pod or podgroup) ended; `result` is success or error."""

    def preemption_failed(self, pod_key: str, message: str) -> None:
        """An eviction for the pod was refused, or its answer was lost."""

    def contained(self, part: str, about: str, error: BaseException) -> None:
        """An exception outside plugins cost the object `about` one attempt. `part` is an extension
        point, or a feature such as `requests`.
        """

    def permit_waited(self, result: str, duration_s: float) -> None:
        """A pod waited on Permit; `result` is the status it ended with."""

    def fact_handled(self, label: str, duration_s: float, kind: Kind | None) -> None:
        """A change of a watched object was applied, and waiting pods notified. `kind`: of the
        object; None for answers.
        """

    def scheduling_failed(self, pod_key: str, reason: str, message: str) -> None:
        """An attempt found no node or ended in an error."""

    def tried_later(self, pod_key: str, ends: int) -> None:
        """The pod may have ended as many leaders, and goes behind the others of its priority."""

    def binding_failed(self, pod_key: str, node: str, message: str) -> None:
        """A pod had a node but could not be bound to it."""
