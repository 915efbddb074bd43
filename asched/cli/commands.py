"""`asched`: one module per command, imported only when that command runs.

Exit status: 0 success; 1 failure at run time; 2 wrong usage or configuration; 130 interrupted.
docs/operate.md lists them command by command. As `kubectl-asched` on the PATH it is the kubectl
plugin `kubectl asched`.
"""

import argparse
import errno
import gc
import importlib
import io
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from asched.host.termination import end_at_once

#: Command -> summary. The module `asched.cli.COMMAND` implements it.
COMMANDS: Final = {
    "run": "schedule pods of the current cluster (kube-scheduler's flags; see asched run --help)",
    "extender": "serve asched's plugins to a stock kube-scheduler as an HTTP extender",
    "doctor": "check an installation: access, rights, lease, other schedulers, each with a fix",
    "config": "check, view or migrate configuration files",
    "drain": "move the pods of a node to places that are held for them first",
    "explain": "show why a pod is pending or why it was placed on its node",
    "top": "show queues, rates, reasons of waiting pods, and nodes, also in a browser",
    "shadow": "compare the decisions of another scheduler with asched's",
    "plugins": "list plugins, or create a new plugin",
    "healthcheck": "check the health of the scheduler on this host",
    "completion": "print a completion script for bash, fish or zsh",
    "version": "print the versions of this command, the scheduler and the API server",
}
#: Commands of the distribution asched-lab, from the entry point group COMMANDS_GROUP.
LAB_COMMANDS: Final = {
    "demo": "schedule thousands of pods on an embedded API server",
    "apiserver": "run an in-memory Kubernetes API server for experiments",
    "simulate": "compute the effect of more pods, other nodes or another configuration",
    "plan": "compute a placement plan and apply it later, all or nothing",
    "snapshot": "write a cluster's objects, without secrets, to a file for simulate",
    "replay": "repeat a recording of run --record and compare the decisions",
    "bench": "measure throughput with scheduler_perf's workload files",
    "trace": "run a placement policy on the pods of a recorded GPU cluster",
    "chaos": "test the scheduler in virtual time against a failing API server",
}
COMMANDS_GROUP: Final = "asched.commands"
#: The distributions of this package: the second has the commands for people at a cluster, and needs
#: neither NumPy nor other large packages (deploy/client).
DISTRIBUTIONS: Final = ("asched", "asched-cli")
#: Commands whose module parses its arguments by kube-scheduler's rules for flags.
OWN_FLAGS: Final = ("run", "doctor")
KUBECTL_PLUGIN: Final = "kubectl-asched"
EXIT_STATUS: Final = """\
Run asched COMMAND --help for the flags of a command.

exit status:
  0    success; for run: a clean stop
  1    failure at run time: cluster unreachable, rights missing, leadership lost,
       doctor found a problem, demo or bench found an error
  2    wrong usage or configuration
  130  interrupted (Ctrl-C); 141: the reader of the output has gone, as in `| head`;
       143: ended by SIGTERM, unless the command listens to it (run: a clean stop)
"""


def main(arguments: list[str] | None = None) -> int:
    """Find the command and run it. Errors of the user never show a traceback."""
    # The kernel drops SIGTERM for process 1 without a handler: a pod deleted during start-up would
    # then stay until its grace period ends.
    signal.signal(signal.SIGTERM, end_at_once)
    _open_streams()
    # The matrix products are too small for threads, and starting them costs 0.1 s of CPU.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Imported objects stay alive; scanning them for garbage takes a quarter of the start.
    gc.disable()
    try:
        status = _command(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader has closed the pipe, so nothing more can be written to it.
        _leave_stdout()
        return 128 + signal.SIGPIPE
    except OSError as error:
        if error.errno != errno.ENOSPC or error.filename is not None:
            raise
        _leave_stdout()
        sys.stderr.write("asched: cannot write the output: no space left on the device\n")
        return 1
    finally:
        gc.enable()
    return status


def _open_streams() -> None:
    """Connect closed standard streams to /dev/null, so that no file or socket gets their number.
    Characters that the terminal cannot show (names come from the cluster) are escaped.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            with suppress(OSError):
                os.fstat(number)
                continue  # pythonw, and tests
            os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(number, mode))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _leave_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _command(argv: list[str]) -> int:
    """The garbage collector is off until a command begins; for `run` until the first lists."""
    wanted = next((word for word in argv if not word.startswith("-")), "")
    here = installed_commands()
    if wanted in COMMANDS and wanted not in here:
        return _unknown(wanted)
    if argv[:2] == ["shadow", "run"]:
        shadow_status: int = importlib.import_module("asched.cli.run").main(
            argv[2:], is_shadow=True
        )
        return shadow_status
    if argv and argv[0] in OWN_FLAGS:
        own_status: int = importlib.import_module(f"asched.cli.{argv[0]}").main(argv[1:])
        return own_status
    if wanted and wanted not in here:
        module = module_of(wanted)
        if module is None:
            return _unknown(wanted)
    parser = base_parser()
    if not wanted:
        parser.epilog = f"{_lab_commands_text()}{EXIT_STATUS}"
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    if wanted in here:
        module = importlib.import_module(f"asched.cli.{wanted}")
    for command, summary in here.items():
        if command != wanted:
            subparsers.add_parser(command, help=summary)
    if wanted:
        module.add_parser(subparsers)
    args = parser.parse_args(argv)
    gc.enable()
    status: int = args.run(args)
    return status


def installed_commands() -> dict[str, str]:
    """Those of COMMANDS that the installed distribution has."""
    folder = Path(__file__).parent
    return {name: text for name, text in COMMANDS.items() if (folder / f"{name}.py").exists()}


def module_of(command: str) -> Any:
    """The module of a command from another distribution, or None."""
    from importlib.metadata import entry_points  # 20 ms, for these commands only

    found = next(iter(entry_points(group=COMMANDS_GROUP, name=command)), None)
    return found.load() if found is not None else None


def other_commands() -> dict[str, str]:
    """Commands of other distributions, with their summaries; they need the whole of asched."""
    if "run" not in installed_commands():
        return {}
    from importlib.metadata import entry_points  # 20 ms, for --help and completion only

    names = sorted(entry.name for entry in entry_points(group=COMMANDS_GROUP))
    return {name: LAB_COMMANDS.get(name, "(of another distribution)") for name in names}


def _lab_commands_text() -> str:
    lines = [f"  {name:10} {summary}\n" for name, summary in other_commands().items()]
    title = "commands of asched-lab (simulated clusters):\n"
    return "".join([title, *lines, "\n"]) if lines else ""


def is_kubectl_plugin() -> bool:
    """Whether the program was called as `kubectl asched`."""
    return Path(sys.argv[0]).name == KUBECTL_PLUGIN


def base_parser() -> "argparse.ArgumentParser":
    """The parser without its commands, named as the program was called."""

    class Version(argparse.Action):
        """Reads the version only when it is asked for: this takes 20 ms."""

        def __init__(self, option_strings: list[str], dest: str, **more: Any) -> None:
            super().__init__(option_strings, dest, nargs=0, **more)

        def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
            parser.exit(message=f"asched {installed_version()}\n")

    parser = argparse.ArgumentParser(
        prog="kubectl asched" if is_kubectl_plugin() else "asched",
        description="A second scheduler for Kubernetes.",
        epilog=EXIT_STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=Version, help="show the version and exit")
    return parser


def _unknown(word: str) -> int:
    for package, commands in (("asched", COMMANDS), ("asched-lab", LAB_COMMANDS)):
        if word in commands:
            text = f"{word!r} is a command of {package}: pip install {package}"
            sys.stderr.write(f"asched: {text}\n")
            return 2
    from asched.core.config.problem import did_you_mean  # only for a mistyped command

    hint = did_you_mean(word, {**COMMANDS, **LAB_COMMANDS}) or "asched --help lists them"
    sys.stderr.write(f"asched: unknown command {word!r}; {hint}\n")
    return 2


def installed_version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # 20 ms, a third of `--help`

    for name in DISTRIBUTIONS:
        with suppress(PackageNotFoundError):
            return version(name)
    return "unknown (not installed)"
