from typing import Any

import pytest

from asched.core.config.construct import construct
from asched.core.config.decode import decode
from asched.core.config.defaults import configuration
from asched.core.config.legacy.old_versions import STRATEGY_PLUGINS, VERSIONS, translate
from asched.core.config.legacy.translation import Fate, Translation
from asched.core.config.merge import ResolvedProfile
from asched.core.plugins import IN_TREE_POINTS
from tests.unit.core.config.documents import GROUP, old


def loaded(translation: Translation) -> ResolvedProfile:
    assert not translation.problems
    checked, problems = decode(translation.document)
    assert not problems
    built, problems = construct(configuration(checked), IN_TREE_POINTS)
    assert not problems
    assert built is not None
    return built.profiles[0]


def weights(resolved: ResolvedProfile) -> dict[str, int]:
    return {plugin.name: plugin.weight for plugin in resolved.at("score")}


def profile_of(version: str, plugins: Any = None, config: Any = None) -> Translation:
    given = {"plugins": plugins, "pluginConfig": config}
    return translate(old(version, profiles=[{k: v for k, v in given.items() if v}]), IN_TREE_POINTS)


def test_v1beta3_is_v1_under_another_name() -> None:
    args = {"apiVersion": f"{GROUP}/v1beta3", "kind": "InterPodAffinityArgs"}
    translation = profile_of("v1beta3", config=[{"name": "InterPodAffinity", "args": args}])
    assert weights(loaded(translation))["TaintToleration"] == 3


def test_plugins_of_volume_limits_leave_and_are_named() -> None:
    on = {"filter": {"enabled": [{"name": "EBSLimits"}], "disabled": [{"name": "CinderLimits"}]}}
    translation = profile_of("v1beta3", on)
    loaded(translation)
    changed = [str(note) for note in translation.notes if note.fate is Fate.CHANGED]
    assert changed[1:] == [
        "profiles[0].plugins.filter.enabled[0]: EBSLimits left out: NodeVolumeLimits does its work",
        (
            "profiles[0].plugins.filter.disabled[0]: CinderLimits is gone, so there is nothing to "
            "disable"
        ),
    ]


def test_weights_of_users_stay_and_a_star_needs_no_old_weights() -> None:
    mine = {"score": {"enabled": [{"name": "TaintToleration", "weight": 9}]}}
    assert weights(loaded(profile_of("v1beta2", mine)))["TaintToleration"] == 9
    star = {"score": {"enabled": [{"name": "ImageLocality"}], "disabled": [{"name": "*"}]}}
    assert weights(loaded(profile_of("v1beta2", star))) == {"ImageLocality": 1}
    off = {"score": {"disabled": [{"name": "NodeAffinity"}]}}
    assert "NodeAffinity" not in weights(loaded(profile_of("v1beta2", off)))


def test_the_three_plugins_of_capacity_become_one_strategy() -> None:
    score = {
        "enabled": [{"name": "NodeResourcesMostAllocated", "weight": 4}],
        "disabled": [{"name": "NodeResourcesLeastAllocated"}],
    }
    resources = {"resources": [{"name": "cpu", "weight": 3}]}
    config = [{"name": "NodeResourcesMostAllocated", "args": resources}]
    resolved = loaded(profile_of("v1beta1", {"score": score}, config))
    fit: Any = resolved.profile.plugin_config["NodeResourcesFit"]
    assert fit.scoring_strategy.type == "MostAllocated"
    assert [(r.name, r.weight) for r in fit.scoring_strategy.resources] == [("cpu", 3)]
    assert weights(resolved)["NodeResourcesFit"] == 4
    assert STRATEGY_PLUGINS.keys().isdisjoint(resolved.profile.plugin_config)


def test_two_strategies_at_once_are_refused() -> None:
    both = {"score": {"enabled": [{"name": "NodeResourcesMostAllocated"}]}}
    problem = profile_of("v1beta1", both).problems[0]
    assert "NodeResourcesLeastAllocated and NodeResourcesMostAllocated" in problem.text
    assert "disable all but one" in problem.hint


@pytest.mark.parametrize("name", ["NodeLabel", "ServiceAffinity", "NodePreferAvoidPods"])
def test_rules_without_a_successor_are_refused_by_name(name: str) -> None:
    problem = profile_of("v1beta1", {"filter": {"enabled": [{"name": name}]}}).problems[0]
    assert problem.text == f'plugin "{name}" does not exist in v1'
    assert problem.hint.startswith("it is gone; use ")


def test_fields_of_later_versions_are_unknown_in_older_ones() -> None:
    translation = profile_of("v1beta2", {"multiPoint": {"enabled": []}})
    assert [problem.text for problem in translation.problems] == [
        'unknown field "profiles[0].plugins.multiPoint"'
    ]


def test_addresses_without_tls_go() -> None:
    translation = translate(old("v1beta2", healthzBindAddress=":10251"), IN_TREE_POINTS)
    assert translation.problems[0].text.endswith("must be empty or with an explicit 0 port")
    translation = translate(
        old("v1beta1", healthzBindAddress=":10251", metricsBindAddress=""), IN_TREE_POINTS
    )
    loaded(translation)
    assert [note.fate for note in translation.notes].count(Fate.UNSUPPORTED) == 1


def test_locks_become_leases() -> None:
    translation = translate(
        old("v1beta2", leaderElection={"resourceLock": "endpointsleases"}), IN_TREE_POINTS
    )
    assert translation.document["leaderElection"] == {"resourceLock": "leases"}
    assert any("old replica" in note.text for note in translation.notes)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_field_of_an_old_file_is_named_once_whatever_became_of_it(version: str) -> None:
    fields = {"parallelism": 8, "clientConnection": {}, "profiles": [{"schedulerName": "a"}]}
    lock = {"leaderElection": {"resourceLock": "endpoints"}, "extenders": []}
    translation = translate(old(version, **fields, **lock), IN_TREE_POINTS)
    named = [note.path[0] for note in translation.notes if note.path and len(note.path) < 3]
    assert sorted(set(named) - {"profiles"}) == sorted(
        ["apiVersion", "clientConnection", "extenders", "leaderElection", "parallelism"]
    )
    assert len(named) == len(set(named))


DEFAULT = "NodeResourcesLeastAllocated"


@pytest.mark.parametrize(
    ("score", "config", "written"),
    [
        (None, None, None),
        ([{"name": DEFAULT}], None, None),
        ([{"name": DEFAULT, "weight": 1}], None, None),
        ([{"name": DEFAULT, "weight": 3}], None, 3),
        (None, [{"name": DEFAULT, "args": {"resources": [{"name": "x", "weight": 2}]}}], 1),
    ],
)
def test_the_strategy_that_was_the_default_is_written_down_only_where_it_was_changed(
    score: Any, config: Any, written: int | None
) -> None:
    translation = profile_of("v1beta1", {"score": {"enabled": score}} if score else None, config)
    enabled = translation.document["profiles"][0]["plugins"]["score"]["enabled"]
    ours = [entry["weight"] for entry in enabled if entry["name"] == "NodeResourcesFit"]
    assert ours == ([written] if written else [])
    resolved = loaded(translation)
    assert weights(resolved)["NodeResourcesFit"] == (written or 1)
    fit: Any = resolved.profile.plugin_config["NodeResourcesFit"]
    assert fit.scoring_strategy.type == "LeastAllocated"
    assert ("x" in [r.name for r in fit.scoring_strategy.resources]) is bool(config)


def test_a_strategy_joins_the_args_that_are_there() -> None:
    config = [
        {"name": "NodeResourcesFit", "args": {"ignoredResources": ["a.b/c"]}},
        {"name": "RequestedToCapacityRatio", "args": {"shape": [{"utilization": 0, "score": 5}]}},
    ]
    score = {"enabled": [{"name": "RequestedToCapacityRatio"}], "disabled": [{"name": DEFAULT}]}
    fit: Any = loaded(profile_of("v1beta1", {"score": score}, config)).profile.plugin_config[
        "NodeResourcesFit"
    ]
    assert fit.ignored_resources == ("a.b/c",)
    assert fit.scoring_strategy.type == "RequestedToCapacityRatio"
    (corner,) = fit.scoring_strategy.requested_to_capacity_ratio.shape
    assert (corner.utilization, corner.score) == (0, 5)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("score", [[1], "x", {"enabled": "x"}, {"disabled": 1}, {"more": {}}])
def test_what_stands_where_a_list_should_is_left_for_decoding_to_refuse(
    version: str, score: Any
) -> None:
    translation = profile_of(version, {"score": score})
    assert decode(translation.document)[1]
