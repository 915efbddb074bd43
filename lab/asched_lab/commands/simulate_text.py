"""The result of a simulation as text."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from asched.core.model.requests import CPU, MEMORY
from asched_lab.whatif.result import Place, Result, counted, differences
from asched_lab.whatif.room import Room

T = TypeVar("T")

#: Nodes and reasons that are named without `-o wide`.
NAMED_MAX: Final = 5
WAITED: Final = "pods that waited already"
MOVED: Final = "pods made in place of removed pods"
_UNITS: Final = ((1 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki"))


def result_lines(
    result: Result, other: Result | None = None, *, against: str = "", is_wide: bool = False
) -> Iterator[str]:
    """The lines to print."""
    if result.new_nodes:
        made = _many(len(result.new_nodes), "new node")
        yield f"{made}: {_some(result.new_nodes, is_wide=is_wide)}"
    for what, said in result.refused:
        yield f"refused: {what}: {said}"
    for note in result.notes:
        yield f"note: {note}"
    if not result.places:
        yield "no pod waits: nothing to schedule"
    for name, places in _grouped(result.places).items():
        yield from _group(name, places, is_wide=is_wide)
    if result.evicted:
        yield f"{_many(len(result.evicted), 'pod')} would be preempted"
        for pod, why in _first(result.evicted.items(), is_wide=is_wide):
            yield f"  {pod}{': ' + why if why else ''}"
    if result.lost:
        named = _some(result.lost, is_wide=is_wide)
        lost = _many(len(result.lost), "pod")
        yield f"{lost} would be lost, no controller recreates them: {named}"
    for budget, (allowed, count) in result.budgets.items():
        yield f"budget {budget} lets {_many(allowed, 'pod')} go, draining takes {count}"
    yield ""
    yield from _rooms(result)
    if is_wide:
        yield ""
        yield from _nodes(result)
    if other is not None:
        yield ""
        yield from _differences(result, other, against, is_wide=is_wide)


def _grouped(places: Iterable[Place]) -> dict[str, list[Place]]:
    groups: defaultdict[str, list[Place]] = defaultdict(list)
    for place in places:
        groups[place.asked or (MOVED if place.instead_of else WAITED)].append(place)
    return dict(sorted(groups.items(), key=lambda group: (group[0] in (MOVED, WAITED), group[0])))


def _group(name: str, places: list[Place], *, is_wide: bool) -> Iterator[str]:
    nodes = counted(places)
    count = nodes.total()
    where = f" on {_many(len(nodes), 'node')}" if count else ""
    waits = f", {len(places) - count} wait" if count < len(places) else ""
    yield f"{name}: {count} of {len(places)} placed{where}{waits}"
    if is_wide:
        for place in places:
            instead = f" (was {place.instead_of})" if place.instead_of else ""
            yield f"  {place.pod}{instead}  {place.node or '-'}  {place.why}".rstrip()
        return
    if count:
        listed = [f"{node} {pods}" for node, pods in nodes.most_common(NAMED_MAX)]
        yield f"  on {', '.join(listed)}{', ...' if len(nodes) > NAMED_MAX else ''}"
    reasons = Counter(place.why for place in places if not place.node)
    for why, pods in reasons.most_common(NAMED_MAX):
        yield f"  {pods} wait{'s' if pods == 1 else ''}: {why}"
    if len(reasons) > NAMED_MAX:
        more = _many(len(reasons) - NAMED_MAX, "more reason")
        yield f"  ... and {more}; -o wide has all"


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _rooms(result: Result) -> Iterator[str]:
    width = max((len(room.resource) for room in result.rooms), default=0)
    yield f"{'resource':{max(width, 8)}}  {'offered':>10}  {'before':>7}  {'after':>7}"
    for room in result.rooms:
        amount = spelt(room)
        shares = f"{room.before:7.1%}  {room.after:7.1%}"
        yield f"{room.resource:{max(width, 8)}}  {amount:>10}  {shares}"
    typical = result.typical
    if typical is not None:
        amounts = ((typical.cpu, f"{typical.cpu}m cpu"), (typical.memory, _bytes(typical.memory)))
        asked = [text for amount, text in amounts if amount > 1] or ["which asks for nothing"]
        yield (
            f"room for {typical.fits} more of the typical pod ({' and '.join(asked)}),"
            f" {typical.fits_in_one_piece} if it were in one piece:"
            f" fragmentation {typical.fragmentation:.1%}"
        )


def spelt(room: Room) -> str:
    """The allocatable amount in usual units."""
    if room.resource == CPU:
        return f"{room.offered / 1000:g}"
    is_bytes = room.resource == MEMORY or room.resource.endswith("storage")
    return _bytes(room.offered) if is_bytes else str(room.offered)


def _bytes(amount: int) -> str:
    for unit, name in _UNITS:
        if amount >= unit:
            return f"{amount / unit:.4g}{name}"
    return str(amount)


def _nodes(result: Result) -> Iterator[str]:
    names = [room.resource for room in result.rooms]
    width = max([len(node.node) for node in result.nodes] + [4])
    yield "  ".join([f"{'node':{width}}", "pods", " new", *(f"{name:>7}" for name in names)])
    for node in result.nodes:
        shares = [
            f"{node.shares[name]:>{max(len(name), 7)}.1%}" if name in node.shares else "-".rjust(7)
            for name in names
        ]
        closed = "" if node.is_open else "  closed"
        yield f"{node.node:{width}}  {node.pods:4d}  {node.new:4d}  {'  '.join(shares)}{closed}"


def _differences(result: Result, other: Result, against: str, *, is_wide: bool) -> Iterator[str]:
    found = differences(result, other)
    yield (
        f"against {against}: {len(other.placed)} placed and {len(other.pending)} wait there,"
        f" {len(result.placed)} and {len(result.pending)} here"
    )
    if not found:
        yield "every pod has the same place"
        return
    yield "1 pod differs" if len(found) == 1 else f"{len(found)} pods differ"
    for pod in _first(found, is_wide=is_wide):
        yield f"  {pod.pod}: {_or_nothing(pod.first)}, there {_or_nothing(pod.second)}"


def _or_nothing(place: str) -> str:
    return place or "is not there"


def _some(listed: list[str], *, is_wide: bool) -> str:
    more = ", ..." if len(listed) > NAMED_MAX and not is_wide else ""
    return ", ".join(_first(listed, is_wide=is_wide)) + more


def _first(listed: Iterable[T], *, is_wide: bool) -> list[T]:
    found = list(listed)
    return found if is_wide else found[:NAMED_MAX]
