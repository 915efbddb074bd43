"""Effects: everything the deciding half asks of the outside, as data. Each class names its answers.

An effect leaves `Machine.handle`, the driver (`host/loops.py`) performs it, and its outcome
comes back as a fact with the same id. Effects without answers are courtesy: they may be coalesced
or dropped. `lane` says who waits behind whom: bindings never queue behind conditions, nor
conditions behind events.
"""

from collections.abc import Awaitable, Callable, Generator, Mapping
from enum import IntEnum
from typing import Any, ClassVar, Final

import msgspec

from asched.core.config.v1 import Extender
from asched.core.model.kinds import Kind
from asched.core.model.meta import ObjectReference
from asched.core.model.pod import Pod
from asched.core.state import facts


class Lane(IntEnum):
    """Order of importance. Each lane has a queue and bounds of its own in the client."""

    BINDING = 0  # bindings, and the reads that settle an unknown one
    WRITE = 1  # what bindings and preemption wait for: volumes, claims, evictions
    STATUS = 2  # conditions and nominations
    EVENT = 3  # events
    LOCAL = 4  # nothing leaves the process over the API: coroutines of plugins, questions, timers


class Effect(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all effects. `id` is unique within a process, 0 until the machine gives it; `turn`
    is that of the first effect of the same undertaking, so that those begun earlier have lower
    ones.

    Whoever yields an effect with answers is sent one, unless it sets `wants_answer` to False: then
    it goes on at once, and nobody hears what became of the effect.
    """

    lane: ClassVar[Lane]
    answers: ClassVar[tuple[type[facts.Answer], ...]] = ()
    id: int = 0
    turn: int = 0
    wants_answer: bool = True

    @property
    def lets_others(self) -> bool:
        """Whether others may have their turn before the asker goes on."""
        return bool(self.answers) and self.wants_answer


#: The content type of a patch that merges lists by their keys.
STRATEGIC_MERGE: Final = "application/strategic-merge-patch+json"


class PodRef(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which pod an effect is about."""

    namespace: str
    name: str
    uid: str
    resource_version: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


def ref_of(pod: Pod) -> PodRef:
    """A pod in this very version."""
    metadata = pod.metadata
    return PodRef(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
    )


#: A binding is carried out within this time after we gave up its answer, or never. kube-apiserver
#: ends a request after the time it names (ours: 30 s from when it was received), after its own
#: --request-timeout at the latest (60 s unless changed), and when its connection closes, as it did.
#: What is left is for a proxy that forwards late and for etcd: half a minute.
LANDS_WITHIN_S: Final = 60.0


class Bind(Effect, frozen=True, kw_only=True):
    """POST pods/NAME/binding with the uid as precondition. Three outcomes."""

    lane: ClassVar[Lane] = Lane.BINDING
    answers: ClassVar = (facts.Bound, facts.Refused, facts.Unknown)
    pod: PodRef
    node: str


class ReadPod(Effect, frozen=True, kw_only=True):
    """GET the pod to settle an unknown binding."""

    lane: ClassVar[Lane] = Lane.BINDING
    answers: ClassVar = (facts.ReadPlaced, facts.ReadPending, facts.ReadGone, facts.Unknown)
    pod: PodRef


class PatchPodStatus(Effect, frozen=True, kw_only=True):
    """PATCH pods/NAME/status (strategic merge). Only the parts given are written.

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
    """The condition of a pod about to be evicted: its deletion waits for it, so it is no
    courtesy.
    """

    lane: ClassVar[Lane] = Lane.WRITE


class DeletePod(Effect, frozen=True, kw_only=True):
    """DELETE a pod with its default grace period; the uid is a precondition where it is known."""

    lane: ClassVar[Lane] = Lane.WRITE
    answers: ClassVar = (facts.Done, facts.Refused, facts.Unknown)
    pod: PodRef


class Patch(Effect, frozen=True, kw_only=True):
    """PATCH any object (merge patch unless said otherwise); the answer carries the new object.

    A `resourceVersion` in the body's metadata makes it conditional (409 when it has moved on).
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
    """The condition of a PodGroup: nothing waits for it, so that bindings go first. A newer one
    says all that an older one does.
    """

    lane: ClassVar[Lane] = Lane.STATUS


class Create(Effect, frozen=True, kw_only=True):
    """POST an object; the answer carries it as stored."""

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


#: What a question looks at: a kind's `resource` and the key of one object of it.
Topic = tuple[str, str]


#: How long a coroutine may take if nobody says: what VolumeBinding gives volumes.
CALL_TIMEOUT_S: Final = 600.0


def never() -> bool:
    """For what only its own end can end."""
    return False


class CallPlugin(Effect, frozen=True, kw_only=True):
    """Run a coroutine of a user's plugin in the binding task, for `timeout_s` at most.

    It is pointless once `ready` says so (asked again when something of `on` moves): then it is
    cancelled and answered by Done. `binds`: what it does is a binding.
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
    """End the coroutine of a `CallPlugin` whose answer nobody waits for any more."""

    lane: ClassVar[Lane] = Lane.LOCAL
    call_id: int


class Whole:
    """Stands for an object just as the API server has it, where only records are kept here.

    An empty `uid` is any. Not a dataclass, lest an encoder takes it for content.
    """

    __slots__ = ("key", "kind", "uid")

    def __init__(self, kind: Kind, key: str, uid: str = "") -> None:
        self.kind = kind
        self.key = key  # "namespace/name", or the name
        self.uid = uid

    def __repr__(self) -> str:
        return f"Whole({self.kind.name}, {self.key!r})"


class Wholes:
    """Stands for a list of such objects; those that are gone by then are left out."""

    __slots__ = ("keys", "kind")

    def __init__(self, kind: Kind, keys: tuple[str, ...]) -> None:
        self.kind = kind
        self.keys = keys

    def __repr__(self) -> str:
        return f"Wholes({self.kind.name}, {self.keys!r})"


class AskExtender(Effect, frozen=True, kw_only=True):
    """POST a request of the extender protocol; `body` is JSON to be, with `Whole` and `Wholes` in
    place of objects.

    The answer is the JSON of a 200; everything else is Refused or Unknown.
    """

    lane: ClassVar[Lane] = Lane.LOCAL
    answers: ClassVar = (facts.Replied, facts.Refused, facts.Unknown)
    extender: Extender
    verb: str  # as configured: the end of the URL
    body: Mapping[str, Any]


class Together(Effect, frozen=True, kw_only=True):
    """Run these late points at the same time; answered by what they returned, once all have ended.

    It never leaves the machine.
    """

    lane: ClassVar[Lane] = Lane.LOCAL
    answers: ClassVar = (facts.Returned,)
    parts: tuple[Generator[Any, Any, Any], ...]


class Pause(Effect, frozen=True, kw_only=True):
    """Let others have their turn: the asker has used up its slice of the budget.

    It never leaves the machine. Answered by Done in a later turn. `is_alone`: nobody may see what
    the asker is in the midst of, so the turn ends, and the next one begins with it: nothing is
    taken in or decided before.
    """

    lane: ClassVar[Lane] = Lane.LOCAL
    answers: ClassVar = (facts.Done,)
    is_alone: bool = False

    @property
    def lets_others(self) -> bool:
        return not self.is_alone


class WaitFor(Effect, frozen=True, kw_only=True):
    """Wake the asker once `ready` says so, or at the deadline.

    It never leaves the machine: `ready` is asked synchronously, whenever one of the objects in `on`
    has moved (seen, assumed or gone), and after every batch of facts if there are none. Answered by
    Done or TimedOut.

    `in_doubt`: the asker has sent something that may still be carried out. Nobody ends such a wait
    early, since what the asker holds until it knows must not be given back on a guess.
    """

    lane: ClassVar[Lane] = Lane.LOCAL
    answers: ClassVar = (facts.Done, facts.TimedOut)
    ready: Callable[[], bool]
    timeout_s: float
    on: tuple[Topic, ...] = ()
    in_doubt: bool = False


#: Lanes whose effects may be given up under pressure, first the last.
COURTESY_LANES: Final = (Lane.STATUS, Lane.EVENT)
