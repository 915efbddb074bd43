"""The extension points: what a plugin may implement, and what it is handed at each.

    queueSort   preEnqueue                                     in the queue
    preFilter   filter   postFilter   preScore   score         the scheduling cycle, serial
    reserve     permit                                         the scheduling cycle, serial
    preBind     bind     postBind                              the binding cycle, concurrent

A plugin is a class with a `name` and the methods of the points it serves; it inherits the bases
below. Points up to Permit are plain functions: they look at columns and answer. PreBind, Bind and
PostBind are *late*: generators that yield effects and are sent the answers (`yield Patch(...)`).

Work is shared between equal pods. Therefore a plugin says what its answer depends on: `depends_on`
lists the aspects of a node row, `kinds` the other objects, `stamp` a number that moves when counts
it reads move. While none of these changes, its answer for a class of pods is kept; when some rows
change, it is asked about those rows alone. A plugin that leaves `depends_on` at None is asked anew
in every attempt.

Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/kube-scheduler/framework/interface.go
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Hashable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from asched.core.framework.domain_codes import DomainCodes
from asched.core.framework.effects import Effect
from asched.core.framework.expecting import NOBODY_EXPECTS, Expecting
from asched.core.framework.status import SUCCESS, Reason, Status
from asched.core.model.kinds import Kind
from asched.core.model.pod import Pod
from asched.core.state.change_log import RowLog
from asched.core.state.changes import Trigger
from asched.core.state.facts import Answer
from asched.core.state.nodes import Aspect
from asched.core.state.pods import PodInfo
from asched.core.state.view import NodeView

if TYPE_CHECKING:
    from asched.core.framework.attempt import Rejection
    from asched.core.framework.trial import Trial

I64 = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

#: A late point: yields effects, is sent their answers, returns a status.
Late = Generator[Effect, Answer, Status]


class Hint(Enum):
    """What a queueing hint says of one change: worth another attempt, or not."""

    QUEUE = "Queue"
    SKIP = "QueueSkip"


#: (the waiting pod, old version, new version) -> Hint. May raise: an error counts as QUEUE.
HintFunction = Callable[[Pod, Any, Any], Hint]


class Concerns(NamedTuple):
    """Whom a change can concern at all, told by keys: where what a waiting pod seeks and what a
    change offers have no key in common, the hint would say SKIP, and is not asked.

    What thousands of waiting pods seek is indexed, so that a change meets those it concerns alone.
    None: not to be told by keys, the hint is asked. `sought` is asked once for pods that no hint
    tells apart, `offered` once for a change with its old and new version; whichever raises is taken
    for None. A key names something of the pod's or the object's own, never of what else the cluster
    holds. `is_of_gang`: all pods of a gang seek the same, `sought` is never None; else a gang of
    many kinds of pods is always asked.
    """

    sought: Callable[[Pod], Collection[Hashable] | None]
    offered: Callable[[Any, Any], Collection[Hashable] | None]
    is_of_gang: bool = False


class Registration(NamedTuple):
    """A change a plugin wants to hear of; without a function every such change is worth a try."""

    trigger: Trigger
    hint: HintFunction | None = None
    concerns: Concerns | None = None


class Plugin(ABC):  # noqa: B024 - abstract through the points it serves
    """Base of every plugin."""

    name: ClassVar[str] = ""
    #: more points at which configurations name it, since upstream's plugin of that name has them
    listed_at: ClassVar[frozenset[str]] = frozenset()
    awaits_pods: ClassVar[bool] = False  # new pods without a node may be what it waits for
    preempts: ClassVar[bool] = False  # what it does at PostFilter counts as preemption
    #: at PostFilter nobody leaves for a pod without claims but pods of lower priority
    spares_equals: ClassVar[bool] = False
    treats_equals_alike: ClassVar[bool] = False  # if it makes no room for one, then for none
    kinds: ClassVar[tuple[Kind, ...]] = ()  # what is to be followed for it besides pods and nodes

    def registrations(self) -> Sequence[Registration] | None:
        """Changes that may help a pod this plugin rejected. None: every change of everything."""
        return None

    def extra_events(self) -> Sequence[Registration]:
        """More changes that may help such a pod, which `registrations` say nothing of.

        In-tree, `registrations` wake whom kube-scheduler would wake, and these are the gaps it
        leaves. A pod follows one of these only if it fits somewhere at that moment.
        """
        return ()


class QueueSortPlugin(Plugin):
    active_queue: Callable[[], Any] | None = None  # a queue of its own (`queue/active.py`)

    @abstractmethod
    def sort_key(self, pod: Pod, timestamp_s: float) -> Any:  # a comparable value
        """Smaller goes first. `timestamp_s`: when the pod (re-)entered the queue."""


class PreEnqueuePlugin(Plugin):
    @abstractmethod
    def pre_enqueue(self, pod: Pod) -> Status: ...

    def holding(self) -> Collection[str]:
        """Keys of pods it would surely refuse: those it holds already need not be asked about one
        by one. A plugin that cannot tell without being asked names nobody.
        """
        return ()

    def expecting(self, departed: Pod) -> Expecting:  # noqa: ARG002
        """For whom room is being made, and where, now that one more pod has gone. Pods that leave
        other nodes wake such a pod only if it fits there, and nobody waits for more to leave.
        """
        return NOBODY_EXPECTS


class PreFilterResult(NamedTuple):
    """`status`: SUCCESS, SKIP (leave out this plugin's filter), a rejection, or an error.

    `node_names`: the only nodes to look at, None for all. `data` goes to Filter, Reserve, PreBind.
    `moved` logs rows about which the second half will answer something else though nothing of the
    row changed, since counts did elsewhere; it is up to date once `stamp` has been asked.
    `by_domain` is all that a filter says, if it has a column.
    """

    status: Status = SUCCESS
    node_names: frozenset[str] | None = None
    data: Any = None
    moved: RowLog | None = None
    by_domain: DomainCodes | None = None


class _Idle:
    """No Enum: those hash in Python, and this is hashed for every pod."""

    def __repr__(self) -> str:
        return "IDLE"


#: The share key of pods about which a plugin has nothing to say.
IDLE: Final = _Idle()


class CachedPlugin(Plugin):
    """What a plugin says about the lifetime of its answers (see the module text)."""

    depends_on: ClassVar[Aspect | None] = None
    #: Whether `stamp` reads counts of pods (affinity, spread, claims in use): it is then looked at
    #: after every placement that moved any count.
    reads_counts: ClassVar[bool] = False
    #: So many rows that changed are asked about one by one, more together, unless it has no rule
    #: for one (`filter_one`, `score_one`): what takes less time, as measured
    rows_few: ClassVar[int] = 8
    #: the error of Filter or Score where their first half is not enabled; "": they do without
    without_pre_filter: ClassVar[str] = ""
    without_pre_score: ClassVar[str] = ""

    def share_key(self, pod: PodInfo) -> Hashable:
        """Pods with equal keys get equal answers; by default pods of one class.

        IDLE says more: until an object changes, or somebody speaks of these pods in a term, the
        plugin would skip itself, let them pass or give them nothing, and has nothing to reserve.
        It is then not asked about them at Filter, Score, Reserve and PreBind at all.
        """
        return pod.cls.number

    def verdict_key(self, pod: PodInfo) -> Hashable:
        """Pods with equal keys are rejected on the same rows as the cluster stands, be it that one
        more change tells them apart: claims of their own that nobody uses yet, say.
        """
        return self.share_key(pod)

    def stamp(self, pod: PodInfo, data: Any) -> Hashable:  # noqa: ARG002
        """A value that differs once counts have moved that this answer was made from.

        All rows are then judged again; PreFilter (or PreScore) runs again too, unless `data_stamp`
        says that what it prepared still holds.
        """
        return 0

    def data_stamp(self, pod: PodInfo) -> Hashable:  # noqa: ARG002
        """A value that stays equal while what PreFilter prepared holds. None: as long as
        `stamp`.
        """
        return None


class PreFilterPlugin(CachedPlugin):
    @abstractmethod
    def pre_filter(self, pod: PodInfo) -> PreFilterResult: ...


class FilterPlugin(CachedPlugin):
    """`reads_only_amounts`: of the pods on a row it reads nothing but `requested` and `pod_count`
    of the view, and more pods never make it agree. Such a filter can be asked about pods that come
    or go without any of them being moved, many rows at a time.
    """

    reasons: ClassVar[tuple[Reason, ...]] = ()
    #: codes from here on are errors: on a row nobody rejected before, they end the attempt
    errors_from: ClassVar[int | None] = None
    #: asked only about rows that no earlier filter rejected; needs `depends_on` None
    asks_left: ClassVar[bool] = False
    reads_only_amounts: ClassVar[bool] = False

    def is_blind_for(self, pod: PodInfo) -> bool:  # noqa: ARG002
        """Whether it would say the same to this pod, whichever pods came to or left any row."""
        return False

    @abstractmethod
    def filter(self, pod: PodInfo, nodes: NodeView, data: Any) -> Codes:
        """int32[M] for the M rows of the view: 0 fits, any other code is told by `explain`.

        By default code k stands for `reasons[k - 1]`. Dead rows may get any code.
        """

    def filter_one(self, pod: PodInfo, row: int, data: Any) -> int | None:  # noqa: ARG002
        """The code of one row, where that is cheaper than a view of one; None: take the view."""
        return None

    #: The same for some rows, one code each, where what they have in common is read once.
    filter_few: Callable[[PodInfo, Sequence[int], Any], list[int] | None] | None = None

    def explain(self, pod: PodInfo, code: int) -> Status:  # noqa: ARG002
        return self.reasons[code - 1].status


class PreScorePlugin(CachedPlugin):
    @abstractmethod
    def pre_score(self, pod: PodInfo, nodes: NodeView, feasible: Mask) -> PreFilterResult:
        """`nodes` is the view of all rows, `feasible` bool[N] marks those to be scored.

        SKIP leaves the plugin out. `data` is handed to `score`.
        """


class ScorePlugin(CachedPlugin):
    """`score` is final, 0..100; with `normalizes`, `normalize` maps raw scores of feasible rows.

    A plugin whose raw score depends on which rows are feasible sets `reads_feasible`: it then gets
    both halves asked whenever the feasible set, its kinds or its stamp change (`heeds_feasible`).
    """

    reads_feasible: ClassVar[bool] = False
    normalizes: ClassVar[bool] = False
    fixes_ties: ClassVar[bool] = False  # of equal nodes the first row wins; else one is drawn
    is_checked: ClassVar[bool] = False  # whether final scores have to be 0..100; in-tree: trusted
    #: Whether it counts as scoring for pods with IDLE as share key, for its PreScore does not skip.
    scores_idle: bool = False

    def heeds_feasible(self, pod: PodInfo) -> bool:  # noqa: ARG002
        return self.reads_feasible

    @abstractmethod
    def score(self, pod: PodInfo, nodes: NodeView, data: Any) -> I64:
        """int64[M] raw scores of the view's rows; those that are not feasible may get anything."""

    def score_one(self, pod: PodInfo, row: int, data: Any) -> int | None:  # noqa: ARG002
        """The raw score of one row, where that is cheaper than a view; None: take the view."""
        return None

    #: The same for some rows, as of filters.
    score_few: Callable[[PodInfo, Sequence[int], Any], list[int] | None] | None = None

    def bounds(self, raw: I64, data: Any) -> Hashable:  # noqa: ARG002
        """What of int64[F], the raw scores of the feasible rows (F >= 1), decides about the points
        of each beside its own: the largest, say. None: all of them, or nobody knows.
        """
        return None

    def scaled(self, raw: I64, bounds: Any, data: Any) -> I64:  # noqa: ARG002
        """int64[M] raw scores to 0..100, by what `bounds` said; unfit rows get anything."""
        return raw

    def scaled_one(self, score: int, bounds: Any) -> int | None:  # noqa: ARG002
        """The same of one raw score that lies between (least, largest); None: look at all."""
        return None

    def normalize(self, raw: I64, data: Any) -> I64:
        """int64[F] raw scores of the feasible rows (F >= 1) to 0..100."""
        return self.scaled(raw, self.bounds(raw, data), data)


class Nomination(msgspec.Struct, frozen=True):
    """What becomes of status.nominatedNodeName: None leaves it, "" clears it, a name sets it."""

    node: str | None = None


class PostFilterResult(msgspec.Struct, frozen=True):
    """What a PostFilter plugin answers, or all of a profile together (`Runner.post_filter`).

    `background` of SUCCESS goes on after the attempt (evictions); if it fails, or answers SKIP
    because nothing was left to be done, the pod is tried again at once. `withdraw` takes back what
    was noted for it, if it must not go on after all: the pod's group does not fit even so.
    `background` of any other status is carried out before the pod returns to the queue; if it
    fails, its status is reported in place of this one. `first` collects these of all plugins.
    """

    status: Status
    nomination: Nomination = Nomination()
    background: Late | None = None
    victims: tuple[str, ...] = ()
    withdraw: Callable[[], None] | None = None
    first: tuple[Late, ...] = ()

    def drop(self) -> None:
        """Carry nothing out, and take back what was noted."""
        if self.withdraw is not None:
            self.withdraw()
        for steps in (*self.first, self.background):
            if steps is not None:
                steps.close()


class PostFilterPlugin(Plugin):
    def may_make_room(self, pod: PodInfo, why: "Callable[[], Rejection]", trial: "Trial") -> bool:  # noqa: ARG002
        """Whether `post_filter` might, of a pod that fits nowhere: `why` tells. Changes nothing."""
        return True

    def may_evict(self, pod: PodInfo, trial: "Trial") -> bool:  # noqa: ARG002
        """Whether amounts allow that it evicts pods somewhere for one like that."""
        return True

    @abstractmethod
    def post_filter(
        self, pod: PodInfo, rejection: "Rejection", trial: "Trial"
    ) -> PostFilterResult | Generator[Effect, Answer, PostFilterResult]:
        """Make room, or say why not. A generator where an extender must be asked.

        SUCCESS ends the step, so do UNSCHEDULABLE_AND_UNRESOLVABLE and ERROR; after UNSCHEDULABLE
        the next plugin is asked, and the messages are joined.
        """


class ReservePlugin(Plugin):
    @abstractmethod
    def reserve(self, pod: PodInfo, node: str, data: Any) -> Status: ...

    @abstractmethod
    def unreserve(self, pod: PodInfo, node: str) -> Late | None:
        """Idempotent, also without `reserve`, and never fails. Effects undo what is outside."""

    def chooses(self, pod: PodInfo) -> bool:  # noqa: ARG002
        """Whether there is anything to be reserved for a pod."""
        return True

    def choices(self, pod: PodInfo, node: str, data: Any) -> int:  # noqa: ARG002
        """Of how many things `reserve` takes one there, which leave others different things: that
        which `Choices` says. More than CHOICES_MAX need not be counted.
        """
        return 1

    def chosen(self, pod: PodInfo) -> Hashable:  # noqa: ARG002
        """What `reserve` chose for a pod of all that it could have. The search for gangs tells
        states apart by it; unless a plugin says more, no two of them are the same.
        """
        return object()


class PermitPlugin(Plugin):
    @abstractmethod
    def permit(self, pod: PodInfo, node: str) -> tuple[Status, float]:
        """SUCCESS, a rejection, or WAIT with the seconds it may take."""

    def permit_late(self, pod: PodInfo, node: str) -> Late | None:  # noqa: ARG002
        """What decides about a pod that this plugin lets wait: SUCCESS lets it go, WAIT says that
        the time is up. None: others decide.
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
        """SUCCESS, SKIP (the next bind plugin is asked), or a failure."""


class PostBindPlugin(Plugin):
    @abstractmethod
    def post_bind(self, pod: PodInfo, node: str) -> Late | None: ...
