"""What `simulate` and `plan` are told: which cluster, which workloads, which scheduler."""

import argparse
import asyncio
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

from asched.cli.arguments import PODS_MAX, add_plugin_flags, seed_number, whole
from asched.cli.output import plain
from asched.core.config.gates import GateError
from asched.core.config.gates import parse as parse_gates
from asched.host.assemble import BUILD_ERRORS
from asched.host.configuration.file import ConfigError, UnreadableFileError
from asched.host.user_plugins.catalogue import PluginLoadError, discover
from asched.kube.errors import ClientError
from asched_lab.whatif.changes import ScenarioError
from asched_lab.whatif.scheduling import ExtendersError, scheduler_of
from asched_lab.whatif.snapshot import Json, Snapshot, SnapshotError, bounded, documents, read
from asched_lab.whatif.world import Scheduler

STDIN: Final = "-"
#: Of a file of manifests: a guess far above any.
MANIFEST_BYTES_MAX: Final = 256 << 20
#: What may be wrong with what the user asks for: exit status 2.
USAGE_ERRORS: Final[tuple[type[Exception], ...]] = (
    *BUILD_ERRORS,
    ConfigError,
    ExtendersError,
    GateError,
    PluginLoadError,
    ScenarioError,
    UnreadableFileError,
)
#: ... and with what it is asked about: exit status 1.
INPUT_ERRORS: Final[tuple[type[Exception], ...]] = (ClientError, SnapshotError)


def add_input_flags(parser: argparse.ArgumentParser) -> None:
    """Which cluster, which workloads, which scheduler."""
    cluster = parser.add_argument_group("which cluster")
    cluster.add_argument(
        *("--snapshot", "--dump"),
        dest="snapshot",
        default="",
        metavar="FILE",
        help="of asched snapshot, or a List",
    )
    cluster.add_argument("--kubeconfig", default="", metavar="FILE", help="as for kubectl")
    cluster.add_argument("--context", default="", metavar="NAME", help="of the kubeconfig")
    asked = parser.add_argument_group("which pods")
    asked.add_argument(
        "-f",
        "--filename",
        action="append",
        default=[],
        metavar="FILE",
        help="manifests: pods, their controllers, nodes; - is standard input; repeatable",
    )
    asked.add_argument("-n", "--namespace", default="", help="of what names none (default)")
    asked.add_argument(
        "--replicas",
        type=whole(0, PODS_MAX),
        metavar="N",
        help="of each workload in the files",
    )
    deciding = parser.add_argument_group("which scheduler")
    deciding.add_argument("--config", default="", metavar="FILE", help="its configuration")
    deciding.add_argument(
        "--without-extenders", action="store_true", help="leave out those of the configuration"
    )
    deciding.add_argument(
        "--feature-gates",
        action="append",
        default=[],
        metavar="GATE=BOOL,...",
        help="as kube-scheduler takes them",
    )
    deciding.add_argument(
        "--seed",
        type=seed_number,
        default=0,
        metavar="N",
        help="decides between equals (0)",
    )
    add_plugin_flags(parser)


def snapshot(args: argparse.Namespace) -> Snapshot:
    """The cluster that is asked about. Raises INPUT_ERRORS."""
    if args.snapshot:
        return load(args.snapshot)
    from asched.kube.session import ConnectionOptions  # 0.2 s, which a dump does not need
    from asched_lab.whatif.listing import snapshot_of

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
    """All objects of some files. Raises SnapshotError."""
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
    args: argparse.Namespace, cluster: Snapshot, asked: Iterable[Json], config: str
) -> Scheduler:
    """Who decides, by this configuration. Raises USAGE_ERRORS."""
    gates = parse_gates(args.feature_gates)
    return scheduler_of(
        cluster,
        asked,
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
