"""`make bench`: how fast pods are bound, compared with a bare client on the same server.

    python -m asched_lab.measure [--nodes N] [--pods M] [--rows plain,spread,decide-plain,seven,all]
                          [--json OUT] [--flames FOLDER]
    python -m asched_lab.measure --beside kube-scheduler [--rounds R] [--publish] ...

Against a real API server where KUBEBUILDER_ASSETS names a folder with etcd and kube-apiserver, else
against the embedded one; the output names it. The bare client binds round-robin and writes one
event per pod, without deciding anything and with the scheduler's policy for events; it runs before
and after every row, and the ratios are to the mean of both, because the load of the machine varies.
bound/s counts from the first to the last binding, events/s from the first binding to the last
event.

`--beside kube-scheduler` compares with kube-scheduler instead, alternating on one API server; the
binary is in KUBEBUILDER_ASSETS, too. `--publish` writes the result into docs/results/bind.md, and
its rates into README.md.

Exit status: 0 if every pod of every row was bound, 1 if not, 2 for usage.
"""

# ruff: noqa: T201 - a command prints

import argparse
import asyncio
import contextlib
import datetime as dt
import json
import shlex
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from asched.host.event_loop import run_on_loop
from asched_lab.bench.processes import KUBE_SCHEDULER
from asched_lab.bench.report import commit, machine_line
from asched_lab.bench.world import WorkloadFailedError
from asched_lab.measure import beside, published, real
from asched_lab.measure.crowds import SHAPES, Crowd, plain
from asched_lab.measure.engine import measure_apart
from asched_lab.measure.measurement import Cluster, EmbeddedServer, Row, measure
from asched_lab.measure.rows import BOUND, DECIDED, EVERY, GROUPS, Sizes

BARE = "bare client"
COLUMNS = (
    "row", "nodes", "pods", "bound", "bound/s", "to bare", "events/s", "to bare", "first s",
    "last s", "CPU ms/pod", "RSS MB", "events", "after s",
)  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m asched_lab.measure",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--nodes", type=int, default=1000, metavar="N")
    parser.add_argument("--pods", type=int, default=3000, metavar="M")
    parser.add_argument(
        "--rows", "--workloads", default="", metavar="NAMES",
        help=f"comma-separated; groups {', '.join(GROUPS)}; rows {', '.join(EVERY)}",
    )  # fmt: skip
    parser.add_argument("--embedded", action="store_true", help="never use a real API server")
    parser.add_argument("--here", action="store_true", help="decide rows in this process")
    parser.add_argument("--json", default="", metavar="OUT", help="also write the rows to OUT")
    parser.add_argument(
        "--flames", type=Path, metavar="FOLDER",
        help="write a flame graph of each decide row there, FOLDER/ROW.svg; needs py-spy (PyPI)",
    )  # fmt: skip
    parser.add_argument("--beside", choices=(KUBE_SCHEDULER,), help="compare with this scheduler")
    parser.add_argument(
        "--rounds", type=int, default=3, metavar="R", help="of --beside (default 3)"
    )
    parser.add_argument("--publish", action="store_true", help="the result of --beside, in a clone")
    args = parser.parse_args(argv)
    if args.beside:
        return compare(args, argv if argv is not None else sys.argv[1:])
    names: list[str] = []
    for name in (args.rows or "plain").split(","):
        names += [row for row in GROUPS.get(name, (name,)) if row not in names]
    unknown = [name for name in names if name not in EVERY]
    if unknown:
        print(f"no row is called {', '.join(unknown)}; see --help", file=sys.stderr)
        return 2
    if args.flames is not None and (args.here or shutil.which("py-spy") is None):
        what = "--flames needs other processes, without --here" if args.here else "no py-spy found"
        print(f"{what}; see --help", file=sys.stderr)
        return 2
    if args.flames is not None:
        args.flames.mkdir(parents=True, exist_ok=True)
    print(machine_line(), f"commit {commit() or 'unknown'}", sep="; ", flush=True)
    sizes = Sizes(args.nodes, args.pods)
    rows: list[Row] = []
    try:
        decide = (
            (lambda name: DECIDED[name](name))
            if args.here
            else partial(measure_apart, flames=args.flames)
        )
        run_on_loop(run(names, sizes, decide, embedded=args.embedded, rows=rows))
    except WorkloadFailedError as error:
        print(f"make bench: {error}", file=sys.stderr)
        return 1
    if args.json:
        document: dict[str, Any] = {
            "machine": machine_line(),
            "commit": commit(),
            "rows": [row.as_json() for row in rows],
        }
        Path(args.json).write_text(json.dumps(document, indent=1), encoding="utf-8")
    return 0 if all(row.bound >= _expected(row) for row in rows) else 1


def compare(args: argparse.Namespace, words: Sequence[str]) -> int:
    """`--beside`; the default rows are those of README.md."""
    folder = real.assets()
    names = tuple(args.rows.split(",")) if args.rows else beside.WORKLOADS
    unknown = [name for name in names if name not in SHAPES]
    if unknown or folder is None or beside.binary(folder) is None:
        what = "KUBEBUILDER_ASSETS has no kube-scheduler, kube-apiserver and etcd"
        if unknown:
            what = f"--beside has no row {', '.join(unknown)}; it has {', '.join(SHAPES)}"
        print(f"{what}; see --help", file=sys.stderr)
        return 2
    facts = {
        "command": f'`make bench ARGS="{shlex.join(words)}"`',
        "date": f"{dt.datetime.now(dt.UTC):%-d %B %Y}",
        "machine": f"{machine_line()}; kube-apiserver and etcd share it",
        "versions": beside.versions(folder),
        "sizes": f"{args.nodes:,} nodes, {args.pods:,} waiting pods;"
        f" median and range of {args.rounds} rounds",
    }
    print(facts["machine"], facts["versions"], sep="; ", flush=True)
    try:
        runs = run_on_loop(beside.run(folder, names, args.nodes, args.pods, args.rounds))
    except WorkloadFailedError as error:
        print(f"make bench: {error}", file=sys.stderr)
        return 1
    text = published.section(runs, facts)
    print(text)
    if args.publish:
        published.publish(Path(), text)
    rows = [row for one in runs for row in (*one.asched, *one.kube_scheduler)]
    return 0 if all(row.bound == row.pods for row in rows) else 1


def _expected(row: Row) -> int:
    return row.pods // 2 if row.name == "wall" else row.pods


async def run(
    names: list[str],
    sizes: Sizes,
    decide: Callable[[str], Awaitable[Row]],
    *,
    embedded: bool,
    rows: list[Row],
) -> int:
    """All rows, each printed when it is done. `decide` measures the rows in process."""
    print(_line(COLUMNS), flush=True)
    shared = [name for name in names if name in BOUND and not BOUND[name].own_server]
    if shared:
        await _on_one_server(shared, sizes, embedded, rows)
    for name in names:
        if name in BOUND and BOUND[name].own_server:
            row = BOUND[name]
            async with _cluster(row.nodes(sizes), embedded) as cluster:
                _report(await row.run(cluster, name, sizes), rows)
        elif name in DECIDED:
            _report(await decide(name), rows)
    return 0


async def _on_one_server(
    names: Iterable[str], sizes: Sizes, embedded: bool, rows: list[Row]
) -> None:
    async with _cluster(sizes.nodes, embedded) as cluster:
        before: Row | None = None
        for name in names:
            if not BOUND[name].is_compared:
                _report(await BOUND[name].run(cluster, name, sizes), rows)
                continue
            count = BOUND[name].pods(sizes)
            crowd = Crowd(sizes.nodes, ((plain, count),))
            if before is None or before.pods != count:
                before = await measure(cluster, BARE, crowd, is_bare=True)
                _report(before, rows)
            row = await BOUND[name].run(cluster, name, sizes)
            after = await measure(cluster, BARE, crowd, is_bare=True)
            row.ratio = _ratio(row.rate, before.rate, after.rate)
            row.events_ratio = _ratio(row.events_rate, before.events_rate, after.events_rate)
            _report(row, rows)
            _report(after, rows)
            before = after


@contextlib.asynccontextmanager
async def _cluster(nodes: int, embedded: bool) -> AsyncIterator[Cluster]:
    found = None if embedded else real.assets()
    made = EmbeddedServer() if found is None else real.RealServer(found)
    async with made as server:
        print(f"# {server.description}, {nodes} nodes", flush=True)
        with tempfile.TemporaryDirectory(prefix="asched-bench-") as folder:
            cluster = await Cluster.filled(server.kubeconfig, nodes, Path(folder))
            try:
                yield cluster
            finally:
                await cluster.close()


def _ratio(rate: float, before: float, after: float) -> float:
    return round(rate / max((before + after) / 2, 1e-9), 3)


def _report(row: Row, rows: list[Row]) -> None:
    rows.append(row)
    ratio, events_ratio = (
        f"{found:.2f}" if found is not None else "-" for found in (row.ratio, row.events_ratio)
    )
    cells = (
        row.name, row.nodes, row.pods, row.bound, f"{row.rate:.0f}", ratio,
        f"{row.events_rate:.0f}", events_ratio, f"{row.first_s:.2f}", f"{row.last_s:.2f}",
        f"{row.cpu_ms_per_pod:.3f}", f"{row.peak_rss_mb:.0f}", row.events,
        f"{row.events_after_s:.1f}",
    )  # fmt: skip
    print(_line(cells), flush=True)
    if row.extra:
        print("   ", ", ".join(f"{key} {value}" for key, value in row.extra.items()), flush=True)


def _line(cells: Iterable[Any]) -> str:
    first, *rest = map(str, cells)
    return f"{first:24}" + "".join(f"{cell:>10}" for cell in rest)


if __name__ == "__main__":
    with contextlib.suppress(asyncio.CancelledError):
        sys.exit(main())
