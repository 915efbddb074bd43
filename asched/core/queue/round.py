"""One change on its way through those who wait: who was looked at for it, and for whom room is
being made where.

Bounds  LOOKS_MAX looks for one change, save at those for whom room is being made elsewhere: what is
        left of a node tells of most that they need none. It lives as long as the change.
"""

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Final

from asched.core.framework.expecting import NOBODY_EXPECTS, Expecting
from asched.core.model.pod import Pod
from asched.core.queue.hints import Memo, Worth
from asched.core.queue.queued import NO_NAMES, QueuedPod
from asched.core.queue.unschedulable import class_of
from asched.core.state.budget import Budget
from asched.core.state.changes import Change

#: Classes of pods that are looked at a second time for one change; further ones are woken unseen.
#: A guess: with cached results a look takes about as long as waking the pod.
LOOKS_MAX: Final = 64
#: Steps of the budget for a look.
LOOK_STEPS: Final = 15


#: Who stands against a pod now, None if it fits; by scheduler name. With the name of a node: all
#: that happened since the pod did not fit is that a pod left it.
Blame = Mapping[str, Callable[[Pod, str], frozenset[str] | None]]


#: Whether a pod for which room is being made elsewhere may fit on the node that another has left.
RoomLeft = Callable[[str], Callable[[QueuedPod], bool]]


def unknown_room(_left: str) -> Callable[[QueuedPod], bool]:
    """Where nobody can tell without a look."""
    return may_always_fit


def may_always_fit(_queued: QueuedPod) -> bool:
    return True


class ClassDryRuns:
    """Which classes of pods fit now, and who stands against the others; lives as long as one
    change.
    """

    __slots__ = ("_blame", "_budget", "_left", "_seen", "asked")

    def __init__(self, blame: Blame, budget: Budget, left: str = "") -> None:
        self._blame = blame
        self._budget = budget
        self._left = left
        self._seen: dict[Hashable, frozenset[str] | None] = {}
        self.asked = 0  # how often, whether that took a look or not

    def worth(self, queued: QueuedPod) -> Worth:
        return self._look(queued, _own_key(queued), bounded=True)

    def worth_to_its_like(self, queued: QueuedPod) -> Worth:
        """As if room that is promised to this very pod did not matter."""
        return self._look(queued, _key_of_its_like(queued), bounded=False)

    def noted(self, queued: QueuedPod) -> frozenset[str]:
        """Who was blamed when this pod, or its like, was looked at; nobody if it was not."""
        own, like = _own_key(queued), _key_of_its_like(queued)
        return (self._seen.get(own) or NO_NAMES) | (self._seen.get(like) or NO_NAMES)

    def _look(self, queued: QueuedPod, key: Hashable, *, bounded: bool) -> Worth:
        self.asked += 1
        if key not in self._seen:
            blamed = None
            if not bounded or len(self._seen) < LOOKS_MAX:
                self._budget.note(LOOK_STEPS)
                blamed = self._blame[queued.pod.spec.scheduler_name](queued.pod, self._left)
            self._seen[key] = blamed
        return Worth.AFTER_BACKOFF if self._seen[key] is None else Worth.SKIP


class Round:
    """One change on its way through the groups. `hears`, `profits`: of the present one;
    `held`: keys of its pods that a gate would surely refuse.

    `departed`: the pod that left its node, if the change is of that kind; `expecting`: where room
    is being made for pods of the present profile; `is_awaited`: whether on the node that was left.
    """

    __slots__ = (
        "_may_fit",
        "change",
        "departed",
        "except_uid",
        "expecting",
        "hears",
        "held",
        "is_awaited",
        "looks",
        "memo",
        "profits",
        "second_memo",
    )

    def __init__(
        self,
        change: Change,
        departed: Pod | None,
        except_uid: str,
        blame: Blame,
        budget: Budget,
        room_left: RoomLeft,
    ) -> None:
        self.change = change
        self.except_uid = except_uid
        self.memo: Memo = {}
        self.second_memo: Memo = {}
        self.hears = self.profits = False
        self.departed = departed
        self.looks = ClassDryRuns(blame, budget, self.left)
        self._may_fit = room_left(self.left)
        self.expecting = NOBODY_EXPECTS
        self.is_awaited = False
        self.held: Collection[str] = ()

    @property
    def left(self) -> str:
        """The node that the departed pod left; "" if it had one promised, or more was left."""
        if self.departed is None or self.change.is_of_many:
            return ""
        return self.departed.spec.node_name

    def expect(self, expecting: Expecting) -> None:
        self.expecting = expecting
        self.is_awaited = bool(expecting) and bool(expecting.keys_at(self.left))

    def passes_by(self, pods: Mapping[str, QueuedPod]) -> bool:
        """Whether room is being made on other nodes for all of these, equal ones, and on this one
        for somebody else, or it has too little left for any: nobody has to be asked what the change
        is worth to them.
        """
        elsewhere = self.expecting.node_of
        if not elsewhere:
            return False
        left = self.left
        for key in pods:
            if elsewhere.get(key, left) == left:
                return False
        return self.is_awaited or not self._may_fit(next(iter(pods.values())))

    def worth_elsewhere(self, queued: QueuedPod) -> Worth:
        """To a pod for which room is being made on another node."""
        if self.is_awaited:
            return Worth.SKIP
        return self.looks.worth_to_its_like(queued)


def _own_key(queued: QueuedPod) -> Hashable:
    return queued if is_nominated(queued) else class_of(queued)


def _key_of_its_like(queued: QueuedPod) -> Hashable:
    return queued if queued.class_key is None else ("its like", queued.class_key)


def is_nominated(queued: QueuedPod) -> bool:
    """Such a pod sees room that is promised to itself: it may fit where its like do not."""
    return bool(queued.pod.status.nominated_node_name)
