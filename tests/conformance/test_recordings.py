"""Kept recordings of simulated runs: `asched replay` decides today what was decided then.

`recordings/README.md` says how they were made.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from asched.cli.main import main
from asched_lab.sim.scenarios import SCENARIOS

RECORDINGS = sorted((Path(__file__).parent / "recordings").glob("*.jsonl.gz"))


def scenario_of(path: Path) -> str:
    return path.name.partition(".")[0]


def plugin_options(path: Path) -> Iterator[str]:
    for plugin in SCENARIOS[scenario_of(path)].plugins:
        yield f"--plugin={plugin.__module__}:{plugin.__qualname__}"


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name.split(".jsonl")[0])
def test_decisions_are_the_recorded_ones(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["replay", str(path), *plugin_options(path)])

    printed = capsys.readouterr()
    assert status == 0, printed.out + printed.err
    assert printed.out.splitlines()[-1] == "all decisions are equal"


def test_each_scenario_is_recorded() -> None:
    assert {scenario_of(path) for path in RECORDINGS} == set(SCENARIOS)
