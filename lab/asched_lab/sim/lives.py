"""Lives that were lived, kept in a file, and the table that is made of them.

A line of the file is one life (JSON): scenario, seed, what code lived it, how long it took (CPU
seconds), how many pods were bound, the recoveries (virtual seconds) and the first broken rule,
empty if all held. Lines are only ever appended, so a run that was cut off is gone on with.

    next life: of the scenario that took the least CPU so far, its lowest seed that is not there yet

so that cheap scenarios are lived more often than dear ones, and new ones catch up first. A life
that was broken is lived again, once, by each later code; the last line of a scenario and seed
counts, and the table says how many were broken before.
"""

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

import asched
from asched_lab.sim.museum.incident import Incident
from asched_lab.sim.scenario import Broken, Scenario, play

#: Characters of the code's digest that are written down.
DIGEST_CHARS: Final = 10


class Life(msgspec.Struct, frozen=True):
    """`cpu_s` is what it took here; `recoveries_s` are virtual."""

    scenario: str
    seed: int
    code: str
    cpu_s: float
    bound: int = 0
    recoveries_s: tuple[float, ...] = ()
    broken: str = ""


@cache
def code() -> str:
    """A digest of this package's sources: two lives of one code and seed are the same."""
    found = hashlib.sha256()
    root = Path(asched.__file__).parent
    for path in sorted(root.rglob("*.py")):
        found.update(path.relative_to(root).as_posix().encode())
        found.update(path.read_bytes())
    return found.hexdigest()[:DIGEST_CHARS]


def read(path: Path) -> list[Life]:
    """The lives of a file; none if it is not there. Raises ValueError with the line that is no
    life. A last line that was cut off is left out.
    """
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    lives = []
    for number, line in enumerate(lines[:-1], 1):
        try:
            lives.append(msgspec.json.decode(line, type=Life))
        except msgspec.MsgspecError as error:
            raise ValueError(f"{path}, line {number}: no life: {error}") from error
    return lives


def live_on(
    path: Path, kinds: Mapping[str, type[Scenario]], until: int, first_seed: int = 0
) -> Iterator[Life]:
    """Live until the file has so many lives of these scenarios; each one as it is written."""
    lives = [life for life in last_of(read(path)) if life.scenario in kinds]
    spent_s = dict.fromkeys(kinds, 0.0)
    lived: dict[str, set[int]] = {name: set() for name in kinds}
    for life in lives:
        spent_s[life.scenario] += life.cpu_s
        lived[life.scenario].add(life.seed)
    with path.open("ab") as file:
        _end_line(path, file)
        for old in [life for life in lives if life.broken and life.code != code()]:
            yield _written(file, lived_through(kinds[old.scenario], old.seed))
        for _ in range(until - len(lives)):
            name = min(spent_s, key=lambda name: spent_s[name])
            seed = first_seed
            while seed in lived[name]:
                seed += 1
            life = _written(file, lived_through(kinds[name], seed))
            spent_s[name] += life.cpu_s
            lived[name].add(seed)
            yield life


def last_of(lives: Iterable[Life]) -> list[Life]:
    """Of each scenario and seed the last one."""
    return list({(life.scenario, life.seed): life for life in lives}.values())


def _written(file: Any, life: Life) -> Life:
    file.write(msgspec.json.encode(life) + b"\n")
    file.flush()
    return life


def _end_line(path: Path, file: Any) -> None:
    """Whoever wrote last may have died in the middle of a line."""
    if path.stat().st_size and not path.read_bytes().endswith(b"\n"):
        whole = path.read_bytes().rpartition(b"\n")
        file.truncate(len(whole[0]) + len(whole[1]))


def lived_through(kind: type[Scenario], seed: int) -> Life:
    """One life and what came of it."""
    begun_s = time.process_time()
    broken = ""
    try:
        world = play(kind, seed)
    except Broken as found:
        world, broken = found.world, found.findings[0]
    return Life(
        kind.__name__,
        seed,
        code(),
        round(time.process_time() - begun_s, 3),
        world.ledger.bound_count,
        tuple(round(seconds, 2) for seconds in world.recoveries_s),
        broken,
    )


# --- the table -----------------------------------------------------------------------------------


def table(lives: Iterable[Life], kinds: Mapping[str, type[Scenario]]) -> Iterator[str]:
    """Markdown: incidents with their bounds and recoveries, then all other scenarios, then sums."""
    of: dict[str, list[Life]] = {name: [] for name in kinds}
    written = [life for life in lives if life.scenario in of]
    for life in last_of(written):
        of[life.scenario].append(life)
    columns = "what happened to others | threads | bound | lives | broken | p50 | p99 | worst"
    yield f"| incident | {columns} |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, kind in kinds.items():
        if issubclass(kind, Incident):
            yield _incident(name, kind, of[name])
    yield ""
    yield "| scenario | lives | broken |"
    yield "|---|---|---|"
    for name, kind in kinds.items():
        if not issubclass(kind, Incident):
            yield f"| `{name}` | {len(of[name]):,} | {_broken(of[name])} |"
    yield ""
    every = [life for some in of.values() for life in some]
    codes = {life.code for life in every}
    yield (
        f"{len(every):,} lives, {sum(life.bound for life in every):,} pods bound,"
        f" {_broken(every)} lives with a broken rule ({_broken(written)} with those that hold since"
        f" something was mended), {sum(life.cpu_s for life in every):,.0f} s of CPU,"
        f" {len(codes)} versions of the code"
    )


def _incident(name: str, kind: type[Incident], lives: list[Life]) -> str:
    ordered = sorted(seconds for life in lives for seconds in life.recoveries_s)
    told = ["-"] * 3
    if ordered:
        at = (len(ordered) // 2, len(ordered) * 99 // 100, len(ordered) - 1)
        told = [f"{ordered[index]:.1f} s" for index in at]
    cells = (
        f"`{name}`",
        kind.what,
        kind.threads,
        f"{kind.recovers_in_s:.0f} s",
        f"{len(lives):,}",
        str(_broken(lives)),
        *told,
    )
    return f"| {' | '.join(cells)} |"


def _broken(lives: Iterable[Life]) -> int:
    return sum(bool(life.broken) for life in lives)
