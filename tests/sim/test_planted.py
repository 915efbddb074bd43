"""The tool that plants mistakes: each has its place, and the copy with one in it is what is lived.

How many lives each takes: `python -m tests.sim.planted`, docs/results/scenarios.md.
"""

from operator import attrgetter
from pathlib import Path

import pytest

import asched
from tests.sim.planted.__main__ import lives_until_found
from tests.sim.planted.mistakes import MISTAKES

BY_NAME = {mistake.name: mistake for mistake in MISTAKES}


@pytest.mark.parametrize("mistake", MISTAKES, ids=attrgetter("name"))
def test_each_has_one_place_in_the_source(mistake) -> None:
    text = Path(asched.__file__).parent.joinpath(mistake.path).read_text()
    assert text.count(mistake.was) == 1
    assert mistake.now != mistake.was


def test_names_are_used_once() -> None:
    assert len(BY_NAME) == len(MISTAKES)


@pytest.mark.parametrize("name", ["a deletion is taken for a change", "a list deletes nothing"])
def test_it_is_found(name: str) -> None:
    found = lives_until_found(BY_NAME[name], 5, BY_NAME[name].scenario)
    words = ("does not exist in the API", "is still assumed", "is queued and does not wait")
    assert any(word in found["rule"] for word in words), found
