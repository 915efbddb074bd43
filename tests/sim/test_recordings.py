"""Whatever a simulated life brings, each of its processes can be repeated from what it recorded.

Late answers, reloads, elections, restarts, extenders and plugins of users are all in it: a cause of
a decision that is no fact would show here.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from asched.host.user_plugins.catalogue import Catalogue, of_class
from asched.ops.recording.lines import effects_bytes
from asched_lab.replay.lines import Recording
from asched_lab.replay.rebuilt import Rebuilt
from asched_lab.sim.scenario import play
from asched_lab.sim.scenarios import SCENARIOS

ROOT = Path(__file__).resolve().parents[2]
#: Virtual environments that `make test-pythons` leaves.
OTHERS = sorted(ROOT.glob(".venv-3.*/bin/python"))


Lived = Callable[[str, int], list[Path]]


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    """The recordings of a scenario's processes; each is played once."""

    @cache
    def play_once(name: str, seed: int) -> list[Path]:
        folder = tmp_path_factory.mktemp(name)
        assert play(SCENARIOS[name], seed, record=folder).ledger.bound_count
        return sorted(folder.iterdir())

    return play_once


#: With several processes, reloads, extenders, users' plugins and late answers. Kept recordings of
#: all scenarios are replayed in tests/conformance.
REPEATED: Final = (
    "BusyDevices",
    "EveryPhase",
    "Incident02",
    "Incident05",
    "LeaderChanges",
    "PromisedStarts",
    "Reloads",
    "SideBySide",
)


#: In this run a check of a gang changed the order of the gang's pods, in the recorded process only.
CASES: Final = [*((name, 1) for name in REPEATED), ("GangAsksOnce", 0)]


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_every_process_of_a_life_can_be_repeated(name: str, seed: int, lived: Lived) -> None:
    plugins = SCENARIOS[name].plugins
    catalogue = Catalogue([of_class(cls, "the scenario") for cls in plugins])
    decided = 0
    for path in lived(name, seed):
        recording = Recording(path)
        rebuilt = Rebuilt(recording.head, catalogue)
        for turn in recording:
            encoded = effects_bytes(rebuilt.turn(turn))
            assert encoded == turn.effects, f"{path.name}, turn {turn.number}"
            decided += turn.effects.count(b'["Bind"')
        assert not recording.cut_off

    assert decided


def replayed_by(python: str, *paths: Path, **environment: str) -> str:
    command = [python, "-m", "asched", "replay"]
    told = [
        subprocess.run(
            [*command, str(path)],
            env={**os.environ, **environment},
            cwd=ROOT,
            capture_output=True,
            check=False,
            text=True,
        )
        for path in paths
    ]
    return "".join(
        f"{done.stdout}{done.stderr}" if done.returncode else f"{done.stdout.splitlines()[-1]}\n"
        for done in told
    )


def test_another_process_decides_the_same(lived: Lived) -> None:
    """Whatever order it keeps sets of strings in: another one than this process, mostly."""
    paths = [path for name in ("BusyDevices", "PromisedStarts") for path in lived(name, 1)]

    told = replayed_by(sys.executable, *paths, PYTHONHASHSEED="1")
    assert told == "all decisions are equal\n" * len(paths)


@pytest.mark.skipif(not OTHERS, reason="no other Python: make test-pythons sets up .venv-3.*")
@pytest.mark.parametrize("python", OTHERS, ids=lambda path: path.parents[1].name)
def test_another_python_decides_the_same(python: Path, lived: Lived) -> None:
    paths = [path for name in ("Churn", "BusyDevices", "EvenSpread") for path in lived(name, 2)]

    assert replayed_by(str(python), *paths) == "all decisions are equal\n" * len(paths)
