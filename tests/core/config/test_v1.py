"""The document: times in seconds, args and plugins by name."""

from asched.core.config.v1 import (
    NO_PLUGINS,
    Extender,
    KubeSchedulerProfile,
    LeaderElection,
    PluginConfig,
    PluginEntry,
    PluginSet,
)


def test_times_are_told_in_seconds() -> None:
    election = LeaderElection(lease_duration_ns=1_500_000_000)
    assert (election.lease_duration_s, election.renew_deadline_s, election.retry_period_s) == (
        1.5,
        10.0,
        2.0,
    )
    assert Extender(http_timeout_ns=250_000_000).http_timeout_s == 0.25


def test_a_profile_knows_its_plugins_by_point_and_their_args_by_name() -> None:
    scoring = PluginSet(enabled=(PluginEntry("A", 2),))
    profile = KubeSchedulerProfile(
        scheduler_name="x",
        plugins={"score": scoring},
        plugin_configs=(PluginConfig("A", {"a": 1}), PluginConfig("B", None)),
    )
    assert profile.plugin_set("score") is scoring
    assert profile.plugin_set("filter") is NO_PLUGINS
    assert profile.plugin_config == {"A": {"a": 1}, "B": None}
