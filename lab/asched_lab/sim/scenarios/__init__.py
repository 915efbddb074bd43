"""Scenarios, one file each, found by their name; incidents of the museum are among them."""

from typing import Final

from asched_lab.sim.museum import INCIDENTS
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.scenarios.activation_storm import ActivationStorm
from asched_lab.sim.scenarios.advisers import Advisers
from asched_lab.sim.scenarios.autoscaled import (
    Burst,
    GangAsksOnce,
    GangBurst,
    HeldAndEmpty,
    LateConsumers,
    QuotaFull,
)
from asched_lab.sim.scenarios.budgets import Budgets
from asched_lab.sim.scenarios.burning_server import BurningServer, Inferno
from asched_lab.sim.scenarios.busy_devices import BusyDevices
from asched_lab.sim.scenarios.churn import Churn
from asched_lab.sim.scenarios.contested import Contested
from asched_lab.sim.scenarios.dying_members import DyingMembers
from asched_lab.sim.scenarios.dying_scheduler import DyingScheduler
from asched_lab.sim.scenarios.even_spread import EvenSpread
from asched_lab.sim.scenarios.every_phase import EveryPhase
from asched_lab.sim.scenarios.gangs import Gangs
from asched_lab.sim.scenarios.group_room import GroupRoom
from asched_lab.sim.scenarios.held_places import HeldPlaces
from asched_lab.sim.scenarios.late_bindings import LateBindings
from asched_lab.sim.scenarios.late_volumes import LateVolumes
from asched_lab.sim.scenarios.leader_changes import LeaderChanges
from asched_lab.sim.scenarios.leader_first import LeaderFirst
from asched_lab.sim.scenarios.lost_events import LostEvents
from asched_lab.sim.scenarios.node_flapping import NodeFlapping
from asched_lab.sim.scenarios.old_names import OldNames
from asched_lab.sim.scenarios.permit_waits import PermitWaits
from asched_lab.sim.scenarios.preemptors import Preemptors
from asched_lab.sim.scenarios.promised_starts import PromisedStarts
from asched_lab.sim.scenarios.quotas import Quotas
from asched_lab.sim.scenarios.reloads import Reloads
from asched_lab.sim.scenarios.resized_gangs import ResizedGangs
from asched_lab.sim.scenarios.rivalry import Rivalry
from asched_lab.sim.scenarios.rolling_drain import RollingDrain
from asched_lab.sim.scenarios.side_by_side import SideBySide
from asched_lab.sim.scenarios.slow_volumes import SlowVolumes
from asched_lab.sim.scenarios.strangers_apart import StrangersApart
from asched_lab.sim.scenarios.vanishing_versions import VanishingVersions

_KINDS: Final[tuple[type[Scenario], ...]] = (
    RollingDrain,
    Churn,
    Rivalry,
    Contested,
    BurningServer,
    Inferno,
    DyingScheduler,
    Preemptors,
    StrangersApart,
    EvenSpread,
    LateBindings,
    LateVolumes,
    OldNames,
    LeaderChanges,
    NodeFlapping,
    PermitWaits,
    SideBySide,
    Reloads,
    BusyDevices,
    Advisers,
    SlowVolumes,
    Budgets,
    EveryPhase,
    Gangs,
    GroupRoom,
    PromisedStarts,
    Quotas,
    LostEvents,
    HeldPlaces,
    ActivationStorm,
    ResizedGangs,
    DyingMembers,
    LeaderFirst,
    VanishingVersions,
    Burst,
    GangBurst,
    GangAsksOnce,
    QuotaFull,
    HeldAndEmpty,
    LateConsumers,
    *INCIDENTS.values(),
)
SCENARIOS: Final[dict[str, type[Scenario]]] = {kind.__name__: kind for kind in _KINDS}
