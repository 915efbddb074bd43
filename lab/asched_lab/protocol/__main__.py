"""Search the protocol of the change of leader and of pools, completely, and without each rule.

    python -m asched_lab.protocol                 the complete size: minutes to hours
    python -m asched_lab.protocol --size small    without moves of nodes and namespaces: seconds
    python -m asched_lab.protocol --without seal  the shortest way to a violation without one rule

Exit status: 0 if no state violates a constraint and each rule that is left out is missed, 1 if not,
2 for usage.
"""

# ruff: noqa: T201 - a command prints

import argparse
import sys
import time
from typing import Final, NamedTuple

from asched_lab.bench.report import machine_line
from asched_lab.protocol.model import Protocol, Rule, Step
from asched_lab.protocol.search import Outcome, search


class Scene(NamedTuple):
    """What may happen in a search; see `Protocol`."""

    text: str
    moves: tuple[int, int]
    late: tuple[int, ...] = ()
    is_across: bool = False


FIXED: Final = Scene("nothing moves, the pod a-1 is created late", (0, 0), (0,))
NODE_ONCE: Final = Scene("node-2 moves once", (1, 0))
NODE_TWICE: Final = Scene("node-2 moves there and back", (2, 0))
NAMESPACE_ONCE: Final = Scene("namespace a moves once", (0, 1))
NAMESPACE_TWICE: Final = Scene("namespace a moves there and back", (0, 2))
ACROSS_ONCE: Final = Scene("namespace a moves once, b-1 has a rule about it", (0, 1), (), True)
ACROSS_TWICE: Final = Scene(
    "namespace a moves there and back, b-1 has a rule about it", (0, 2), (), True
)
SMALL: Final = (FIXED,)
ONCE: Final = (NODE_ONCE, NAMESPACE_ONCE, ACROSS_ONCE)
COMPLETE: Final = (FIXED, *ONCE, NODE_TWICE, NAMESPACE_TWICE, ACROSS_TWICE)
#: The smallest scene in which each rule is missed.
MISSED_IN: Final = {
    Rule.VERSION: FIXED,
    Rule.SEAL: FIXED,
    Rule.FIRST_CATCH_UP: FIXED,
    Rule.SECOND_CATCH_UP: FIXED,
    Rule.FENCE: FIXED,
    Rule.SAYS_SO: FIXED,
    Rule.SAYS_SO: FIXED,
    Rule.ANSWERS_BEFORE_YIELD: FIXED,
    Rule.ACKNOWLEDGEMENT: NODE_ONCE,
    Rule.ANSWERS_BEFORE_ACKNOWLEDGEMENT: NODE_ONCE,
    Rule.CATCH_UP_AFTER_ACKNOWLEDGEMENT: NODE_ONCE,
    Rule.SEAL_MOVED: NAMESPACE_ONCE,
    Rule.AS_NEW_AS: NODE_TWICE,
    Rule.NEW_TO_HOLDER: NODE_TWICE,
    Rule.REACHED: ACROSS_ONCE,
    Rule.ANSWERS_OF_RULES: ACROSS_TWICE,
}


def run(scene: Scene, without: tuple[Rule, ...] = ()) -> tuple[Outcome[Step], float]:
    """Search one scene; also the seconds that it took."""
    started_s = time.monotonic()

    def progress(states: int, depth: int) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{scene.text}: {states} states, {depth} steps deep ")

    model = Protocol(moves=scene.moves, late=scene.late, is_across=scene.is_across, without=without)
    outcome = search(model, progress)
    if sys.stderr.isatty():
        sys.stderr.write("\n")
    return outcome, time.monotonic() - started_s


def main(arguments: list[str]) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m asched_lab.protocol", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--size", choices=("small", "complete"), default="complete")
    parser.add_argument("--without", choices=[str(rule) for rule in Rule])
    options = parser.parse_args(arguments)
    rules = [Rule(options.without)] if options.without else list(Rule)
    scenes: tuple[Scene, ...] = ()
    if not options.without:
        scenes = SMALL if options.size == "small" else COMPLETE
    if options.size == "small" and not options.without:
        rules = [rule for rule in rules if MISSED_IN[rule] in SMALL]
    print(f"{machine_line()}\n")
    is_right = not scenes or _table(scenes)
    for rule in rules:
        is_right &= _missed(rule)
    return 0 if is_right else 1


def _table(scenes: tuple[Scene, ...]) -> bool:
    print("| what may move | states | steps between them | deepest | violated | s |")
    print("| --- | --- | --- | --- | --- | --- |")
    is_right = True
    for scene in scenes:
        outcome, took_s = run(scene)
        violated = outcome.violation or "never"
        print(
            f"| {scene.text} | {outcome.states:,} | {outcome.steps:,} | {outcome.depth} |"
            f" {violated} | {took_s:.0f} |",
            flush=True,
        )
        is_right &= not outcome.violation
    return is_right


def _missed(rule: Rule) -> bool:
    outcome, _ = run(MISSED_IN[rule], (rule,))
    print(f"\n### Without: {rule}\n")
    if not outcome.violation:
        print(f"No violation in {outcome.states:,} states.")
        return False
    print(f"After {outcome.states:,} states: {outcome.violation}.\n")
    for number, step in enumerate(outcome.way, 1):
        print(f"{number}. {step}", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
