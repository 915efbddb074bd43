import pytest

from asched import names
from asched.core.config.default_plugins import WHOLE
from asched.core.config.gates import DEFAULT_GATES
from asched.core.config.merge import (
    ResolvedProfile,
    UnusableProfileError,
    merge_defaults,
    needed_plugins,
    resolve,
)
from asched.core.config.v1 import MULTI_POINT, POINTS, KubeSchedulerProfile, PluginEntry, PluginSet
from asched.core.plugins import IN_TREE_POINTS


def sets(**points: str) -> dict[str, PluginSet]:
    """`filter="A B:3 -C"`: A and B (weight 3) enabled, C disabled."""
    result = {}
    for point, words in points.items():
        on, off = [], []
        for word in words.split():
            name, _, weight = word.lstrip("-").partition(":")
            (off if word.startswith("-") else on).append(PluginEntry(name, int(weight or 0)))
        result[MULTI_POINT if point == "multi" else point] = PluginSet(tuple(on), tuple(off))
    return result


def resolved(**points: str) -> ResolvedProfile:
    return resolve(
        KubeSchedulerProfile(plugins=merge_defaults(sets(**points), DEFAULT_GATES)), IN_TREE_POINTS
    )


def order(profile: ResolvedProfile, point: str) -> str:
    return " ".join(
        f"{plugin.name}:{plugin.weight}" if plugin.weight else plugin.name
        for plugin in profile.at(point)
    )


BARE = "-* PrioritySort DefaultBinder"


def test_the_default_profile_has_upstreams_weights() -> None:
    weights = {plugin.name: plugin.weight for plugin in resolved().at("score")}
    assert weights == {
        names.TAINT_TOLERATION: 3,
        names.NODE_AFFINITY: 2,
        names.NODE_RESOURCES_FIT: 1,
        names.VOLUME_BINDING: 1,
        names.POD_TOPOLOGY_SPREAD: 2,
        names.INTER_POD_AFFINITY: 2,
        names.DYNAMIC_RESOURCES: 2,
        names.NODE_RESOURCES_BALANCED_ALLOCATION: 1,
        names.IMAGE_LOCALITY: 1,
    }


def test_a_default_that_is_named_again_keeps_its_place_and_forgets_its_weight() -> None:
    enabled = merge_defaults(sets(multi="TaintToleration"), DEFAULT_GATES)[MULTI_POINT].enabled
    assert enabled[4] == PluginEntry(names.TAINT_TOLERATION, 0)


def test_what_is_enabled_and_disabled_moves_to_the_end() -> None:
    enabled = merge_defaults(sets(multi="NodeName:8 -NodeName"), DEFAULT_GATES)[MULTI_POINT].enabled
    assert enabled[-1] == PluginEntry(names.NODE_NAME, 8)


def test_a_star_leaves_only_what_the_user_names() -> None:
    profile = resolved(multi=f"{BARE} NodeName NodePorts")
    assert order(profile, "filter") == "NodeName NodePorts"
    assert order(profile, "score") == ""
    assert profile.plugin_names == ("PrioritySort", "NodePorts", "NodeName", "DefaultBinder")


def test_a_point_puts_overrides_first_and_strangers_last() -> None:
    profile = resolved(multi=f"{BARE} NodeName NodePorts", filter="VolumeZone NodePorts")
    assert order(profile, "filter") == "NodePorts NodeName VolumeZone"


def test_disabled_and_enabled_at_a_point_means_last() -> None:
    profile = resolved(multi=f"{BARE} NodeName NodePorts", filter="NodeName -NodeName")
    assert order(profile, "filter") == "NodePorts NodeName"


def test_a_star_at_a_point_keeps_the_points_own() -> None:
    assert order(resolved(score="ImageLocality:3 -*"), "score") == "ImageLocality:3"


def test_gated_plugins_come_with_their_gates() -> None:
    gates = {**DEFAULT_GATES, "NodeDeclaredFeatures": False, "GangScheduling": True}
    enabled = [plugin.name for plugin in merge_defaults({}, gates)[MULTI_POINT].enabled]
    assert enabled[-1] == names.GANG_SCHEDULING
    assert names.NODE_DECLARED_FEATURES not in enabled


@pytest.mark.parametrize(
    ("points", "text"),
    [
        ({"filter": "Nope"}, 'plugin "Nope" does not exist'),
        ({"multi": "Nope"}, 'plugin "Nope" does not exist'),
        ({"filter": "ImageLocality"}, 'plugin "ImageLocality" has no extension point filter'),
        ({"filter": "NodeName NodeName"}, 'plugin "NodeName" is enabled twice'),
        (
            {"multi": "ImageLocality:1 ImageLocality:2"},
            'plugin "ImageLocality" is enabled twice',
        ),
        (
            {"multi": "-*"},
            'profile "default-scheduler" needs exactly one plugin at queueSort, it has 0',
        ),
        (
            {"bind": "-*"},
            'profile "default-scheduler" needs a plugin at bind',
        ),
        (
            {"score": "TaintToleration:-1"},
            "the weights at score are so large that a total score could overflow",
        ),
        (
            {"placementScore": "NodeResourcesFit:-1 PodGroupPodsCount"},
            "the weights at placementScore are so large that a total score could overflow",
        ),
    ],
)
def test_a_profile_that_cannot_be_built_says_why(points: dict[str, str], text: str) -> None:
    with pytest.raises(UnusableProfileError) as caught:
        resolved(**points)
    assert caught.value.problems[0].text == text


def test_every_unknown_plugin_is_reported_with_a_hint() -> None:
    with pytest.raises(UnusableProfileError) as caught:
        resolved(filter="nodename Nodeports", score="SelectorSpread")
    assert [problem.hint for problem in caught.value.problems[:2]] == [
        'did you mean "NodeName"?',
        'did you mean "NodePorts"?',
    ]
    assert "PodTopologySpread" in caught.value.problems[2].hint


def test_only_enabled_plugins_are_needed() -> None:
    profile = KubeSchedulerProfile(
        plugins=merge_defaults(sets(multi=BARE, score="ImageLocality"), DEFAULT_GATES)
    )
    assert needed_plugins(profile) == ("DefaultBinder", "ImageLocality", "PrioritySort")


def test_a_plugin_that_stands_at_a_point_and_in_multi_point_runs_there_once() -> None:
    assert order(resolved(multi=f"{BARE} NodePorts NodeName", filter="NodeName"), "filter") == (
        "NodeName NodePorts"
    )


def test_a_fault_tells_where_in_the_file_it_stands() -> None:
    for index in (0, 2):
        profile = KubeSchedulerProfile(plugins=merge_defaults(sets(filter="Nope"), DEFAULT_GATES))
        with pytest.raises(UnusableProfileError) as caught:
            resolve(profile, IN_TREE_POINTS, index)
        (problem,) = caught.value.problems
        assert problem.path == ("profiles", index, "plugins", "filter", "enabled", 0, "name")


def test_placements_are_made_by_one_plugin_at_most() -> None:
    known = {**IN_TREE_POINTS, **dict.fromkeys("AB", frozenset({"placementGenerate"}))}

    def made(plugins: str) -> ResolvedProfile:
        merged = merge_defaults(sets(placementGenerate=f"{plugins} -*"), DEFAULT_GATES)
        return resolve(KubeSchedulerProfile(plugins=merged), known)

    assert order(made("A"), "placementGenerate") == "A"
    with pytest.raises(UnusableProfileError, match="may have one plugin at placementGenerate only"):
        made("A B")


@pytest.mark.parametrize(("name", "points"), WHOLE.items())
def test_a_plugin_that_works_at_certain_points_only_runs_at_these_and_goes_last(
    name: str, points: frozenset[str]
) -> None:
    """Wherever it is switched on: half of it would be worse than nothing."""
    others = {p: order(resolved(), p).split() for p in POINTS if p != "queueSort"}
    at = sorted(IN_TREE_POINTS[name] - {"queueSort"})
    for given in ({"multi": f"{name} -PrioritySort"}, *({point: name} for point in at)):
        profile = resolved(**given)
        for point, before in others.items():
            now = [plugin.name for plugin in profile.at(point)]
            assert (name in now) is (point in points), point
            assert len(now) == len(before) + (point in points)
