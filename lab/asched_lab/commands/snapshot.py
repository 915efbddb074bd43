"""`asched snapshot FILE`: write what a scheduler reads of a cluster to a file, for later use.

Exit status: 0 if it was written; 1 if the cluster cannot be read, or the file cannot be written.
"""

import argparse
import asyncio
import gzip
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson
import yaml

from asched.cli.commands import LAB_COMMANDS
from asched.kube.session import ConnectionOptions
from asched_lab.commands.simulate import INPUT_ERRORS, fail
from asched_lab.whatif.manifests import STDIN
from asched_lab.whatif.snapshot import Snapshot, snapshot_of

WHAT: Final = """\
Only what a scheduler reads is written: no Secrets and ConfigMaps, no environments, commands,
probes or mounts of containers, no templates, no managedFields, and of a pod's annotations only
those of Kubernetes. Check the file all the same before you share it: names, labels and images of
all pods and nodes are in it.

It needs the right to list the kinds a scheduler watches. Use it with `asched simulate --snapshot`.
"""
FORMS: Final = ("lines", "json", "yaml")


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "snapshot",
        help=LAB_COMMANDS["snapshot"],
        description=__doc__,
        epilog=WHAT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="gzipped if it ends in .gz; - is standard out")
    parser.add_argument(
        "-o",
        "--output",
        choices=FORMS,
        default="lines",
        help="an object a line, or a List (default %(default)s)",
    )
    parser.add_argument("--kubeconfig", default="", metavar="FILE", help="as for kubectl")
    parser.add_argument("--context", default="", metavar="NAME", help="of the kubeconfig")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """List, clean, write."""
    options = ConnectionOptions(kubeconfig=args.kubeconfig, context=args.context)
    try:
        snapshot = asyncio.run(snapshot_of(options))
    except INPUT_ERRORS as error:
        return fail("snapshot", error, 1)
    try:
        size = _write(args.file, _formed(snapshot, args.output))
    except OSError as error:
        return fail("snapshot", f"cannot write {args.file}: {error.strerror}", 1)
    for kind, why in snapshot.left_out.items():
        sys.stderr.write(f"asched snapshot: left out {kind}: {why}\n")
    if not snapshot.version:
        sys.stderr.write("asched snapshot: the lists are not of one moment\n")
    if args.file != STDIN:
        sys.stderr.write(f"wrote {len(snapshot)} objects of {snapshot.server}, {size} bytes\n")
    return 0


def _formed(snapshot: Snapshot, form: str) -> Iterator[bytes]:
    if form == "lines":
        yield from snapshot.lines()
    elif form == "json":
        yield orjson.dumps(snapshot.as_list(), option=orjson.OPT_APPEND_NEWLINE)
    else:
        dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
        yield yaml.dump(snapshot.as_list(), Dumper=dumper, sort_keys=False).encode()


def _write(name: str, parts: Iterator[bytes]) -> int:
    """Raises OSError. Returns the number of bytes written."""
    if name == STDIN:
        return sum(sys.stdout.buffer.write(part) for part in parts)
    path = Path(name)
    with path.open("wb") as stream:
        if not name.endswith(".gz"):
            return sum(stream.write(part) for part in parts)
        # Without name and time of compression: equal clusters give equal files.
        with gzip.GzipFile(filename="", fileobj=stream, mode="wb", mtime=0) as packed:
            for part in parts:
                packed.write(part)
    return path.stat().st_size
