"""Input of `simulate` and `plan`: cluster, workloads, scheduler."""

import argparse
import asyncio
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

from asched.cli.arguments import PODS_MAX, add_plugin_flags, plain, seed_number, whole
from asched.core.config.gates import GateError
from asched.core.config.gates import parse as parse_gates
from asched.host.assemble import BUILD_ERRORS
from asched.host.configuration.file import ConfigError, UnreadableFileError
from asched.host.user_plugins.catalogue import PluginLoadError, discover
from asched.kube.errors import ClientError
from asched_lab.whatif.changes import ScenarioError
from asched_lab.whatif.engine import ExtendersError, scheduler_of
from asched_lab.whatif.snapshot import Json, Snapshot, SnapshotError, bounded, documents, read
from asched_lab.whatif.world import Scheduler

STDIN: Final = "-"
#: The largest file of manifests, far above any real one.
MANIFEST_BYTES_MAX: Final = 256 << 20
#: Errors in the request: exit status 2.
USAGE_ERRORS: Final[tuple[type[Exception], ...]] = (
    *BUILD_ERRORS,
    ConfigError,
    ExtendersError,
    GateError,
    PluginLoadError,
    ScenarioError,
    UnreadableFileError,
)
#: Errors in the cluster or the snapshot: exit status 1.
INPUT_ERRORS: Final[tuple[type[Exception], ...]] = (ClientError, SnapshotError)


def add_input_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags for cluster, workloads and scheduler."""
    cluster = parser.add_argument_group("which cluster")
    cluster.add_argument(
        *("--snapshot", "--dump"),
        dest="snapshot",
        default="",
        metavar="FILE",
        help="use a file of asched snapshot, or a List",
    )
    cluster.add_argument("--kubeconfig", default="", metavar="FILE", help="as in kubectl")
    cluster.add_argument("--context", default="", metavar="NAME", help="context of the kubeconfig")
    workloads = parser.add_argument_group("which pods")
    workloads.add_argument(
        "-f",
        "--filename",
        action="append",
        default=[],
        metavar="FILE",
        help="manifests: pods, their controllers, nodes; - is standard input; repeatable",
    )
    workloads.add_argument(
        "-n", "--namespace", default="", help="for manifests without one (default)"
    )
    workloads.add_argument(
        "--replicas",
        type=whole(0, PODS_MAX),
        metavar="N",
        help="replicas of each workload in the files",
    )
    deciding = parser.add_argument_group("which scheduler")
    deciding.add_argument(
        "--config", default="", metavar="FILE", help="configuration of the scheduler"
    )
    deciding.add_argument(
        "--without-extenders", action="store_true", help="ignore the extenders of the configuration"
    )
    deciding.add_argument(
        "--feature-gates",
        action="append",
        default=[],
        metavar="GATE=BOOL,...",
        help="feature gates, as in kube-scheduler",
    )
    deciding.add_argument(
        "--seed",
        type=seed_number,
        default=0,
        metavar="N",
        help="seed for ties (0)",
    )
    add_plugin_flags(parser)


def snapshot(args: argparse.Namespace) -> Snapshot:
    """The cluster to simulate. Raises INPUT_ERRORS."""
    if args.snapshot:
        return load(args.snapshot)
    from asched.kube.session import ConnectionOptions  # 0.2 s, which a dump does not need
    from asched_lab.whatif.snapshot import snapshot_of

    options = ConnectionOptions(kubeconfig=args.kubeconfig, context=args.context)
    return asyncio.run(snapshot_of(options))


def load(name: str) -> Snapshot:
    """A snapshot from a file. Raises SnapshotError."""
    if name == STDIN:
        return read(sys.stdin.buffer, "<stdin>")
    try:
        with Path(name).open("rb") as stream:
            return read(stream, name)
    except OSError as error:
        raise SnapshotError(f"open {name}: {(error.strerror or str(error)).lower()}") from None


def manifests(files: Iterable[str]) -> tuple[Json, ...]:
    """All objects of the files. Raises SnapshotError."""
    found: list[Json] = []
    for name in files:
        try:
            with nullcontext(sys.stdin.buffer) if name == STDIN else Path(name).open("rb") as file:
                data = bounded(file, MANIFEST_BYTES_MAX)
        except OSError as error:
            said = (error.strerror or str(error)).lower()
            raise SnapshotError(f"open {name}: {said}") from None
        if len(data) > MANIFEST_BYTES_MAX:
            raise SnapshotError(f"{name}: larger than {MANIFEST_BYTES_MAX} bytes")
        found += documents(data, "<stdin>" if name == STDIN else name)
    return tuple(found)


def scheduler(
    args: argparse.Namespace, cluster: Snapshot, workloads: Iterable[Json], config: str
) -> Scheduler:
    """The scheduler of this configuration. Raises USAGE_ERRORS."""
    gates = parse_gates(args.feature_gates)
    return scheduler_of(
        cluster,
        workloads,
        config,
        plugins=discover(args.plugin, args.plugin_dir),
        gates=gates.enabled,
        without_extenders=args.without_extenders,
        seed=args.seed,
    )


def fail(command: str, error: Any, status: int) -> int:
    for line in str(error).splitlines():
        sys.stderr.write(plain(f"asched {command}: {line}\n"))
    return status
