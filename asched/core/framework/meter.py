"""Measurements of a profile: durations of its extension points, and calls of plugins.

Without a meter nothing is measured. With one, an attempt costs a handful of counter reads; single
plugins are timed only in one attempt of SAMPLE_EVERY.

    begin ─> PreFilter and Filter ─> filtered ─> PreScore and Score ─> ranked

The time that a point's plugins use within another point's interval (PreFilter while cached results
are updated, PreScore while rows are ranked) is subtracted from that interval and reported apart.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from asched.core.cluster.cluster import Cluster
from asched.core.framework.status import Code

#: Upstream times the plugins of a tenth of its cycles.
SAMPLE_EVERY: Final = 10

SUCCESS: Final = Code.SUCCESS.text

T = TypeVar("T")


class PointObserver:
    """Ignores the measurements. Durations in seconds."""

    def point_ran(self, point: str, profile: str, status: str, duration_s: float) -> None:
        """One extension point of one attempt, all of its plugins."""

    def points_passed(self, point: str, profile: str, status: str, times: int) -> None:
        """Attempts passed a point without active plugins this many times, in no time."""

    def plugin_ran(self, plugin: str, point: str, status: str, duration_s: float) -> None:
        """One call of one plugin, in a sampled attempt."""

    def evaluated(self, point: str, profile: str, plugins: tuple[str, ...], times: int) -> None:
        """The number of calls of these plugins: pods at PreFilter and PreScore, nodes at Filter and
        Score. Cached results count.
        """


class Meter:
    """The meter of one profile. `monotonic_s` is used for durations only."""

    def __init__(
        self, observer: PointObserver, profile: str, monotonic_s: Callable[[], float]
    ) -> None:
        self.observer = observer
        self.profile = profile
        self.monotonic_s = monotonic_s
        self.is_sampled = False
        self._attempts = 0
        self._mark_s = 0.0
        self._aside_s = 0.0

    def begin(self) -> None:
        """An attempt starts."""
        self._attempts += 1
        self.is_sampled = self._attempts % SAMPLE_EVERY == 0
        self._mark_s = self.monotonic_s()
        self._aside_s = 0.0

    def pause(self) -> tuple[float, float]:
        """Suspend the attempt: returns its progress, for `resume`."""
        return self.monotonic_s() - self._mark_s, self._aside_s

    def resume(self, so_far: tuple[float, float]) -> None:
        """Continue a suspended attempt."""
        passed_s, self._aside_s = so_far
        self._mark_s = self.monotonic_s() - passed_s

    def pre_filtered(self, asked: tuple[str, ...], status: str) -> None:
        """PreFilter ended the attempt."""
        self.observer.evaluated("PreFilter", self.profile, asked, 1)
        self.observer.point_ran(
            "PreFilter", self.profile, status, self.monotonic_s() - self._mark_s
        )

    def filtered(self, asked: tuple[str, ...], filters: tuple[str, ...], nodes: int) -> None:
        """Every node was filtered."""
        observer, profile = self.observer, self.profile
        now_s = self.monotonic_s()
        observer.point_ran("PreFilter", profile, SUCCESS, self._aside_s)
        observer.point_ran("Filter", profile, SUCCESS, now_s - self._mark_s - self._aside_s)
        observer.evaluated("PreFilter", profile, asked, 1)
        observer.evaluated("Filter", profile, filters, nodes)
        self._mark_s = now_s
        self._aside_s = 0.0

    def ranked(self, prepared: tuple[str, ...], scorers: tuple[str, ...], nodes: int) -> None:
        """Every feasible node was scored."""
        observer, profile = self.observer, self.profile
        duration_s = self.monotonic_s() - self._mark_s
        observer.point_ran("PreScore", profile, SUCCESS, self._aside_s)
        observer.point_ran("Score", profile, SUCCESS, duration_s - self._aside_s)
        observer.evaluated("PreScore", profile, prepared, 1)
        observer.evaluated("Score", profile, scorers, nodes)

    def call(self, plugin: str, point: str, function: Callable[..., T], *arguments: Any) -> T:
        """Call a plugin; timed in sampled attempts."""
        if not self.is_sampled:
            return function(*arguments)
        started_s = self.monotonic_s()
        result = function(*arguments)
        status = getattr(result, "status", None)
        said = SUCCESS if status is None else status.code.text
        self.observer.plugin_ran(plugin, point, said, self.monotonic_s() - started_s)
        return result

    def call_aside(self, plugin: str, point: str, function: Callable[..., T], *arguments: Any) -> T:
        """Call a plugin of a point within the interval of another point."""
        started_s = self.monotonic_s()
        result = self.call(plugin, point, function, *arguments)
        self._aside_s += self.monotonic_s() - started_s
        return result


class PluginObserver:
    """Ignores the measurements. Durations in seconds."""

    def device_awaited(self, profile: str, driver: str, status: str, waited_s: float) -> None:
        """One allocated device of a pod whose PreBind waited for binding conditions.

        `status` is success, failure, timeout or error: the result of the whole pod's wait.
        """

    def device_bound(self, profile: str, driver: str, status: str) -> None:
        """The same, for each device that itself has such conditions."""

    def volumes_failed(self, operation: str) -> None:
        """Choosing (predicate) or binding (bind) a pod's volumes ended in an error."""


class PluginReports:
    """`cluster.singleton(PluginReports).observer` receives the reports of in-tree plugins, which
    thus need neither an observer nor a clock as arguments. The composition root sets it.
    """

    def __init__(self, _: Cluster) -> None:
        self.observer = PluginObserver()
