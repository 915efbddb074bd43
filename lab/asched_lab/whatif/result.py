"""The result of a simulation: places, reasons, fullness; and the differences of two results."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from asched.batch.groups.incomplete import why_incomplete
from asched.core.cycle.context import SchedulerContext
from asched.names import PREFIX
from asched_lab.apiserver.resources import PODS as POD_RESOURCE
from asched_lab.whatif.changes import Applied
from asched_lab.whatif.fullness import Amounts, NodeRoom, Room, Typical, nodes, rooms, typical
from asched_lab.whatif.objects import Json
from asched_lab.whatif.world import World

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
