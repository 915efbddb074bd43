"""What in-tree plugins report of their own work: counts and durations, never decisions.

A plugin reaches it as a singleton of the cluster, so that it needs neither an observer nor a clock
among its arguments; the composition root puts the process's observer in. Until then nobody listens.
"""

from typing import Protocol

from asched.core.state.cluster import Cluster


class PluginObserver(Protocol):
    """Who hears of it. Durations in seconds."""

    def device_awaited(self, profile: str, driver: str, status: str, waited_s: float) -> None:
        """One allocated device of a pod whose PreBind waited for binding conditions.

        `status` is success, failure, timeout or error: how the wait of the whole pod ended.
        """

    def device_bound(self, profile: str, driver: str, status: str) -> None:
        """The same, for each device that has such conditions itself."""

    def volumes_failed(self, operation: str) -> None:
        """Choosing (predicate) or binding (bind) a pod's volumes ended in an error."""


class SilentPlugins:
    """Hears everything, says nothing."""

    def device_awaited(self, profile: str, driver: str, status: str, waited_s: float) -> None: ...

    def device_bound(self, profile: str, driver: str, status: str) -> None: ...

    def volumes_failed(self, operation: str) -> None: ...


class PluginReports:
    """`cluster.singleton(PluginReports).observer` is whom plugins tell."""

    def __init__(self, _: Cluster) -> None:
        self.observer: PluginObserver = SilentPlugins()
