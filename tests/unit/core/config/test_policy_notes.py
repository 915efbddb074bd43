"""What is said of each rule of a Policy, and what its halves come to where they are odd."""

from typing import Any

import pytest

from asched.core.config.legacy.policy import translate_policy
from asched.core.config.legacy.replacements import WEIGHT_LIMIT
from asched.core.config.legacy.translation import Translation
from asched.core.plugins import IN_TREE_POINTS


def of(**policy: Any) -> Translation:
    return translate_policy({"kind": "Policy", **policy}, IN_TREE_POINTS)


def said(translation: Translation) -> list[str]:
    return [f"{note.fate.value} {note}" for note in translation.notes]


def refused(translation: Translation) -> list[str]:
    return [f"{problem.path} {problem.text}" for problem in translation.problems]


def scores(translation: Translation) -> dict[str, int]:
    (profile,) = translation.document["profiles"]
    enabled = profile["plugins"].get("score", {}).get("enabled", [])
    return {entry["name"]: entry["weight"] for entry in enabled}


@pytest.mark.parametrize("given", ["x", {"name": "HostName"}, 3])
def test_a_half_that_is_no_list_is_refused(given: Any) -> None:
    assert refused(of(predicates=given, priorities=given)) == [
        "('predicates',) predicates: must be a list",
        "('priorities',) priorities: must be a list",
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
