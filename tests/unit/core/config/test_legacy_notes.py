"""What is said of each entry of an old file, and what becomes of it: by rule, entry by entry."""

from typing import Any

import pytest

from asched.core.config.legacy.old_versions import translate
from asched.core.config.legacy.translation import Fate, Translation
from asched.core.plugins import IN_TREE_POINTS
from tests.unit.core.config.documents import GROUP, old

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


def test_two_strategies_are_refused_with_the_way_out() -> None:
    text, *_ = refused(of("v1beta1", plugins={"score": enabled(MOST, RATIO)}))
    assert text == (
        "('profiles', 0, 'plugins', 'score') "
        f"{LEAST} and {MOST} and {RATIO} score together, v1 has one strategy for each profile "
        f"disable all but one of them ({LEAST} by default)"
    )


def test_profiles_that_are_none_are_left_for_decoding() -> None:
    for given in ("x", {"a": 1}):
        document = translate(old("v1beta2", profiles=given), IN_TREE_POINTS).document
        assert document["profiles"] == given
    mixed = translate(old("v1beta3", profiles=[{"schedulerName": "a"}, 7, {}]), IN_TREE_POINTS)
    assert mixed.document["profiles"] == [{"schedulerName": "a"}, 7, {}]
    assert translate(old("v1beta3", profiles=[]), IN_TREE_POINTS).document["profiles"] == []
    assert translate(old("v1beta3"), IN_TREE_POINTS).document["profiles"] == [{}]
