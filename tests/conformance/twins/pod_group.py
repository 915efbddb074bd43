"""A pod group's cycle, read plainly: first-fit machines, whole numbers, copies instead of undoing.

The rules are those of kube-scheduler v1.36's schedule_one_podgroup.go, topologyaware,
podgrouppodscount and noderesources, for pods that differ in cpu and memory only and for a score
that prefers machines in the order in which they are listed. Unlike upstream, members of a lower
priority than the first one have a turn of their own once the group has its minimum.
"""

from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field, replace

WAITS = (
    "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, one or more"
    " plugins asked to wait and no plugin rejected pod"
)
SCHEDULED = ("Scheduled", "")


@dataclass
class Machine:
    name: str
    zone: str
    cpu: int
    memory: int
    pods: int
    held: list[tuple[int, int]] = field(default_factory=list)

    def objections(self, cpu: int, memory: int) -> list[str]:
        found = []
        if len(self.held) >= self.pods:
            found.append("Too many pods")
        if sum(c for c, _ in self.held) + cpu > self.cpu:
            found.append("Insufficient cpu")
        if sum(m for _, m in self.held) + memory > self.memory:
            found.append("Insufficient memory")
        return found


@dataclass(frozen=True)
class Member:
    name: str
    cpu: int
    memory: int
    priority: int


@dataclass(frozen=True)
class Group:
    """`min_count` None: no gang. `zone_of_others`: where pods of the group are already."""

    min_count: int | None
    by_zone: bool
    placed: int = 0
    zone_of_others: str | None = None


@dataclass(frozen=True)
class Answer:
    """One right outcome. `nodes`: who is bound where; `said`: what the others hear."""

    nodes: dict[str, str]
    said: dict[str, str]
    condition: tuple[str, str]


def answers(machines: list[Machine], group: Group, members: list[Member]) -> list[Answer]:
    """Every right outcome; several only where the choice between placements is a tie."""
    found = []
    for first in _first_turn(machines, group, members):
        left = [m for m in members if m.name not in first.nodes and m.name not in first.said]
        if not left:
            found.append(first)
            continue
        priority = left[0].priority
        again = [m for m in members if m.priority == priority and m.name not in first.nodes]
        then, placed = deepcopy(machines), [m for m in members if m.name in first.nodes]
        for machine in then:
            machine.held += [
                (m.cpu, m.memory) for m in placed if first.nodes[m.name] == machine.name
            ]
        zones = [machine.zone for machine in then if machine.name in first.nodes.values()]
        zone = zones[0] if zones else group.zone_of_others
        rest = replace(group, placed=group.placed + len(placed), zone_of_others=zone)
        for more in answers(then, rest, again):
            nodes, said = {**first.nodes, **more.nodes}, {**first.said, **more.said}
            words = {name: text for name, text in said.items() if name not in nodes}
            condition = SCHEDULED if first.condition == SCHEDULED else more.condition
            found.append(Answer(nodes, words, condition))
    return found


def _first_turn(machines: list[Machine], group: Group, members: list[Member]) -> list[Answer]:
    members = sorted(members, key=lambda m: -m.priority)
    if not group.by_zone:
        return [_answer(_tried(machines, group, members), "pod group is unschedulable")]
    zones = sorted({machine.zone for machine in machines if machine.zone})
    if group.zone_of_others is not None:
        zones = [zone for zone in zones if zone == group.zone_of_others]
    if not zones:
        nowhere = "no feasible placements found"
        return [Answer({}, {m.name: nowhere for m in members}, ("Unschedulable", nowhere))]
    parts = {zone: [m for m in machines if m.zone == zone] for zone in zones}
    trials = {zone: _tried(parts[zone], group, members) for zone in zones}
    good = {zone: trial for zone, trial in trials.items() if trial[2]}
    if not good:
        said = (
            f"0/{len(zones)} placements are available, first placement status:"
            " pod group is unschedulable"
        )
        return [_answer(trials[zones[0]], said)]
    most = max(group.placed + len(trial[0]) for trial in good.values())
    totals = {
        zone: (group.placed + len(trial[0])) * 100 // most
        + _fullness(parts[zone], [m for m in members if m.name in trial[0]])
        for zone, trial in good.items()
    }
    best = max(totals.values())
    return [_answer(good[zone], "") for zone, total in totals.items() if total == best]


Trial = tuple[dict[str, str], dict[str, str], bool]


def _tried(machines: list[Machine], group: Group, members: list[Member]) -> Trial:
    """(who would be where, what the others hear, whether the group is schedulable)."""
    machines = deepcopy(machines)
    nodes: dict[str, str] = {}
    said: dict[str, str] = {}
    is_schedulable = False
    for member in members:
        has_minimum = group.placed + len(nodes) >= (group.min_count or 0)
        if has_minimum and member.priority < members[0].priority:
            continue
        reasons: Counter[str] = Counter()
        for machine in machines:
            against = machine.objections(member.cpu, member.memory)
            if not against:
                machine.held.append((member.cpu, member.memory))
                nodes[member.name] = machine.name
                break
            reasons.update(against)
        else:
            told = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
            said[member.name] = f"0/{len(machines)} nodes are available: {told}."
            continue
        there = group.placed + len(nodes)
        is_schedulable |= group.min_count is None or there >= group.min_count
    return nodes, said, is_schedulable


def _answer(trial: Trial, condition: str) -> Answer:
    nodes, said, is_schedulable = trial
    if is_schedulable:
        return Answer(nodes, said, SCHEDULED)
    waiting = dict.fromkeys(nodes, WAITS)
    return Answer({}, {**said, **waiting}, ("Unschedulable", condition))


def _fullness(machines: list[Machine], members: list[Member]) -> int:
    """The mean of the shares of cpu and memory in use, each rounded down."""
    shares = []
    for at, offered in enumerate((sum(m.cpu for m in machines), sum(m.memory for m in machines))):
        held = sum(pod[at] for machine in machines for pod in machine.held)
        held += sum((member.cpu, member.memory)[at] for member in members)
        shares.append(min(held, offered) * 100 // offered)
    return sum(shares) // 2
