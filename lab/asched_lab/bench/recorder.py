"""Timings of the scheduler's own code, reported to its observer.

They are plain lists, for durations and for sums per stage; nothing is traced, so measuring costs
well under a microsecond per report.
"""

# ruff: noqa: ARG002 - an observer's methods take all arguments

from collections import defaultdict
from collections.abc import Iterable

from asched.core.cycle.observer import Observer
from asched.core.model.kinds import Kind


class Sums:
    """Seconds and counts by name."""

    def __init__(self) -> None:
        self._sums: dict[str, tuple[float, int]] = {}

    def add(self, name: str, seconds: float, times: int = 1) -> None:
        known_s, count = self._sums.get(name, (0.0, 0))
        self._sums[name] = (known_s + seconds, count + times)

    def items(self) -> Iterable[tuple[str, tuple[float, int]]]:
        return self._sums.items()


class Recorder(Observer):
    """Durations in seconds; timings that a profile does not need are dropped."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Drop all timings so far."""
        self.attempts: list[float] = []
        self.algorithms: list[float] = []
        self.results: dict[str, int] = defaultdict(int)
        self.points = Sums()
        self.plugins = Sums()
        self.facts = Sums()
        self.hints = (0.0, 0)
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
        self.points.add(point, duration_s)

    def points_passed(self, point: str, profile: str, status: str, times: int) -> None:
        self.points.add(point, 0.0, times)

    def plugin_ran(self, plugin: str, point: str, status: str, duration_s: float) -> None:
        self.plugins.add(f"{point} {plugin}", duration_s)

    def fact_handled(self, label: str, duration_s: float, kind: Kind | None) -> None:
        self.facts.add(label, duration_s)

    def hint_answered(self, plugin: str, label: str, hint: str, duration_s: float) -> None:
        seconds, count = self.hints
        self.hints = (seconds + duration_s, count + 1)

    def complaint(self, message: str) -> None:
        self.complaints.append(message)

    def plugin_raised(self, plugin: str, point: str, error: BaseException) -> None:
        self.complaints.append(f"{plugin} raised at {point}: {error}")

    def contained(self, part: str, about: str, error: BaseException) -> None:
        self.complaints.append(f"{part} raised about {about}: {error}")

    def binding_failed(self, pod_key: str, node: str, message: str) -> None:
        self.complaints.append(f"binding {pod_key} to {node} failed: {message}")
