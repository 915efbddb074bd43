"""`asched apiserver`: the embedded API server as a process, for learning and for tests."""

import argparse
import asyncio
import contextlib
import signal
import sys
from pathlib import Path
from typing import Any

from asched.lab.apiserver.server import ApiServer


def add_parser(subparsers: Any) -> None:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "apiserver",
        help="run an in-memory Kubernetes API server for trying things out",
        description="An in-memory Kubernetes API server; kubectl works, nothing is kept.",
    )
    parser.add_argument("--port", type=int, default=0, help="port to listen on (0: a free one)")
    parser.add_argument("--bind-address", default="127.0.0.1", metavar="IP", help="IP to listen on")
    parser.add_argument("--tls", action="store_true", help="serve HTTPS, by default self-signed")
    parser.add_argument("--tls-cert-file", metavar="FILE", help="certificate for --tls")
    parser.add_argument("--tls-private-key-file", metavar="FILE", help="its private key")
    parser.add_argument("--token", default="", help="bearer token of an administrator")
    parser.add_argument(
        "--kubeconfig-out", metavar="FILE", help="where to write a kubeconfig that leads here"
    )
    parser.add_argument(
        "--kubelet",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="pretend that kubelets run bound pods and end deleted ones",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted. Exit status: 0, or 2 if it cannot listen or write the kubeconfig."""
    try:
        return int(_runner()(serve(args)))
    except OSError as fault:
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


async def serve(args: argparse.Namespace) -> int:
    files = (args.tls_cert_file, args.tls_private_key_file)
    if any(files) and not all(files):
        message = "--tls-cert-file and --tls-private-key-file go together; give both or neither"
        print(f"asched apiserver: {message}", file=sys.stderr)
        return 2
    tls: bool | tuple[str, str] = files if all(files) else args.tls
    server = ApiServer(kubelet=args.kubelet)
    await server.start(args.bind_address, args.port, tls=tls, token=args.token)
    try:
        port = server.url.rpartition(":")[2]
        written = write_private(
            args.kubeconfig_out or f"asched-{port}.kubeconfig", server.kubeconfig()
        )
        print(f"serving on {server.url}", flush=True)
        print(f"export KUBECONFIG={written}", flush=True)
        await _interrupted()
    finally:
        await server.stop()
    return 0


def write_private(name: str, text: str) -> Path:
    """Write a file only its owner may read; returns its absolute path. Raises OSError."""
    path = Path(name)
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
    return path.resolve()


async def _interrupted() -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stop.set)
    await stop.wait()
