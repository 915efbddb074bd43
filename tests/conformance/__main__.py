"""Replays recorded decisions of kube-scheduler and prints how many agree.

    python -m tests.conformance PATH... [--family NAME] [--rules MINOR] [--json] [--parity]

PATH is a file of a corpus, or a folder of them. `--rules` replays single cases by the rules of that
minor version, with the gates that they were recorded with; without it, by those of the version
that they are of. `--parity` refreshes the tables of
docs/results/conformance.md as well. The exit status is 0 only if everything that was replayed
agrees or is declared to differ; what is not covered yet is listed, and never counts as passed.
"""

import argparse
import gzip
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from asched.core.config.versions import MINORS
from tests.conformance import (
    cases,
    hints,
    outside_decisions,
    parity,
    queue_traces,
    registrations_file,
    traces,
)
from tests.conformance.cases import Result

#: Differences shown per family.
SHOWN_MAX = 3


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, replay, report."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    parser.add_argument("--family", help="replay this family alone")
    parser.add_argument(
        "--rules", choices=MINORS, default="", help="replay by the rules of this minor version"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.add_argument("--parity", action="store_true", help="rewrite the tables in docs/results")
    options = parser.parse_args(arguments)
    absent = [path for path in options.paths if not path.exists()]
    if absent:
        sys.stderr.write(f"conformance: {absent[0]}: no such file or folder\n")
        return 2
    results = [
        result
        for path in files(options.paths)
        for result in replay_file(path, options.rules)
        if options.family in (None, result.family)
    ]
    report(results, as_json=options.json)
    if options.parity:
        try:
            parity.write(results)
        except (OSError, parity.MarkersMissingError) as error:
            sys.stderr.write(f"conformance: cannot refresh the parity page: {error}\n")
            return 2
    return 1 if any(r.differences for r in results) else 0


def files(paths: list[Path]) -> Iterator[Path]:
    """The corpus files among the paths, folders looked through."""
    for path in paths:
        if path.is_dir():
            yield from sorted(p for p in path.iterdir() if p.name.endswith((".jsonl", ".jsonl.gz")))
            yield from sorted(path.glob("registrations.json"))
        else:
            yield path


def replay_file(path: Path, minor: str = "") -> Iterator[Result]:
    """All results of one file; its first line tells which format it has. `minor`: the version whose
    rules decide single cases, "" for that of their family.
    """
    if path.name == "registrations.json":
        yield registrations_file.replay(path)
        return
    for record in lines(path):
        family = record.get("family", "")
        if family == "queue":
            for name, agrees, text in queue_traces.replay(path):
                yield Result(name, "queue", [] if agrees else [text])
            return
        if family == "hints":
            yield _of(record, hints.replay)
        elif "steps" in record:
            yield _of(record, traces.replay)
        elif "seen" in record:
            yield _of(record, partial(outside_decisions.replay, minor=minor))
        elif "expect" in record:
            yield _of(record, partial(cases.replay, minor=minor))
        elif "extenders" in record and "requests" in record:
            yield extender_scenario(record)
        else:
            yield from outside(path)
            return


def _of(record: dict[str, Any], replay: Callable[[dict[str, Any]], Result]) -> Result:
    """What a replay found; an exception that ends it is a difference of this record alone."""
    try:
        result = replay(record)
    except Exception as error:  # noqa: BLE001 - it must not end the run
        text = f"ended by {type(error).__name__}: {error}"
        result = Result(record["name"], record["family"], [text])
    result.plugins = parity.plugins_of(record)
    return result


def outside(path: Path) -> Iterator[Result]:
    """Recorded configurations (the format of the folder `outside/config`)."""
    from tests.conformance import outside_config

    passed, failed, differences = outside_config.replay(path)
    for number in range(passed):
        yield Result(f"{path.stem}-{number}", "outside-config")
    for number in range(failed):
        text = differences[number] if number < len(differences) else "differs"
        yield Result(f"{path.stem}-x{number}", "outside-config", [str(text)])


def extender_scenario(record: dict[str, Any]) -> Result:
    """A recorded scenario with extenders (the format of the folder `outside/extender`)."""
    from tests.conformance import outside_extender

    why = outside_extender.deliberate(record)
    if why is not None:
        return Result(record["name"], "extender", declared=[why])
    return Result(record["name"], "extender", outside_extender.replay(record))


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects of a file, compressed or not."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as file:
        for line in file:
            if line.strip():
                yield orjson.loads(line)


def report(results: list[Result], *, as_json: bool) -> None:
    """A table per family, the first differences, and the counts."""
    families: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        families[result.family].append(result)
    passed = sum(r.agrees for r in results)
    failed = sum(1 for r in results if r.differences)
    if as_json:
        sys.stdout.write(json.dumps(as_mapping(families, passed, failed)) + "\n")
        return
    head = ("agree", "differ", "declared", "not covered")
    sys.stdout.write(f"{'family':<16}" + "".join(f"{name:>13}" for name in head) + "\n")
    for family, found in families.items():
        sys.stdout.write(f"{family:<16}" + "".join(f"{n:>13}" for n in counts(found)) + "\n")
    for family, found in families.items():
        for result in [r for r in found if r.differences][:SHOWN_MAX]:
            sys.stdout.write(f"\n{family}: {result.name}\n")
            for difference in result.differences[:SHOWN_MAX]:
                sys.stdout.write(f"  {difference[:1500]}\n")
    missing = sorted({name for r in results for name in r.missing})
    if missing:
        sys.stdout.write(f"\nnot covered, because they need: {', '.join(missing)}\n")
    sys.stdout.write(f"\n{passed} passed, {failed} failed\n")


def counts(found: list[Result]) -> tuple[int, int, int, int]:
    """Results that agree, that differ, that are declared to differ, and that are not covered."""
    return (
        sum(r.agrees for r in found),
        sum(bool(r.differences) for r in found),
        sum(bool(r.declared) for r in found),
        sum(bool(r.missing) for r in found),
    )


def as_mapping(families: dict[str, list[Result]], passed: int, failed: int) -> dict[str, Any]:
    return {
        "passed": passed,
        "failed": failed,
        "families": {
            family: dict(
                zip(("agree", "differ", "declared", "not_covered"), counts(found), strict=True),
                differences={r.name: r.differences for r in found if r.differences},
                declared_differences={r.name: r.declared for r in found if r.declared},
            )
            for family, found in families.items()
        },
    }


if __name__ == "__main__":
    sys.exit(main())
