"""What is said of each entry of an old file, and what becomes of it: by rule, entry by entry."""

from typing import Any

import pytest

from asched.core.config.legacy import VERSIONS, translate, version_of
from asched.core.config.translation import Fate, Translation
from asched.core.plugins import IN_TREE_POINTS
from tests.core.config.documents import GROUP, old

LEAST, MOST, RATIO = (
    "NodeResourcesLeastAllocated",
    "NodeResourcesMostAllocated",
    "RequestedToCapacityRatio",
)
FIT = "NodeResourcesFit"
SCORE = "profiles[0].plugins.score"


def of(version: str, **profile: Any) -> Translation:
    return translate(old(version, profiles=[profile]), IN_TREE_POINTS)


def said(translation: Translation) -> list[str]:
    """`fate path: text` of each note but the first, which is about the version."""
    first, *rest = translation.notes
    assert (first.fate, first.path) == (Fate.CHANGED, ("apiVersion",))
    return [f"{note.fate.value} {note}" for note in rest]


def refused(translation: Translation) -> list[str]:
    return [f"{problem.path} {problem.text} {problem.hint}" for problem in translation.problems]


def enabled(*names: str, **points: Any) -> dict[str, Any]:
    return {"enabled": [{"name": name} for name in names], **points}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_version_is_told(version: str) -> None:
    translation = translate(old(version), IN_TREE_POINTS)
    assert str(translation.notes[0]) == (
        f"apiVersion: {GROUP}/{version} became kubescheduler.config.k8s.io/v1"
    )
    assert translation.form == f"KubeSchedulerConfiguration {version}"
    assert translation.document["apiVersion"] == f"{GROUP}/v1"


OLD_WEIGHTS = (
    f"changed {SCORE}: default weights of then written down: "
    "TaintToleration 1, NodeAffinity 1, InterPodAffinity 1"
)


@pytest.mark.parametrize(
    ("plugins", "notes", "becomes"),
    [
        (
            {"filter": enabled("NodeName", "EBSLimits", "NodePorts")},
            [
                "kept profiles[0].plugins.filter.enabled[0]: NodeName",
                (
                    "changed profiles[0].plugins.filter.enabled[1]: EBSLimits left out: "
                    "NodeVolumeLimits does its work"
                ),
                "kept profiles[0].plugins.filter.enabled[2]: NodePorts",
            ],
            {"filter": enabled("NodeName", "NodePorts")},
        ),
        (
            {"filter": {"disabled": [{"name": "NodeLabel"}, {"name": "NodePorts"}]}},
            [
                (
                    "changed profiles[0].plugins.filter.disabled[0]: NodeLabel is gone, so there "
                    "is nothing to disable"
                ),
                "kept profiles[0].plugins.filter.disabled[1]: NodePorts",
            ],
            {"filter": {"disabled": [{"name": "NodePorts"}]}},
        ),
        ({"filter": enabled("AzureDiskLimits")}, None, {"filter": {}}),
        ({"filter": "x"}, [], {"filter": "x"}),
    ],
)
def test_plugins_of_a_point_stay_or_leave_and_are_named(
    plugins: Any, notes: list[str] | None, becomes: Any
) -> None:
    translation = of("v1beta3", plugins=plugins)
    if notes is not None:
        assert said(translation) == notes
    assert translation.document["profiles"][0]["plugins"] == becomes
    before = of("v1beta2", plugins=plugins)
    if notes is not None:
        assert said(before) == [*notes, OLD_WEIGHTS]


@pytest.mark.parametrize(
    ("score", "listed"),
    [
        ({}, "TaintToleration 1, NodeAffinity 1, InterPodAffinity 1"),
        (enabled("NodeAffinity"), "TaintToleration 1, InterPodAffinity 1"),
        ({"disabled": [{"name": "TaintToleration"}]}, "NodeAffinity 1, InterPodAffinity 1"),
        (enabled("TaintToleration", "NodeAffinity", "InterPodAffinity"), ""),
        ({"disabled": [{"name": "*"}]}, ""),
        ({"disabled": [{"name": "ImageLocality"}, {"name": "*"}]}, ""),
    ],
)
def test_weights_of_then_are_written_behind_what_is_enabled(score: Any, listed: str) -> None:
    translation = of("v1beta2", plugins={"score": score})
    text = f"changed {SCORE}: default weights of then written down: {listed}"
    assert [note for note in said(translation) if "weights" in note] == ([text] if listed else [])
    found = translation.document["profiles"][0]["plugins"]["score"].get("enabled", [])
    wanted = [word.split() for word in listed.split(", ") if word]
    written = [{"name": name, "weight": int(weight)} for name, weight in wanted]
    assert found == [*score.get("enabled", []), *written]


def test_args_stay_in_todays_version_and_those_of_what_is_gone_leave() -> None:
    def entry(name: str, **args: Any) -> dict[str, Any]:
        return {"name": name, "args": args} if args else {"name": name}

    given = [
        entry("NodeLabel", presentLabels=["a"]),
        entry("NodeAffinity", apiVersion=f"{GROUP}/v1beta2", kind="NodeAffinityArgs"),
        entry("Mine", apiVersion="mine.io/v1beta2"),
        entry("InterPodAffinity", hardPodAffinityWeight=3),
        entry("VolumeBinding"),
    ]
    translation = of("v1beta2", pluginConfig=given)
    assert [note for note in said(translation) if "pluginConfig" in note] == [
        (
            "unsupported profiles[0].pluginConfig[0]: args of NodeLabel: it is gone; use "
            "NodeAffinity with addedAffinity, or pod node affinity"
        ),
        *(
            f"kept profiles[0].pluginConfig[{place}]: args of {name}"
            for place, name in enumerate(
                ("NodeAffinity", "Mine", "InterPodAffinity", "VolumeBinding"), start=1
            )
        ),
    ]
    assert translation.document["profiles"][0]["pluginConfig"] == [
        entry("NodeAffinity", apiVersion=f"{GROUP}/v1", kind="NodeAffinityArgs"),
        *given[2:],
    ]
    assert given[1]["args"]["apiVersion"] == f"{GROUP}/v1beta2", "the file stays as it is"
    only = of("v1beta2", pluginConfig=given[:1])
    assert "pluginConfig" not in only.document["profiles"][0]


@pytest.mark.parametrize(
    ("score", "config", "notes", "becomes"),
    [
        (
            enabled(LEAST),
            [],
            [f"kept {SCORE}: {LEAST} is what {FIT} does by default"],
            {},
        ),
        (
            {"disabled": [{"name": LEAST}]},
            [],
            [f"changed {SCORE}: {LEAST} was off, so {FIT} is"],
            {"disabled": [{"name": FIT}]},
        ),
        ({"disabled": [{"name": "*"}]}, [], [], {"disabled": [{"name": "*"}]}),
        (
            {"enabled": [{"name": MOST, "weight": 3}], "disabled": [{"name": "*"}]},
            [],
            [f"changed {SCORE}: {MOST} became {FIT}, MostAllocated"],
            {"enabled": [{"name": FIT, "weight": 3}], "disabled": [{"name": "*"}]},
        ),
        (
            {
                "enabled": [{"name": "ImageLocality"}, {"name": RATIO}],
                "disabled": [{"name": LEAST}],
            },
            [{"name": RATIO, "args": {"shape": [1], "resources": [2]}}],
            [f"changed {SCORE}: {RATIO} became {FIT}, RequestedToCapacityRatio"],
            {"enabled": [{"name": "ImageLocality"}, {"name": FIT, "weight": 1}]},
        ),
    ],
)
def test_strategies_of_v1beta1_become_one(
    score: Any, config: list[Any], notes: list[str], becomes: Any
) -> None:
    translation = of("v1beta1", plugins={"score": score}, pluginConfig=config)
    notes_of = tuple(f"{fate.value} {SCORE}:" for fate in Fate)
    of_fit = [note for note in said(translation) if note.startswith(notes_of) and FIT in note]
    assert of_fit == notes
    found = translation.document["profiles"][0]["plugins"]["score"]
    mine = [e for e in found.get("enabled", []) if e["name"] in (FIT, "ImageLocality")]
    assert mine == becomes.get("enabled", [])
    assert found.get("disabled", []) == becomes.get("disabled", [])
    if config:
        assert translation.document["profiles"][0]["pluginConfig"] == [
            {
                "name": FIT,
                "args": {
                    "scoringStrategy": {
                        "type": RATIO,
                        "resources": [2],
                        "requestedToCapacityRatio": {"shape": [1]},
                    }
                },
            }
        ]


def test_another_strategy_of_the_same_weight_is_written_down_beside_args_that_are_empty() -> None:
    score = {"enabled": [{"name": MOST, "weight": 1}], "disabled": [{"name": LEAST}]}
    translation = of("v1beta1", plugins={"score": score}, pluginConfig=[{"name": FIT}])
    (profile,) = translation.document["profiles"]
    assert {"name": FIT, "weight": 1} in profile["plugins"]["score"]["enabled"]
    strategy = {"scoringStrategy": {"type": "MostAllocated"}}
    assert profile["pluginConfig"] == [{"name": FIT, "args": strategy}]


def test_a_policy_is_translated_as_such_and_other_kinds_are_none_of_them() -> None:
    translation = translate({"kind": "Policy", "apiVersion": "v1"}, IN_TREE_POINTS)
    assert translation.form == "legacy Policy"
    assert translation.document["profiles"]
    assert version_of({**old("v1beta1"), "kind": "Other"}) == ""
    assert version_of({"kind": "KubeSchedulerConfiguration"}) == ""


def test_strategies_are_no_matter_of_later_versions() -> None:
    for version in VERSIONS[1:]:
        translation = of(version, plugins={"score": enabled(MOST)})
        assert [text.split(" it is gone")[0] for text in refused(translation)] == [
            (
                "('profiles', 0, 'plugins', 'score', 'enabled', 0) "
                f'plugin "{MOST}" does not exist in v1'
            )
        ]


def test_two_strategies_are_refused_with_the_way_out() -> None:
    text, *_ = refused(of("v1beta1", plugins={"score": enabled(MOST, RATIO)}))
    assert text == (
        "('profiles', 0, 'plugins', 'score') "
        f"{LEAST} and {MOST} and {RATIO} score together, v1 has one strategy for each profile "
        f"disable all but one of them ({LEAST} by default)"
    )


def test_fields_of_later_versions_are_refused_each() -> None:
    plugins = {"preEnqueue": {}, "multiPoint": {}, "filter": {}}
    for version, expected in (("v1beta1", 2), ("v1beta2", 2), ("v1beta3", 0)):
        translation = translate(old(version, profiles=[{}, {"plugins": plugins}]), IN_TREE_POINTS)
        assert sorted(refused(translation)) == [
            f"('profiles', 1, 'plugins', '{point}') unknown field \"profiles[1].plugins.{point}\" "
            for point in ("multiPoint", "preEnqueue")[:expected]
        ]


@pytest.mark.parametrize(
    ("version", "address", "told"),
    [
        ("v1beta1", ":10251", "unsupported"),
        ("v1beta1", "0.0.0.0:0", "unsupported"),
        ("v1beta2", "0.0.0.0:0", "unsupported"),
        ("v1beta2", "0.0.0.0:10251", "refused"),
        ("v1beta2", "", ""),
        ("v1beta1", None, ""),
    ],
)
@pytest.mark.parametrize("name", ["healthzBindAddress", "metricsBindAddress"])
def test_addresses_of_then(name: str, version: str, address: str | None, told: str) -> None:
    translation = translate(old(version, **{name: address}), IN_TREE_POINTS)
    notes = [note for note in said(translation) if "BindAddress" in note]
    assert notes == (
        [f"unsupported {name}: served over TLS only: --bind-address and --secure-port"]
        if told == "unsupported"
        else []
    )
    problems = refused(translation)
    assert problems == (
        [
            (
                f"('{name}',) {name}: Invalid value: \"{address}\": must be empty or with an "
                "explicit 0 port serving is set with --bind-address and --secure-port"
            )
        ]
        if told == "refused"
        else []
    )
    assert name not in translation.document


def test_an_address_in_the_last_of_them_is_left_for_decoding() -> None:
    translation = translate(old("v1beta3", healthzBindAddress=":1"), IN_TREE_POINTS)
    assert translation.document["healthzBindAddress"] == ":1"


@pytest.mark.parametrize(
    ("election", "becomes"),
    [
        ({"resourceLock": "configmaps", "leaderElect": True}, "leases"),
        ({"resourceLock": "leases"}, "leases"),
        ({"resourceLock": "endpointsleases"}, "leases"),
        ({}, None),
        ("x", None),
    ],
)
def test_locks_of_then(election: Any, becomes: str | None) -> None:
    translation = translate(old("v1beta3", leaderElection=election), IN_TREE_POINTS)
    found = translation.document["leaderElection"]
    if isinstance(election, dict):
        assert found == {**election, **({"resourceLock": becomes} if becomes else {})}
    else:
        assert found == election
    was = election.get("resourceLock") if isinstance(election, dict) else None
    assert [note for note in said(translation) if "leaderElection" in note] == (
        ["kept leaderElection: as it was"]
        if was == becomes
        else [
            (
                f"changed leaderElection.resourceLock: {was} became leases; an old replica that "
                "runs beside this one is not seen"
            )
        ]
    )


def test_profiles_that_are_none_are_left_for_decoding() -> None:
    for given in ("x", {"a": 1}):
        document = translate(old("v1beta2", profiles=given), IN_TREE_POINTS).document
        assert document["profiles"] == given
    mixed = translate(old("v1beta3", profiles=[{"schedulerName": "a"}, 7, {}]), IN_TREE_POINTS)
    assert mixed.document["profiles"] == [{"schedulerName": "a"}, 7, {}]
    assert translate(old("v1beta3", profiles=[]), IN_TREE_POINTS).document["profiles"] == []
    assert translate(old("v1beta3"), IN_TREE_POINTS).document["profiles"] == [{}]
