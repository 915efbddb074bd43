"""The whole recorded corpus agrees, where it is at hand."""

import pytest

from tests.conformance.__main__ import files, replay_file
from tests.support import shared_path


@pytest.mark.shared
def test_the_corpus_agrees_whole() -> None:
    folder = shared_path("conformance")
    results = [result for path in files([folder]) for result in replay_file(path)]
    assert len(results) > 2500
    assert not [r.name for r in results if r.missing]
    assert not {r.name: r.differences for r in results if r.differences}


@pytest.mark.shared
def test_cases_of_the_allocator_of_1_37_agree() -> None:
    folder = shared_path("conformance/1.37-derived")
    results = [result for path in files([folder]) for result in replay_file(path)]
    assert len(results) == 36
    assert not {r.name: r.differences for r in results if r.differences}
