"""Measurements of in-tree plugins: counts and durations of their work.

Plugins reach it as a singleton of the cluster, so that they need neither an observer nor a clock as
arguments; the composition root sets the process's observer. Until then reports are ignored.
"""

from asched.core.cluster.cluster import Cluster


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
    """`cluster.singleton(PluginReports).observer` receives the reports of plugins."""

    def __init__(self, _: Cluster) -> None:
        self.observer = PluginObserver()
