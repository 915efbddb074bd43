"""`asched`: one door per command. A command is imported only when it is asked for.

Exit status: 0 success; 1 it failed while running; 2 wrong usage or configuration; 130 interrupted.
"""

import argparse
import importlib
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Final

#: Command -> the module that holds it. `run` reads kube-scheduler's flags itself.
COMMANDS: Final = {
    "run": "schedule pods of the current cluster (kube-scheduler's flags; see asched run --help)",
    "demo": "place thousands of pods on an embedded API server, and watch",
    "apiserver": "run an in-memory Kubernetes API server for trying things out",
    "bench": "measure throughput with scheduler_perf's workload files",
    "config": "check, view or migrate configuration files",
}


def main(arguments: list[str] | None = None) -> int:
    """Find the command and hand over. Never shows a traceback for what a user did."""
    argv = sys.argv[1:] if arguments is None else arguments
    if argv[:1] == ["run"]:
        from asched.cli import run

        return run.main(argv[1:])
    parser = argparse.ArgumentParser(
        prog="asched", description="A second scheduler for Kubernetes.", epilog=_epilog()
    )
    parser.add_argument("--version", action="version", version=f"asched {installed_version()}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    wanted = next((word for word in argv if not word.startswith("-")), "")
    for command, summary in COMMANDS.items():
        if command == wanted:
            importlib.import_module(f"asched.cli.{command}").add_parser(subparsers)
        else:
            subparsers.add_parser(command, help=summary)
    args = parser.parse_args(argv)
    try:
        status: int = args.run(args)
    except KeyboardInterrupt:
        return 130
    return status


def installed_version() -> str:
    """The version of the installed package."""
    try:
        return version("asched")
    except PackageNotFoundError:
        return "unknown (not installed)"


def _epilog() -> str:
    return "asched COMMAND --help tells more. Exit status: 0 success, 1 failure, 2 usage."


if __name__ == "__main__":
    sys.exit(main())
