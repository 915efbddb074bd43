"""The result of a simulation: places, reasons, fullness; and the differences of two results.

Fullness is requests divided by allocatable resources; nodes that take no pods are left out of the
sums. Fragmentation is measured with a typical pod, whose requests are the means of all placed pods:
how many more of it the nodes would take as they are, and how many if all their free resources were
in one piece. `0.25` says that a quarter of the pods that fit by the sum find no node.

The picture is one self-contained SVG: a cell per node, the fullest first, coloured by its scarcest
resource; a bar at the foot of a cell marks new pods, a stroke through it a node that takes no pods.
Hovering over a cell shows its name. Colours go from light to dark in one hue, so that they can be
distinguished in print and by colour-blind readers.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import numpy.typing as npt

from asched.batch.groups.incomplete import why_incomplete
from asched.core.cluster.cluster import Cluster
from asched.core.cycle.context import SchedulerContext
from asched.core.model.requests import CPU, MEMORY, PODS
from asched.names import PREFIX
from asched_lab.apiserver.resources import PODS as POD_RESOURCE
from asched_lab.whatif.changes import Applied
from asched_lab.whatif.objects import Json
from asched_lab.whatif.world import World

#: Resource -> (offered, asked for).
Amounts = dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Room:
    """One resource over all nodes that take pods, in milli-CPU, bytes or whole units: allocatable
    and requested before the changes, and after the simulation.
    """

    resource: str
    offered_before: int
    asked_before: int
    offered: int
    asked: int

    @property
    def before(self) -> float:
        """The requested share."""
        return self.asked_before / self.offered_before if self.offered_before else 0.0

    @property
    def after(self) -> float:
        return self.asked / self.offered if self.offered else 0.0


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """One node: the requested share of each resource at the end, its pods, and the new pods among
    them.
    """

    node: str
    shares: dict[str, float]
    pods: int
    new: int
    is_open: bool


@dataclass(frozen=True, slots=True)
class Typical:
    """The mean pod: its requests, how many more fit node by node and by the sum."""

    cpu: int
    memory: int
    fits: int
    fits_in_one_piece: int

    @property
    def fragmentation(self) -> float:
        """0 to 1; 0 where no more pods fit."""
        whole = self.fits_in_one_piece
        return 0.0 if not whole else 1.0 - self.fits / whole


def amounts(cluster: Cluster) -> Amounts:
    """Sums over the nodes that take pods."""
    read, height = cluster.nodes.columns.read, cluster.nodes.height
    is_open = read("live")[:height] & ~read("unschedulable")[:height]

    def total(column: npt.NDArray[np.int64]) -> int:
        return int(column[:height][is_open].sum())

    found = {
        name: (total(read("allocatable")[at]), total(read("requested")[at]))
        for name, at in _axis(cluster)
    }
    return {**found, PODS: (total(read("allowed_pods")), total(read("pod_count")))}


def _axis(cluster: Cluster) -> list[tuple[str, int]]:
    """Resources with their places on axis R."""
    nodes = cluster.nodes
    named = [str(name) for name in nodes.resources.values if name]
    found = [(name, nodes.find_resource(name)) for name in named]
    return [(name, at) for name, at in found if at is not None]


def rooms(cluster: Cluster, before: Amounts) -> list[Room]:
    after = amounts(cluster)
    nothing = (0, 0)
    found = [
        Room(name, *before.get(name, nothing), *after.get(name, nothing))
        for name in sorted(after.keys() | before.keys(), key=_order)
    ]
    return [room for room in found if room.offered or room.offered_before]


def _order(name: str) -> tuple[int, str]:
    first = (CPU, MEMORY, PODS)
    return (first.index(name) if name in first else len(first)), name


def nodes(cluster: Cluster, new: Mapping[str, int]) -> list[NodeRoom]:
    """Each node by name; `new`: number of pods that the simulation placed there."""
    table = cluster.nodes
    read, axis = table.columns.read, _axis(cluster)
    found = []
    for row, node in table.nodes():
        shares = {}
        for name, at in axis:
            offered = int(read("allocatable")[at, row])
            if offered:
                shares[name] = round(int(read("requested")[at, row]) / offered, 4)
        allowed, count = int(read("allowed_pods")[row]), int(read("pod_count")[row])
        if allowed:
            shares[PODS] = round(count / allowed, 4)
        ordered = {name: shares[name] for name in sorted(shares, key=_order)}
        is_open = not node.spec.unschedulable
        found.append(NodeRoom(node.name, ordered, count, new.get(node.name, 0), is_open))
    return sorted(found, key=lambda node: node.node)


def typical(cluster: Cluster) -> Typical | None:
    placed = [info for info in cluster.placed.values() if info.row >= 0]
    table = cluster.nodes
    if not placed or not table.count:
        return None
    means = [
        max(round(sum(info.cls.accounted.get(name, 0) for info in placed) / len(placed)), 1)
        for name in (CPU, MEMORY)
    ]
    height, read = table.height, table.columns.read
    takes = read("live")[:height] & ~read("unschedulable")[:height]
    free = [
        np.maximum(read("allocatable")[at, :height] - read("requested")[at, :height], 0)[takes]
        for at in (0, 1)
    ]
    slots = np.maximum(read("allowed_pods")[:height] - read("pod_count")[:height], 0)[takes]
    fits = np.minimum(np.minimum(free[0] // means[0], free[1] // means[1]), slots)
    whole = min(int(free[0].sum()) // means[0], int(free[1].sum()) // means[1], int(slots.sum()))
    return Typical(means[0], means[1], int(fits.sum()), whole)


#: Why a pod waits without an attempt.
HELD: Final = "held by scheduling gates: {}"
NOT_OURS: Final = "no profile is called {}"
NEVER: Final = "was not tried"


@dataclass(frozen=True, slots=True)
class Place:
    """A pod with its node ("" for none, then `why`). `asked`: the workload that the scenario
    added, "" for pods that waited already or were made in place of `instead_of`.
    """

    pod: str
    node: str
    why: str = ""
    asked: str = ""
    instead_of: str = ""


@dataclass(slots=True)
class Result:
    """`evicted`: pods that were preempted, with what their events say. `lost`: pods that left and
    that no controller recreates.
    """

    places: list[Place] = field(default_factory=list)
    evicted: dict[str, str] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    new_nodes: list[str] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    budgets: dict[str, tuple[int, int]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    rooms: list[Room] = field(default_factory=list)
    nodes: list[NodeRoom] = field(default_factory=list)
    typical: Typical | None = None

    @property
    def placed(self) -> list[Place]:
        return [place for place in self.places if place.node]

    @property
    def pending(self) -> list[Place]:
        return [place for place in self.places if not place.node]

    @property
    def refused_whole(self) -> list[str]:
        """Objects that were refused and have no pods; a quota may refuse a part of the pods."""
        with_pods = {place.asked for place in self.places}
        return [what for what, _ in self.refused if what not in with_pods]

    def reasons(self) -> Counter[str]:
        """Reasons why pods wait, with the number of pods for each."""
        return Counter(place.why for place in self.pending)

    def document(self) -> Json:
        """The result as JSON for programs."""
        body: Json = {
            "apiVersion": f"{PREFIX}/v1",
            "kind": "Simulation",
            "placed": len(self.placed),
            "pending": len(self.pending),
            "pods": [_camel(asdict(place)) for place in self.places],
            "evicted": [{"pod": pod, "why": why} for pod, why in self.evicted.items()],
            "lost": self.lost,
            "newNodes": self.new_nodes,
            "refused": [{"object": what, "message": said} for what, said in self.refused],
            "budgetsBroken": [
                {"budget": name, "allowed": allowed, "evicted": count}
                for name, (allowed, count) in self.budgets.items()
            ],
            "notes": self.notes,
            "resources": [_camel(asdict(room)) for room in self.rooms],
            "nodes": [_camel(asdict(node)) for node in self.nodes],
        }
        if self.typical is not None:
            mean = _camel(asdict(self.typical))
            body["typicalPod"] = {**mean, "fragmentation": round(self.typical.fragmentation, 4)}
        return body


def _camel(fields: Mapping[str, Any]) -> Json:
    """Names as the API spells them; empty fields are left out, except nodes and pods."""
    renamed = {}
    for name, value in fields.items():
        first, *rest = name.split("_")
        if value != "" or name in ("node", "pod"):
            renamed[first + "".join(map(str.capitalize, rest))] = value
    return renamed


def result_of(
    world: World, applied: Applied, before: Mapping[str, str], amounts_before: Amounts
) -> Result:
    """Collect the result. `before`: pods as they stood in the snapshot, with their nodes."""
    went = world.hands.went
    made_for = {fresh: old for old, fresh in went.items() if fresh}
    result = Result(
        new_nodes=applied.made.nodes,
        refused=applied.made.refused,
        budgets=applied.budgets,
        notes=applied.made.notes,
    )
    for pod in world.store.listed(POD_RESOURCE):
        key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        node = pod["spec"].get("nodeName", "")
        if before.get(key) and key not in made_for and key not in applied.made.asked:
            continue  # unchanged
        if node and key not in world.bound:
            continue  # placed on its node by a change
        why = "" if node else _why(pod, world.machine.context)
        asked = applied.made.asked.get(key, "")
        result.places.append(Place(key, node, why, asked, made_for.get(key, "")))
    result.evicted = world.preempted
    result.lost = sorted(key for key in applied.left if not went.get(key))
    cluster = world.machine.context.cluster
    result.rooms = rooms(cluster, amounts_before)
    result.nodes = nodes(cluster, Counter(world.bound.values()))
    result.typical = typical(cluster)
    return result


def _why(pod: Json, context: SchedulerContext) -> str:
    gates = [gate["name"] for gate in pod["spec"].get("schedulingGates") or ()]
    if gates:
        return HELD.format(", ".join(gates))
    name = pod["spec"].get("schedulerName", "")
    if name not in context.runners:
        return NOT_OURS.format(name)
    messages = [
        str(c.get("message", ""))
        for c in pod["status"].get("conditions") or ()
        if c["type"] == "PodScheduled" and c["status"] == "False"
    ]
    key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    return messages[0] if messages else _behind_a_gate(key, context) or NEVER


def _behind_a_gate(key: str, context: SchedulerContext) -> str:
    """Which gate keeps a pod from being tried; empty if none does."""
    queued = context.queue.places.get(key)
    if queued is None or not queued.is_gated:
        return ""
    if queued.gang and (lacks := why_incomplete(context, queued.gang)):
        return lacks
    return f"the plugin {queued.gated_by} keeps it from being tried"


# --- differences ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Difference:
    """One pod for which two schedulers decide differently: node, or why it waits, in each."""

    pod: str
    first: str
    second: str


def differences(first: Result, second: Result) -> list[Difference]:
    """Pods of either result whose place differs. Pods of one workload are interchangeable: only the
    number of them on each node counts.
    """
    found: list[Difference] = []
    first_groups, second_groups = _by_workload(first), _by_workload(second)
    for name in sorted(first_groups.keys() | second_groups.keys()):
        places, other_places = first_groups.get(name, {}), second_groups.get(name, {})
        surplus = Counter(places.values()) - Counter(other_places.values())
        missing = list((Counter(other_places.values()) - Counter(places.values())).elements())
        for pod in sorted(places.keys() | other_places.keys()):
            place = places.get(pod, "")
            if surplus[place] > 0:
                surplus[place] -= 1
                found.append(Difference(pod, place, missing.pop(0) if missing else ""))
    return found


def _by_workload(result: Result) -> dict[str, dict[str, str]]:
    grouped: dict[str, dict[str, str]] = {}
    for place in result.places:
        outcome = place.node or f"waits: {place.why}"
        grouped.setdefault(place.asked or place.pod, {})[place.pod] = outcome
    return grouped


def counted(places: Iterable[Place]) -> Counter[str]:
    """Pods by node."""
    return Counter(place.node for place in places if place.node)


WIDTH: Final = 960
MARGIN: Final = 24
#: Sides of a cell, in pixels, for up to so many nodes.
SIZES: Final = ((60, 64), (250, 40), (1000, 24), (5000, 12))
SMALLEST: Final = 6
GAP: Final = 2
#: Cells this large carry their node's name and figure.
NAMED_FROM: Final = 40
SHADES: Final = ("#eff3ff", "#c6dbef", "#9ecae1", "#6baed6", "#3182bd", "#08519c", "#08306b")
#: Text on these is white.
DARK_FROM: Final = 4
NEW: Final = "#d55e00"
BAR_WIDTH: Final = 320
REASONS_MAX: Final = 6
REASON_LETTERS: Final = 140
LINE: Final = 20


def picture(title: str, result: Result) -> str:
    """Draw the whole SVG."""
    parts, y = _head(title, result), 64
    for room in result.rooms:
        parts += _bar(room.resource, room.before, room.after, y)
        y += LINE
    y += LINE
    nodes = sorted(result.nodes, key=lambda node: (-_fullness(node), node.node))
    size = next((side for most, side in SIZES if len(nodes) <= most), SMALLEST)
    columns = max((WIDTH - 2 * MARGIN) // (size + GAP), 1)
    for index, node in enumerate(nodes):
        left = MARGIN + index % columns * (size + GAP)
        parts += _cell(node, left, y + index // columns * (size + GAP), size)
    y += (-(-len(nodes) // columns)) * (size + GAP) + LINE
    parts += _legend(y)
    y += 2 * LINE
    for why, count in result.reasons().most_common(REASONS_MAX):
        summary = why if len(why) <= REASON_LETTERS else f"{why[:REASON_LETTERS]}..."
        parts.append(_text(MARGIN, y, f"{count} wait: {summary}"))
        y += LINE
    height = y + MARGIN
    label = quoteattr(f"{title}: {len(result.placed)} placed, {len(result.pending)} wait")
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"'
        f' viewBox="0 0 {WIDTH} {height}" role="img" aria-label={label}'
        ' font-family="sans-serif" font-size="12">'
    )
    paper = f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>'
    return "\n".join([opening, paper, *parts, "</svg>", ""])


def _head(title: str, result: Result) -> list[str]:
    waits = f", {len(result.pending)} wait" if result.pending else ""
    evicted = f", {len(result.evicted)} evicted" if result.evicted else ""
    summary = f"{len(result.placed)} pods placed{waits}{evicted}, {len(result.nodes)} nodes"
    return [_text(MARGIN, 26, title, size=15), _text(MARGIN, 46, summary)]


def _text(x: int, y: float, text: str, *, size: int = 12, colour: str = "#222222") -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}">{escape(text)}</text>'


def _bar(name: str, before: float, after: float, y: int) -> list[str]:
    """Requests before the changes, and what is added to them."""
    left = MARGIN + 220
    was, now = (BAR_WIDTH * min(share, 1.0) for share in (before, after))
    rest = f'<rect y="{y - 10}" height="12"'
    return [
        _text(MARGIN, y, name),
        f'{rest} x="{left}" width="{BAR_WIDTH}" fill="#eeeeee"/>',
        f'{rest} x="{left}" width="{now:.1f}" fill="{NEW if after > before else SHADES[3]}"/>',
        f'{rest} x="{left}" width="{min(was, now):.1f}" fill="{SHADES[4]}"/>',
        _text(left + BAR_WIDTH + 12, y, f"{before:.1%} before, {after:.1%} after"),
    ]


def _fullness(node: NodeRoom) -> float:
    return max(node.shares.values(), default=0.0)


def _cell(node: NodeRoom, x: int, y: int, size: int) -> list[str]:
    full = _fullness(node)
    level = min(int(full * len(SHADES)), len(SHADES) - 1)
    shares = [f"{name} {share:.0%}" for name, share in node.shares.items()]
    new = f", {node.new} new" if node.new else ""
    state = "" if node.is_open else ", takes no pods"
    title = f"{node.node}: {', '.join(shares)}; {node.pods} pods{new}{state}"
    place, fill = f'x="{x}" y="{y}" width="{size}" height="{size}"', SHADES[level]
    parts = [
        f"<g><title>{escape(title)}</title>",
        f'<rect {place} fill="{fill}" stroke="#cccccc"/>',
    ]
    if node.new:
        foot = max(size // 8, 2)
        parts.append(
            f'<rect x="{x}" y="{y + size - foot}" width="{size}" height="{foot}" fill="{NEW}"/>'
        )
    if not node.is_open:
        parts.append(f'<line x1="{x}" y1="{y + size}" x2="{x + size}" y2="{y}" stroke="#222222"/>')
    if size >= NAMED_FROM:
        colour = "#ffffff" if level >= DARK_FROM else "#222222"
        letters = size // 7
        name = node.node if len(node.node) <= letters else f"…{node.node[1 - letters :]}"
        parts.append(_text(x + 4, y + 14, name, size=10, colour=colour))
        parts.append(_text(x + 4, y + 28, f"{full:.0%}", size=11, colour=colour))
    return [*parts, "</g>"]


def _legend(y: int) -> list[str]:
    parts = [_text(MARGIN, y, "asked for, of the scarcest resource:")]
    for index, shade in enumerate(SHADES):
        left = MARGIN + 220 + index * 64
        parts.append(
            f'<rect x="{left}" y="{y - 10}" width="12" height="12" fill="{shade}"'
            ' stroke="#cccccc"/>'
        )
        parts.append(_text(left + 16, y, f"{index / len(SHADES):.0%}"))
    left = MARGIN + 220 + len(SHADES) * 64
    parts.append(f'<rect x="{left}" y="{y - 1}" width="12" height="3" fill="{NEW}"/>')
    parts.append(_text(left + 16, y, "new pods; struck through: takes none"))
    return parts
