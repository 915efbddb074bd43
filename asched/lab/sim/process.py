"""One process of the scheduler in a simulated world: its machine, its streams, its connections.

    streams (late, broken) ──> inbox ─> machine ─> wire (lossy)

Built of production's own parts. With an election it acts while it leads, and takes in facts as a
standby otherwise. Whoever lost the lease is at its end: the world puts another one in its place.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Final

from asched.core.config.v1 import SchedulerConfiguration
from asched.core.cycle.machine import Machine
from asched.core.framework.effects import Bind, EmitEvent
from asched.core.framework.runner import Runner
from asched.core.model.kinds import KINDS, POD_GROUP
from asched.core.state.facts import Answer, Fact
from asched.edge.host.assemble import Parts, build_machine, build_runners
from asched.edge.host.inbox import Inbox
from asched.edge.host.user_plugins.catalogue import Catalogue
from asched.lab.sim.candidate import Candidate
from asched.lab.sim.streams import Stream
from asched.lab.sim.wire import Wire

if TYPE_CHECKING:
    from asched.lab.sim.world import World

#: The machine is woken this long after the first fact of a batch arrived.
WAKE_S: Final = 0.0005


@dataclass(frozen=True, slots=True)
class Setup:
    """What a process is started with."""

    configuration: SchedulerConfiguration
    catalogue: Catalogue
    seed: int
    bindings_max: int
    cycles_per_turn: int

    def runners(self, parts: Parts) -> dict[str, Runner]:
        """Runners without any memory, over what is known."""
        return build_runners(
            self.configuration,
            parts,
            factories=self.catalogue.factories,
            known=self.catalogue.known,
        )


class Process:
    """It lists everything and begins; `cut` is its death. `candidate` is None without election."""

    def __init__(self, world: "World", setup: Setup, name: str, *, is_elected: bool) -> None:
        self.name = name
        self.world = world
        self._clock = world.clock
        self._paused_until_s = 0.0
        self._is_woken = self._must_turn = False
        ticks = count()
        self.parts = Parts.fresh()
        self.machine: Machine = build_machine(
            setup.configuration,
            self.parts,
            setup.runners(self.parts),
            counter_s=lambda: next(ticks) * 0.0002 / setup.cycles_per_turn,
            seed=setup.seed,
            bindings_max=setup.bindings_max,
        )
        ctx, clock, troubles = world.server.ctx, world.clock, world.troubles
        self.inbox = Inbox(self._wake)
        self.wire = Wire(
            ctx,
            clock,
            troubles,
            hear=self._hear,
            on_bound=lambda bind, late: world.bound(bind, late=late, by_dead=not self.is_acting),
            extenders=world.extenders,
            may_send=lambda: self.may_act,
        )
        self._places: set[tuple[str, str]] = set()  # uid and node of bindings that left
        self.kinds = (*KINDS, POD_GROUP) if self.machine.context.tries_groups else KINDS
        self.streams = [Stream(kind, ctx, clock, troubles, self.inbox.put) for kind in self.kinds]
        self.candidate = Candidate(world, self) if is_elected else None

    def cut(self, late_s_max: float = 0.0) -> None:
        """The process dies: nothing more is heard, and requests under way arrive or do not."""
        self.wire.cut(late_s_max)
        for stream in self.streams:
            stream.close()
        if self.candidate is not None:
            self.candidate.is_over = True

    @property
    def is_acting(self) -> bool:
        """Whether this is the process whose decisions count."""
        return self is self.world.acting

    def cut_off(self, seconds: float) -> None:
        """The network between the process and the server fails for so long."""
        self.wire.cut_off(seconds)
        for stream in self.streams:
            stream.stall(seconds)

    @property
    def may_act(self) -> bool:
        """Whether nobody else can be leading."""
        return self.candidate is None or self.candidate.may_act()

    # --- turns -----------------------------------------------------------------------------------

    def pause(self, seconds: float) -> None:
        """The process stands still."""
        self._paused_until_s = max(self._paused_until_s, self._clock.now_s() + seconds)

    def when_awake(self, call: Callable[[], None]) -> None:
        """Make a call as soon as the process does not stand still."""
        wait_s = self._paused_until_s - self._clock.now_s()
        if wait_s > 0:
            self._clock.after(wait_s, lambda: self.when_awake(call))
        else:
            call()

    def deadline_s(self) -> float | None:
        """When the next turn is due; None if never."""
        deadline_s = self.machine.next_deadline_s()
        if self.inbox or self._must_turn:
            deadline_s = self._clock.now_s()
        return None if deadline_s is None else max(deadline_s, self._paused_until_s)

    def wake(self) -> None:
        """Take a turn although nothing arrived."""
        self._must_turn = True

    def turn(self) -> None:
        """One turn, as the serial loop of production takes it."""
        facts: list[Fact] = self.inbox.drain()
        self._is_woken = self._must_turn = False
        self.machine.is_active = self.may_act
        for effect in self.machine.handle(facts, self._clock.now_s()):
            if isinstance(effect, Bind):
                self._sends(effect)
            else:
                self.world.performs(self, effect)
            if not isinstance(effect, EmitEvent):
                self.wire.perform(effect)

    def _sends(self, bind: Bind) -> None:
        """A binding leaves the machine. Without the lease it is held back on the wire, and that is
        all right for one that is sent once more; a new one shows that the machine goes on.
        """
        place = bind.pod.uid, bind.node
        if self.may_act or place not in self._places:
            self.world.sends(self, bind)
        self._places.add(place)

    def _wake(self) -> None:
        if not self._is_woken:
            self._is_woken = True
            self._clock.after(WAKE_S, lambda: None)

    def _hear(self, answer: Answer) -> None:
        if self.is_acting:
            self.world.ledger.hears(answer)
        self.inbox.put(answer)
