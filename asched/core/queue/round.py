"""The delivery of one change to the unschedulable pods: its dry runs, and the pods that room is
being made for.

Bounds  LOOKS_MAX dry runs for one change, not counting pods that room is being made for elsewhere:
        most of these need none, by the free amounts of the node.
"""

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Final

from asched.core.cluster.budget import Budget
from asched.core.cluster.changes import Change
from asched.core.framework.expecting import NONE_EXPECTED, Expecting
from asched.core.model.pod import Pod
from asched.core.queue.hints import Memo
from asched.core.queue.queued import NO_NAMES, QueuedPod, Worth
from asched.core.queue.unschedulable import class_of

#: Classes with a dry run for one change; further classes are woken without. A guess: with cached
#: results a dry run takes about as long as waking the pod.
LOOKS_MAX: Final = 64
#: Budget steps for a dry run.
LOOK_STEPS: Final = 15


#: By scheduler name: the plugins that reject a pod now, None if it fits. With the name of a node:
#: the only change since the last result is that a pod left this node.
Blame = Mapping[str, Callable[[Pod, str], frozenset[str] | None]]


#: Whether a pod that room is being made for elsewhere may fit on the node that another pod left.
RoomLeft = Callable[[str], Callable[[QueuedPod], bool]]


def unknown_room(_left: str) -> Callable[[QueuedPod], bool]:
    """The test without dry runs: any pod may fit."""
    return may_always_fit


def may_always_fit(_queued: QueuedPod) -> bool:
    return True


class ClassDryRuns:
    """Dry runs of classes for one change: which fit now, and which plugins reject the others."""

    def __init__(self, blame: Blame, budget: Budget, left: str = "") -> None:
        self._blame = blame
        self._budget = budget
        self._left = left
        self._seen: dict[Hashable, frozenset[str] | None] = {}
        self.asked = 0  # number of calls, cached results included

    def worth(self, queued: QueuedPod) -> Worth:
        return self._dry_run(queued, _own_key(queued), bounded=True)

    def worth_to_equal_pod(self, queued: QueuedPod) -> Worth:
        """The worth for an equal pod without a nomination."""
        return self._dry_run(queued, _key_of_equal_pods(queued), bounded=False)

    def noted(self, queued: QueuedPod) -> frozenset[str]:
        """The plugins that rejected this pod, or an equal pod, in a dry run; empty without one."""
        own, of_equal = _own_key(queued), _key_of_equal_pods(queued)
        return (self._seen.get(own) or NO_NAMES) | (self._seen.get(of_equal) or NO_NAMES)

    def _dry_run(self, queued: QueuedPod, key: Hashable, *, bounded: bool) -> Worth:
        self.asked += 1
        if key not in self._seen:
            blamed = None
            if not bounded or len(self._seen) < LOOKS_MAX:
                self._budget.note(LOOK_STEPS)
                blamed = self._blame[queued.pod.spec.scheduler_name](queued.pod, self._left)
            self._seen[key] = blamed
        return Worth.AFTER_BACKOFF if self._seen[key] is None else Worth.SKIP


class Round:
    """The delivery of one change to the groups. `hears`, `profits`: those of the current group;
    `held`: keys of its pods that a gate is certain to reject.

    `departed`: the pod that left its node, for such a change; `expecting`: the nodes where room is
    being made for pods of the current profile; `is_awaited`: whether this node is one of them.
    """

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
        self.expecting = NONE_EXPECTED
        self.is_awaited = False
        self.held: Collection[str] = ()

    @property
    def left(self) -> str:
        """The node that the departed pod left; "" without one, or if there are several."""
        if self.departed is None or self.change.is_of_many:
            return ""
        return self.departed.spec.node_name

    def expect(self, expecting: Expecting) -> None:
        self.expecting = expecting
        self.is_awaited = bool(expecting) and bool(expecting.keys_at(self.left))

    def passes_by(self, pods: Mapping[str, QueuedPod]) -> bool:
        """Whether the change is of no use to these equal pods: room is being made for all of them
        on other nodes, and this node is awaited by another pod or has too little room.
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
        """The worth for a pod that room is being made for on another node."""
        if self.is_awaited:
            return Worth.SKIP
        return self.looks.worth_to_equal_pod(queued)


def _own_key(queued: QueuedPod) -> Hashable:
    return queued if is_nominated(queued) else class_of(queued)


def _key_of_equal_pods(queued: QueuedPod) -> Hashable:
    return queued if queued.class_key is None else ("without nomination", queued.class_key)


def is_nominated(queued: QueuedPod) -> bool:
    """Whether the pod has a nominated node, where it may fit although equal pods do not."""
    return bool(queued.pod.status.nominated_node_name)
