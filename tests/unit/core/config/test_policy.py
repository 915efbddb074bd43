from typing import Any

import pytest

from asched import names
from asched.core.config.construct import construct
from asched.core.config.decode import decode
from asched.core.config.defaults import configuration
from asched.core.config.legacy.policy import translate_policy
from asched.core.config.legacy.replacements import (
    PREDICATES,
    PRIORITIES,
    STRATEGIES,
    UNSUPPORTED_PRIORITIES,
)
from asched.core.config.merge import ResolvedProfile
from asched.core.config.validate import validate
from asched.core.plugins import IN_TREE_POINTS


def profile(**policy: Any) -> ResolvedProfile:
    translation = translate_policy({"kind": "Policy", "apiVersion": "v1", **policy}, IN_TREE_POINTS)
    assert not translation.problems
    checked, problems = decode(translation.document)
    assert not problems
    built = configuration(checked)
    assert validate(built) == []
    constructed, problems = construct(built, IN_TREE_POINTS)
    assert not problems
    assert constructed is not None
    return constructed.profiles[0]


def names_at(resolved: ResolvedProfile, point: str) -> list[str]:
    return [plugin.name for plugin in resolved.at(point)]


def weights(resolved: ResolvedProfile) -> dict[str, int]:
    return {plugin.name: plugin.weight for plugin in resolved.at("score")}


def refusals(**policy: Any) -> list[str]:
    return [
        problem.text
        for problem in translate_policy({"kind": "Policy", **policy}, IN_TREE_POINTS).problems
    ]


def test_an_absent_half_is_its_default_set() -> None:
    resolved = profile()
    assert names_at(resolved, "filter") == [
        "NodeUnschedulable",
        "NodeResourcesFit",
        "NodeName",
        "NodePorts",
        "NodeAffinity",
        "VolumeRestrictions",
        "TaintToleration",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
    ]
    assert weights(resolved) == {
        "NodeResourcesBalancedAllocation": 1,
        "PodTopologySpread": 2,
        "ImageLocality": 1,
        "InterPodAffinity": 1,
        "NodeResourcesFit": 1,
        "NodeAffinity": 1,
        "TaintToleration": 1,
    }


def test_an_empty_list_is_the_mandatory_half_or_nothing() -> None:
    resolved = profile(predicates=[], priorities=[])
    assert names_at(resolved, "filter") == [
        "NodeUnschedulable",
        "TaintToleration",
        "DynamicResources",
    ]
    assert names_at(resolved, "score") == []


def test_filters_stand_in_the_order_of_then_whatever_the_file_says() -> None:
    given = [{"name": "MatchInterPodAffinity"}, {"name": "HostName"}]
    found = names_at(profile(predicates=given), "filter")
    assert (
        found.index("NodeName") < found.index("TaintToleration") < found.index("InterPodAffinity")
    )


def test_the_first_weight_in_alphabetical_order_wins() -> None:
    given = [
        {"name": "SelectorSpreadPriority", "weight": 1},
        {"name": "EvenPodsSpreadPriority", "weight": 5},
    ]
    assert weights(profile(priorities=given)) == {"PodTopologySpread": 5}


def test_a_capacity_ratio_becomes_the_strategy() -> None:
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    argument = {"requestedToCapacityRatioArguments": {"shape": shape}}
    resolved = profile(priorities=[{"name": "Mine", "weight": 2, "argument": argument}])
    fit: Any = resolved.profile.plugin_config["NodeResourcesFit"]
    assert fit.scoring_strategy.type == "RequestedToCapacityRatio"
    assert weights(resolved) == {"NodeResourcesFit": 2}


def test_label_rules_become_added_affinity() -> None:
    rack = {"labelsPresence": {"labels": ["rack"], "presence": True}}
    ssd = {"labelPreference": {"label": "ssd", "presence": False}}
    resolved = profile(
        predicates=[{"name": "Racks", "argument": rack}],
        priorities=[{"name": "NoSsd", "weight": 3, "argument": ssd}],
    )
    args: Any = resolved.profile.plugin_config["NodeAffinity"]
    terms = args.added_affinity["requiredDuringSchedulingIgnoredDuringExecution"]
    assert terms["nodeSelectorTerms"][0]["matchExpressions"] == [
        {"key": "rack", "operator": "Exists"}
    ]
    assert "NodeAffinity" in names_at(resolved, "filter")
    assert weights(resolved) == {"NodeAffinity": 3}


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        ({"labelPreference": 5}, "labelPreference: must be an object"),
        ({"labelPreference": {"label": 5}}, "labelPreference.label: must be a string"),
        ({"labelPreference": {"labels": "a"}}, "labelPreference.labels: must be a list of strings"),
    ],
)
def test_label_rules_of_another_form_are_refused(argument: dict[str, Any], text: str) -> None:
    given = [{"name": "Mine", "weight": 1, "argument": argument}]
    assert refusals(priorities=given) == [text]


def test_extenders_had_keys_in_any_case_and_timeouts_in_nanoseconds() -> None:
    given = {
        "urlPrefix": "http://e",
        "enableHttps": True,
        "httpTimeout": 1_500_000_000,
        "managedresources": [{"Name": "a.b/c", "ignoredByScheduler": True}],
    }
    translation = translate_policy({"kind": "Policy", "extenders": [given]}, IN_TREE_POINTS)
    assert translation.document["extenders"] == [
        {
            "urlPrefix": "http://e",
            "enableHTTPS": True,
            "httpTimeout": "1.5s",
            "managedResources": [{"name": "a.b/c", "ignoredByScheduler": True}],
        }
    ]


def test_hard_affinity_weight() -> None:
    args: Any = profile(hardPodAffinitySymmetricWeight=10).profile.plugin_config["InterPodAffinity"]
    assert args.hard_pod_affinity_weight == 10
    assert refusals(hardPodAffinitySymmetricWeight=101) == [
        "hardPodAffinitySymmetricWeight: Invalid value: 101: not in valid range [0-100]"
    ]


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        ({"predicates": [{"name": "x"}]}, 'predicate type not found for "x"'),
        ({"priorities": [{"name": "x", "weight": 1}]}, 'priority type not found for "x"'),
        (
            {"priorities": [{"name": "LeastRequestedPriority"}]},
            (
                "priority LeastRequestedPriority should have a positive weight "
                "applied to it or it has "
                "overflown"
            ),
        ),
        (
            {"predicates": [{"name": "x", "argument": {}}]},
            "exactly 1 predicate argument is required, numArgs: 0",
        ),
        (
            {"priorities": [{"name": "x", "weight": 1, "argument": {}}]},
            "exactly 1 priority argument is required, numArgs: 0",
        ),
        (
            {"predicates": [{"name": "x", "argument": {"serviceAffinity": {"labels": ["a"]}}}]},
            'predicate "x": ServiceAffinity is gone',
        ),
        (
            {
                "priorities": [
                    {"name": "LeastRequestedPriority", "weight": 1},
                    {"name": "MostRequestedPriority", "weight": 1},
                ]
            },
            (
                "LeastRequestedPriority and MostRequestedPriority score together, "
                "v1 has one strategy for each profile"
            ),
        ),
    ],
)
def test_what_cannot_be_translated_is_refused(policy: dict[str, Any], text: str) -> None:
    assert refusals(**policy) == [text]


def test_a_second_capacity_ratio_is_refused_in_the_words_of_the_time() -> None:
    argument = {"requestedToCapacityRatioArguments": {"shape": [{"utilization": 0}]}}
    given = [{"name": name, "weight": 1, "argument": argument} for name in ("b", "a")]
    assert refusals(priorities=given) == [
        'priority "b" redeclares custom priority "RequestedToCapacityRatio", from: "a"'
    ]


@pytest.mark.parametrize(
    ("old", "today"),
    [("PodFitsHost", names.NODE_NAME), ("PodSelectorMatches", names.NODE_AFFINITY)],
)
def test_the_oldest_names_of_predicates_mean_what_their_successors_mean(
    old: str, today: str
) -> None:
    successor = {"PodFitsHost": "HostName", "PodSelectorMatches": "MatchNodeSelector"}[old]
    before = profile(predicates=[{"name": old}])
    assert before == profile(predicates=[{"name": successor}])
    assert today in names_at(before, "filter")


def test_an_api_version_in_an_extender_is_ignored_aloud() -> None:
    given = {"urlPrefix": "http://e", "apiVersion": "v1beta1", "filterVerb": "filter"}
    translation = translate_policy({"kind": "Policy", "extenders": [given]}, IN_TREE_POINTS)
    assert "apiVersion" not in translation.document["extenders"][0]
    assert translation.notes_for_run[-1] == (
        "unsupported: extenders[0].apiVersion: an extender has none of its own; it is ignored"
    )


def test_every_rule_of_a_policy_is_named_whatever_became_of_it() -> None:
    priorities = [*PRIORITIES, *UNSUPPORTED_PRIORITIES, next(iter(STRATEGIES)), "Mine", "Nope"]
    label = {"labelPreference": {"presence": True}}
    policy = {
        "predicates": [{"name": name} for name in (*PREDICATES, "Nope")],
        "priorities": [
            {"name": name, "weight": 1, **({"argument": label} if name == "Mine" else {})}
            for name in priorities
        ],
        "hardPodAffinitySymmetricWeight": 3,
        "alwaysCheckAllPredicates": True,
        "extenders": [{"urlPrefix": "http://a"}],
        "odd": 1,
    }
    translation = translate_policy({"kind": "Policy", **policy}, IN_TREE_POINTS)
    told = [note.path[:2] for note in translation.notes if note.path]
    told += [problem.path[:2] for problem in translation.problems]
    places = [(half, n) for half in ("predicates", "priorities") for n in range(len(policy[half]))]  # type: ignore[arg-type]
    rest = [(name,) for name in policy if name not in ("predicates", "priorities", "extenders")]
    assert sorted(map(str, told)) == sorted(map(str, [*places, *rest, ("extenders", 0)]))
    added = next(
        config["args"]["addedAffinity"]
        for config in translation.document["profiles"][0]["pluginConfig"]
        if config["name"] == "NodeAffinity"
    )
    (preferred,) = added["preferredDuringSchedulingIgnoredDuringExecution"]
    assert preferred["preference"]["matchExpressions"] == [{"key": "", "operator": "Exists"}]


def test_a_strategy_by_its_name_that_has_a_function_is_that_function() -> None:
    shape = [{"utilization": 0, "score": 0}]
    argument = {"requestedToCapacityRatioArguments": {"shape": shape}}
    for name in STRATEGIES:
        given = [{"name": name, "weight": 1, "argument": argument}]
        fit: Any = profile(priorities=given).profile.plugin_config["NodeResourcesFit"]
        assert fit.scoring_strategy.type == "RequestedToCapacityRatio"
