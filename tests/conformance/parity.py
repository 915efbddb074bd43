"""The tables of docs/results/conformance.md: recorded cases that agree, and additional events.

They stand between two markers; everything else on the page is written by hand.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from asched.core.cluster.changes import ACTION_TEXT, Action
from asched.core.framework.registrations import Registration
from tests.conformance.cases import Result
from tests.conformance.registrations import split
from tests.conformance.world import build

PAGE: Final = Path(__file__).resolve().parents[2] / "docs/results/conformance.md"
BEGIN: Final = "<!-- tables: begin -->"
END: Final = "<!-- tables: end -->"

ABOUT_FAMILIES: Final = """\
Declared: cases in which kube-scheduler has a defect and asched follows the documented rule. The
rows of [parity](../parity.md) name them."""
ABOUT_PLUGINS: Final = """\
Decisions: cases in which the plugin rejects or scores. Hints: cases in which its hint is called.
Declared cases are left out.
Woken in addition: the pod fits, kube-scheduler leaves it unschedulable, and asched wakes it."""
ABOUT_WAKING: Final = """\
Events beside those that kube-scheduler's plugins register for. They wake a pod only if it fits."""


class MarkersMissingError(Exception):
    """The page has lost its markers."""


def plugins_of(record: dict[str, Any]) -> frozenset[str]:
    """The plugins whose word a recorded case holds: who rejected, who scored, who was asked."""
    if "plugin" in record:
        return frozenset((record["plugin"],))
    expect = record.get("expect")
    if not isinstance(expect, dict):
        return frozenset()
    found = set(expect.get("scores") or ()) | set(expect.get("unschedulable_plugins") or ())
    found |= {told["plugin"] for told in (expect.get("filter") or {}).values()}
    if expect.get("prefilter"):
        found.add(expect["prefilter"]["plugin"])
    if (expect.get("preemption") or {}).get("candidates"):
        found.add("DefaultPreemption")
    return frozenset(found - {""})


def write(results: Sequence[Result], page: Path = PAGE) -> None:
    """Put fresh tables onto the page. Raises MarkersMissingError."""
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise MarkersMissingError(f"{page}: the lines {BEGIN} and {END} must stand on it, in order")
    page.write_text(f"{before}{BEGIN}\n\n{tables(results)}\n{END}{after}", encoding="utf-8")


def tables(results: Sequence[Result]) -> str:
    head = ("plugin", "decisions", "agree", "hints", "agree", "woken in addition")
    parts = (
        "### By family",
        ABOUT_FAMILIES,
        _table(("family", "cases", "agree", "declared", "differ"), _by_family(results)),
        "### By plugin",
        ABOUT_PLUGINS,
        _table(head, _by_plugin(results)),
        "### What wakes a pod in addition",
        ABOUT_WAKING,
        _table(("rejected by", "additional events"), _extra_events()),
    )
    return "\n\n".join(parts) + "\n"


def _by_family(results: Iterable[Result]) -> list[tuple[object, ...]]:
    families: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        families[result.family].append(result)
    return [
        (family, *_counts(found), _declared(found), _differing(found))
        for family, found in families.items()
    ]


def _by_plugin(results: Sequence[Result]) -> list[tuple[object, ...]]:
    names = sorted({plugin for result in results for plugin in result.plugins})
    rows: list[tuple[object, ...]] = []
    for name in names:
        mine = [result for result in results if name in result.plugins and not result.declared]
        hints = [result for result in mine if result.family == "hints"]
        decisions = [result for result in mine if result.family != "hints"]
        woken = sum(result.wakes_more for result in hints)
        rows.append((name, *_counts(decisions), *_counts(hints), woken))
    return rows


def _extra_events() -> list[tuple[str, str]]:
    runner = next(iter(build(None, {}).runners.values()))
    return [
        (plugin, "; ".join(_told(registrations)))
        for plugin, registrations in sorted(runner.profile.extra_events.items())
        if registrations
    ]


def _told(registrations: Iterable[Registration]) -> list[str]:
    return [f"{r.trigger.resource}: {_actions(r.trigger.action)}" for r in registrations]


def _actions(action: Action) -> str:
    return ", ".join(ACTION_TEXT[one] for one in split(action))


def _counts(found: Sequence[Result]) -> tuple[int, int]:
    """(cases, those that agree)."""
    return len(found), sum(r.agrees for r in found)


def _declared(found: Sequence[Result]) -> int:
    return sum(bool(r.declared) for r in found)


def _differing(found: Sequence[Result]) -> int:
    return sum(bool(r.differences) for r in found)


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
