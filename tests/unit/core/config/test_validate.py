from collections.abc import Callable
from typing import Any

import pytest

from asched.core.config.defaults import configuration
from asched.core.config.validate import validate


def texts(**fields: Any) -> list[str]:
    return [problem.text for problem in validate(configuration(fields))]


def test_the_defaults_are_valid() -> None:
    assert texts() == []


def test_everything_is_reported_at_once() -> None:
    assert texts(
        parallelism=0,
        clientConnection={"burst": -1},
        percentageOfNodesToScore=101,
        podInitialBackoffSeconds=20,
    ) == [
        "parallelism: Invalid value: 0: should be an integer value greater than zero",
        "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
        "clientConnection.burst: Invalid value: -1: must be non-negative",
        (
            "podMaxBackoffSeconds: Invalid value: 10: must be greater than or equal to "
            "podInitialBackoffSeconds"
        ),
    ]


def test_a_short_lease_is_reported() -> None:
    assert texts(leaderElection={"leaseDuration": 5_000_000_000}) == [
        'leaderElection.leaseDuration: Invalid value: "5s": must be greater than renewDeadline'
    ]


def test_nothing_of_election_is_looked_at_while_it_is_off() -> None:
    assert texts(leaderElection={"leaderElect": False, "resourceLock": "x"}) == []


def test_names_must_be_there_and_differ() -> None:
    assert texts(profiles=[{}, {}]) == [
        "profiles[0].schedulerName: Required value",
        "profiles[1].schedulerName: Required value",
        'profiles[1].schedulerName: Duplicate value: ""',
    ]


def enabled(point: str, *plugins: str) -> dict[str, Any]:
    return {"plugins": {point: {"enabled": [{"name": name} for name in plugins]}}}


def test_removed_plugins_are_refused_at_a_point_but_not_in_multi_point() -> None:
    assert texts(profiles=[enabled("filter", "EBSLimits")]) == [
        (
            'profiles[0].plugins.filter.enabled[0]: Invalid value: "EBSLimits": '
            "there is no such plugin in v1"
        )
    ]
    assert texts(profiles=[enabled("multiPoint", "EBSLimits")]) == []


def test_all_profiles_sort_the_queue_alike() -> None:
    a, b = {"schedulerName": "a"}, {"schedulerName": "b"}
    assert texts(profiles=[a, {**b, **enabled("queueSort", "X")}]) == [
        'profiles[1].plugins.queueSort: Invalid value: ["X"]: must be the same for all profiles'
    ]
    assert texts(profiles=[enabled("queueSort", "X", "Y")]) == [
        (
            "profiles[0].plugins.queueSort.enabled: Invalid value: 2: "
            "only one queue sort plugin can be enabled"
        )
    ]


def test_args_of_the_queue_sort_plugin_must_be_alike() -> None:
    def profile(name: str, value: int) -> dict[str, Any]:
        config = [{"name": "X", "args": {"x": value}}]
        return {"schedulerName": name, "pluginConfig": config, **enabled("queueSort", "X")}

    assert texts(profiles=[profile("a", 1), profile("b", 2)]) == [
        "profiles[1].pluginConfig[0].args: Forbidden: differ from the first profile's"
    ]
    assert texts(profiles=[profile("a", 1), profile("b", 1)]) == []


@pytest.mark.parametrize(
    ("extenders", "found"),
    [
        (
            [{"prioritizeVerb": "p"}],
            ["extenders[0].weight: Invalid value: 0: must have a positive weight applied to it"],
        ),
        (
            [{"bindVerb": "b"}, {"bindVerb": "b"}],
            [
                (
                    'extenders: Invalid value: "found 2 extenders implementing bind": '
                    "only one extender can implement bind"
                )
            ],
        ),
        (
            [{"managedResources": [{"name": "cpu"}]}],
            [
                (
                    'extenders[0].managedResources[0].name: Invalid value: "cpu": '
                    "is an invalid extended resource name"
                )
            ],
        ),
        (
            [{"managedResources": [{"name": "-"}]}],
            [
                (
                    'extenders[0].managedResources[0].name: Invalid value: "-": name part must '
                    "consist of alphanumeric characters, '-', '_' or '.', and must start and end "
                    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
                    "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                )
            ],
        ),
        (
            [{"managedResources": [{"name": "a.b/c"}]}, {"managedResources": [{"name": "a.b/c"}]}],
            [
                (
                    'extenders[1].managedResources[0].name: Invalid value: "a.b/c": '
                    "duplicate extender managed resource name"
                )
            ],
        ),
    ],
)
def test_extenders(extenders: list[dict[str, Any]], found: list[str]) -> None:
    assert texts(extenders=extenders) == found


@pytest.mark.parametrize(
    ("of", "least", "most"),
    [
        (lambda value: {"clientConnection": {"burst": value}}, 0, None),
        (lambda value: {"parallelism": value}, 1, None),
        (lambda value: {"percentageOfNodesToScore": value}, 0, 100),
        (lambda value: {"profiles": [{"percentageOfNodesToScore": value}]}, 0, 100),
        (lambda value: {"podInitialBackoffSeconds": value}, 1, 10),  # then the longest is shorter
        (lambda value: {"podInitialBackoffSeconds": 3, "podMaxBackoffSeconds": value}, 3, None),
        (lambda value: {"extenders": [{"prioritizeVerb": "p", "weight": value}]}, 1, None),
        (lambda value: {"leaderElection": {"retryPeriod": value}}, 1, None),
        (lambda value: {"leaderElection": {"renewDeadline": value}}, 1, 15 * 10**9 - 1),
        (lambda value: {"leaderElection": {"leaseDuration": value}}, 10 * 10**9 + 1, None),
    ],
)
def test_a_range_is_open_up_to_its_ends_and_closed_beyond(
    of: Callable[[int], dict[str, Any]], least: int, most: int | None
) -> None:
    ends = (least, most if most is not None else 2**31 - 1 + 10**11)
    assert [texts(**of(value)) for value in ends] == [[], []]
    assert texts(**of(least - 1 or -1))  # an election's 0 is "not given"
    assert most is None or texts(**of(most + 1))
