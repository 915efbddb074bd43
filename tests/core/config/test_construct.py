from typing import Any

import pytest

from asched.core.config.args import InterPodAffinityArgs, NodeResourcesFitArgs
from asched.core.config.construct import construct, election_faults
from asched.core.config.defaults import configuration
from asched.core.config.problem import as_upstream
from asched.core.plugins import IN_TREE_POINTS

PROFILE = "initializing profiles: creating profile for scheduler name "


def refusal(**fields: Any) -> tuple[str, ...]:
    built, problems = construct(configuration(fields), IN_TREE_POINTS)
    assert built is None
    return as_upstream(problems)


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
    assert refusal(extenders=[{"managedResources": managed}], profiles=[off]) == (
        "couldn't build extenders: can't find NodeResourcesFitArgs in plugin config",
    )


def test_certificates_are_judged_before_plugins() -> None:
    document = configuration(
        {"extenders": [{}], "profiles": [{"plugins": {"filter": {"enabled": [{"name": "X"}]}}}]}
    )
    _, problems = construct(document, IN_TREE_POINTS, extender_fault=lambda _: "no such file")
    assert as_upstream(problems) == ("couldn't build extenders: no such file",)
    assert len(problems) == 2


def test_args_of_fit_are_judged_only_if_it_is_built() -> None:
    config = [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "Bad"}}}]
    assert refusal(profiles=[{"pluginConfig": config}]) == (
        (
            f'{PROFILE}default-scheduler: initializing plugin "NodeResourcesFit": '
            'scoringStrategy.type: Unsupported value: "Bad": supported values: '
            '"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'
        ),
    )
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

    assert refusal(profiles=[profile("a", 1), profile("b", 2)]) == (
        'initializing profiles: different queue sort plugin args for profile "b"',
    )


def test_the_elector_wants_room_for_late_renewals() -> None:
    def faults(**election: Any) -> list[str]:
        return [p.text for p in election_faults(configuration({"leaderElection": election}))]

    assert faults() == []
    assert faults(retryPeriod=9_000_000_000) == [
        (
            "couldn't create leader elector: renewDeadline must be greater than "
            "retryPeriod*JitterFactor"
        )
    ]
    assert faults(renewDeadline=20_000_000_000) == [
        "couldn't create leader elector: leaseDuration must be greater than renewDeadline"
    ]
    assert faults(leaderElect=False, retryPeriod=9_000_000_000) == []


@pytest.mark.parametrize(
    ("lease_ns", "renew_ns", "retry_ns", "refused"),
    [
        (11, 10, 8, ""),
        (10, 10, 8, "leaseDuration"),
        (12, 11, 9, ""),  # 9 x 1.2 are 10 whole ones, as Go cuts them
        (12, 10, 9, "renewDeadline"),
    ],
)
def test_equal_times_are_none_that_the_elector_takes(
    lease_ns: int, renew_ns: int, retry_ns: int, refused: str
) -> None:
    times = {"leaseDuration": lease_ns, "renewDeadline": renew_ns, "retryPeriod": retry_ns}
    found = election_faults(configuration({"leaderElection": times}))
    assert [problem.path for problem in found] == ([("leaderElection", refused)] if refused else [])


def test_the_last_profile_is_blamed_for_sorting_otherwise() -> None:
    """Upstream compares each new one with the first when it is made."""
    points = {**IN_TREE_POINTS, "Mine": frozenset({"queueSort"})}
    other = {"enabled": [{"name": "Mine"}], "disabled": [{"name": "*"}]}
    profiles = [{"schedulerName": name} for name in "abc"]
    profiles[2]["plugins"] = {"queueSort": other}  # type: ignore[assignment]
    _, problems = construct(configuration({"profiles": profiles}), points)
    assert [problem.path for problem in problems] == [("profiles", 2)]
    assert (
        'different queue sort plugins for profile "c": "Mine", first: "PrioritySort"'
        in (as_upstream(problems)[0])
    )
