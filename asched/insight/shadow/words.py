"""What a shadow found, as text for people."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from asched.insight.shadow.finding import MEANING, Agreement, OtherVerdict

#: Examples shown of each outcome where not all are asked for.
SHOWN_MAX: Final = 5
#: Those that are explained.
LAGS_SHOWN: Final = 2
#: Bindings named of one that was decided in another order.
NAMED_MAX: Final = 3


def text(told: Mapping[str, Any], *, is_wide: bool = False) -> str:
    """`told` is what `Tally.told` made. `is_wide`: with every example that is kept."""
    return "\n".join(_lines(told, 1_000 if is_wide else SHOWN_MAX)) + "\n"


def _lines(told: Mapping[str, Any], shown_max: int) -> Iterator[str]:
    if not told["profiles"]:
        yield "no decision was seen"
    for name, profile in told["profiles"].items():
        for verdict in OtherVerdict:
            yield from _verdict(name, verdict, profile[verdict.value])
        for one in profile["plugins"]:
            yield f"  {one['count']:>8}  {one['outcome']} by {one['plugin']}"
    yield from _examples(told["examples"], shown_max)
    waiting = told.get("waiting", 0)
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
    for one in reversed(examples):  # the last ones say more of how things are
        key = one["verdict"], one["outcome"]
        shown[key] = shown.get(key, 0) + 1
        if shown[key] > (LAGS_SHOWN if one["outcome"] == Agreement.LAG else shown_max):
            continue
        yield _example(one)


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
