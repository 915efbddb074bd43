"""`asched replay FILE`: repeat a recording of a scheduler and compare the decisions.

Rules   with the recorded configuration, decisions are compared byte by byte; with another
        configuration, plugin or version, each pod that would be placed elsewhere is reported once,
        with the reason. Results of coroutines of user plugins are taken from the recording; the
        rest of their code runs, so give the plugins as in `asched run`.

        With --anonymize names are replaced, and decisions are compared by name; messages are not.

Exit status: 0 all decisions are equal; 1 some are not; 2 wrong usage, or no usable recording.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final

from asched.cli.arguments import add_plugin_flags, plain
from asched.cli.commands import LAB_COMMANDS
from asched.core.config.v1 import SchedulerConfiguration
from asched.host.configuration.file import ConfigError, UnreadableFileError, load_config
from asched.host.memory import collected_seldom
from asched.host.user_plugins.catalogue import Catalogue, PluginLoadError, discover
from asched.ops.recording.lines import RecordingHead
from asched.ops.recording.recorder import here
from asched_lab.replay.anonymous import anonymize
from asched_lab.replay.comparing import Difference, Findings
from asched_lab.replay.lines import Recording, UnusableRecordingError
from asched_lab.replay.replay import Replayed, replay

#: Differences that are printed without --all.
SHOWN: Final = 20
#: Turns between two checks whether a terminal shows the progress.
PROGRESS_EVERY: Final = 2_000


def add_parser(subparsers: Any) -> None:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "replay",
        help=LAB_COMMANDS["replay"],
        description="Repeat what a scheduler recorded with `asched run --record FILE`.",
        epilog="See docs/what-if.md.",
    )
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="the recording")
    add("--config", metavar="FILE", help="replace the recorded configuration by this one")
    add("--anonymize", type=Path, metavar="OUT", help="write it under pseudonyms, and compare")
    add("--all", action="store_true", help=f"print all differences, not {SHOWN} of them")
    add("-o", "--output", choices=("text", "json"), default="text", help="text or json (text)")
    add_plugin_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Replay, and print the result."""
    if args.anonymize is not None and (args.config or args.anonymize.exists()):
        why = "exists already" if args.anonymize.exists() else "and --config exclude each other"
        return _refuse(f"--anonymize {args.anonymize} {why}")
    try:
        recording = Recording(args.file)
        catalogue = discover(args.plugin, args.plugin_dir)
        instead = _instead(args.config, recording.head, catalogue)
        for line in _otherwise(recording.head, catalogue):
            print(f"asched replay: {line}", file=sys.stderr)
        if args.anonymize is not None:
            return _anonymize(recording, args.anonymize, catalogue)
        with collected_seldom():
            done = replay(recording, catalogue, instead, _progress())
    except (UnusableRecordingError, PluginLoadError, UnreadableFileError) as error:
        return _refuse(str(error))
    except OSError as error:
        return _refuse(f"{error.filename or args.anonymize}: {error.strerror}")
    except ConfigError as error:
        return max(_refuse(line) for line in str(error).splitlines())
    if recording.cut_off:
        print(f"asched replay: after turn {done.turns}: {recording.cut_off}", file=sys.stderr)
    if args.output == "json":
        print(json.dumps(as_data(recording, done), indent=2))
    else:
        _print(done, None if args.all else SHOWN)
    return 0 if done.is_equal else 1


def _anonymize(recording: Recording, out: Path, catalogue: Catalogue) -> int:
    """Write it, and report whether it still leads to the same decisions."""
    done = anonymize(recording, out, catalogue)
    given = [name for name, *_ in recording.head.plugins]
    print(f"{out}: {done.turns} turns, {done.names} names replaced")
    if given:
        print(f"arguments of plugins are unchanged, check them: {', '.join(given)}")
    if done.differs is None:
        print("it decides the same, name by name")
        return 0
    turn, then, now = done.differs
    print(f"but from turn {turn} on it decides differently, so it may not show the same problem")
    print(f"  then  {then}\n  now   {now}")
    return 1


def _instead(
    path: str | None, head: RecordingHead, catalogue: Catalogue
) -> SchedulerConfiguration | None:
    if path is None:
        return None
    return load_config(path, gates=head.gates, known=catalogue.known).configuration


def _otherwise(head: RecordingHead, catalogue: Catalogue) -> list[str]:
    """Differences from the recording's environment that may change decisions."""
    now = here(catalogue.contents)
    pairs = (("asched", head.version, now.version), ("NumPy", head.numpy, now.numpy))
    found = [f"recorded by {name} {then}, this is {it}" for name, then, it in pairs if then != it]
    known = {name: content for name, _, content in now.plugins}
    return [
        *found,
        *(
            f"plugin {name} (of {origin}) differs from the recorded one"
            for name, origin, content in head.plugins
            if known.get(name, content) != content
        ),
    ]


def _progress() -> Any:
    is_watched = sys.stderr.isatty()

    def show(turn: int) -> None:
        if is_watched and turn % PROGRESS_EVERY == 0:
            print(f"\rturn {turn} ", end="", file=sys.stderr, flush=True)

    return show


def as_data(recording: Recording, done: Replayed) -> dict[str, Any]:
    """The result for JSON."""
    findings = done.findings or Findings()
    head = recording.head
    return {
        "equal": done.is_equal,
        "recordedBy": {"asched": head.version, "python": head.python, "began": head.began},
        "turns": done.turns,
        "facts": done.facts,
        "bindings": done.bindings,
        "recordedSeconds": round(done.recorded_s, 3),
        "replayedSeconds": round(done.took_s, 3),
        "truncated": recording.cut_off or None,
        "unsteady": done.is_unsteady,
        "pools": done.pools
        and [
            {
                "turn": change.turn,
                "at": round(change.at_s, 3),
                "taken": change.taken,
                "givenUp": change.given_up,
            }
            for change in done.pools
        ],
        "firstDifference": findings.first
        and {
            "turn": findings.first,
            "at": round(findings.first_at_s, 3),
            "then": findings.then,
            "now": findings.now,
        },
        "movedInTime": findings.moved,
        "counts": dict(findings.counts),
        "differences": [difference._asdict() for difference in findings.differences],
    }


def _print(done: Replayed, shown: int | None) -> None:
    faster = done.recorded_s / max(done.took_s, 1e-9)
    print(
        f"{done.turns} turns, {done.facts} facts and {done.bindings} bindings of"
        f" {done.recorded_s:.1f} s replayed in {done.took_s:.1f} s ({faster:.0f} times as fast)"
    )
    _print_pools(done, shown)
    if done.is_unsteady:
        print("the first run differed, the second did not: something is random, maybe a plugin")
        return
    findings = done.findings
    if findings is None or findings.first is None:
        print("all decisions are equal")
        return
    print(f"first difference in turn {findings.first}, {findings.first_at_s:.3f} s after the first")
    for what, lines in (("then", findings.then), ("now", findings.now)):
        for line in lines or ["nothing more"]:
            print(plain(f"  {what:<5} {line}"))
    for kind, count in findings.counts.most_common():
        print(f"{count} pods {kind}" if count != 1 else f"1 pod {kind}")
    if findings.moved:
        print(f"{findings.moved} requests in another turn, else equal")
    differences = findings.differences[:shown]
    for difference in differences:
        _print_difference(difference)
    if len(differences) < findings.counts.total():
        print(f"... {findings.counts.total() - len(differences)} more; --all prints them")


def _print_pools(done: Replayed, shown: int | None) -> None:
    """When the recorded process took and gave up pools, if it shared them with others."""
    if done.pools is None:
        return
    print("pools that were held" if done.pools else "no pool was held")
    for change in done.pools[:shown]:
        what = ("takes", change.taken), ("gives up", change.given_up)
        text = "; ".join(f"{verb} {', '.join(pools)}" for verb, pools in what if pools)
        print(plain(f"  turn {change.turn}, {change.at_s:.3f} s: {text}"))
    if shown is not None and len(done.pools) > shown:
        print(f"  ... {len(done.pools) - shown} more; --all prints them")
    if done.has_other_pools:
        print("the configuration has other pools: it is replayed as that of the only replica")


def _print_difference(difference: Difference) -> None:
    place = f"turn {difference.turn}, {difference.at_s:.3f} s"
    print(plain(f"\n{difference.subject}, {place}: {difference.kind}"))
    then, now, why = difference.then, difference.now, difference.why
    for what, words in (("then", then), ("now", now), ("why", why)):
        if words:
            print(plain(f"  {what:<5} {words}"))


def _refuse(text: str) -> int:
    print(plain(f"asched replay: {text}"), file=sys.stderr)
    return 2
