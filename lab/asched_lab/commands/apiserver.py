"""`asched apiserver`: the embedded API server as a process, for learning and for tests."""

import argparse
import asyncio
import contextlib
import os
import signal
import sys
from typing import Any, Final

from asched.cli.arguments import port
from asched.cli.commands import LAB_COMMANDS
from asched.kube.files import write_private
from asched_lab.apiserver import faults
from asched_lab.apiserver.context import Options
from asched_lab.apiserver.resources import ALPHA, ONLY_IN, RELEASES
from asched_lab.apiserver.server import ApiServer

#: Group versions that are off by default.
_OFFERED: Final = {res.api_version for res in ALPHA}


def add_parser(subparsers: Any) -> None:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "apiserver",
        help=LAB_COMMANDS["apiserver"],
        description="An in-memory Kubernetes API server for kubectl; nothing is stored on disk.",
    )
    parser.add_argument("--port", type=port, default=0, help="port to listen on (0: a free one)")
    parser.add_argument(
        "--bind-address",
        default="127.0.0.1",
        metavar="IP",
        help="address to listen on (%(default)s)",
    )
    parser.add_argument(
        "--version",
        choices=tuple(RELEASES),
        default=Options().minor,
        help="minor version of Kubernetes to play (%(default)s)",
    )
    parser.add_argument(
        "--runtime-config",
        action="append",
        default=[],
        metavar="GROUP/VERSION=true",
        help="serve a group version that is off by default; repeatable. One of"
        f" {', '.join(sorted(_OFFERED))}",
    )
    parser.add_argument("--tls", action="store_true", help="serve HTTPS, self-signed by default")
    parser.add_argument("--tls-cert-file", metavar="FILE", help="certificate for --tls")
    parser.add_argument("--tls-private-key-file", metavar="FILE", help="its private key")
    parser.add_argument("--token", default="", help="bearer token of an administrator")
    parser.add_argument(
        "--kubeconfig-out",
        metavar="FILE",
        help="where to write a kubeconfig for this server (asched-PORT.kubeconfig)",
    )
    parser.add_argument(
        "--kubelet",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="simulate kubelets that run bound pods and end deleted ones",
    )
    parser.add_argument(
        "--controllers",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="create the pods of Deployments, ReplicaSets and Jobs",
    )
    parser.add_argument(
        "--fault",
        type=_fault,
        action="append",
        default=[],
        metavar="NAME=RATE",
        help="fail this share of requests, lists or watch events; repeatable."
        f" PUT {faults.PATH} changes it at run time. NAME is one of"
        f" {', '.join(faults.NAMES)}",
    )
    parser.set_defaults(run=run)


def _fault(text: str) -> faults.Fault:
    name, _, rate = text[:80].partition("=")
    try:
        return faults.named(name, rate=float(rate or 1))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted. Exit status: 0, or 2 if it cannot listen or write the kubeconfig."""
    try:
        return int(_runner()(serve(args)))
    except CannotBeginError as fault:
        print(f"asched apiserver: {fault}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 0


def _runner() -> Any:
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    return uvloop.run


class CannotBeginError(Exception):
    """It cannot listen, or cannot write the kubeconfig: why and what to do, in one line."""


def _served(values: list[str], minor: str) -> frozenset[str]:
    """The group versions that --runtime-config names. Raises CannotBeginError."""
    served = set[str]()
    for pair in (pair for value in values for pair in value.split(",")):
        name, _, text = pair.partition("=")
        if text not in ("", "true"):
            raise CannotBeginError(f"--runtime-config {pair}: only =true is supported")
        if name not in _OFFERED:
            raise CannotBeginError(f"--runtime-config {name} is unknown; choose one of --help")
        having = ONLY_IN.get(name, (minor,))
        if minor not in having:
            needed = " or ".join(having)
            raise CannotBeginError(f"--runtime-config {name} needs --version {needed}")
        served.add(name)
    return frozenset(served)


async def serve(args: argparse.Namespace) -> int:
    files = (args.tls_cert_file, args.tls_private_key_file)
    if any(files) and not all(files):
        message = "--tls-cert-file and --tls-private-key-file go together; give both or neither"
        print(f"asched apiserver: {message}", file=sys.stderr)
        return 2
    tls: bool | tuple[str, str] = files if all(files) else args.tls
    for flag, file in zip(("--tls-cert-file", "--tls-private-key-file"), files, strict=True):
        if file and not os.access(file, os.R_OK):
            raise CannotBeginError(f"{flag} {file} cannot be read; check the path and its rights")
    options = Options(alpha=_served(args.runtime_config, args.version), minor=args.version)
    server = ApiServer(options=options, kubelet=args.kubelet, controllers=args.controllers)
    for fault in args.fault:
        server.faults.add(fault)
    try:
        await server.start(args.bind_address, args.port, tls=tls, token=args.token)
    except OSError as error:
        raise CannotBeginError(
            f"cannot listen on {args.bind_address}:{args.port}: {error.strerror or error};"
            " choose another --port or --bind-address"
        ) from error
    try:
        name = args.kubeconfig_out or f"asched-{server.url.rpartition(':')[2]}.kubeconfig"
        try:
            written = write_private(name, server.kubeconfig().encode())
        except OSError as error:
            raise CannotBeginError(
                f"cannot write the kubeconfig to {name}: {error.strerror}; name another file with"
                " --kubeconfig-out"
            ) from error
        print(f"serving on {server.url}", flush=True)
        print(f"export KUBECONFIG={written}", flush=True)
        await _interrupted()
    finally:
        await server.stop()
    return 0


async def _interrupted() -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stop.set)
    await stop.wait()
