r"""Record what a running kube-scheduler decides, seen from outside.

    python -m asched_lab.record --write-config scheduler.yaml --kubeconfig F
    kube-scheduler --config scheduler.yaml --authorization-always-allow-paths=/metrics ... &
    python -m asched_lab.record --kubeconfig F --metrics https://127.0.0.1:10259/metrics \
                                --cases 500 --out outside.jsonl.gz

or, with etcd, kube-apiserver and kube-scheduler in one folder, which are then started for it:

    python -m asched_lab.record --control-plane FOLDER --cases 500 --out outside.jsonl.gz

The API server must have no nodes and no pods, and no controllers: the recorder creates and removes
clusters. `python -m tests.conformance outside.jsonl.gz` replays the cases; Ctrl-C keeps those that
there are. Exit status: 0 if every case was recorded, 1 if some were not (they are listed), 2 for
usage.
"""

# ruff: noqa: T201 - a command prints

import argparse
import asyncio
import gzip
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any

from asched.kube.errors import ConnectError
from asched_lab.bench.api import Api
from asched_lab.bench.processes import Process
from asched_lab.bench.world import WorkloadFailedError
from asched_lab.measure.real import RealServer, free_port
from asched_lab.record.extender import Extender
from asched_lab.record.inputs import Input, generate, read
from asched_lab.record.observer import Observer, answers
from asched_lab.record.recorder import Recorder, UnsettledError
from asched_lab.record.stage import RefusedError, refuse_a_cluster_in_use

SHOWN_EVERY = 50


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m asched_lab.record",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--kubeconfig", metavar="F", help="of the API server of a running scheduler")
    where.add_argument("--control-plane", type=Path, metavar="FOLDER", help="binaries to start")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the cases there, packed")
    parser.add_argument("--cases", type=int, default=500, metavar="N", help="at most so many")
    parser.add_argument(
        "--seed", type=int, default=1, metavar="S", help="of the generated clusters"
    )
    parser.add_argument(
        "--inputs", type=Path, nargs="+", metavar="FILE",
        help="record clusters and pods of these files of cases instead of generated ones",
    )  # fmt: skip
    parser.add_argument("--port", type=int, default=8899, help="the extender's, on 127.0.0.1")
    parser.add_argument("--scheduler-name", default="default-scheduler", metavar="NAME")
    parser.add_argument("--metrics", default="", metavar="URL", help="of the scheduler")
    parser.add_argument("--write-config", type=Path, metavar="FILE", help="write it and end")
    args = parser.parse_args(argv)
    if args.write_config:
        document = configuration(args.kubeconfig or "", args.scheduler_name, Extender(args.port))
        args.write_config.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        return 0
    if args.out is None:
        parser.error("--out is missing")
    try:
        return asyncio.run(_record(args))
    except (ConnectError, WorkloadFailedError) as error:
        print(f"record: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 1


def configuration(kubeconfig: str, scheduler_name: str, extender: Extender) -> dict[str, Any]:
    """The scheduler's defaults, every node looked at, and the extender."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": kubeconfig},
        "leaderElection": {"leaderElect": False},
        "percentageOfNodesToScore": 100,
        "profiles": [{"schedulerName": scheduler_name}],
        "extenders": [extender.configuration],
    }


def inputs(args: argparse.Namespace) -> Iterator[Input]:
    if not args.inputs:
        yield from generate(args.seed, args.cases)
        return
    supported = (c for c in chain.from_iterable(map(read, args.inputs)) if not c.unsupported())
    yield from islice(supported, args.cases)


async def _record(args: argparse.Namespace) -> int:
    async with (
        Extender(args.port) as extender,
        _plane(args, extender) as (kubeconfig, metrics),
    ):
        api = await Api.connected(kubeconfig)
        try:
            await refuse_a_cluster_in_use(api)
            async with Observer(api, metrics) as observer:
                recorder = Recorder(api, extender, observer, args.scheduler_name)
                return await _record_all(recorder, args)
        finally:
            await api.close()


async def _record_all(recorder: Recorder, args: argparse.Namespace) -> int:
    failed = 0
    cases: list[dict[str, Any]] = []
    try:
        for case in inputs(args):
            try:
                cases.append(await recorder.record(case))
            except (RefusedError, UnsettledError) as error:
                failed += 1
                print(f"{case.name}: not recorded: {error}", flush=True)
            else:
                if len(cases) % SHOWN_EVERY == 0:
                    print(f"{len(cases)} cases recorded", flush=True)
    finally:  # also of a run that is interrupted
        write(args.out, cases)
        print(f"{len(cases)} cases recorded, {failed} not: {args.out}")
    return 1 if failed or not cases else 0


def write(path: Path, cases: list[dict[str, Any]]) -> None:
    """Equal cases give equal bytes."""
    text = "".join(json.dumps(case, separators=(",", ":")) + "\n" for case in cases)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


@asynccontextmanager
async def _plane(args: argparse.Namespace, extender: Extender) -> AsyncIterator[tuple[str, str]]:
    """(kubeconfig, address of metrics): those that were given, or of processes started here."""
    if args.kubeconfig:
        yield args.kubeconfig, args.metrics
        return
    async with RealServer(args.control_plane) as server:
        config = server.folder / "scheduler.json"
        document = configuration(server.kubeconfig, args.scheduler_name, extender)
        config.write_text(json.dumps(document))
        port = free_port()
        flags = (
            f"--config={config}",
            f"--secure-port={port}",
            "--bind-address=127.0.0.1",
            "--authorization-always-allow-paths=/metrics,/readyz",
        )
        process = Process.of_kube_scheduler(
            args.control_plane, server.kubeconfig, flags, server.folder
        )
        await process.start()
        try:
            await answers(f"https://127.0.0.1:{port}/readyz", process)
            yield server.kubeconfig, f"https://127.0.0.1:{port}/metrics"
        finally:
            await process.stop()


if __name__ == "__main__":
    sys.exit(main())
