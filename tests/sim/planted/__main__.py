"""Plant mistakes in copies of the package, and live until they are found.

    python -m tests.sim.planted                       all of them, at most 200 lives each
    python -m tests.sim.planted --only fences         of an area, or with these words in the name
    python -m tests.sim.planted --lives 50 --keep FILE
    python -m tests.sim.planted --there               in the scenario that is there for it alone

Lives are those of all scenarios in turn, each with seed 0 before any with seed 1, so nobody chooses
the scenario that knows, but with `--there`: that costs less. A line says how many lives it took,
and which rule spoke. Exit status 1 if a mistake was not found.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import asched
import asched_lab
from tests.sim.planted.mistakes import MISTAKES, Mistake

LIVES_MAX: Final = 200
#: Beyond this a life hangs, which is found as well (s).
LIFE_S_MAX: Final = 3600
#: Where the simulation is imported from.
LAB: Final = str(Path(asched_lab.__file__).parents[1])
#: What the copy is run with: lives until a rule is broken, and what came of it as JSON.
LIVE: Final = """
import json, logging, sys
logging.getLogger("asched").addHandler(logging.NullHandler())
logging.getLogger("asched").propagate = False
from asched_lab.sim.scenario import Broken, play
from asched_lab.sim.scenarios import SCENARIOS
kinds = [SCENARIOS[name] for name in sys.argv[2:]] or list(SCENARIOS.values())
for number in range(int(sys.argv[1])):
    kind, seed = kinds[number % len(kinds)], number // len(kinds)
    try:
        play(kind, seed)
    except Broken as broken:
        found = {"lives": number + 1, "scenario": kind.__name__, "seed": seed}
        print(json.dumps({**found, "rule": broken.findings[0][:200]}))
        break
"""


def planted(mistake: Mistake, folder: Path) -> None:
    """A copy of the package with the mistake in it. Raises ValueError if it has no place there."""
    root = Path(asched.__file__).parent
    shutil.copytree(root, folder / "asched", ignore=shutil.ignore_patterns("__pycache__"))
    for where, was, now in ((mistake.path, mistake.was, mistake.now), *mistake.also):
        path = folder / "asched" / where
        text = path.read_text()
        if text.count(was) != 1:
            raise ValueError(f"{where} has {was!r} {text.count(was)} times")
        path.write_text(text.replace(was, now))


def lives_until_found(
    mistake: Mistake, lives_max: int = LIVES_MAX, *scenarios: str
) -> dict[str, Any]:
    """`lives`, `scenario`, `seed` and `rule`; empty if nothing was found in these scenarios, all of
    them if none is given.
    """
    with tempfile.TemporaryDirectory() as name:
        planted(mistake, Path(name))
        command = [sys.executable, "-P", "-c", LIVE, str(lives_max), *scenarios]
        done = subprocess.run(
            command,
            env={"PYTHONPATH": os.pathsep.join((name, LAB))},
            cwd=name,
            capture_output=True,
            text=True,
            timeout=LIFE_S_MAX,
            check=False,
        )
        if done.returncode:
            return {"lives": 1, "rule": done.stderr.strip().splitlines()[-1]}
        found: dict[str, Any] = json.loads(done.stdout) if done.stdout.strip() else {}
        return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.planted")
    parser.add_argument("--only", default="", help="an area, or words of a name")
    parser.add_argument("--lives", type=int, default=LIVES_MAX)
    parser.add_argument("--keep", type=Path, help="append what was found, and skip what is there")
    parser.add_argument("--there", action="store_true", help="one scenario for each mistake")
    options = parser.parse_args()
    kept = options.keep.read_text() if options.keep and options.keep.exists() else ""
    missed = 0
    for mistake in MISTAKES:
        is_meant = options.only in (mistake.area, "") or options.only in mistake.name
        if not is_meant or mistake.name in kept:
            continue
        found = lives_until_found(
            mistake, options.lives, *([mistake.scenario] if options.there else ())
        )
        missed += not found
        said = f"not found in {options.lives} lives"
        if found:
            where = f"{found.get('scenario', 'at once')}, seed {found.get('seed', 0)}"
            said = f"{found['lives']} lives ({where}): {found['rule']}"
        line = f"{mistake.area} | {mistake.name} | {said}\n"
        sys.stdout.write(line)
        sys.stdout.flush()
        if options.keep:
            with options.keep.open("a") as file:
                file.write(line)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
