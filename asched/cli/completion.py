"""`asched completion bash|fish|zsh`, and that of `kubectl asched` (kubectl_complete-asched).

Both use one parser with every installed command and every flag of `asched run`. shtab writes the
scripts; kubectl runs a program instead, which needs no further package and offers names of pods.
So neither asched-cli nor the lock of krew's archive has shtab.

    source <(asched completion bash)
    asched completion fish > ~/.config/fish/completions/asched.fish
    asched completion zsh > "${fpath[1]}/_asched"

Exit status: 0; 2 if shtab is not installed or too old for the shell, and as `kubectl asched`.
Source  kubernetes.io, "Extend kubectl with plugins": one candidate per line, then `:DIRECTIVE`
"""

import argparse
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any, Final

from asched.cli.commands import (
    COMMANDS,
    OWN_FLAGS,
    base_parser,
    installed_commands,
    is_kubectl_plugin,
    module_of,
    other_commands,
)
from asched.cli.flag_table import ALL
from asched.cli.pod_names import pod_names

SHELLS: Final = ("bash", "fish", "zsh")
#: cobra's directives, as bits: file names may be offered or not.
FILES: Final = 0
NO_FILES: Final = 4
#: The argument whose value is a pod.
POD: Final = "pod"
#: Endings of flags and arguments whose value is a path.
PATHS: Final = ("config", "config_to", "file", "kubeconfig", "dir", "manifest", "out")


def add_parser(subparsers: Any) -> None:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "completion",
        help=COMMANDS["completion"],
        description="Print a completion script. Load it with: source <(asched completion bash)",
    )
    parser.add_argument("shell", choices=SHELLS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if is_kubectl_plugin():
        cure = f"load `kubectl completion {args.shell}`, with kubectl_complete-asched on the PATH"
        print(f"kubectl asched completion: kubectl needs no other script: {cure}", file=sys.stderr)
        return 2
    try:
        shtab = importlib.import_module("shtab")
    except ImportError:
        cure = "pip install 'asched[completion]'"
        print(f"asched completion: the package shtab is not installed: {cure}", file=sys.stderr)
        return 2
    if args.shell not in shtab.SUPPORTED_SHELLS:
        cure = "pip install --upgrade shtab"
        print(f"asched completion: this shtab has no {args.shell}: {cure}", file=sys.stderr)
        return 2
    print(script(shtab, args.shell))
    return 0


def script(shtab: ModuleType, shell: str) -> str:
    parser = full_parser()
    parser.prog = "asched"
    for command in commands_of(parser).values():
        for action in _all_actions(command):
            if _takes_path(action):
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    text: str = shtab.complete(parser, shell=shell)
    return text


def full_parser(wanted: str | None = None) -> argparse.ArgumentParser:
    """All commands; with `wanted` only that one has its arguments, and only its module is read."""
    parser = base_parser()
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND")
    for command, summary in installed_commands().items():
        if wanted not in (None, command):
            subparsers.add_parser(command, help=summary)
            continue
        module = importlib.import_module(f"asched.cli.{command}")
        if command not in OWN_FLAGS:
            module.add_parser(subparsers)
            continue
        parents = [module.own_parser()] if command == "doctor" else []
        _add_flags_of_run(subparsers.add_parser(command, help=summary, parents=parents))
    if "shadow" in commands_of(parser) and wanted in (None, "shadow"):
        _add_flags_of_run(commands_of(commands_of(parser)["shadow"])["run"])
    for command, summary in other_commands().items():
        if wanted in (None, command):
            module_of(command).add_parser(subparsers)
        else:
            subparsers.add_parser(command, help=summary)
    return parser


def _add_flags_of_run(parser: argparse.ArgumentParser) -> None:
    for flag in ALL:
        words = [f"--{flag.name}", *([f"-{flag.short}"] if flag.short else [])]
        if "-h" not in words:
            _add(parser, words, "" if flag.kind == "bool" else flag.kind, flag.help)


def _add(parser: argparse.ArgumentParser, words: list[str], metavar: str, text: str) -> None:
    """Add a flag; percent signs in its help are escaped for argparse."""
    text = text.replace("%", "%%")
    if any(word in parser._option_string_actions for word in words):  # noqa: SLF001 - --help, -h
        return
    if metavar:
        parser.add_argument(*words, metavar=metavar, help=text)
    else:
        parser.add_argument(*words, action="store_true", help=text)


def commands_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The subcommands of a parser by name."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no public access
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            return dict(action.choices)
    return {}


def _all_actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    yield from parser._actions  # noqa: SLF001
    for command in commands_of(parser).values():
        yield from _all_actions(command)


def _takes_path(action: argparse.Action) -> bool:
    return action.nargs != 0 and not action.choices and action.dest.endswith(PATHS)


def candidates(
    parser: argparse.ArgumentParser,
    words: Iterable[str],
    pods: Callable[[Sequence[str], str], list[str]] = lambda _before, _begun: [],
) -> tuple[list[str], int]:
    """Candidates for the last word, and the directive for kubectl. `pods` names pods by the words
    before the last, and its beginning.
    """
    *before, begun = [*words] or [""]
    positionals = 0
    previous = ""
    for word in before:
        found = commands_of(parser).get(word)
        if found is not None and not positionals:
            parser, positionals, previous = found, 0, ""
            continue
        positionals += not word.startswith("-") and not _wants_value(parser, previous)
        previous = word
    waiting = _option(parser, previous)
    if waiting is not None and _wants_value(parser, previous):
        return _values(waiting, begun)
    if begun.startswith("-"):
        return _beginning(parser._option_string_actions, begun), NO_FILES  # noqa: SLF001
    if commands_of(parser):
        return _beginning(commands_of(parser), begun), NO_FILES
    rest = [a for a in parser._actions if not a.option_strings][positionals:]  # noqa: SLF001
    if rest and rest[0].dest == POD:
        return pods(before, begun), NO_FILES
    return _values(rest[0], begun) if rest else ([], NO_FILES)


def _values(action: argparse.Action, begun: str) -> tuple[list[str], int]:
    chosen = map(str, action.choices or ())
    return _beginning(chosen, begun), FILES if _takes_path(action) else NO_FILES


def _option(parser: argparse.ArgumentParser, word: str) -> argparse.Action | None:
    return parser._option_string_actions.get(word)  # noqa: SLF001


def _wants_value(parser: argparse.ArgumentParser, word: str) -> bool:
    option = _option(parser, word)
    return option is not None and option.nargs != 0


def _beginning(words: Iterable[str], begun: str) -> list[str]:
    return sorted(word for word in words if word.startswith(begun))


def complete_for_kubectl() -> int:
    """The program that kubectl runs for `kubectl asched <TAB>`, with the words typed so far."""
    words = sys.argv[1:]
    wanted = next((word for word in words[:-1] if not word.startswith("-")), "")
    found, directive = candidates(full_parser(wanted), words, pod_names)
    print("\n".join([*found, f":{directive}"]))
    return 0
