from collections.abc import Callable
from typing import Any

import pytest

from asched.core.config.defaults import configuration
from asched.core.config.validate_args import node_resources_fit
from tests.unit.core.config.documents import texts


def test_times_of_coscheduling_are_not_negative_and_its_share_is_one() -> None:
    assert texts("Coscheduling", {"podGroupRejectPercentage": 100}) == []
    wrong = {"permitWaitingTimeSeconds": -1, "podGroupBackoffSeconds": -2}
    assert texts("Coscheduling", {**wrong, "podGroupRejectPercentage": 101}) == [
        "permitWaitingTimeSeconds: Invalid value: -1: must not be negative",
        "podGroupBackoffSeconds: Invalid value: -2: must not be negative",
        "podGroupRejectPercentage: Invalid value: 101: not in valid range [0, 100]",
    ]


def test_a_class_of_requests_has_a_name_that_the_api_takes_and_holds_for_a_day_at_most() -> None:
    assert texts("CheckAndHold", {"provisioningClassName": "hold.example.com"}) == []
    assert texts("CheckAndHold", {"provisioningClassName": "Hold", "holdSeconds": 86_401}) == [
        'provisioningClassName: Invalid value: "Hold": must be a DNS subdomain',
        "holdSeconds: Invalid value: 86401: not in valid range [1, 86400]",
    ]


def test_reservations_are_few_and_a_horizon_is_a_month_at_most() -> None:
    assert texts("Backfill", {"reservations": 64, "horizonSeconds": 1}) == []
    assert texts("Backfill", {"reservations": 65, "horizonSeconds": 31 * 86_400 + 1}) == [
        "reservations: Invalid value: 65: not in valid range [1, 64]",
        "horizonSeconds: Invalid value: 2678401: not in valid range [1, 2678400]",
    ]


def test_balance_weighs_each_resource_once_and_alike() -> None:
    resources = [{"name": "cpu", "weight": 2}, {"name": "cpu"}]
    assert texts("NodeResourcesBalancedAllocation", {"resources": resources}) == [
        "resources[0].weight: Invalid value: 2: must be 1",
        'resources[1].name: Duplicate value: "cpu"',
    ]


def test_default_constraints_are_judged_one_by_one() -> None:
    bad = {"maxSkew": 0, "whenUnsatisfiable": "Maybe", "labelSelector": {}}
    good = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    given = {"defaultingType": "List", "defaultConstraints": [bad, good, good]}
    assert texts("PodTopologySpread", given) == [
        "defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)",
        "defaultConstraints[0].topologyKey: Required value: can not be empty",
        (
            'defaultConstraints[0].whenUnsatisfiable: Unsupported value: "Maybe": '
            'supported values: "DoNotSchedule", "ScheduleAnyway"'
        ),
        (
            "defaultConstraints[0].labelSelector: Forbidden: constraint must not "
            "define a selector, "
            "as they deduced for each pod"
        ),
        'defaultConstraints[2]: Duplicate value: "{zone, DoNotSchedule}"',
    ]
    assert texts("PodTopologySpread", {"defaultConstraints": [good]}) == [
        'defaultingType: Invalid value: "System": when .defaultConstraints are not empty'
    ]


def test_a_shape_needs_its_gate_and_an_order() -> None:
    assert texts("VolumeBinding", {"shape": []}) == [
        "shape: Forbidden: remove it, or turn on the feature gate StorageCapacityScoring"
    ]
    points = [{"utilization": 50, "score": 11}, {"utilization": 50}, {"utilization": 40}]
    assert texts("VolumeBinding", {"shape": points}, StorageCapacityScoring=True) == [
        "shape[1].utilization: Invalid value: 50: values must be sorted in increasing order",
        "shape[0].score: Invalid value: 11: not in valid range [0, 10]",
    ]


def test_timeouts_of_claims() -> None:
    assert texts("DynamicResources", {"filterTimeout": -1, "bindingTimeout": 10}) == [
        'filterTimeout: Invalid value: "-1ns": must be zero or positive',
        'bindingTimeout: Invalid value: "10ns": must be at least 1 second',
    ]
    assert texts("DynamicResources", {"filterTimeout": 1}, DRASchedulerFilterTimeout=False) == [
        "filterTimeout: Forbidden: needs the feature gates DRASchedulerFilterTimeout"
    ]


def requirement(**given: Any) -> list[str]:
    terms = [{"matchExpressions": [given]}]
    added = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    head = (
        "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]."
        "matchExpressions[0]."
    )
    return [text.removeprefix(head) for text in texts("NodeAffinity", {"addedAffinity": added})]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"key": "a", "operator": "Exists"}, []),
        (
            {"key": "a", "operator": "In"},
            ["values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"],
        ),
        (
            {"key": "a", "operator": "Exists", "values": ["x"]},
            [
                (
                    'values: Invalid value: ["x"]: values set must be empty for exists '
                    "and does not exist"
                )
            ],
        ),
        (
            {"key": "a", "operator": "Gt", "values": ["1", "x"]},
            [
                (
                    'values: Invalid value: ["1", "x"]: '
                    "for 'Gt', 'Lt' operators, exactly one value is required"
                ),
                (
                    'values[1]: Invalid value: "x": '
                    "for 'Gt', 'Lt' operators, the value must be an integer"
                ),
            ],
        ),
        (
            {"key": "a", "operator": "Near"},
            [
                (
                    'operator: Unsupported value: "Near": supported values: '
                    '"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
                )
            ],
        ),
        (
            {"key": "/a", "operator": "Exists"},
            ['key: Invalid value: "/a": prefix part must be non-empty'],
        ),
    ],
)
def test_requirements_of_added_affinity(given: dict[str, Any], found: list[str]) -> None:
    assert requirement(**given) == found


def fit(**given: Any) -> list[str]:
    document = {"profiles": [{"pluginConfig": [{"name": "NodeResourcesFit", "args": given}]}]}
    args = configuration(document).profiles[0].plugin_config["NodeResourcesFit"]
    return [problem.text for problem in node_resources_fit(args, ())]  # type: ignore[arg-type]


def test_the_strategy_and_its_function_belong_together() -> None:
    ratio: dict[str, Any] = {"shape": [{"utilization": 0, "score": 0}]}
    assert fit(scoringStrategy={"type": "RequestedToCapacityRatio"}) == [
        (
            "scoringStrategy.requestedToCapacityRatio: Required value: "
            "must be specified when type is RequestedToCapacityRatio"
        )
    ]
    assert fit(scoringStrategy={"type": "MostAllocated", "requestedToCapacityRatio": ratio}) == [
        (
            "scoringStrategy.requestedToCapacityRatio: Forbidden: "
            "must be nil when type is not RequestedToCapacityRatio"
        )
    ]
    full = {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": ratio}
    assert fit(scoringStrategy=full) == []


def test_ignored_resources_and_weights() -> None:
    resources = [{"name": "cpu", "weight": 101}]
    strategy = {"type": "LeastAllocated", "resources": resources}
    assert fit(ignoredResourceGroups=["a.b/c"], scoringStrategy=strategy) == [
        "ignoredResourceGroups[0]: Invalid value: \"a.b/c\": resource group name can't contain '/'",
        (
            "scoringStrategy.resources[0].weight: Invalid value: 101: "
            "resource weight of cpu not in valid range (0, 100]"
        ),
    ]


def points(**given: int) -> dict[str, Any]:
    return {"shape": [{"utilization": 0, "score": 0, **given}]}


def spread(skew: int) -> dict[str, Any]:
    one = {"maxSkew": skew, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return {"defaultingType": "List", "defaultConstraints": [one]}


@pytest.mark.parametrize(
    ("name", "of", "least", "most"),
    [
        ("DefaultPreemption", "minCandidateNodesPercentage", 0, 100),
        ("DefaultPreemption", "minCandidateNodesAbsolute", 0, None),
        ("InterPodAffinity", "hardPodAffinityWeight", 0, 100),
        ("Coscheduling", "permitWaitingTimeSeconds", 0, None),
        ("Coscheduling", "podGroupBackoffSeconds", 0, None),
        ("Coscheduling", "podGroupRejectPercentage", 0, 100),
        ("CheckAndHold", "holdSeconds", 1, 24 * 60 * 60),
        ("CheckAndHold", "maxNamespacePercentage", 1, 100),
        ("Backfill", "reservations", 1, 64),
        ("Backfill", "horizonSeconds", 1, 31 * 24 * 60 * 60),
        ("PodTopologySpread", spread, 1, None),
        ("VolumeBinding", "bindTimeoutSeconds", 0, None),
        ("VolumeBinding", lambda value: points(utilization=value), 0, 100),
        ("VolumeBinding", lambda value: points(score=value), 0, 10),
        ("DynamicResources", "filterTimeout", 0, None),
        ("DynamicResources", "bindingTimeout", 10**9, None),
    ],
)
def test_a_range_is_open_up_to_its_ends_and_closed_beyond(
    name: str, of: str | Callable[[int], dict[str, Any]], least: int, most: int | None
) -> None:
    def is_refused(value: int) -> bool:
        given = {of: value} if isinstance(of, str) else of(value)
        return bool(texts(name, given, StorageCapacityScoring="shape" in given))

    ends = (least, most if most is not None else 2**31 - 1)
    assert [is_refused(value) for value in ends] == [False, False]
    assert is_refused(least - 1)
    assert most is None or is_refused(most + 1)


def test_numbers_are_written_in_the_digits_that_go_reads() -> None:
    for value in ("1", "-1", "+1", str(2**63 - 1), str(-(2**63))):
        found = requirement(key="a", operator="Gt", values=[value])
        assert not any("must be an integer" in text for text in found), value
    for value in ("", "-", "1.0", "1_0", "\u0661", str(2**63)):
        found = requirement(key="a", operator="Lt", values=[value])
        assert any("must be an integer" in text for text in found), value
