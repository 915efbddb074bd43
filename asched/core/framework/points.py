"""The extension points: what a plugin may implement, and its parameters.

    queueSort   preEnqueue                                     in the queue
    preFilter   filter   postFilter   preScore   score         the scheduling cycle, serial
    reserve     permit                                         the scheduling cycle, serial
    preBind     bind     postBind                              the binding cycle, concurrent

A plugin is a class with a `name` and the methods of its points; it inherits the bases below. Points
up to Permit are plain functions over columns. PreBind, Bind and PostBind are *late*: generators
that yield effects and are sent the answers (`yield Patch(...)`); so may be what Permit, Unreserve
and PostFilter leave to be done after the attempt.

Results are shared between equal pods. A plugin therefore declares the inputs of its result:
`depends_on` lists the aspects of a node row, `kinds` the other objects, and `stamp` is a number
that changes with the counts it reads. While none of these changes, its result for a class of pods
is cached; when some rows change, it is called for those rows only. A plugin with `depends_on` None
is called in every attempt.

Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/kube-scheduler/framework/interface.go
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Hashable, Sequence
from enum import Enum
from typing import Any, ClassVar, Final, NamedTuple

import msgspec

from asched.core.cluster.change_logs import RowLog
from asched.core.cluster.facts import Answer
from asched.core.cluster.nodes import Aspect
from asched.core.cluster.pods import PodInfo
from asched.core.cluster.view import NodeView
from asched.core.framework.effects import Effect
from asched.core.framework.expecting import NONE_EXPECTED, Expecting
from asched.core.framework.preemption_trial import Trial
from asched.core.framework.registrations import Registration
from asched.core.framework.rejection import Rejection
from asched.core.framework.status import SUCCESS, Reason, Status
from asched.core.model import arrays
from asched.core.model.kinds import Kind
from asched.core.model.pod import Pod

I64 = arrays.I64
Codes = arrays.I32
Mask = arrays.Mask

#: A late point: yields effects, is sent their answers, returns a status.
Late = Generator[Effect, Answer, Status]


class Scope(Enum):
    """Which pods the rule of a plugin may make depend on one another: those of a node, those of a
    namespace, those that use the nodes of a pool, or any.
    """

    NODE = "node"
    NAMESPACE = "namespace"
    POOL = "pool"
    CLUSTER = "cluster"


class Plugin(ABC):  # noqa: B024 - abstract through the points it serves
    """Base of every plugin."""

    name: ClassVar[str] = ""
    #: further points at which configurations name it, as for upstream's plugin of that name
    listed_at: ClassVar[frozenset[str]] = frozenset()
    awaits_pods: ClassVar[bool] = False  # new pods without a node may satisfy it
    preempts: ClassVar[bool] = False  # its PostFilter counts as preemption
    #: for a pod without claims its PostFilter evicts only pods of lower priority
    evicts_only_lower: ClassVar[bool] = False
    treats_equals_alike: ClassVar[bool] = (
        False  # if it makes no room for one of equal pods, then for none
    )
    kinds: ClassVar[tuple[Kind, ...]] = ()  # kinds to watch besides pods and nodes
    #: Where there are pools, a pod with a rule of scope CLUSTER waits: see `reach`.
    scope: ClassVar[Scope] = Scope.CLUSTER

    def registrations(self) -> Sequence[Registration] | None:
        """Changes that may help a pod rejected by this plugin. None: every change."""
        return None

    def extra_events(self) -> Sequence[Registration]:
        """Further changes that may help such a pod, not covered by `registrations`.

        In-tree, `registrations` requeue the pods that kube-scheduler would requeue, and these fill
        the gaps. After one of these a pod is tried only if it fits, or further plugins reject it.
        """
        return ()

    def reach(self, pod: PodInfo) -> Collection[str] | None:  # noqa: ARG002
        """Of a plugin of scope CLUSTER: the namespaces with pods that its rule about this pod may
        concern; None: any. It may change with objects, not with pods.
        """
        return None


class QueueSortPlugin(Plugin):
    @abstractmethod
    def sort_key(self, pod: Pod, timestamp_s: float) -> Any:  # a comparable value
        """Smaller goes first. `timestamp_s`: when the pod (re-)entered the queue."""


class PreEnqueuePlugin(Plugin):
    @abstractmethod
    def pre_enqueue(self, pod: Pod) -> Status: ...

    def holding(self) -> Collection[str]:
        """Keys of pods that it would certainly reject, so that they need not be checked one by one.
        Empty for a plugin that cannot tell.
        """
        return ()

    def expecting(self, departed: Pod) -> Expecting:  # noqa: ARG002
        """The pods for which room is being made, and where, after one more pod has gone. Pods that
        leave other nodes requeue such a pod only if it fits there.
        """
        return NONE_EXPECTED


class PreFilterResult(NamedTuple):
    """`status`: SUCCESS, SKIP (leave out this plugin's filter), a rejection, or an error.

    `node_names`: the only nodes to check, None for all. `data` is passed to Filter, Reserve and
    PreBind. `moved` logs rows whose Filter result changes although nothing of the row does, because
    counts changed elsewhere; it is up to date once `stamp` has been called.
    """

    status: Status = SUCCESS
    node_names: frozenset[str] | None = None
    data: Any = None
    moved: RowLog | None = None


class _Idle:
    """Not an Enum: those hash in Python, and this is hashed for every pod."""

    def __repr__(self) -> str:
        return "IDLE"


#: The share key of pods for which a plugin has nothing to do.
IDLE: Final = _Idle()


class CachedPlugin(Plugin):
    """Declares how long a plugin's results are valid (see the module docstring)."""

    depends_on: ClassVar[Aspect | None] = None
    #: Whether `stamp` reads counts of pods (affinity, spread, claims in use): it is then called
    #: after every placement that changed any count.
    reads_counts: ClassVar[bool] = False
    #: Up to this many changed rows are given to `filter_few` and `score_few`; measured
    rows_few: ClassVar[int] = 8
    #: the error of Filter or Score if PreFilter or PreScore is disabled; "": not needed
    without_pre_filter: ClassVar[str] = ""
    without_pre_score: ClassVar[str] = ""

    def share_key(self, pod: PodInfo) -> Hashable:
        """Pods with equal keys have equal results; by default pods of one class.

        IDLE: until an object changes, or a term of another pod matches these pods, the plugin would
        skip itself, accept them or score them 0, and has nothing to reserve. A cycle then does not
        call it for them at Filter, Score, Reserve and PreBind. Other callers may: `filter` still
        answers 0 for such a pod, and `score` 0.
        """
        return pod.cls.number

    def verdict_key(self, pod: PodInfo) -> Hashable:
        """Pods with equal keys are rejected on the same rows in the current state, though a later
        change may distinguish them: for instance claims of their own that no pod uses yet.
        """
        return self.share_key(pod)

    def stamp(self, pod: PodInfo, data: Any) -> Hashable:  # noqa: ARG002
        """A value that changes once counts have changed that this result was made from.

        PreFilter (or PreScore) then runs again, and all rows are filtered again.
        """
        return 0


class PreFilterPlugin(CachedPlugin):
    @abstractmethod
    def pre_filter(self, pod: PodInfo) -> PreFilterResult: ...


class FilterPlugin(CachedPlugin):
    """`reads_only_amounts`: of the pods on a row it reads only `requested` and `pod_count` of the
    view, and more pods never make it accept. Such a filter can be called for supposed pods on many
    rows at once, without moving a pod.
    """

    reasons: ClassVar[tuple[Reason, ...]] = ()
    #: codes from here on are errors: on a row that no other filter rejected they end the attempt
    errors_from: ClassVar[int | None] = None
    #: called only for rows that no earlier filter rejected; needs `depends_on` None
    checks_remaining: ClassVar[bool] = False
    reads_only_amounts: ClassVar[bool] = False

    def is_blind_for(self, pod: PodInfo) -> bool:  # noqa: ARG002
        """Whether its result for this pod is independent of the pods on any row."""
        return False

    @abstractmethod
    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:
        """int32[M] for the M rows of the view: 0 fits, `explain` describes any other code.

        By default code k is `reasons[k - 1]`. Dead rows may have any code.
        """

    def filter_few(self, pod: PodInfo, rows: Sequence[int], data: Any) -> list[int] | None:  # noqa: ARG002
        """The codes of a few rows, if that is cheaper than a view of them; None: use the view."""
        return None

    def explain(self, pod: PodInfo, code: int) -> Status:  # noqa: ARG002
        return self.reasons[code - 1].status


class PreScorePlugin(CachedPlugin):
    @abstractmethod
    def pre_score(self, pod: PodInfo, nodes: NodeView, feasible: Mask) -> PreFilterResult:
        """`nodes` is the view of all rows, `feasible` bool[N] marks those to be scored.

        SKIP leaves the plugin out. `data` is passed to `score`.
        """


class ScorePlugin(CachedPlugin):
    """`score` is final, 0..100; with `normalizes`, `normalize` maps raw scores of feasible rows.

    A plugin whose raw score depends on which rows are feasible sets `reads_feasible`: PreScore and
    Score then run whenever the feasible set, its kinds or its stamp change. `reads_feasible_of`
    says so for one pod.
    """

    reads_feasible: ClassVar[bool] = False
    normalizes: ClassVar[bool] = False
    fixes_ties: ClassVar[bool] = False  # among equal nodes the first row wins; else a random one
    is_checked: ClassVar[bool] = False  # whether final scores are checked to be 0..100
    #: Whether it counts as scoring pods with IDLE as share key, as its PreScore does not skip.
    scores_idle: bool = False

    def reads_feasible_of(self, pod: PodInfo) -> bool:  # noqa: ARG002
        return self.reads_feasible

    @abstractmethod
    def score(self, pod: PodInfo, nodes: NodeView, data: Any) -> I64:
        """int64[M] raw scores of the view's rows; infeasible rows may have any value."""

    def score_few(self, pod: PodInfo, rows: Sequence[int], data: Any) -> list[int] | None:  # noqa: ARG002
        """The raw scores of a few rows, if that is cheaper than a view; None: use the view."""
        return None

    def bounds(self, raw: I64, data: Any) -> Hashable:  # noqa: ARG002
        """The part of int64[F], the raw scores of the feasible rows (F >= 1), that determines the
        normalized points besides the row's own score: for instance the largest. A pair is (least,
        largest). None: unknown.
        """
        return None

    def scaled(self, raw: I64, bounds: Any, data: Any) -> I64:  # noqa: ARG002
        """int64[M] raw scores to 0..100, by the result of `bounds`; infeasible rows: any value."""
        return raw

    def normalize(self, raw: I64, data: Any) -> I64:
        """int64[F] raw scores of the feasible rows (F >= 1) to 0..100."""
        return self.scaled(raw, self.bounds(raw, data), data)


class Nomination(msgspec.Struct, frozen=True):
    """A change of status.nominatedNodeName: None keeps it, "" clears it, a name sets it."""

    node: str | None = None


class PostFilterResult(msgspec.Struct, frozen=True):
    """The result of a PostFilter plugin, or of all of a profile (`Runner.post_filter`).

    `background` of SUCCESS continues after the attempt (evictions); if it fails, or answers SKIP
    because nothing was left to do, the pod is retried at once. `withdraw` reverts its recorded
    state if it must not run: the pod's group does not fit even so. `background` of any other status
    is carried out before the pod returns to the queue; if it fails, its status is reported in place
    of this one. `before_return` collects these of all plugins. `violations`: of disruption budgets;
    `disruptions`: victims that belong to groups. `comes_back`: the reason ends by time, so that the
    pod is tried again after its backoff without an event.
    """

    status: Status
    nomination: Nomination = Nomination()
    background: Late | None = None
    victims: tuple[str, ...] = ()
    withdraw: Callable[[], None] | None = None
    before_return: tuple[Late, ...] = ()
    violations: int = 0
    disruptions: int = 0
    comes_back: bool = False

    def drop(self) -> None:
        """Carry nothing out, and revert the recorded state."""
        if self.withdraw is not None:
            self.withdraw()
        for steps in (*self.before_return, self.background):
            if steps is not None:
                steps.close()


class PostFilterPlugin(Plugin):
    def may_make_room(self, pod: PodInfo, why: Callable[[], Rejection], trial: Trial) -> bool:  # noqa: ARG002
        """Whether `post_filter` might help a pod that fits nowhere. Changes nothing."""
        return True

    def may_evict(self, pod: PodInfo, trial: Trial) -> bool:  # noqa: ARG002
        """Whether it could evict pods somewhere for an equal pod, as far as amounts allow."""
        return True

    @abstractmethod
    def post_filter(
        self, pod: PodInfo, rejection: Rejection, trial: Trial
    ) -> PostFilterResult | Generator[Effect, Answer, PostFilterResult]:
        """Make room, or return why not. A generator if an extender must be called.

        SUCCESS, UNSCHEDULABLE_AND_UNRESOLVABLE and ERROR end the step; after UNSCHEDULABLE the next
        plugin runs, and the messages are joined.
        """


class ReservePlugin(Plugin):
    @abstractmethod
    def reserve(self, pod: PodInfo, node: str, data: Any) -> Status: ...

    @abstractmethod
    def unreserve(self, pod: PodInfo, node: str) -> Late | None:
        """Idempotent, also without `reserve`, and never fails. Effects undo external changes."""


class PermitPlugin(Plugin):
    @abstractmethod
    def permit(self, pod: PodInfo, node: str) -> tuple[Status, float]:
        """SUCCESS, a rejection, or WAIT with its maximum duration in seconds."""

    def permit_late(self, pod: PodInfo, node: str) -> Late | None:  # noqa: ARG002
        """Decides about a pod that this plugin lets wait: SUCCESS allows it, WAIT means that the
        time is up. None: decided elsewhere.
        """
        return None


class PreBindPlugin(Plugin):
    @abstractmethod
    def pre_bind_pre_flight(self, pod: PodInfo, node: str) -> Status:
        """SUCCESS if `pre_bind` has work to do, SKIP if not."""

    @abstractmethod
    def pre_bind(self, pod: PodInfo, node: str) -> Late: ...


class BindPlugin(Plugin):
    @abstractmethod
    def bind(self, pod: PodInfo, node: str) -> Late:
        """SUCCESS, SKIP (the next bind plugin runs), or a failure."""


class PostBindPlugin(Plugin):
    @abstractmethod
    def post_bind(self, pod: PodInfo, node: str) -> Late | None: ...
