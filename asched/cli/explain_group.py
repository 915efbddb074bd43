"""`asched explain podgroup/NAME`: what is told of a gang, as lines."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

#: What may stand before the name.
WORDS: Final = ("podgroup", "podgroups", "pg")
PATH: Final = "/debug/asched/groups/{}/{}?explain=yes"
NAMED_MAX: Final = 5


def group_name(text: str) -> str:
    """The name behind "podgroup/", with its namespace if given; empty if `text` names no group."""
    word, _, name = text.partition("/")
    return name if word in WORDS else ""


def group_lines(told: Mapping[str, Any], *, is_wide: bool = False) -> Iterator[str]:
    """The lines to print, without those about the pod that was rejected."""
    placed, waiting, least = told["placed"], told["unplaced"], told["minCount"]
    name = told["group"].rpartition(":")[2]
    yield f"podgroup {name} of {told['api']}: {placed} of its {placed + waiting} pods have places"
    starts = f"{least} start together" if least else "no gang, or its PodGroup does not exist"
    yield f"  {starts}"
    if told["lacks"]:
        yield f"  {told['lacks']}"
    if told.get("minResources"):
        yield f"  minResources {_amounts(told['minResources'])}"
    if told.get("start"):
        yield from start_lines(told["start"], "  ")
    if told.get("said"):
        yield ""
        yield told["said"]
    yield ""
    places = Counter(one["place"] for one in told["pods"])
    for place, count in places.items():
        pods = [one for one in told["pods"] if one["place"] == place]
        shown = pods if is_wide else pods[:NAMED_MAX]
        yield f"{count} {place}"
        for one in shown:
            yield f"  {one['pod']}" + (f" on {one['node']}" if one["node"] else "")
        if len(shown) < count:
            yield "  ..."
    more = placed + waiting - len(told["pods"])
    if more > 0:
        yield f"{more} more"


def start_lines(start: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """When it is promised to start."""
    nodes = ", ".join(start["nodes"][:NAMED_MAX])
    more = ", ..." if start["count"] > NAMED_MAX else ""
    yield f"{indent}starts by {start['at']} ({start['certainty']}) on {nodes}{more}"
    if start["cause"]:
        yield f"{indent}  not by {start['first']}, as was promised: {start['cause']}"


def _amounts(amounts: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in amounts.items())
