from typing import Any

from asched.core.config.args import InterPodAffinityArgs, NodeResourcesFitArgs
from asched.core.config.construct import construct, election_faults
from asched.core.config.defaults import configuration
from asched.core.plugins import IN_TREE_POINTS


def refusal(**fields: Any) -> list[str]:
    built, problems = construct(configuration(fields), IN_TREE_POINTS)
    assert built is None
    return [problem.text for problem in problems]


def test_extenders_that_may_fail_come_last() -> None:
    given = [{"urlPrefix": "a", "ignorable": True}, {"urlPrefix": "b"}, {"urlPrefix": "c"}]
    built, problems = construct(configuration({"extenders": given}), IN_TREE_POINTS)
    assert not problems
    assert built is not None
    assert [extender.url_prefix for extender in built.extenders] == ["b", "c", "a"]


def test_resources_an_extender_counts_replace_the_users() -> None:
    managed = [{"name": "a.b/c", "ignoredByScheduler": True}, {"name": "a.b/d"}]
    own = [{"name": "NodeResourcesFit", "args": {"ignoredResources": ["x.y/z"]}}]
    profiles = [{"schedulerName": "a", "pluginConfig": own}, {"schedulerName": "b"}]
    document = {"extenders": [{"managedResources": managed}], "profiles": profiles}
    built, _ = construct(configuration(document), IN_TREE_POINTS)
    assert built is not None
    assert [profile.scheduler_name for profile in built.configuration.profiles] == ["a", "b"]
    for profile in built.configuration.profiles:
        args = profile.plugin_config["NodeResourcesFit"]
        assert isinstance(args, NodeResourcesFitArgs)
        assert args.ignored_resources == ("a.b/c",)
        assert profile.plugin_config["InterPodAffinity"] == InterPodAffinityArgs()


def test_such_an_extender_needs_a_profile_that_fits_resources() -> None:
    managed = [{"name": "a.b/c", "ignoredByScheduler": True}]
    off = {"plugins": {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}}}
    assert refusal(extenders=[{"managedResources": managed}], profiles=[off]) == [
        "an extender with ignoredByScheduler needs NodeResourcesFit"
    ]


def test_args_of_fit_are_judged_only_if_it_is_built() -> None:
    config = [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "Bad"}}}]
    assert refusal(profiles=[{"pluginConfig": config}]) == [
        (
            'profiles[0].pluginConfig[0].args.scoringStrategy.type: Unsupported value: "Bad": '
            'supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'
        )
    ]
    off = {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}}
    unused = configuration({"profiles": [{"pluginConfig": config, "plugins": off}]})
    built, problems = construct(unused, IN_TREE_POINTS)
    assert not problems
    assert built is not None
    shown = [entry.name for entry in built.configuration.profiles[0].plugin_configs]
    assert "NodeResourcesFit" not in shown


def test_args_of_the_queue_sort_plugin_that_multi_point_brings_must_be_alike() -> None:
    def profile(name: str, value: int) -> dict[str, Any]:
        config = [{"name": "PrioritySort", "args": {"x": value}}]
        return {"schedulerName": name, "pluginConfig": config}

    assert refusal(profiles=[profile("a", 1), profile("b", 2)]) == [
        'the args of "PrioritySort" differ from the first profile\'s'
    ]


def test_the_elector_wants_room_for_late_renewals() -> None:
    def faults(**election: Any) -> list[str]:
        return [p.text for p in election_faults(configuration({"leaderElection": election}))]

    assert faults() == []
    assert faults(retryPeriod=9_000_000_000) == [
        "leaderElection.renewDeadline: must be greater than 1.2 times retryPeriod"
    ]
    assert faults(renewDeadline=20_000_000_000) == [
        "leaderElection.leaseDuration: must be greater than renewDeadline"
    ]
    assert faults(leaderElect=False, retryPeriod=9_000_000_000) == []
