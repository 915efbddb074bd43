"""`asched`: one door per command. A command is imported only when it is asked for.

Exit status: 0 success; 1 it failed while running; 2 wrong usage or configuration; 130 interrupted.
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

#: Command -> its summary; the module `asched.cli.COMMAND` has it.
COMMANDS: Final = {
    "run": "schedule pods of the current cluster (kube-scheduler's flags; see asched run --help)",
    "extender": "answer a stock kube-scheduler as an HTTP extender, with plugins of your own",
    "doctor": "check an installation: access, rights, lease, other schedulers, each with its cure",
    "config": "check, view or migrate configuration files",
    "explain": "say why a pod is where it is",
    "top": "watch queues, rates, why pods wait, and nodes",
    "ui": "the live view in a browser",
    "shadow": "compare the decisions of a shadowed scheduler with ours (run --shadow)",
    "plugins": "list plugins, or start a new one",
    "healthcheck": "ask a running scheduler whether it is healthy",
    "completion": "print a completion script for bash or zsh",
}
#: Commands of the distribution asched-lab, by the entry point group COMMANDS_GROUP.
LAB_COMMANDS: Final = {
    "demo": "place thousands of pods on an embedded API server, and watch",
    "apiserver": "run an in-memory Kubernetes API server for trying things out",
    "simulate": "compute what would be: more pods, more or fewer nodes, another configuration",
    "plan": "compute a placement plan and apply it later, all or nothing",
    "snapshot": "write a cluster's objects to a file, without secrets, for simulate",
    "replay": "repeat a recording of run --record, and compare the decisions",
    "bench": "measure throughput with scheduler_perf's workload files",
    "trace": "offer the pods of a recorded GPU cluster to a placement policy",
    "chaos": "run the scheduler in virtual time against a server that fails, or repeat one run",
}
COMMANDS_GROUP: Final = "asched.commands"
#: Former names, which go on working for one release.
RENAMED: Final = {"dump": "snapshot", "sim": "chaos"}
#: Commands whose module reads its words itself, by kube-scheduler's rules for flags.
OWN_FLAGS: Final = ("run", "doctor")
KUBECTL_PLUGIN: Final = "kubectl-asched"
EXIT_STATUS: Final = """\
asched COMMAND --help tells more.

exit status:
  0    success; for run: an orderly stop
  1    it failed while running: cluster out of reach, rights missing, leadership lost,
       doctor found a problem, demo or bench found something broken
  2    the command line or the configuration makes no sense
  130  interrupted (Ctrl-C); 141: its output was no longer read, as in `| head`;
       143: ended by SIGTERM before it was running
"""


def main(arguments: list[str] | None = None) -> int:
    """Find the command and hand over. Never shows a traceback for what a user did."""
    # Process 1 of a container never hears a signal it has no handler for: without this one, a pod
    # that is deleted while it starts would be waited for until it is killed.
    signal.signal(signal.SIGTERM, _end)
    _open_streams()
    # The products here are too small for threads; starting these costs a tenth of a second of CPU.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # What imports make stays: looking through it for garbage takes a quarter of the start.
    gc.disable()
    try:
        status = _command(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has read enough; nothing more can be said on it.
        _leave_stdout()
        return 128 + signal.SIGPIPE
    except OSError as error:
        if error.errno != errno.ENOSPC or error.filename is not None:
            raise
        _leave_stdout()
        sys.stderr.write("asched: what is to be said cannot be written: no space is left\n")
        return 1
    finally:
        gc.enable()
    return status


def _open_streams() -> None:
    """A stream that was closed leads nowhere, as its number else would to the next file or socket.
    What the terminal cannot show is shown as its number: names are others'.
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


def _end(*_: object) -> None:
    sys.exit(128 + signal.SIGTERM)


def _command(argv: list[str]) -> int:
    """The collector is off until a command begins, for `run` until everything is listed."""
    if argv and argv[0] in OWN_FLAGS:
        own_status: int = importlib.import_module(f"asched.cli.{argv[0]}").main(argv[1:])
        return own_status
    wanted = next((word for word in argv if not word.startswith("-")), "")
    if wanted in RENAMED:
        sys.stderr.write(f"asched: '{wanted}' is now called '{RENAMED[wanted]}'\n")
        at = argv.index(wanted)
        argv = [*argv[:at], RENAMED[wanted], *argv[at + 1 :]]
        wanted = RENAMED[wanted]
    if wanted and wanted not in COMMANDS:
        module = module_of(wanted)
        if module is None:
            return _unknown(wanted)
    parser = base_parser()
    if not wanted:
        parser.epilog = f"{_others_listed()}{EXIT_STATUS}"
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    if wanted in COMMANDS:
        module = importlib.import_module(f"asched.cli.{wanted}")
    for command, summary in COMMANDS.items():
        if command != wanted:
            subparsers.add_parser(command, help=summary)
    if wanted:
        module.add_parser(subparsers)
    args = parser.parse_args(argv)
    gc.enable()
    status: int = args.run(args)
    return status


def module_of(command: str) -> Any:
    """The module of a command that another distribution brings; None if none does."""
    from importlib.metadata import entry_points  # 20 ms, for these commands only

    found = next(iter(entry_points(group=COMMANDS_GROUP, name=command)), None)
    return found.load() if found is not None else None


def other_commands() -> dict[str, str]:
    """Commands that other distributions bring, with their summaries."""
    from importlib.metadata import entry_points  # 20 ms, for --help and completion only

    names = sorted(entry.name for entry in entry_points(group=COMMANDS_GROUP))
    return {name: LAB_COMMANDS.get(name, "(of another distribution)") for name in names}


def _others_listed() -> str:
    lines = [f"  {name:10} {summary}\n" for name, summary in other_commands().items()]
    return (
        "".join(["commands of asched-lab, on a pretend cluster:\n", *lines, "\n"]) if lines else ""
    )


def base_parser() -> "argparse.ArgumentParser":
    """The parser without its commands, under the name by which it was called."""

    class Version(argparse.Action):
        """Looks the version up when it is asked for, and not before."""

        def __init__(self, option_strings: list[str], dest: str, **more: Any) -> None:
            super().__init__(option_strings, dest, nargs=0, **more)

        def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
            parser.exit(message=f"asched {installed_version()}\n")

    as_plugin = Path(sys.argv[0]).name == KUBECTL_PLUGIN
    parser = argparse.ArgumentParser(
        prog="kubectl asched" if as_plugin else "asched",
        description="A second scheduler for Kubernetes.",
        epilog=EXIT_STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=Version, help="show the version and exit")
    return parser


def _unknown(word: str) -> int:
    if word in LAB_COMMANDS:
        sys.stderr.write(f"asched: {word!r} is a command of asched-lab: pip install asched-lab\n")
        return 2
    from asched.core.config.problem import did_you_mean  # only for a mistyped command

    hint = did_you_mean(word, {**COMMANDS, **LAB_COMMANDS}) or "asched --help lists them"
    sys.stderr.write(f"asched: {word!r} is no command; {hint}\n")
    return 2


def installed_version() -> str:
    """The version of the installed package."""
    from importlib.metadata import PackageNotFoundError, version  # 20 ms, a third of `--help`

    try:
        return version("asched")
    except PackageNotFoundError:
        return "unknown (not installed)"
