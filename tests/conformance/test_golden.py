"""The sample that travels with the project agrees whole, with no other input present."""

from pathlib import Path

from tests.conformance.__main__ import files, replay_file

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def test_the_sample_agrees_whole() -> None:
    results = [result for path in files([GOLDEN]) for result in replay_file(path)]
    assert len(results) > 200
    assert not [r.name for r in results if r.missing]
    assert not {r.name: r.differences for r in results if r.differences}
