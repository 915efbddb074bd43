"""Values: versions in their order, equality that never fails, and numbers within their bounds."""

from itertools import pairwise
from typing import Any

import pytest

from asched.core.dra.cel.values import NOTHING, Optional, Semver, Uint, equals, parse_semver


def test_versions_are_ordered_as_the_standard_has_it() -> None:
    texts = ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2"]
    texts += ["1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1", "1.1.0", "2.0.0", "10.0.0"]
    versions = [parse_semver(text) for text in texts]
    assert None not in versions
    for before, after in pairwise([version for version in versions if version is not None]):
        assert before.order < after.order


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "1.2",
        "v1.2.3",
        "01.2.3",
        "1.2.3-01",
        "1.2.3-",
        "1.2.3+",
        "1.2.3.4",
        "a.b.c",
        "1.1٣.0",
    ],
)
def test_what_is_no_version(text: str) -> None:
    assert parse_semver(text) is None


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("v1", Semver(1, 0, 0, ())),
        ("1.2", Semver(1, 2, 0, ())),
        ("v01.02.03-rc.1+x", Semver(1, 2, 3, ("rc", "1"))),
        ("1.2-rc", None),
        ("x1", None),
    ],
)
def test_a_loose_version_may_be_normalised(text: str, version: Semver | None) -> None:
    assert parse_semver(text, normalize=True) == version


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (1, 1.0, True),
        (Uint(1), 1, True),
        (True, 1, False),
        ("1", 1, False),
        ([1, "a"], [1.0, "a"], True),
        ([1], [1, 2], False),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        (NOTHING, NOTHING, True),
        (NOTHING, Optional(is_present=True, value=None), False),
        (Optional(is_present=True, value=1), Optional(is_present=True, value=1.0), True),
        (Optional(is_present=True, value=1), Optional(is_present=True, value=2), False),
        (None, None, True),
        (None, 0, False),
    ],
)
def test_equality_never_fails(left: Any, right: Any, equal: bool) -> None:
    assert equals(left, right) is equal
    assert equals(right, left) is equal
