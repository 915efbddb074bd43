"""The scheduler context: what the scheduling cycle, the binding cycle and failures share."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

import msgspec

from asched.core.cycle.company import HypotheticalGang
from asched.core.cycle.decided import FirstLooks, RejectionRecorder
from asched.core.cycle.history import DecisionStep, Histories, Kept, NodeChoice
from asched.core.cycle.observer import Observer
from asched.core.framework.effects import EmitEvent, PodRef, ref_of
from asched.core.framework.point_table import POINT_OF_METHOD
from asched.core.framework.points import Plugin, PreBindPlugin
from asched.core.framework.results.cached import CachedResult
from asched.core.framework.results.prepared import Prepared
from asched.core.framework.results.weighted import WeightedPoints
from asched.core.framework.runner import Decision, Runner
from asched.core.framework.status import Code, PluginError, PointError, Status
from asched.core.framework.waiting import WaitingPods
from asched.core.model.kinds import KINDS, POD, Kind
from asched.core.model.pod import Pod
from asched.core.queue.gangs import Gangs
from asched.core.queue.queue import SchedulingQueue
from asched.core.queue.queued import QueuedPod
from asched.core.state.cluster import Cluster, ObservedChange
from asched.core.state.facts import Fact
from asched.core.state.nominated import Nominator
from asched.core.state.pods import PodInfo

if TYPE_CHECKING:
    from asched.core.cycle.extension import Extensions

#: Of the words of an exception in a message: they may quote an object of any size.
RAISED_CHARS_MAX: Final = 1_000
SUCCEEDED: Final = Code.SUCCESS.text
A = TypeVar("A")
#: Those of the framework that ask one plugin each.
ASKS_PLUGINS: Final = (CachedResult, Prepared, WeightedPoints)


def kinds_read(gangs: Gangs, runners: Mapping[str, Runner]) -> tuple[Kind, ...]:
    """The kinds of objects that are read with these profiles, each once."""
    theirs = [kind for one in runners.values() for kind in one.profile.kinds]
    return tuple(dict.fromkeys((*KINDS, *gangs.kinds, *theirs)))


class Beside(Protocol):
    """Somebody who looks on while another scheduler decides; `insight/shadow` implements it."""

    def about_to_see(self, fact: Fact) -> None:
        """A fact of a watch, the columns being as they were before it."""

    def listed(self, sights: Iterable[ObservedChange]) -> None:
        """What a part of a list changed."""

    def told(self) -> Mapping[str, Any]:
        """What was found so far, as JSON."""


class SchedulerContext(msgspec.Struct):
    """`counter_s` measures durations, `now_s` is the time of this turn (both in seconds)."""

    cluster: Cluster
    queue: SchedulingQueue
    nominator: Nominator
    runners: Mapping[str, Runner]
    observer: Observer
    counter_s: Callable[[], float]
    seed: int = 0
    now_s: float = 0.0
    waiting: WaitingPods = msgspec.field(default_factory=WaitingPods)
    histories: Histories = msgspec.field(default_factory=Histories)
    patterns: RejectionRecorder = msgspec.field(default_factory=RejectionRecorder)
    first_looks: FirstLooks = msgspec.field(default_factory=FirstLooks)
    #: Uids of pods that are known, and enter the queue when others had their share (`intake.py`).
    late: set[str] = msgspec.field(default_factory=set)
    #: Whether a pod's status tells where it is going while that takes long.
    announces_places: bool = True
    #: Whether the event of a pod that fits nowhere ends with how to ask why.
    advises: bool = False
    #: Steps of the budget that the search for a gang's places may cost an attempt: three seconds of
    #: work. 0: its pods are tried one after the other, as kube-scheduler does, and that is all.
    gang_search_steps: int = 300_000
    #: Told of each node as it is chosen, the columns being as the decision saw them.
    on_decision: "Callable[[Attempt, Decision], None] | None" = None
    beside: Beside | None = None
    #: Features that schedule several pods as a unit, or over time; made with the machine.
    extensions: "Extensions" = msgspec.field(default=None)  # type: ignore[assignment]
    #: (point, profile, status) -> how often, since the observer was told last
    _passed: defaultdict[tuple[str, str, str], int] = msgspec.field(
        default_factory=lambda: defaultdict(int)
    )

    @property
    def gangs(self) -> Gangs:
        """Whose pods are tried as one, and how."""
        return self.queue.gangs

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of objects to follow: everybody's, those of groups, those of plugins."""
        return kinds_read(self.gangs, self.runners)

    def owns(self, pod: Pod) -> bool:
        """Whether a pod is ours to place just now. Nobody else decides that."""
        return pod.spec.scheduler_name in self.runners

    @property
    def awaits_pods(self) -> bool:
        """Whether some profile holds pods back, as those of a gang, until others have come."""
        return any(
            plugin.awaits_pods
            for runner in self.runners.values()
            for plugin in runner.profile.pre_enqueue
        )

    def why_pointless(self, attempt: "Attempt", node: str = "") -> str:
        """Why the pod of an attempt is not to be placed (on `node`) any more, by what was seen of
        it last; empty if it is. Attempts may wait long for an extender, bindings for volumes.
        """
        pod, now = attempt.info.pod, self.cluster.pods_seen.get(attempt.queued.key)
        if now is pod and pod.metadata.deletion_timestamp is None:
            return ""  # for the most part, and asked more than once for each pod
        if now is None or now.uid != pod.uid:
            return f'pods "{pod.metadata.name}" not found'
        if now.spec.node_name not in ("", node):
            return f'pod {now.metadata.name} is already assigned to node "{now.spec.node_name}"'
        if now.is_terminating:
            return f"skip schedule deleting pod: {now.key}"
        return ""

    def tell(
        self, attempt: "Attempt", step: DecisionStep, details: object = None, size_bytes: int = 0
    ) -> None:
        """Add a line to the history of the attempt's pod."""
        key = attempt.queued.key
        attempt.line = self.histories.tell(key, self.now_s, attempt.id, step, details, size_bytes)

    def tell_bound(self, attempt: "Attempt", node: str) -> None:
        """The last line of an attempt that succeeded."""
        line = attempt.line
        if isinstance(line, NodeChoice) and line.key:
            line.bound_s = self.now_s
        else:
            self.tell(attempt, DecisionStep.BOUND, node)

    def contain(self, error: BaseException, part: str, about: str = "") -> str:
        """Report an exception, whatever raised it, in a part of the scheduler (an extension point,
        mostly); returns the message for the pod.
        """
        if isinstance(error, PluginError):
            self.observer.plugin_raised(error.plugin, error.point, error.error)
            return str(error)
        if isinstance(error, PointError):
            return str(error)
        plugin, where = blame(error)
        raised = f"{type(error).__name__}: {error}"[:RAISED_CHARS_MAX]
        if not plugin:
            self.observer.contained(part, about, error)
            return f"internal error: {raised}"
        self.observer.plugin_raised(plugin, where or part, error)
        return f'plugin "{plugin}" raised {raised}'

    def args_by_profile(self, kind: type[A]) -> dict[str, A]:
        """The args of this kind that a plugin of each profile has, by the profile's name."""
        return {
            name: args
            for name, runner in self.runners.items()
            for plugin in runner.profile.plugins.values()
            if isinstance(args := getattr(plugin, "args", None), kind)
        }

    def point_ran(self, attempt: "Attempt", point: str, status: str, started_s: float) -> None:
        """Report an extension point that began at `started_s` of the duration counter."""
        profile = attempt.runner.profile.scheduler_name
        self.observer.point_ran(point, profile, status, self.counter_s() - started_s)

    def point_passed(self, attempt: "Attempt", point: str, status: str = SUCCEEDED) -> None:
        """Count one at which nobody had anything to do: that takes no time, nor is it measured."""
        self._passed[point, attempt.runner.profile.scheduler_name, status] += 1

    def tell_passed(self) -> None:
        """Report those of a turn."""
        for (point, profile, status), times in self._passed.items():
            self.observer.points_passed(point, profile, status, times)
        self._passed.clear()

    def plugin_ran(
        self, attempt: "Attempt", plugin: str, point: str, status: Status, started_s: float
    ) -> None:
        """Report one plugin, in sampled attempts only."""
        if attempt.is_measured:
            duration_s = self.counter_s() - started_s
            self.observer.plugin_ran(plugin, point, status.code.text, duration_s)


class Attempt(msgspec.Struct):
    """One try at one pod. The id seeds its tie-breaks; times are in seconds."""

    id: int
    queued: QueuedPod
    info: PodInfo
    runner: Runner
    started_s: float  # of the duration counter
    evaluated: int = 0  # nodes looked at
    feasible: int = 0  # nodes it fits on
    slices: int = 0  # of the budget that it has used up
    pre_binds: tuple[PreBindPlugin, ...] = ()  # those that may have work to do
    company: HypotheticalGang | None = None  # of pods that are only supposed; None for real ones
    line: Kept | None = None  # its newest one in the history

    @property
    def pod(self) -> Pod:
        return self.info.pod

    @property
    def profile(self) -> str:
        return self.runner.profile.scheduler_name

    @property
    def consults(self) -> bool:
        """Whether extenders have a say in the pod's place."""
        return self.runner.consults(self.info)

    @property
    def is_measured(self) -> bool:
        """Whether its plugins are timed."""
        meter = self.runner.meter
        return meter is not None and meter.is_sampled

    @property
    def ref(self) -> PodRef:
        return ref_of(self.info.pod)

    def emit(self, type_: str, reason: str, action: str, note: str) -> EmitEvent:
        """An event about the attempt's pod."""
        return EmitEvent(
            regarding=POD.reference(self.info.pod.metadata),
            type=type_,
            reason=reason,
            action=action,
            note=note,
            reporting_controller=self.profile,
        )


class Blame(NamedTuple):
    """What raised an exception: a plugin's name and the extension point, both may be empty."""

    plugin: str
    point: str


def blame(error: BaseException) -> Blame:
    """The plugin in whose code an exception was raised, or over whose answer we stumbled."""
    found = Blame("", "")
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        actor = frame.f_locals.get("self")
        if isinstance(actor, Plugin):
            if actor.name != found.plugin or not found.point:
                found = Blame(actor.name, POINT_OF_METHOD.get(frame.f_code.co_name, ""))
        else:
            asked = frame.f_locals.get("plugin")
            if not isinstance(asked, Plugin) and isinstance(actor, ASKS_PLUGINS):
                asked = actor.plugin
            if isinstance(asked, Plugin) and asked.name != found.plugin:
                found = Blame(asked.name, "")
        trace = trace.tb_next
    return found
