"""What the engine reports of itself, kept as plain lists: durations for percentiles, and sums per
stage for a profile.

Stages are what the Observer hears of and what the driver measures around `Machine.handle`; nothing
is traced, so measuring costs well under a microsecond per report.
"""

# ruff: noqa: ARG002 - an observer takes all it is told
from collections import defaultdict

from asched.core.cycle.observer import Silent


class Recorder(Silent):
    """Durations in seconds; what a profile does not need is dropped."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget what was reported so far."""
        self.attempts: list[float] = []
        self.algorithms: list[float] = []
        self.results: dict[str, int] = defaultdict(int)
        self.points: dict[str, list[float]] = defaultdict(lambda: [0.0, 0])
        self.facts: dict[str, list[float]] = defaultdict(lambda: [0.0, 0])
        self.hints = [0.0, 0]
        self.complaints: list[str] = []
        self.flushed = 0

    def attempt_ended(self, result: str, profile: str, duration_s: float) -> None:
        self.attempts.append(duration_s)
        self.results[result] += 1

    def algorithm_ran(self, duration_s: float) -> None:
        self.algorithms.append(duration_s)

    def pod_scheduled(
        self, profile: str, attempts: int, since_first_attempt_s: float, *, was_flushed: bool
    ) -> None:
        self.flushed += was_flushed

    def point_ran(self, point: str, profile: str, status: str, duration_s: float) -> None:
        entry = self.points[point]
        entry[0] += duration_s
        entry[1] += 1

    def fact_handled(self, label: str, duration_s: float) -> None:
        entry = self.facts[label]
        entry[0] += duration_s
        entry[1] += 1

    def hint_answered(self, plugin: str, label: str, hint: str, duration_s: float) -> None:
        self.hints[0] += duration_s
        self.hints[1] += 1

    def complaint(self, message: str) -> None:
        self.complaints.append(message)

    def plugin_raised(self, plugin: str, point: str, error: Exception) -> None:
        self.complaints.append(f"{plugin} raised at {point}: {error}")

    def binding_failed(self, pod_key: str, node: str, message: str) -> None:
        self.complaints.append(f"binding {pod_key} to {node} failed: {message}")
