"""Scenarios, one file each, found by their name; the museum's are among them."""

from typing import Final

from asched.lab.sim.museum import INCIDENTS
from asched.lab.sim.scenario import Scenario
from asched.lab.sim.scenarios.activation_storm import ActivationStorm
from asched.lab.sim.scenarios.advisers import Advisers
from asched.lab.sim.scenarios.budgets import Budgets
from asched.lab.sim.scenarios.burning_server import BurningServer, Inferno
from asched.lab.sim.scenarios.busy_devices import BusyDevices
from asched.lab.sim.scenarios.churn import Churn
from asched.lab.sim.scenarios.contested import Contested
from asched.lab.sim.scenarios.drivers import Drivers
from asched.lab.sim.scenarios.dying_members import DyingMembers
from asched.lab.sim.scenarios.dying_scheduler import DyingScheduler
from asched.lab.sim.scenarios.even_spread import EvenSpread
from asched.lab.sim.scenarios.every_phase import EveryPhase
from asched.lab.sim.scenarios.gangs import Gangs
from asched.lab.sim.scenarios.group_room import GroupRoom
from asched.lab.sim.scenarios.held_places import HeldPlaces
from asched.lab.sim.scenarios.late_bindings import LateBindings
from asched.lab.sim.scenarios.late_volumes import LateVolumes
from asched.lab.sim.scenarios.leader_changes import LeaderChanges
from asched.lab.sim.scenarios.leader_first import LeaderFirst
from asched.lab.sim.scenarios.lost_events import LostEvents
from asched.lab.sim.scenarios.node_flapping import NodeFlapping
from asched.lab.sim.scenarios.old_names import OldNames
from asched.lab.sim.scenarios.permit_waits import PermitWaits
from asched.lab.sim.scenarios.preemptors import Preemptors
from asched.lab.sim.scenarios.promised_starts import PromisedStarts
from asched.lab.sim.scenarios.quotas import Quotas
from asched.lab.sim.scenarios.reloads import Reloads
from asched.lab.sim.scenarios.resized_gangs import ResizedGangs
from asched.lab.sim.scenarios.rivalry import Rivalry
from asched.lab.sim.scenarios.rolling_drain import RollingDrain
from asched.lab.sim.scenarios.side_by_side import SideBySide
from asched.lab.sim.scenarios.slow_volumes import SlowVolumes
from asched.lab.sim.scenarios.strangers_apart import StrangersApart
from asched.lab.sim.scenarios.vanishing_versions import VanishingVersions

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
    Drivers,
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
    *INCIDENTS.values(),
)
SCENARIOS: Final[dict[str, type[Scenario]]] = {kind.__name__: kind for kind in _KINDS}
