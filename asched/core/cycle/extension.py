"""Where features that schedule several pods as a unit, or over time, meet the scheduling cycle.

    a pod is popped      unit, schedule      make a unit of it and of other pods, and try that
    a node is searched   place               search somewhere else than `Runner.schedule` does
    none is found        rejected            what to add to the condition
    one is reserved      placed
    a turn begins        begin_turn          events, and work that runs beside attempts
    an attempt begins    refresh             bring own records up to date
    the loop may sleep   next_deadline_s
    a dry run at pop     lacks_places, yields_to, yields_places

The machine, the cycle and dry runs know features by this class only; `asched/batch` has them all. A
profile that uses none costs a pod one test for emptiness at each of these places.

An exception in `begin_turn` or `next_deadline_s` is reported, and the extension is left out for a
pause that doubles each time. One elsewhere costs the unit its attempt, as one of a plugin does.
"""

from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Final, NamedTuple, Protocol

from asched.core.cycle.context import Attempt, SchedulerContext
from asched.core.framework.attempt import Rejection
from asched.core.framework.effects import Effect
from asched.core.framework.placements import Mask
from asched.core.framework.runner import Decision, Runner
from asched.core.framework.status import MISTAKES
from asched.core.model.pod import Pod
from asched.core.queue.queued import QueuedPod
from asched.core.state.facts import Answer
from asched.core.state.pods import PodInfo

PAUSE_S: Final = 1.0
PAUSE_S_MAX: Final = 60.0

#: A generator of effects, sent their answers.
Steps = Generator[Effect, Answer, Any]
Finding = Generator[Effect, Answer, Decision | Rejection]


class Work(NamedTuple):
    """Steps to be run beside attempts. `decides`: they place pods, as an attempt does."""

    steps: Steps
    decides: bool


class SchedulingUnit(Protocol):
    """Pods that are tried together. `pod`, `id` and `started_s` are those of the popped one."""

    key: str
    id: int
    pod: Pod
    started_s: float

    @property
    def consults(self) -> bool:
        """Whether extenders are asked."""

    @property
    def takes_long(self) -> bool:
        """Whether other pods have their turn before it is begun."""

    @property
    def is_gathering(self) -> bool:
        """Whether some of its pods have still to be taken from the queue."""


class Extension(Protocol):
    """Base of all extensions. What one does not override is not called."""

    #: what reports and metrics call it
    name: ClassVar[str]
    context: SchedulerContext

    def __init__(self, context: SchedulerContext) -> None:
        self.context = context

    def is_used(self) -> bool:
        """Whether a profile uses it. Asked at the start and after a reload; once used, it stays."""

    def unit(self, popped: Attempt, begin: Callable[[QueuedPod], Attempt | None]) -> SchedulingUnit:
        """The unit of a popped pod that is not tried by itself. `begin` makes the attempts at its
        other pods.
        """

    def schedule(self, unit: SchedulingUnit) -> Steps:
        """Try a unit of its own; returns what follows, as bindings."""

    def lacks_places(self, runner: Runner, queued: QueuedPod, version: Hashable) -> bool:
        """Whether an attempt at the unit of a waiting pod is sure to fail. `version` moves with
        whatever filters read. Raises PointError, OutOfTurn.
        """

    def place(self, attempt: Attempt, within: Mask | None) -> Finding:
        """Find a node as `Runner.schedule` does, and raise as it does. `within` bool[N]: only on
        these rows.
        """

    def yields_to(self, priority: int) -> bool:
        """Whether places are kept that pods of this priority may get."""

    def yields_places(self, pod: PodInfo, rejection: Rejection) -> bool:
        """Whether, by amounts, a rejected pod fits where places are kept that it may get."""

    def rejected(self, attempts: Sequence[Attempt]) -> Generator[Effect, Answer, str]:
        """A unit found no place, and no nomination: what to add to its pods' condition."""

    def placed(self, pod: Pod) -> None:
        """A unit has its place; `pod` is any of its pods."""

    def refresh(self, *, may_decide: bool) -> None:
        """Called before each attempt, and in turns in which nothing may be decided."""

    def begin_turn(self) -> Iterable[Effect | Work]:
        """What is to be sent or run; called once in a turn in which attempts may be made."""

    def next_deadline_s(self) -> float | None:
        """When `begin_turn` has something to do by itself, in seconds of turns."""
        return None


class Extensions:
    """Those that profiles use, by what they override. Raises ValueError if two of them make units,
    or place.
    """

    def __init__(self, context: SchedulerContext, kinds: Iterable[type[Extension]]) -> None:
        self._all = tuple([kind(context) for kind in kinds])
        self._used: list[Extension] = []
        self.turns: tuple[ExtensionTurn, ...] = ()
        self.follow_profiles()

    def follow_profiles(self) -> None:
        """Take in those that profiles use now."""
        used = [one for one in self._all if one in self._used or one.is_used()]
        self._used = used
        self.units = _only("unit", used)
        placer = _only("place", used)
        self.place = None if placer is None else placer.place
        self.rejected = tuple([one.rejected for one in _with("rejected", used)])
        self.placed = tuple([one.placed for one in _with("placed", used)])
        self.refresh = tuple([one.refresh for one in _with("refresh", used)])
        self.yielding = tuple(_with("yields_to", used))
        known = {turn.extension: turn for turn in self.turns}
        self.turns = tuple(
            [known.get(one) or ExtensionTurn(one) for one in _with("begin_turn", used)]
        )

    def yields_to(self, priority: int) -> bool:
        return any(one.yields_to(priority) for one in self.yielding)

    def yields_places(self, pod: PodInfo, rejection: Rejection) -> bool:
        return any(one.yields_places(pod, rejection) for one in self.yielding)


class ExtensionTurn:
    """What an extension does once a turn, contained."""

    __slots__ = ("_pause_s", "_paused_until_s", "extension")

    def __init__(self, extension: Extension) -> None:
        self.extension = extension
        self._pause_s = self._paused_until_s = 0.0

    def begin(self) -> Iterator[Effect | Work]:
        if self._pause_s and self.extension.context.now_s < self._paused_until_s:
            return
        try:
            yield from self.extension.begin_turn()
        except MISTAKES as raised:
            self._failed(raised)
        else:
            self._pause_s = 0.0

    def next_s(self) -> float | None:
        """In seconds of turns; None if not before something else happens."""
        if self._pause_s:
            return self._paused_until_s
        try:
            return self.extension.next_deadline_s()
        except MISTAKES as raised:
            self._failed(raised)
            return self._paused_until_s

    def _failed(self, raised: BaseException) -> None:
        context = self.extension.context
        context.contain(raised, self.extension.name)
        self._pause_s = min(2 * self._pause_s, PAUSE_S_MAX) if self._pause_s else PAUSE_S
        self._paused_until_s = context.now_s + self._pause_s


def _with(method: str, extensions: Iterable[Extension]) -> list[Extension]:
    base = getattr(Extension, method)
    return [one for one in extensions if getattr(type(one), method) is not base]


def _only(method: str, extensions: Iterable[Extension]) -> Extension | None:
    found = _with(method, extensions)
    if len(found) > 1:
        names = ", ".join(one.name for one in found)
        raise ValueError(f"at most one extension may override {method}: {names}")
    return found[0] if found else None
