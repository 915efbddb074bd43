"""Waking: which unschedulable pods a change reaches.

    the hints of those who rejected the pod say Queue          it is worth another attempt
    they say nothing, but a hint for overlooked changes does   it is, if the pod fits now
    otherwise                                                  the pod rests on

A pod for which room is being made on some node is the exception: until that is done, pods that
leave other nodes wake it only if it fits now, and not as long as room is being made there for
another, since what is left over shows in the end. Hundreds of them would else be tried in vain for
every single pod that goes.

A pod that was looked at in vain keeps in mind who stood against it then, beside those who rejected
its attempt: what they hear of later may be its chance. It follows that, too, only if it fits.

Of thousands of classes, a change meets those it can concern (`concerned.py`).

Pods of one class and group share all that this depends on, except who they are: they are asked
about once, and woken one by one (`due.py`), save those that stand apart or behind a gate. Those
that are due already are not asked about again before somebody has looked at them: where thousands
of classes wait, each pod that goes would cost milliseconds. The extra events costs what the filters
of an attempt cost; it spares the pod an attempt in vain, which hints as upstream has them would not
have made either.

Bounds  LOOKS_MAX looks for one change. A change may have to be heard by a hundred thousand classes:
        whoever asks may stop after each of them (`state/sliced.py`).
Source  kubernetes/kubernetes v1.36 pkg/scheduler/backend/queue/scheduling_queue.go; the extra
        events are our own
"""

from collections import deque
from collections.abc import (
    Callable,
    Collection,
    Generator,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from itertools import chain, filterfalse
from typing import Final

from asched.core.framework.expecting import NOBODY_EXPECTS
from asched.core.framework.points import Concerns
from asched.core.model.pod import Pod
from asched.core.queue.concerned import Offers
from asched.core.queue.gates import Gates
from asched.core.queue.hints import Judge, Memo, Worth
from asched.core.queue.queued import NOBODY, QueuedPod
from asched.core.queue.unschedulable import Equals, RejectorGroup, class_of
from asched.core.state.budget import Budget
from asched.core.state.changes import ASSIGNED_POD_DELETE, Change

#: Classes of pods that are looked at a second time for one change; further ones are woken unseen.
#: A guess: with cached results a look takes about as long as waking the pod.
LOOKS_MAX: Final = 64
#: Steps of the budget for a class that is passed by, and for a look.
PASS_STEPS: Final = 0.02
#: ... and for each pod of it, where a gate may hold them all.
HELD_STEPS: Final = 0.004
LOOK_STEPS: Final = 15


#: Who stands against a pod now, None if it fits; by scheduler name. With the name of a node: all
#: that happened since the pod did not fit is that a pod left it.
Blame = Mapping[str, Callable[[Pod, str], frozenset[str] | None]]


#: A pod, or equal ones of which the first is to be woken, and what the change is worth to them.
Woken = tuple[QueuedPod | Equals, Worth]


class Looks:
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
        return (self._seen.get(own) or NOBODY) | (self._seen.get(like) or NOBODY)

    def _look(self, queued: QueuedPod, key: Hashable, *, bounded: bool) -> Worth:
        self.asked += 1
        if key not in self._seen:
            blamed = None
            if not bounded or len(self._seen) < LOOKS_MAX:
                self._budget.note(LOOK_STEPS)
                blamed = self._blame[queued.pod.spec.scheduler_name](queued.pod, self._left)
            self._seen[key] = blamed
        return Worth.AFTER_BACKOFF if self._seen[key] is None else Worth.SKIP


class _Round:
    """One change on its way through the groups. `hears`, `profits`: of the present one;
    `held`: keys of its pods that a gate would surely refuse.

    `departed`: the pod that left its node, if the change is of that kind; `expecting`: where room
    is being made for pods of the present profile.
    """

    __slots__ = (
        "change",
        "departed",
        "except_uid",
        "expecting",
        "hears",
        "held",
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
    ) -> None:
        self.change = change
        self.except_uid = except_uid
        self.memo: Memo = {}
        self.second_memo: Memo = {}
        self.hears = self.profits = False
        self.departed = departed
        self.looks = Looks(blame, budget, self.left)
        self.expecting = NOBODY_EXPECTS
        self.held: Collection[str] = ()

    @property
    def left(self) -> str:
        """The node that the departed pod left; "" if it only had one promised."""
        return "" if self.departed is None else self.departed.spec.node_name

    def worth_elsewhere(self, queued: QueuedPod) -> Worth:
        """To a pod for which room is being made on another node."""
        if self.expecting.keys_at(self.left):
            return Worth.SKIP
        return self.looks.worth_to_its_like(queued)


class Waking:
    """Decides; it moves nobody. `notes`: pods that rest on, and who was blamed for it anew. Looks
    are noted in the budget.
    """

    def __init__(self, judge: Judge, gates: Gates, blame: Blame, budget: Budget) -> None:
        self._judge = judge
        self.gates = gates
        self._blame = blame
        self._budget = budget
        self.notes: deque[tuple[QueuedPod, frozenset[str]]] = deque()

    def woken(
        self, groups: tuple[RejectorGroup, ...], change: Change, except_uid: str
    ) -> Iterator[Sequence[Woken]]:
        """Every pod of the groups that the change is worth an attempt for; of equal ones, one. Told
        class by class, be it nobody.
        """
        trigger, offers = change.trigger, Offers(change)
        note = self._budget.note
        one: _Round | None = None
        gone = change.old if trigger == ASSIGNED_POD_DELETE else None
        departed = gone if isinstance(gone, Pod) else None
        # Also where nobody rests: what is told of a pod that left must not be remembered for good.
        expecting = {} if departed is None else self.gates.expecting(departed)
        for group, heard in self._judge.listeners(groups, trigger).told:
            key = group.key
            concerned = yield from self._concerned(group, change, heard.concerns, offers)
            if not concerned:  # as of each pod that comes before its gang is complete
                continue
            if one is None:
                one = _Round(change, departed, except_uid, self._blame, self._budget)
            one.expecting = expecting.get(key.profile, NOBODY_EXPECTS)
            one.hears, one.profits = heard.hears, heard.profits
            one.held = self.gates.holding(key.profile, key.gated_by) if key.gated_by else ()
            # who is worth a look already, and no change could be worth more
            passes_due = not key.pending_on and not except_uid
            for equals in concerned:
                note(PASS_STEPS + (HELD_STEPS * len(equals.apart) if one.held else 0.0))
                if equals.apart:
                    yield self._of_class(group, equals.apart, one)
                if equals.in_turn and not (passes_due and equals.awaits_look):
                    yield self._of_those_in_turn(group, equals, one)

    def _concerned(
        self,
        group: RejectorGroup,
        change: Change,
        concerns: frozenset[Concerns] | None,
        offers: Offers,
    ) -> Generator[Sequence[Woken], None, Collection[Equals]]:
        """The classes that may hear of it, once that is found out. What ended one pod's nomination
        may be news to itself, which no key tells.
        """
        classes = group.classes
        is_for_all = change.trigger.is_wildcard or change.priority_at_most is not None
        if is_for_all or concerns is None:
            return tuple(classes.values())
        return (yield from group.concerned.among(classes, concerns, offers))

    def _of_those_in_turn(
        self, group: RejectorGroup, equals: Equals, one: _Round
    ) -> Sequence[Woken]:
        pods, change = equals.in_turn, one.change
        if group.key.gated_by or change.trigger.is_wildcard:
            classes = equals.classes().values()
            return [found for alike in classes for found in self._of_class(group, alike, one)]
        limit = change.priority_at_most
        for example in _examples(equals):
            if limit is not None and example.pod.priority > limit:
                continue
            asked = one.looks.asked
            worth = self._worth(example, one)
            if worth is not Worth.SKIP:
                return ((equals, worth),)
            if one.looks.asked != asked:
                blamed = one.looks.noted(example) - group.rejectors - group.key.also_blamed
                if blamed:
                    self.notes.extend((queued, blamed) for queued in pods.values())
        return ()

    def of_itself(self, queued: QueuedPod, change: Change) -> Worth:
        """What a change of the pod itself is worth to it."""
        worth = self._judge.worth(queued, change)
        if worth is Worth.SKIP and self._judge.profits(queued, change):
            return self._second_look(queued)
        return worth

    def of_missed(self, queued: QueuedPod, missed: Iterable[Change]) -> Worth:
        """What the changes that a pod missed during its attempt are worth to it together."""
        best = Worth.SKIP
        may_profit = False
        for change in missed:
            worth = self._judge.worth(queued, change)
            if worth is Worth.SKIP or change.only_if_fits:
                may_profit |= worth is not Worth.SKIP or self._judge.profits(queued, change)
                continue
            best = worth
            if best is Worth.IMMEDIATELY or not queued.pending_on:
                break  # nothing is worth more
        if best is Worth.SKIP and may_profit:
            return self._second_look(queued)
        return best

    def _second_look(self, queued: QueuedPod) -> Worth:
        looks = Looks(self._blame, self._budget)
        worth = looks.worth(queued)
        self._note(queued, looks)
        return worth

    def _note(self, queued: QueuedPod, looks: Looks) -> None:
        blamed = looks.noted(queued) - queued.rejectors - queued.also_blamed
        if blamed:
            self.notes.append((queued, blamed))

    def _of_class(
        self, group: RejectorGroup, pods: Mapping[str, QueuedPod], one: _Round
    ) -> list[tuple[QueuedPod, Worth]]:
        change = one.change
        if one.held and all(map(one.held.__contains__, pods)):
            return []
        if (
            one.profits
            or change.only_if_fits
            or change.trigger.is_wildcard
            or change.priority_at_most is not None
            or one.except_uid
        ):
            free = filterfalse(one.held.__contains__, pods)
            return self._of_each(map(pods.__getitem__, free), one)
        return self._of_equals(group, pods, one)

    def _of_equals(
        self, group: RejectorGroup, pods: Mapping[str, QueuedPod], one: _Round
    ) -> list[tuple[QueuedPod, Worth]]:
        """Where hints alone decide, one answer holds for all; but those for whom room is being made
        elsewhere need to fit, and one look tells that of all. Thousands of pods may be of a class,
        so that none of them is touched unless it is woken.
        """
        worth = self._worth(next(iter(pods.values())), one)
        if worth is Worth.SKIP:
            return []
        elsewhere, left, held = one.expecting.node_of, one.left, one.held
        keys: Iterable[str] = pods
        of_its_like: Worth = worth
        example = _one_elsewhere(pods, elsewhere, left)
        if example is not None:
            of_its_like = one.worth_elsewhere(example)
            if of_its_like is Worth.SKIP:
                blamed = one.looks.noted(example) - group.rejectors - group.key.also_blamed
                if blamed:
                    self.notes.extend((q, blamed) for k, q in pods.items() if k in elsewhere)
                here = filter(pods.__contains__, one.expecting.keys_at(left))
                keys = chain(filterfalse(elsewhere.__contains__, pods), here)
        return [
            (pods[key], worth if elsewhere.get(key, left) == left else of_its_like)
            for key in filterfalse(held.__contains__, keys)
        ]

    def _of_each(self, pods: Iterable[QueuedPod], one: _Round) -> list[tuple[QueuedPod, Worth]]:
        change = one.change
        left = one.left
        priority_max = change.priority_at_most
        looks = one.profits or change.only_if_fits
        asked = one.looks.asked
        shared: Worth | None = None
        found: list[tuple[QueuedPod, Worth]] = []
        for queued in pods:
            if priority_max is not None and queued.pod.priority > priority_max:
                continue
            if queued.pod.uid == one.except_uid:
                continue
            if looks and (_is_nominated(queued) or queued.is_gated):
                worth = self._worth(queued, one)
            else:
                if shared is None or change.trigger.is_wildcard:
                    shared = self._worth(queued, one)
                worth = shared
            unseen = one.looks.asked == asked and not change.trigger.is_wildcard
            if worth is Worth.SKIP and unseen:
                break  # the hints, which the class shares, have said no
            if worth is not Worth.SKIP and one.expecting:
                node = one.expecting.node_of.get(queued.key)
                if node is not None and node != left:
                    worth = one.worth_elsewhere(queued)
            if worth is not Worth.SKIP:
                found.append((queued, worth))
            elif one.looks.asked != asked:
                self._note(queued, one.looks)
        return found

    def _worth(self, queued: QueuedPod, one: _Round) -> Worth:
        worth = Worth.SKIP
        if one.hears:
            worth = self._judge.worth(queued, one.change, one.memo)
        if worth is not Worth.SKIP:
            return self._look(queued, one) if one.change.only_if_fits else worth
        if one.profits and self._judge.profits(queued, one.change, one.memo, one.second_memo):
            return self._look(queued, one)
        return Worth.SKIP

    def _look(self, queued: QueuedPod, one: _Round) -> Worth:
        """A gate that goes on to refuse the pod says so for less than a look costs."""
        if queued.is_gated and self.gates.refuses(queued):
            one.looks.asked += 1
            return Worth.SKIP
        return one.looks.worth(queued)


def _examples(equals: Equals) -> Iterator[QueuedPod]:
    """Of those in turn, one of each class: hints tell nobody apart but pods of a gang."""
    for pods in equals.classes().values():
        yield next(iter(pods.values()))


def _one_elsewhere(
    pods: Mapping[str, QueuedPod], node_of: Mapping[str, str], left: str
) -> QueuedPod | None:
    """A pod for which room is being made on another node than the one that a pod left."""
    for key in filter(node_of.__contains__, pods):
        if node_of[key] != left:
            return pods[key]
    return None


def _own_key(queued: QueuedPod) -> Hashable:
    return queued if _is_nominated(queued) else class_of(queued)


def _key_of_its_like(queued: QueuedPod) -> Hashable:
    return queued if queued.class_key is None else ("its like", queued.class_key)


def _is_nominated(queued: QueuedPod) -> bool:
    """Such a pod sees room that is promised to itself: it may fit where its like do not."""
    return bool(queued.pod.status.nominated_node_name)
