"""Effects: everything the core requests from outside, as data. Each class names its answers.

An effect leaves `Machine.handle`, the driver (`host/loops.py`) performs it, and its outcome
returns as a fact with the same id. Effects without answers may be merged or dropped. `lane` is the
priority: bindings never queue behind conditions, nor conditions behind events.
"""

from collections.abc import Awaitable, Callable, Generator, Mapping
from enum import IntEnum
from typing import Any, ClassVar, Final

import msgspec

from asched.core.cluster import facts
from asched.core.config.v1 import Extender
from asched.core.model.kinds import Kind
from asched.core.model.meta import ObjectReference
from asched.core.model.pod import Pod


class Lane(IntEnum):
    """Priorities. Each lane has its own queue and limits in the client."""

    BINDING = 0  # bindings, and the reads that settle an unknown one
    WRITE = 1  # what bindings and preemption wait for: volumes, claims, evictions
    STATUS = 2  # conditions and nominations
    EVENT = 3  # events
    LOCAL = 4  # no API requests: coroutines of plugins, calls of extenders, timers


class Effect(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all effects. `id` is unique within a process, 0 until the machine sets it;
    `operation` is the id of the first effect of the same operation, such as a binding, so that
    operations begun earlier have lower numbers.

    A generator that yields an effect with answers is sent one, unless `wants_answer` is False: then
    it continues at once and the answer is dropped.
    """

    lane: ClassVar[Lane]
    answers: ClassVar[tuple[type[facts.Answer], ...]] = ()
    id: int = 0
    operation: int = 0
    wants_answer: bool = True

    @property
    def lets_others(self) -> bool:
        """Whether other work may run before the generator continues."""
        return bool(self.answers) and self.wants_answer


#: The content type of a patch that merges lists by their keys.
STRATEGIC_MERGE: Final = "application/strategic-merge-patch+json"


class PodRef(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The pod of an effect."""

    namespace: str
    name: str
    uid: str
    resource_version: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


def ref_of(pod: Pod) -> PodRef:
    """A reference to this version of a pod."""
    metadata = pod.metadata
    return PodRef(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
    )


#: A write without an answer, and without a resourceVersion that refuses it, is carried out within
#: this time or never. kube-apiserver ends a request after the time it names (ours: 30 s from its
#: arrival), after its own --request-timeout at the latest (60 s by default), and when its
#: connection closes. The rest, half a minute, is for a slow proxy and for etcd.
LANDS_WITHIN_S: Final = 60.0


class Bind(Effect, frozen=True, kw_only=True):
    """POST pods/NAME/binding; uid and resourceVersion of the pod are preconditions. Three outcomes;
    ReadPending if it is not sent because a write of our own gave the pod a newer version.
    """

    lane: ClassVar[Lane] = Lane.BINDING
    answers: ClassVar = (facts.Bound, facts.Refused, facts.Unknown, facts.ReadPending)
    pod: PodRef
    node: str


class ReadPod(Effect, frozen=True, kw_only=True):
    """GET the pod to settle an unknown binding."""

    lane: ClassVar[Lane] = Lane.BINDING
    answers: ClassVar = (facts.ReadPlaced, facts.ReadPending, facts.ReadGone, facts.Unknown)
    pod: PodRef


class PatchPodStatus(Effect, frozen=True, kw_only=True):
    """PATCH pods/NAME/status (strategic merge). Only the given parts are written.

    `condition`: fields of one condition, merged by its type. `condition_types`: all types the pod
    has after the patch, in order (`$setElementOrder/conditions`). `nominated_node_name`: None
    leaves it, "" clears it (null on the wire).
    """

    lane: ClassVar[Lane] = Lane.STATUS
    answers: ClassVar = (facts.Done, facts.Refused, facts.Unknown)
    pod: PodRef
    condition: Mapping[str, Any] | None = None
    condition_types: tuple[str, ...] = ()
    nominated_node_name: str | None = None


class MarkVictim(PatchPodStatus, frozen=True, kw_only=True):
    """The condition of a pod about to be evicted; not dropped, as the deletion waits for it."""

    lane: ClassVar[Lane] = Lane.WRITE


class NotePod(PatchPodStatus, frozen=True, kw_only=True):
    """A condition of a pod; not dropped, as an eviction waits for it."""

    lane: ClassVar[Lane] = Lane.WRITE


class DeletePod(Effect, frozen=True, kw_only=True):
    """DELETE a pod with its default grace period; the uid, if known, is a precondition."""

    lane: ClassVar[Lane] = Lane.WRITE
    answers: ClassVar = (facts.Done, facts.Refused, facts.Unknown)
    pod: PodRef


class Evict(Effect, frozen=True, kw_only=True):
    """POST pods/NAME/eviction; the uid is a precondition. A disruption budget that does not allow
    it is `Refused` with 429.
    """

    lane: ClassVar[Lane] = Lane.WRITE
    answers: ClassVar = (facts.Done, facts.Refused, facts.Unknown)
    pod: PodRef


class Patch(Effect, frozen=True, kw_only=True):
    """PATCH any object (by default a merge patch); the answer contains the new object.

    A `resourceVersion` in the body's metadata makes it conditional (409 if the object changed).
    """

    lane: ClassVar[Lane] = Lane.WRITE
    answers: ClassVar = (facts.Done, facts.Refused, facts.Unknown)
    kind: Kind
    namespace: str
    name: str
    body: Mapping[str, Any]
    subresource: str = ""
    content_type: str = "application/merge-patch+json"


class PatchGroupStatus(Patch, frozen=True, kw_only=True):
    """The condition of a PodGroup, with lower priority than bindings. A newer one replaces an older
    one.
    """

    lane: ClassVar[Lane] = Lane.STATUS


class Create(Effect, frozen=True, kw_only=True):
    """POST an object; the answer contains it as stored."""

    lane: ClassVar[Lane] = Lane.WRITE
    answers: ClassVar = (facts.Done, facts.Refused, facts.Unknown)
    kind: Kind
    namespace: str
    body: Mapping[str, Any]


class Delete(Effect, frozen=True, kw_only=True):
    """DELETE an object other than a pod."""

    lane: ClassVar[Lane] = Lane.WRITE
    answers: ClassVar = (facts.Done, facts.Refused, facts.Unknown)
    kind: Kind
    namespace: str
    name: str
    uid: str = ""


class EmitEvent(Effect, frozen=True, kw_only=True):
    """An events.k8s.io/v1 Event: created, or counted into its series. Never answered."""

    lane: ClassVar[Lane] = Lane.EVENT
    regarding: ObjectReference
    type: str  # Normal or Warning
    reason: str
    action: str
    note: str
    reporting_controller: str
    related: ObjectReference | None = None


#: An object that a condition depends on: a kind's `resource` and the object's key.
Topic = tuple[str, str]


#: Default time limit of a coroutine: VolumeBinding's limit for volumes.
CALL_TIMEOUT_S: Final = 600.0


def never() -> bool:
    """A condition that never becomes true."""
    return False


class CallPlugin(Effect, frozen=True, kw_only=True):
    """Run a coroutine of a user's plugin in the binding task, for `timeout_s` at most.

    It is cancelled and answered by Done once `ready` returns True (called again when an object in
    `on` changes). `binds`: the coroutine performs the binding.
    """

    lane: ClassVar[Lane] = Lane.LOCAL
    answers: ClassVar = (facts.Returned, facts.Raised, facts.TimedOut, facts.Done)
    plugin: str
    call: Callable[[], Awaitable[Any]]
    timeout_s: float = CALL_TIMEOUT_S
    ready: Callable[[], bool] = never
    on: tuple[Topic, ...] = ()
    binds: bool = False


class CancelCall(Effect, frozen=True, kw_only=True):
    """Cancel the coroutine of a `CallPlugin` whose answer is no longer needed."""

    lane: ClassVar[Lane] = Lane.LOCAL
    call_id: int


class Whole:
    """Replaces an object that must be sent as the API server has it; the core stores records only.

    An empty `uid` matches any. Not a dataclass, so that no encoder treats it as content.
    """

    __slots__ = ("key", "kind", "uid")

    def __init__(self, kind: Kind, key: str, uid: str = "") -> None:
        self.kind = kind
        self.key = key  # "namespace/name", or the name
        self.uid = uid

    def __repr__(self) -> str:
        return f"Whole({self.kind.name}, {self.key!r})"


class Wholes:
    """Replaces a list of such objects; deleted ones are left out."""

    __slots__ = ("keys", "kind")

    def __init__(self, kind: Kind, keys: tuple[str, ...]) -> None:
        self.kind = kind
        self.keys = keys

    def __repr__(self) -> str:
        return f"Wholes({self.kind.name}, {self.keys!r})"


class AskExtender(Effect, frozen=True, kw_only=True):
    """POST a request of the extender protocol; `body` is the later JSON, with `Whole` and `Wholes`
    in place of objects.
    The answer is the JSON of a 200; everything else is Refused or Unknown.
    """

    lane: ClassVar[Lane] = Lane.LOCAL
    answers: ClassVar = (facts.Replied, facts.Refused, facts.Unknown)
    extender: Extender
    verb: str  # as configured: the end of the URL
    body: Mapping[str, Any]


class Together(Effect, frozen=True, kw_only=True):
    """Run these late points concurrently; answered by their results once all have ended.

    Handled within the machine.
    """

    lane: ClassVar[Lane] = Lane.LOCAL
    answers: ClassVar = (facts.Returned,)
    parts: tuple[Generator[Any, Any, Any], ...]


class Pause(Effect, frozen=True, kw_only=True):
    """Let other work run: the generator has used up its slice of the budget.

    Handled within the machine and answered by Done in a later turn. `is_alone`: the state is
    inconsistent in between, so the turn ends and the next one begins with this generator: no fact
    is processed and nothing is decided before.
    """

    lane: ClassVar[Lane] = Lane.LOCAL
    answers: ClassVar = (facts.Done,)
    is_alone: bool = False

    @property
    def lets_others(self) -> bool:
        return not self.is_alone


class WaitFor(Effect, frozen=True, kw_only=True):
    """Resume the generator once `ready` returns True, or at the deadline.

    Handled within the machine: `ready` is called whenever an object in `on` has changed (seen,
    assumed or deleted), and after every batch of facts if there are none. Answered by Done or
    TimedOut.

    `in_doubt`: an effect of the generator may still be carried out. Such a wait does not end early,
    since what is reserved for it must not be released before the outcome is known.

    `why`: returns what is awaited, for explanations; called only when a client asks.
    """

    lane: ClassVar[Lane] = Lane.LOCAL
    answers: ClassVar = (facts.Done, facts.TimedOut)
    ready: Callable[[], bool]
    timeout_s: float
    on: tuple[Topic, ...] = ()
    in_doubt: bool = False
    why: Callable[[], str] | None = None


#: Lanes whose effects may be dropped if queues are full, lowest priority last.
COURTESY_LANES: Final = (Lane.STATUS, Lane.EVENT)
