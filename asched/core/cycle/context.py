"""The scheduler context: state shared by scheduling cycles, binding cycles and failures."""

from collections import defaultdict, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any, Final, Protocol, TypeVar

import msgspec

from asched.core.cluster.cluster import Cluster, ObservedChange
from asched.core.cluster.facts import Answer, Fact
from asched.core.cluster.nominated import Nominator
from asched.core.cluster.pools import Pools
from asched.core.cycle.attempt import Attempt
from asched.core.cycle.decision_records import DecisionRecords, RecordedChoice
from asched.core.cycle.extension_points import ExtensionPoints
from asched.core.cycle.history import DecisionStep, Histories
from asched.core.cycle.observer import Observer
from asched.core.framework.effects import Effect, Pause
from asched.core.framework.runner import Decision, Runner
from asched.core.framework.status import Code, PluginError, PointError, Status, raised_text
from asched.core.framework.waiting import WaitingPods
from asched.core.model.kinds import KINDS, Kind
from asched.core.model.pod import Pod
from asched.core.queue.gangs import Gangs
from asched.core.queue.queue import SchedulingQueue

SUCCEEDED: Final = Code.SUCCESS.text
SKIPPED: Final = Code.SKIP.text
A = TypeVar("A")


def kinds_read(gangs: Gangs, runners: Mapping[str, Runner]) -> tuple[Kind, ...]:
    """The kinds of objects that these profiles read, each once."""
    of_plugins = [kind for runner in runners.values() for kind in runner.profile.kinds]
    return tuple(dict.fromkeys((*KINDS, *gangs.kinds, *of_plugins)))


class ShadowObserver(Protocol):
    """Compares our decisions with those of another scheduler; `insight/shadow` implements it."""

    def about_to_see(self, fact: Fact) -> None:
        """Called before a fact of a watch is applied."""

    def listed(self, changes: Iterable[ObservedChange]) -> None:
        """Called with the changes that a part of a list made."""

    def as_json(self) -> Mapping[str, Any]:
        """The findings so far, as JSON."""


class SchedulerContext(msgspec.Struct):
    """`monotonic_s` measures durations, `now_s` is the time of this turn (both in seconds)."""

    cluster: Cluster
    queue: SchedulingQueue
    nominator: Nominator
    runners: Mapping[str, Runner]
    observer: Observer
    monotonic_s: Callable[[], float]
    seed: int = 0
    now_s: float = 0.0
    waiting: WaitingPods = msgspec.field(default_factory=WaitingPods)
    histories: Histories = msgspec.field(default_factory=Histories)
    decision_records: DecisionRecords = msgspec.field(default_factory=DecisionRecords)
    #: Whether a nomination is written while a binding takes long.
    announces_places: bool = True
    #: Whether the event of an unschedulable pod ends with the command that explains it.
    advises: bool = False
    #: Budget steps that the search for a gang's places may cost an attempt (three seconds of work).
    #: 0: no search; its pods are tried one after the other, as kube-scheduler does.
    gang_search_steps: int = 300_000
    #: Called with each chosen node, before the columns change.
    on_decision: Callable[[Attempt, Decision], None] | None = None
    shadow: ShadowObserver | None = None
    #: Work in slices that comes before further facts and attempts (`queue.sliced_work`); read-only.
    sliced_work: deque[Iterator[None]] = msgspec.field(default_factory=deque)
    #: Effects of sliced work, taken by the machine at the end of the turn.
    requested: list[Effect] = msgspec.field(default_factory=list)
    #: Features that schedule several pods as a unit, or over time.
    extensions: ExtensionPoints = msgspec.field(default_factory=ExtensionPoints)
    #: (point, profile, status) -> how often, since the last report to the observer
    _passed: defaultdict[tuple[str, str, str], int] = msgspec.field(
        default_factory=lambda: defaultdict(int)
    )
    #: results of `args_by_profile`, and the runners that they are of
    _args: dict[type, dict[str, Any]] = msgspec.field(default_factory=dict)
    _args_of: Mapping[str, Runner] | None = None

    def __post_init__(self) -> None:
        self.sliced_work = self.queue.sliced_work.pieces

    @property
    def gangs(self) -> Gangs:
        """Which pods are tried as a group, and how."""
        return self.queue.gangs

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of objects to watch: of the core, of groups, of plugins."""
        return kinds_read(self.gangs, self.runners)

    @property
    def version(self) -> tuple[int, int, int, int]:
        """Changes with all that filters read, counts of pods in domains apart."""
        nodes, moved = self.cluster.nodes, self.nominator.generation
        return nodes.log.end, nodes.generation, self.cluster.epoch, moved

    @property
    def pools(self) -> Pools | None:
        """The pools of the configuration, which all profiles share; None if it has none."""
        return next(iter(self.runners.values())).profile.pools

    def profile_of(self, pod: Pod) -> str:
        """The name of the profile that decides for a pod: its pool's, or the one it names."""
        return self.queue.gangs.profile_of(pod)

    def runner_of(self, pod: Pod) -> Runner | None:
        """The runner of the profile that decides for a pod; None if the pod is not ours."""
        return self.runners.get(self.queue.gangs.profile_of(pod))

    def owns(self, pod: Pod) -> bool:
        """Whether a current profile has the pod's scheduler name."""
        return pod.spec.scheduler_name in self.runners

    def decides(self, pod: Pod) -> bool:
        """Whether this process decides for a pod without a node: it owns it, and holds its pool."""
        pools = self.pools
        return self.owns(pod) and (pools is None or pools.may_decide(pod))

    def why_not_placed(self, attempt: Attempt, node: str = "") -> str:
        """Why the pod of an attempt is not to be placed (on `node`) any more, by its newest
        version; empty if it is. Attempts may wait long for an extender, bindings for volumes.
        """
        pod, now = attempt.info.pod, self.cluster.pods_seen.get(attempt.queued.key)
        if now is pod and pod.metadata.deletion_timestamp is None:
            return ""  # the usual case
        if now is None or now.uid != pod.uid:
            return f'pods "{pod.metadata.name}" not found'
        if now.spec.node_name not in ("", node):
            return f'pod {now.metadata.name} is already assigned to node "{now.spec.node_name}"'
        if now.is_terminating:
            return f"skip schedule deleting pod: {now.key}"
        return ""

    def is_obsolete(self, attempt: Attempt) -> bool:
        """Whether the pod needs no attempt any more: deleted, replaced or placed."""
        if self.why_not_placed(attempt):
            return True
        return attempt.info.pod.metadata.uid in self.cluster.placed

    def tell(
        self, attempt: Attempt, step: DecisionStep, details: object = None, size_bytes: int = 0
    ) -> None:
        """Add an entry to the history of the attempt's pod."""
        key = attempt.queued.key
        attempt.history_entry = self.histories.tell(
            key, self.now_s, attempt.id, step, details, size_bytes
        )

    def tell_bound(self, attempt: Attempt, node: str) -> None:
        """Record the binding in the history of the attempt's pod."""
        entry = attempt.history_entry
        if isinstance(entry, RecordedChoice) and entry.key:
            entry.bound_s = self.now_s
        else:
            self.tell(attempt, DecisionStep.BOUND, node)

    def contain(self, error: BaseException, part: str, about: str = "") -> str:
        """Report an exception in a part of the scheduler (mostly an extension point); returns the
        message for the pod.
        """
        if isinstance(error, PluginError):
            self.observer.plugin_raised(error.plugin, error.point, error.error)
            return str(error)
        if isinstance(error, PointError):
            return str(error)
        self.observer.contained(part, about, error)
        return f"internal error: {raised_text(error)}"

    def args_by_profile(self, kind: type[A]) -> Mapping[str, A]:
        """The plugin args of this type by profile name, for profiles with such a plugin: the same
        object until the profiles are replaced.
        """
        if self._args_of is not self.runners:
            self._args_of, self._args = self.runners, {}
        if kind not in self._args:
            self._args[kind] = {
                name: args
                for name, runner in self.runners.items()
                for plugin in runner.profile.plugins.values()
                if isinstance(args := getattr(plugin, "args", None), kind)
            }
        return self._args[kind]

    def pause_if_due(
        self, steps: float, *, is_alone: bool = False
    ) -> Generator[Effect, Answer, None]:
        """Pause if the slice is used up, then charge steps."""
        budget = self.cluster.budget
        if budget.is_used_up:
            yield Pause(is_alone=is_alone)
        budget.note(steps)

    def point_ran(self, attempt: Attempt, point: str, status: str, started_s: float) -> None:
        """Report an extension point that began at `started_s` of the duration counter."""
        profile = attempt.runner.profile.scheduler_name
        self.observer.point_ran(point, profile, status, self.monotonic_s() - started_s)

    def point_passed(self, attempt: Attempt, point: str, status: str = SUCCEEDED) -> None:
        """Count an extension point at which no plugin had work; its duration is not measured."""
        self._passed[point, attempt.runner.profile.scheduler_name, status] += 1

    def tell_passed(self) -> None:
        """Report the points that `point_passed` counted."""
        for (point, profile, status), times in self._passed.items():
            self.observer.points_passed(point, profile, status, times)
        self._passed.clear()

    def plugin_ran(
        self, attempt: Attempt, plugin: str, point: str, status: Status, started_s: float
    ) -> None:
        """Report one plugin, in sampled attempts only."""
        if attempt.is_measured:
            duration_s = self.monotonic_s() - started_s
            self.observer.plugin_ran(plugin, point, status.code.text, duration_s)
