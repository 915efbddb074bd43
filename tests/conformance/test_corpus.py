"""Every decision in `tests/recordings/conformance` is decided the same way here."""

from pathlib import Path

import pytest

from tests.conformance.__main__ import files, replay_file
from tests.support import RECORDINGS

CORPUS = RECORDINGS / "conformance"
FILES = list(files([CORPUS, CORPUS / "1.37-derived"]))


def test_the_corpus_is_whole() -> None:
    assert len(FILES) == 22


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.split(".")[0])
def test_every_recorded_case_agrees(path: Path) -> None:
    results = list(replay_file(path))
    assert results
    assert not [r.name for r in results if r.missing]
    assert not {r.name: r.differences for r in results if r.differences}
