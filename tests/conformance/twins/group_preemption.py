"""Making room for a pod group, read plainly: everybody less important gone, then put back singly.

First-fit machines, whole numbers, copies instead of undoing; by the rules of kube-scheduler v1.36's
podgrouppreemption.go. Who is less important and leaves anyway is gone, as asched has it.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    name: str
    cpu: int
    pods: int


@dataclass(frozen=True)
class Member:
    """One that waits. `port` 0: none."""

    cpu: int
    port: int = 0


@dataclass(frozen=True)
class Team:
    name: str
    priority: int
    is_whole: bool


@dataclass(frozen=True)
class Running:
    """`team` None: by itself. `start` in minutes. `app`: what budgets go by."""

    name: str
    machine: str
    cpu: int
    priority: int
    team: Team | None = None
    start: int = 0
    app: str = ""
    port: int = 0
    is_leaving: bool = False


def fits(
    machines: Sequence[Machine], running: Sequence[Running], members: Sequence[Member], needed: int
) -> bool:
    held = {
        machine.name: [(r.cpu, r.port) for r in running if r.machine == machine.name]
        for machine in machines
    }
    count = 0
    for member in members:
        for machine in machines:
            there = held[machine.name]
            if (
                len(there) < machine.pods
                and sum(cpu for cpu, _ in there) + member.cpu <= machine.cpu
                and not (member.port and member.port in [port for _, port in there])
            ):
                there.append((member.cpu, member.port))
                count += 1
                break
    return count >= needed


def line_of(
    running: Sequence[Running], priority: int, budgets: dict[str, int]
) -> list[list[Running]]:
    """Who may have to go, in the order in which they are put back."""
    units: list[list[Running]] = []
    teams: dict[str, list[Running]] = {}
    for r in running:
        if r.team is not None and r.team.is_whole:
            teams.setdefault(r.team.name, []).append(r)
        elif r.priority < priority:
            units.append([r])
    for unit in teams.values():
        team = unit[0].team
        if team is not None and team.priority < priority:
            units.append(unit)

    def importance(unit: list[Running]) -> tuple[int, bool, int, int, str]:
        team = unit[0].team
        own = team.priority if team is not None and team.is_whole else unit[0].priority
        size = 0 if team is None else len(unit)
        return -own, team is None, -size, min(r.start for r in unit), unit[0].name

    units.sort(key=importance)
    units = [unit for unit in units if not all(r.is_leaving for r in unit)]
    left = dict(budgets)
    violating, others = [], []
    for unit in units:
        (violating if _violates(unit, left) else others).append(unit)
    return violating + others


def _violates(unit: list[Running], left: dict[str, int]) -> bool:
    for r in unit:
        if r.app in left:
            left[r.app] -= 1
            if left[r.app] < 0:
                return True
    return False


def evicted(
    machines: Sequence[Machine],
    running: Sequence[Running],
    members: Sequence[Member],
    needed: int,
    priority: int,
    line: list[list[Running]],
) -> list[list[Running]] | None:
    """The units that have to go; None if that would not help."""
    in_line = [r for unit in line for r in unit]
    there = [r for r in running if r not in in_line and not _goes_anyway(r, running, priority)]
    if not fits(machines, there, members, needed):
        return None
    gone = []
    for unit in line:
        if fits(machines, [*there, *unit], members, needed):
            there += unit
        else:
            gone.append(unit)
    return gone


def _goes_anyway(one: Running, running: Sequence[Running], priority: int) -> bool:
    """A pod that leaves takes its unit along only if all of that leaves."""
    if one.team is None or not one.team.is_whole:
        return one.is_leaving and one.priority < priority
    leave = [r.is_leaving for r in running if r.team == one.team]
    return all(leave) and one.team.priority < priority
