"""Finished runs in a file, and the table of their results.

A line of the file is one run (JSON): scenario, seed, digest of the code, duration (CPU seconds),
pods bound, recoveries (virtual seconds) and the first broken rule, empty if there is none. Lines
are only appended, so an interrupted series can be continued.

    next run: of the scenario that took the least CPU so far, its lowest seed that is missing

so that cheap scenarios run more often than expensive ones, and new ones catch up first. A run with
a broken rule is repeated once by each later code; the last line of a scenario and seed counts, and
the table says how many were broken before.
"""

import hashlib
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

import asched
from asched_lab.sim.move_judge import UNITS, WITHOUT_ROOM
from asched_lab.sim.museum.incident import Incident
from asched_lab.sim.scenario import Broken, Scenario, play
from asched_lab.sim.world import FAULTS

#: Characters of the code's digest that are stored.
DIGEST_CHARS: Final = 10


class Run(msgspec.Struct, frozen=True):
    """`cpu_s` is real time; `recoveries_s` are virtual."""

    scenario: str
    seed: int
    code: str
    cpu_s: float
    bound: int = 0
    recoveries_s: tuple[float, ...] = ()
    broken: str = ""
    #: what the scenario counts (`World.figures`)
    figures: dict[str, int] = {}


@cache
def code() -> str:
    """A digest of this package's sources: two runs of one code and seed are equal."""
    found = hashlib.sha256()
    root = Path(asched.__file__).parent
    for path in sorted(root.rglob("*.py")):
        found.update(path.relative_to(root).as_posix().encode())
        found.update(path.read_bytes())
    return found.hexdigest()[:DIGEST_CHARS]


def read(path: Path) -> list[Run]:
    """The runs of a file; none if it does not exist. Raises ValueError for a line that is not a
    run. A last line that was cut off is left out.
    """
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    runs = []
    for number, line in enumerate(lines[:-1], 1):
        try:
            runs.append(msgspec.json.decode(line, type=Run))
        except msgspec.MsgspecError as error:
            raise ValueError(f"{path}, line {number}: not a run: {error}") from error
    return runs


def continue_runs(
    path: Path, kinds: Mapping[str, type[Scenario]], until: int, first_seed: int = 0
) -> Iterator[Run]:
    """Run until the file has `until` runs of these scenarios; yield each written run."""
    runs = [run for run in last_of(read(path)) if run.scenario in kinds]
    spent_s = dict.fromkeys(kinds, 0.0)
    seeds: dict[str, set[int]] = {name: set() for name in kinds}
    for run in runs:
        spent_s[run.scenario] += run.cpu_s
        seeds[run.scenario].add(run.seed)
    with path.open("ab") as file:
        _end_line(path, file)
        for old in [run for run in runs if run.broken and run.code != code()]:
            yield _written(file, run_once(kinds[old.scenario], old.seed))
        for _ in range(until - len(runs)):
            name = min(spent_s, key=lambda name: spent_s[name])
            seed = first_seed
            while seed in seeds[name]:
                seed += 1
            run = _written(file, run_once(kinds[name], seed))
            spent_s[name] += run.cpu_s
            seeds[name].add(seed)
            yield run


def last_of(runs: Iterable[Run]) -> list[Run]:
    """The last run of each scenario and seed."""
    return list({(run.scenario, run.seed): run for run in runs}.values())


def _written(file: Any, run: Run) -> Run:
    file.write(msgspec.json.encode(run) + b"\n")
    file.flush()
    return run


def _end_line(path: Path, file: Any) -> None:
    """Complete the last line, which may be cut off."""
    if path.stat().st_size and not path.read_bytes().endswith(b"\n"):
        whole = path.read_bytes().rpartition(b"\n")
        file.truncate(len(whole[0]) + len(whole[1]))


def run_once(kind: type[Scenario], seed: int) -> Run:
    """Run a scenario once and return the result."""
    begun_s = time.process_time()
    broken = ""
    try:
        world = play(kind, seed)
    except Broken as found:
        world, broken = found.world, found.findings[0]
    return Run(
        kind.__name__,
        seed,
        code(),
        round(time.process_time() - begun_s, 3),
        world.ledger.bound_count,
        tuple(round(seconds, 2) for seconds in world.recoveries_s),
        broken,
        dict(sorted(world.figures.items())),
    )


# --- the table -----------------------------------------------------------------------------------


def table(runs: Iterable[Run], kinds: Mapping[str, type[Scenario]]) -> Iterator[str]:
    """Markdown: incidents with their bounds and recoveries, then all other scenarios, units for
    which pods moved, faults of scenarios that count them, and sums.
    """
    of: dict[str, list[Run]] = {name: [] for name in kinds}
    written = [run for run in runs if run.scenario in of]
    for run in last_of(written):
        of[run.scenario].append(run)
    columns = "what happened to others | threads | bound | runs | broken | p50 | p99 | worst"
    yield f"| incident | {columns} |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, kind in kinds.items():
        if issubclass(kind, Incident):
            yield _incident(name, kind, of[name])
    yield ""
    yield "| scenario | runs | broken |"
    yield "|---|---|---|"
    for name, kind in kinds.items():
        if not issubclass(kind, Incident):
            yield f"| `{name}` | {len(of[name]):,} | {_broken(of[name])} |"
    yield ""
    yield from _moves(of)
    yield from _faults(of)
    every = [run for some in of.values() for run in some]
    codes = {run.code for run in every}
    yield (
        f"{len(every):,} runs, {sum(run.bound for run in every):,} pods bound,"
        f" {_broken(every)} runs with a broken rule ({_broken(written)} with those that pass since"
        f" a fix), {sum(run.cpu_s for run in every):,.0f} s of CPU,"
        f" {len(codes)} versions of the code"
    )


def _moves(of: Mapping[str, list[Run]]) -> Iterator[str]:
    """Scenarios with pods that move: the units for which they did, and those without room."""
    counts = {name: _sum(runs) for name, runs in of.items()}
    if not any(figures["moves"] for figures in counts.values()):
        return
    yield "| scenario | moves | units for which pods moved | without room | causes |"
    yield "|---|---|---|---|---|"
    for name, figures in counts.items():
        if not figures["moves"]:
            continue
        causes = {
            key.removeprefix(WITHOUT_ROOM): count
            for key, count in figures.items()
            if key.startswith(WITHOUT_ROOM)
        }
        why = ", ".join(f"{cause}: {count:,}" for cause, count in sorted(causes.items()))
        cells = f"{figures['moves']:,} | {figures[UNITS]:,} | {sum(causes.values()):,} | {why}"
        yield f"| `{name}` | {cells} |"
    yield ""


def _faults(of: Mapping[str, list[Run]]) -> Iterator[str]:
    """What struck in runs that count it."""
    rows = [
        f"| `{name}` | {key.removeprefix(FAULTS)} | {count:,} |"
        for name, runs in of.items()
        for key, count in sorted(_sum(runs).items())
        if key.startswith(FAULTS) and count
    ]
    if rows:
        yield from ("| scenario | faults | number |", "|---|---|---|", *rows, "")


def _sum(runs: Iterable[Run]) -> Counter[str]:
    found = Counter[str]()
    for run in runs:
        found.update(run.figures)
    return found


def half_most_worst(values: Iterable[float]) -> tuple[float, float, float]:
    """The median, the 99th percentile and the largest of some values, at least one."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100], ordered[-1]


def _incident(name: str, kind: type[Incident], runs: list[Run]) -> str:
    recoveries_s = [seconds for run in runs for seconds in run.recoveries_s]
    times = ["-"] * 3
    if recoveries_s:
        times = [f"{seconds:.1f} s" for seconds in half_most_worst(recoveries_s)]
    cells = (
        f"`{name}`",
        kind.what,
        kind.threads,
        f"{kind.recovers_in_s:.0f} s",
        f"{len(runs):,}",
        str(_broken(runs)),
        *times,
    )
    return f"| {' | '.join(cells)} |"


def _broken(runs: Iterable[Run]) -> int:
    return sum(bool(run.broken) for run in runs)
