"""`asched explain podgroup/NAME`: the lines printed for a gang."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

#: Kinds that may precede the name.
WORDS: Final = ("podgroup", "podgroups", "pg")
PATH: Final = "/debug/asched/groups/{}/{}?explain=yes"
NAMED_MAX: Final = 5


def group_name(text: str) -> str:
    """The name after "podgroup/", with its namespace if given; empty for other texts."""
    word, _, name = text.partition("/")
    return name if word in WORDS else ""


def group_lines(page: Mapping[str, Any], *, is_wide: bool = False) -> Iterator[str]:
    """The lines to print, without those about the rejected pod."""
    placed, waiting, least = page["placed"], page["unplaced"], page["minCount"]
    name = page["group"].rpartition(":")[2]
    yield f"podgroup {name} of {page['api']}: {placed} of its {placed + waiting} pods are placed"
    starts = f"{least} start together" if least else "no gang, or its PodGroup does not exist"
    yield f"  {starts}"
    if page["lacks"]:
        yield f"  {page['lacks']}"
    if page.get("minResources"):
        yield f"  minResources {_amounts(page['minResources'])}"
    if page.get("start"):
        yield from start_lines(page["start"], "  ")
    if page.get("said"):
        yield ""
        yield page["said"]
    yield ""
    places = Counter(entry["place"] for entry in page["pods"])
    for place, count in places.items():
        pods = [entry for entry in page["pods"] if entry["place"] == place]
        shown = pods if is_wide else pods[:NAMED_MAX]
        yield f"{count} {place}"
        for entry in shown:
            yield f"  {entry['pod']}" + (f" on {entry['node']}" if entry["node"] else "")
        if len(shown) < count:
            yield "  ..."
    more = placed + waiting - len(page["pods"])
    if more > 0:
        yield f"{more} more"


def start_lines(start: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """The promised start."""
    nodes = ", ".join(start["nodes"][:NAMED_MAX])
    more = ", ..." if start["count"] > NAMED_MAX else ""
    yield f"{indent}starts by {start['at']} ({start['certainty']}) on {nodes}{more}"
    if start["cause"]:
        yield f"{indent}  not by {start['first']}, as promised before: {start['cause']}"


def _amounts(amounts: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in amounts.items())
