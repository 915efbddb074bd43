"""What is said of each rule of a Policy, and what its halves come to where they are odd."""

from typing import Any

import pytest

from asched.core.config.policy import translate_policy
from asched.core.config.policy_table import DEFAULT_PREDICATES, DEFAULT_PRIORITIES, WEIGHT_LIMIT
from asched.core.config.translation import Translation
from asched.core.plugins import IN_TREE_POINTS

RATIO = "requestedToCapacityRatioArguments"
SHAPE = [{"utilization": 0, "score": 0}]


def of(**policy: Any) -> Translation:
    return translate_policy({"kind": "Policy", **policy}, IN_TREE_POINTS)


def said(translation: Translation) -> list[str]:
    return [f"{note.fate.value} {note}" for note in translation.notes]


def refused(translation: Translation) -> list[str]:
    return [f"{problem.path} {problem.text}" for problem in translation.problems]


def args_of(translation: Translation, plugin: str) -> Any:
    (profile,) = translation.document["profiles"]
    configs = {one["name"]: one["args"] for one in profile.get("pluginConfig", ())}
    return configs.get(plugin)


def scores(translation: Translation) -> dict[str, int]:
    (profile,) = translation.document["profiles"]
    enabled = profile["plugins"].get("score", {}).get("enabled", [])
    return {entry["name"]: entry["weight"] for entry in enabled}


def test_halves_that_are_absent_are_told_and_those_that_are_empty_are_not() -> None:
    assert [note for note in said(of()) if note.startswith("kept")] == [
        f"kept no predicates given: the default set ({len(DEFAULT_PREDICATES)})",
        f"kept no priorities given: the default set ({len(DEFAULT_PRIORITIES)})",
    ]
    assert said(of(predicates=[], priorities=[])) == []


@pytest.mark.parametrize("given", ["x", {"name": "HostName"}, 3])
def test_a_half_that_is_no_list_is_refused(given: Any) -> None:
    assert refused(of(predicates=given, priorities=given)) == [
        "('predicates',) predicates: must be a list",
        "('priorities',) priorities: must be a list",
    ]


def test_presence_of_labels_is_told_and_may_name_none() -> None:
    def rule(**presence: Any) -> dict[str, Any]:
        return {"name": "Racks", "argument": {"labelsPresence": {"presence": False, **presence}}}

    translation = of(predicates=[rule(labels=["a", "b"]), rule(labels=None)], priorities=[])
    assert said(translation) == [
        f"changed predicates[{at}]: Racks became addedAffinity of NodeAffinity" for at in (0, 1)
    ]
    required = args_of(translation, "NodeAffinity")["addedAffinity"]
    (term,) = required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {"key": key, "operator": "DoesNotExist"} for key in ("a", "b")
    ]


@pytest.mark.parametrize("weight", [None, 0, -1, WEIGHT_LIMIT, "3", 1.5])
def test_a_weight_that_is_none_is_refused_and_the_others_are_read_on(weight: Any) -> None:
    given = [
        {"name": "BalancedResourceAllocation", "weight": weight},
        {"name": "NodeAffinityPriority", "weight": WEIGHT_LIMIT - 1},
    ]
    translation = of(predicates=[], priorities=given)
    assert refused(translation) == [
        (
            "('priorities', 0, 'weight') priority BalancedResourceAllocation should have a "
            "positive weight applied to it or it has overflown"
        )
    ]
    assert scores(translation) == {"NodeAffinity": WEIGHT_LIMIT - 1}


def test_rules_without_a_name_are_refused_as_such() -> None:
    translation = of(predicates=[{}], priorities=[{"weight": 1}, {"name": None, "weight": 1}])
    assert refused(translation) == [
        "('predicates', 0, 'name') predicate type not found for \"\"",
        "('priorities', 0, 'name') priority type not found for \"\"",
        "('priorities', 1, 'name') priority type not found for \"\"",
    ]


@pytest.mark.parametrize(
    ("names", "is_list"),
    [
        (["EvenPodsSpreadPriority"], True),
        (["EvenPodsSpreadPriority", "NodeAffinityPriority"], True),
        (["EvenPodsSpreadPriority", "SelectorSpreadPriority"], False),
        (["ServiceSpreadingPriority", "NodeAffinityPriority"], False),
    ],
)
def test_pods_are_spread_by_default_where_selectors_were(names: list[str], is_list: bool) -> None:
    translation = of(predicates=[], priorities=[{"name": name, "weight": 1} for name in names])
    expected = {"defaultingType": "List"} if is_list else None
    assert args_of(translation, "PodTopologySpread") == expected


def test_a_capacity_ratio_has_resources_if_it_names_some() -> None:
    for resources in (None, [], [{"name": "cpu", "weight": 2}]):
        argument = {RATIO: {"shape": SHAPE, "resources": resources}}
        translation = of(priorities=[{"name": "Mine", "weight": 1, "argument": argument}])
        strategy = args_of(translation, "NodeResourcesFit")["scoringStrategy"]
        assert strategy == {
            "type": "RequestedToCapacityRatio",
            "requestedToCapacityRatio": {"shape": SHAPE},
            **({"resources": resources} if resources else {}),
        }
    translation = of(priorities=[{"name": "Mine", "weight": 1, "argument": {RATIO: {"x": 1}}}])
    strategy = args_of(translation, "NodeResourcesFit")["scoringStrategy"]
    assert strategy["requestedToCapacityRatio"] == {"shape": []}


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (
            "LeastRequestedPriority",
            "Mine",
            "LeastRequestedPriority and Mine score together, v1 has one strategy for each profile",
        ),
        (
            "Alpha",
            "MostRequestedPriority",
            "Alpha and MostRequestedPriority score together, v1 has one strategy for each profile",
        ),
        (
            "Alpha",
            "Mine",
            'priority "Mine" redeclares custom priority "RequestedToCapacityRatio", from: "Alpha"',
        ),
    ],
)
def test_two_strategies_are_refused_where_the_second_stands(
    first: str, second: str, text: str
) -> None:
    given = [
        {
            "name": name,
            "weight": 1,
            **({} if "Requested" in name else {"argument": {RATIO: {"shape": SHAPE}}}),
        }
        for name in (second, first)
    ]
    assert refused(of(priorities=given)) == [f"('priorities', 0) {text}"]


def test_a_rule_about_services_is_refused_and_one_about_labels_weighs_one() -> None:
    given = [
        {"name": "Spread", "weight": 2, "argument": {"serviceAntiAffinity": {"label": "zone"}}},
        {"name": "Ssd", "weight": 3, "argument": {"labelPreference": {"label": "ssd"}}},
    ]
    translation = of(priorities=given)
    assert refused(translation) == [
        "('priorities', 0) priority \"Spread\": ServiceAffinity is gone"
    ]
    added = args_of(translation, "NodeAffinity")["addedAffinity"]
    assert added["preferredDuringSchedulingIgnoredDuringExecution"] == [
        {
            "weight": 1,
            "preference": {"matchExpressions": [{"key": "ssd", "operator": "DoesNotExist"}]},
        }
    ]
    assert scores(translation) == {"NodeAffinity": 3}


@pytest.mark.parametrize(
    ("weight", "written"),
    [(None, None), (0, None), (1, 1), (100, 100), (101, ""), (-1, ""), ("x", "")],
)
def test_the_hard_weight_of_affinity(weight: Any, written: Any) -> None:
    default = [{"name": "InterPodAffinityPriority", "weight": 1}]
    translation = of(hardPodAffinitySymmetricWeight=weight, priorities=default)
    name = "hardPodAffinitySymmetricWeight"
    if written == "":
        text = f"Invalid value: {weight}: not in valid range [0-100]"
        assert refused(translation) == [f"('{name}',) {name}: {text}"]
    else:
        assert refused(translation) == []
        expected = {"hardPodAffinityWeight": written} if written else None
        assert args_of(translation, "InterPodAffinity") == expected


def test_an_extender_keeps_what_comes_behind_what_it_has_not() -> None:
    given = {
        "kind": "Extender",
        "URLPREFIX": "http://e",
        "apiversion": "v1",
        "httpTimeout": "5s",
        "tlsconfig": "x",
        "managedResources": ["a.b/c"],
        "weight": 2,
    }
    translation = of(extenders=[given], predicates=[], priorities=[])
    assert translation.document["extenders"] == [
        {
            "urlPrefix": "http://e",
            "httpTimeout": "5s",
            "tlsConfig": "x",
            "managedResources": ["a.b/c"],
            "weight": 2,
        }
    ]
    ignored = "an extender has none of its own; it is ignored"
    assert said(translation) == [
        f"unsupported extenders[0].kind: {ignored}",
        f"unsupported extenders[0].apiversion: {ignored}",
        "kept extenders[0]: http://e",
    ]
