"""The interface between the scheduling cycle and features that schedule pods as units or over time.

    a pod is popped      unit                make a unit of it and of other pods
    a node is searched   place               search other places than `Runner.schedule` does
    no node fits         defers_evictions         whether other pods stay
    no node is found     rejected            what to add to the condition
    a node is reserved   placed
    an object changes    saw; a node: saw_node
    a turn begins        begin_turn          events, and work that runs in parallel with attempts
    an attempt begins    refresh             bring the extension's records up to date
    the loop may sleep   next_deadline_s
    a dry run at pop     lacks_places, may_start, yields_to, yields_places

The machine, the cycle and dry runs use features through this class only; `asched/batch` implements
them. For a profile without extensions each of these calls is one test for emptiness.

An exception in `begin_turn` or `next_deadline_s` is reported, and the extension is skipped for a
pause that doubles each time. So is an extension that asks for a turn at once AT_ONCE_MAX times in a
row, whatever the reason: what it does is then repeated without an effect. An exception in another
method costs the unit its attempt, like an exception in a plugin.
"""

from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple, Protocol

from asched.core.cluster.cluster import ObservedChange
from asched.core.cluster.facts import Answer
from asched.core.cluster.pods import PodInfo
from asched.core.cycle.attempt import Attempt
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.extension_points import Addition, Finding, Placing
from asched.core.cycle.unit import Unit
from asched.core.framework.effects import Effect
from asched.core.framework.placements import Mask
from asched.core.framework.rejection import Rejection
from asched.core.framework.runner import Runner
from asched.core.framework.status import MISTAKES
from asched.core.model.pod import Pod
from asched.core.queue.queued import QueuedPod

PAUSE_S: Final = 1.0
PAUSE_S_MAX: Final = 60.0
#: Twice the open requests of a namespace (`batch/provisioning`), each of which is tried in a turn.
AT_ONCE_MAX: Final = 1_000

#: A generator of effects, sent their answers.
Steps = Generator[Effect, Answer, Any]


class Work(NamedTuple):
    """Steps to be run concurrently with attempts. `decides`: they place pods, like an attempt."""

    steps: Steps
    decides: bool


class Extension(Protocol):
    """Base of all extensions. Methods that a subclass does not override are not called."""

    #: the name in reports and metrics
    name: ClassVar[str]
    context: SchedulerContext

    def __init__(self, context: SchedulerContext) -> None:
        self.context = context

    def is_used(self) -> bool:
        """Whether a profile uses the extension. Called at the start and after a reload; an
        extension that was used once stays in use.
        """

    def unit(self, popped: Attempt, begin: Callable[[QueuedPod], Attempt | None]) -> Unit:
        """Make the unit of a popped pod that belongs to a group. `begin` makes the attempts at the
        other pods.
        """

    def lacks_places(self, runner: Runner, queued: QueuedPod, version: Hashable) -> bool:
        """Whether an attempt at the unit of a waiting pod is certain to fail. `version` changes
        with all that filters read. Raises PointError, OutOfTurn.
        """

    def may_start(self, runner: Runner, queued: QueuedPod, version: Hashable) -> bool:
        """Whether the unit of a waiting pod has places by counting, without evictions, so that its
        backoff may end early. Raises as `lacks_places`.
        """

    def place(self, attempt: Attempt, within: Mask | None, otherwise: Placing) -> Finding:
        """Find a node. Raises as `Runner.schedule` does. `within` bool[N]: only these rows.
        `otherwise`: how nodes are found without the extension.
        """

    def defers_evictions(self, attempt: Attempt) -> bool:
        """Whether no pod is to be evicted yet for a pod that fits on no node."""

    def yields_to(self, priority: int) -> bool:
        """Whether places are reserved that pods of this priority may get."""

    def yields_places(self, pod: PodInfo, rejection: Rejection) -> bool:
        """Whether a rejected pod fits, by amounts, on a reserved place that it may get."""

    def rejected(self, attempts: Sequence[Attempt]) -> Generator[Effect, Answer, Addition]:
        """What to add to the condition of pods whose unit found neither place nor nomination."""

    def placed(self, pod: Pod) -> None:
        """Called when a unit is reserved; `pod` is any of its pods."""

    def saw(self, change: ObservedChange) -> None:
        """Called for each change of a watched object, before waiting pods are notified."""

    def saw_node(self, change: ObservedChange) -> None:
        """As `saw`, for nodes alone: pods, which change often, then cost nothing."""

    def refresh(self, *, may_decide: bool) -> None:
        """Called before each attempt, and in turns without attempts."""

    def begin_turn(self) -> Iterable[Effect | Work]:
        """Effects to send and work to run; called once in a turn with attempts."""

    def next_deadline_s(self) -> float | None:
        """The time of the next turn that `begin_turn` needs, in seconds; None if it needs none."""
        return None


class Extensions:
    """The extensions that profiles use. Fills `SchedulerContext.extensions` by the methods they
    override; of several that override `place`, each may leave a pod to the next. Raises ValueError
    if two of them override `unit`.
    """

    def __init__(self, context: SchedulerContext, kinds: Iterable[type[Extension]]) -> None:
        self._all = tuple([kind(context) for kind in kinds])
        self._used: list[Extension] = []
        self._context = context
        self.turns: tuple[ExtensionTurn, ...] = ()
        self._points = context.extensions
        self._points.follow_profiles = self.follow_profiles
        self.follow_profiles()

    def follow_profiles(self) -> None:
        """Add the extensions that the current profiles use."""
        used = [known for known in self._all if known in self._used or known.is_used()]
        self._used, points = used, self._points
        self.units = _only("unit", used)
        if self.units is not None:
            points.lacks_places, points.may_start = self.units.lacks_places, self.units.may_start
        points.place = None
        for placer in reversed(_with("place", used)):
            otherwise = points.place or self._schedule
            points.place = partial(placer.place, otherwise=otherwise)
        points.defers_evictions_each = tuple(
            [known.defers_evictions for known in _with("defers_evictions", used)]
        )
        points.rejected = tuple([overrider.rejected for overrider in _with("rejected", used)])
        points.placed = tuple([overrider.placed for overrider in _with("placed", used)])
        points.saw = tuple([overrider.saw for overrider in _with("saw", used)])
        points.saw_node = tuple([overrider.saw_node for overrider in _with("saw_node", used)])
        yielding = _with("yields_to", used)
        points.yields_to_each = tuple([overrider.yields_to for overrider in yielding])
        points.yields_places_each = tuple([overrider.yields_places for overrider in yielding])
        self.refresh = tuple([overrider.refresh for overrider in _with("refresh", used)])
        turns = {turn.extension: turn for turn in self.turns}
        with_turns = _with("begin_turn", used)
        self.turns = tuple(
            [turns.get(extension) or ExtensionTurn(extension) for extension in with_turns]
        )

    def _schedule(self, attempt: Attempt, within: Mask | None) -> Finding:
        return attempt.runner.schedule(attempt.info, self._context.seed + attempt.id, within)


class ExtensionTurn:
    """Runs an extension's work of a turn. The extension pauses after an exception, and if its turns
    follow each other without end.
    """

    def __init__(self, extension: Extension) -> None:
        self.extension = extension
        self._pause_s = self._paused_until_s = 0.0
        self._at_once = 0  # turns in a row that were asked for at once
        #: whether the next one is, too; None if `next_s` was not called since the last
        self._asks_at_once: bool | None = None

    def begin(self) -> Iterator[Effect | Work]:
        if self._is_paused:
            return
        if self._asks_at_once is not None:
            self._at_once = self._at_once + 1 if self._asks_at_once else 0
            self._asks_at_once = None
        if self._at_once > AT_ONCE_MAX:
            self._at_once = 1
            self._pause()
            self.extension.context.observer.complaint(
                f"extension {self.extension.name} asked for {AT_ONCE_MAX} turns in a row without a"
                f" pause, and is skipped for {self._pause_s:.0f} s; report this as a defect"
            )
            return
        try:
            yield from self.extension.begin_turn()
        except MISTAKES as raised:
            self._failed(raised)
        else:
            if not self._at_once:
                self._pause_s = 0.0

    def next_s(self) -> float | None:
        """The time of the next turn that the extension needs, in seconds; None if it needs none."""
        if self._is_paused:
            return self._paused_until_s
        try:
            next_s = self.extension.next_deadline_s()
        except MISTAKES as raised:
            self._failed(raised)
            return self._paused_until_s
        self._asks_at_once = next_s is not None and next_s <= self.extension.context.now_s
        return next_s

    @property
    def _is_paused(self) -> bool:
        return self.extension.context.now_s < self._paused_until_s

    def _failed(self, raised: BaseException) -> None:
        context = self.extension.context
        context.contain(raised, self.extension.name)
        self._pause()

    def _pause(self) -> None:
        self._pause_s = min(2 * self._pause_s, PAUSE_S_MAX) if self._pause_s else PAUSE_S
        self._paused_until_s = self.extension.context.now_s + self._pause_s


def _with(method: str, extensions: Iterable[Extension]) -> list[Extension]:
    base = getattr(Extension, method)
    return [known for known in extensions if getattr(type(known), method) is not base]


def _only(method: str, extensions: Iterable[Extension]) -> Extension | None:
    overriding = _with(method, extensions)
    if len(overriding) > 1:
        names = ", ".join(extension.name for extension in overriding)
        raise ValueError(f"at most one extension may override {method}: {names}")
    return overriding[0] if overriding else None
