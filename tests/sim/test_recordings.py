"""Whatever a simulated life brings, each of its processes can be repeated from what it recorded.

Late answers, reloads, elections, restarts, extenders and plugins of users are all in it: a cause of
a decision that is no fact would show here.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from asched.host.user_plugins.catalogue import Catalogue, of_class
from asched.ops.recording.lines import effects_bytes
from asched_lab.replay.reading import Recording
from asched_lab.replay.rebuilt import Rebuilt
from asched_lab.sim.scenario import play
from asched_lab.sim.scenarios import SCENARIOS

ROOT = Path(__file__).resolve().parents[2]
#: Virtual environments that `make test-pythons` leaves.
OTHERS = sorted(ROOT.glob(".venv-3.*/bin/python"))


def lived(name: str, seed: int, folder: Path) -> list[Path]:
    world = play(SCENARIOS[name], seed, record=folder)
    assert world.ledger.bound_count
    return sorted(folder.iterdir())


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


@pytest.mark.parametrize("name", REPEATED)
def test_every_process_of_a_life_can_be_repeated(name: str, tmp_path: Path) -> None:
    plugins = SCENARIOS[name].plugins
    catalogue = Catalogue([of_class(cls, "the scenario") for cls in plugins])
    decided = 0
    for path in lived(name, 1, tmp_path):
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


def test_another_process_decides_the_same(tmp_path: Path) -> None:
    """Whatever order it keeps sets of strings in: another one than this process, mostly."""
    paths = [
        path for name in ("BusyDevices", "Gangs") for path in lived(name, 1, _made(tmp_path / name))
    ]

    told = replayed_by(sys.executable, *paths, PYTHONHASHSEED="1")
    assert told == "all decisions are equal\n" * len(paths)


@pytest.mark.skipif(not OTHERS, reason="no other Python: make test-pythons sets up .venv-3.*")
@pytest.mark.parametrize("python", OTHERS, ids=lambda path: path.parents[1].name)
def test_another_python_decides_the_same(python: Path, tmp_path: Path) -> None:
    paths = [
        path
        for name in ("Churn", "BusyDevices", "EvenSpread")
        for path in lived(name, 2, _made(tmp_path / name))
    ]

    assert replayed_by(str(python), *paths) == "all decisions are equal\n" * len(paths)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
