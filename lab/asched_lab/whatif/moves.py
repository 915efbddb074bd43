"""Which pods Rebalance would move for the pods that wait in a snapshot.

The production machine receives the objects of the snapshot, with `dryRun` and without a wait, and
searches a plan for each unit that it rejects. Pods that fit are placed first; pods that may evict
less important ones get no plan, since preemption comes first.

Bounds  TURNS_MAX turns.
"""

import time
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from asched.batch.extensions import EXTENSIONS
from asched.batch.rebalance.search import MovePlan
from asched.batch.rebalance.units import RebalanceUnits
from asched.core.cluster.facts import Bound, Fact, Refused, Seen, WallClock
from asched.core.config.args import RebalanceArgs
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.framework.effects import Bind, Effect
from asched.core.model.decode import decode
from asched.core.model.kinds import BY_RESOURCE, NODE, POD
from asched.core.model.timestamp import seconds
from asched.host.assemble import Parts, build_machine, build_runners
from asched_lab.whatif.makers import NoPlanError
from asched_lab.whatif.snapshot import Snapshot
from asched_lab.whatif.world import START_S, Scheduler

TURNS_MAX: Final = 100_000
STEP_S: Final = 0.01
NO_PLUGIN: Final = "no profile of the configuration has the plugin Rebalance (--config)"


class UnitMoves(NamedTuple):
    """A unit that waits, and the plan for it; `why` there is none."""

    unit: str
    priority: int
    plan: MovePlan | None
    why: str


def find_moves(cluster: Snapshot, scheduler: Scheduler) -> list[UnitMoves]:
    """The plans for all units that wait, the most important first. Raises NoPlanError."""
    made = _dry(scheduler.configuration)
    parts, plugins = Parts.fresh(), scheduler.plugins
    runners = build_runners(made, parts, factories=plugins.factories, known=plugins.known)
    machine = build_machine(
        made,
        parts,
        runners,
        monotonic_s=lambda: 0.0,
        seed=scheduler.seed,
        extensions=EXTENSIONS,
    )
    ahead_s = seconds(cluster.taken, time.time()) - START_S
    now_s, facts = START_S, [WallClock(ahead_s), *_facts(cluster)]
    units = machine.context.cluster.singleton(RebalanceUnits)
    for _ in range(TURNS_MAX):
        answers: list[Fact] = []
        for effect in machine.handle(facts, now_s):
            answers += _answers(effect)
        facts = answers
        waits = [unit for unit in units.tracked.values() if not unit.was_searched]
        due_s = machine.next_deadline_s()
        if not facts and not waits and (due_s is None or due_s > now_s):
            break
        now_s = max(now_s + STEP_S, due_s or 0.0) if not facts else now_s + STEP_S
    found = [
        UnitMoves(_name(unit.key, unit.pod.key), unit.pod.priority, unit.plan, unit.text[2:])
        for unit in units.tracked.values()
    ]
    return sorted(found, key=lambda moves: (-moves.priority, moves.unit))


def _name(key: str, pod: str) -> str:
    return f"podgroup {key.rpartition(':')[2]}" if "/" in key else f"pod {pod}"


def _dry(configuration: SchedulerConfiguration) -> SchedulerConfiguration:
    """The same configuration, in which Rebalance only reports, and at once."""
    profiles, is_used = [], False
    for profile in configuration.profiles:
        entries = []
        for entry in profile.plugin_configs:
            args = entry.args
            if isinstance(args, RebalanceArgs):
                is_used = True
                entry = replace(entry, args=replace(args, dry_run=True, waiting_s=0))  # noqa: PLW2901
            entries.append(entry)
        profiles.append(replace(profile, plugin_configs=tuple(entries)))
    if not is_used:
        raise NoPlanError(NO_PLUGIN)
    return replace(configuration, profiles=tuple(profiles))


def _facts(cluster: Snapshot) -> list[Fact]:
    """All objects, nodes first and pods last."""
    kinds = {(kind.group_version, kind.name): kind for kind in BY_RESOURCE.values()}
    order = {NODE: 0, POD: 2}
    found: list[tuple[int, Fact]] = []
    for key, objects in cluster.objects.items():
        kind = kinds.get(key)
        for obj in objects if kind is not None else ():
            assert kind is not None
            found.append((order.get(kind, 1), Seen(kind, decode(kind.record, obj))))
    return [fact for _, fact in sorted(found, key=lambda entry: entry[0])]


def _answers(effect: Effect) -> list[Fact]:
    """Bindings succeed; all other writes are refused, as nothing is to change."""
    if isinstance(effect, Bind):
        return [Bound(effect.id)]
    return [Refused(effect.id, 0, "this is a dry run")] if effect.answers else []


def text_of(found: list[UnitMoves]) -> str:
    """What `asched plan --rebalance` prints."""
    lines = []
    for moves in found:
        head = f"{moves.unit} (priority {moves.priority})"
        if moves.plan is None:
            lines.append(f"{head}: {moves.why or 'no plan was searched'}")
            continue
        count = len(moves.plan.moves)
        lines.append(f"{head}: {count} {'move' if count == 1 else 'moves'}")
        lines += [
            f"  {move.pod.pod.key}  {move.pod.node_name} -> {move.node}"
            for move in moves.plan.moves
        ]
        lines += [f"  {info.pod.key}  -> {node}" for info, node in moves.plan.places]
    return "".join(f"{line}\n" for line in lines or ["no pod waits for want of room"])


def json_of(found: list[UnitMoves]) -> list[dict[str, Any]]:
    """The same as JSON."""
    return [
        {
            "unit": moves.unit,
            "priority": moves.priority,
            "why": moves.why if moves.plan is None else "",
            "moves": [
                {"pod": move.pod.pod.key, "from": move.pod.node_name, "to": move.node}
                for move in (moves.plan.moves if moves.plan is not None else ())
            ],
            "places": [
                {"pod": info.pod.key, "node": node}
                for info, node in (moves.plan.places if moves.plan is not None else ())
            ],
        }
        for moves in found
    ]
