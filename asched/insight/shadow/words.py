"""The findings of a shadow as text."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from asched.insight.shadow.finding import MEANING, Agreement, OtherVerdict

#: Examples shown of each outcome by default.
SHOWN_MAX: Final = 5
#: Examples of lags, which are explained.
LAGS_SHOWN: Final = 2
#: Bindings named for a decision in another order.
NAMED_MAX: Final = 3


def text(report: Mapping[str, Any], *, is_wide: bool = False) -> str:
    """Format the JSON of a `FindingTally`. `is_wide`: with every stored example."""
    return "\n".join(_lines(report, 1_000 if is_wide else SHOWN_MAX)) + "\n"


def _lines(report: Mapping[str, Any], shown_max: int) -> Iterator[str]:
    if not report["profiles"]:
        yield "no decision was seen"
    for name, profile in report["profiles"].items():
        for verdict in OtherVerdict:
            yield from _verdict(name, verdict, profile[verdict.value])
        for counted in profile["plugins"]:
            yield f"  {counted['count']:>8}  {counted['outcome']} by {counted['plugin']}"
    yield from _examples(report["examples"], shown_max)
    waiting = report.get("waiting", 0)
    if waiting:
        yield f"{waiting} decisions wait for a second look"


def _verdict(name: str, verdict: OtherVerdict, found: Mapping[str, Any]) -> Iterator[str]:
    outcomes = found["outcomes"]
    if not outcomes:
        return
    share = found["agreement"]
    agrees = "" if share is None else f", {100 * share:.2f} % agree"
    yield f"{name}: {sum(outcomes.values())} {verdict.value}{agrees}"
    for outcome, count in outcomes.items():
        yield f"  {count:>8}  {outcome:<12}  {MEANING[Agreement(outcome)]}"


def _examples(examples: list[Mapping[str, Any]], shown_max: int) -> Iterator[str]:
    shown: dict[tuple[str, str], int] = {}
    for example in reversed(examples):  # the newest first
        key = example["verdict"], example["outcome"]
        shown[key] = shown.get(key, 0) + 1
        if shown[key] > (LAGS_SHOWN if example["outcome"] == Agreement.LAG else shown_max):
            continue
        yield _example(example)


def _example(one: Mapping[str, Any]) -> str:
    details = one.get("details", {})
    theirs, ours = one.get("theirs", "no node"), one.get("ours", "no node")
    said = f"{one['outcome']}: {one['pod']} on {theirs}, here {ours}"
    if "points" in details:
        points = ", ".join(
            f"{point['plugin']} {point['theirs']}:{point['ours']}"
            for point in details["points"]
            if point["theirs"] != point["ours"]
        )
        said += f"; {details['score']} points against {details['ours']} ({points})"
    elif "reason" in details:
        said += f"; {one.get('plugin', '')}: {details['reason']}"
    elif "message" in details:
        said += f"; there: {details['message']}"
        said += f" here: {details['ours']}" if "ours" in details else ""
    elif "error" in details:
        said += f"; {details['error']}"
    for name, word in (("decidedAfter", "after it"), ("decidedBefore", "before it")):
        others = details.get(name, ())
        if others:
            named = [f"{o['pod']} on {o['node']}" for o in others[:NAMED_MAX]]
            more = f" and {len(others) - NAMED_MAX} more" if len(others) > NAMED_MAX else ""
            said += f"; agrees if decided {word}: {', '.join(named)}{more}"
    if details.get("secondLook") is False:
        said += "; there was no time for a second look"
    return said
