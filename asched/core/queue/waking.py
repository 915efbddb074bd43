"""Waking: which unschedulable pods a change reaches.

    the hints of those who rejected the pod say Queue          it is worth another attempt
    they say nothing, but a hint for overlooked changes does   it is, if the pod fits now
    otherwise                                                  the pod rests on

A pod for which room is being made on some node is the exception: until that is done, pods that
leave other nodes wake it only if it fits now, and not as long as room is being made there for
another, since what is left over shows in the end. Hundreds of them would else be tried in vain for
every single pod that goes. Nor does any of them get a look of its own where amounts alone tell that
what the other leaves is too little.

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
    Collection,
    Generator,
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
from asched.core.queue.hints import HintEvaluator, Worth
from asched.core.queue.queued import QueuedPod
from asched.core.queue.round import Blame, ClassDryRuns, RoomLeft, Round, is_nominated, unknown_room
from asched.core.queue.unschedulable import EquivalenceClass, RejectorGroup
from asched.core.state.budget import Budget
from asched.core.state.changes import ASSIGNED_POD_DELETE, Change

#: Steps of the budget for a class that is passed by, ...
PASS_STEPS: Final = 0.02
#: ... and for each pod of it, where a gate may hold them all.
HELD_STEPS: Final = 0.004


#: A pod, or equal ones of which the first is to be woken, and what the change is worth to them.
Woken = tuple[QueuedPod | EquivalenceClass, Worth]


class Waking:
    """Decides; it moves nobody. `notes`: pods that rest on, and who was blamed for it anew. Looks
    are noted in the budget.
    """

    def __init__(
        self,
        judge: HintEvaluator,
        gates: Gates,
        blame: Blame,
        budget: Budget,
        room_left: RoomLeft = unknown_room,
    ) -> None:
        self._judge = judge
        self.gates = gates
        self._blame = blame
        self._room_left = room_left
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
        one: Round | None = None
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
                one = Round(
                    change, departed, except_uid, self._blame, self._budget, self._room_left
                )
            one.expect(expecting.get(key.profile, NOBODY_EXPECTS))
            one.hears, one.profits = heard.hears, heard.profits
            one.held = self.gates.holding(key.profile, key.gated_by) if key.gated_by else ()
            # who is worth a look already, and no change could be worth more
            passes_due = not key.pending_on
            for equals in concerned:
                note(PASS_STEPS + (HELD_STEPS * len(equals.apart) if one.held else 0.0))
                if equals.apart and not one.passes_by(equals.apart):
                    yield self._of_class(group, equals.apart, one)
                if equals.in_turn and not (passes_due and equals.awaits_look):
                    yield self._of_those_in_turn(group, equals, one)

    def _concerned(
        self,
        group: RejectorGroup,
        change: Change,
        concerns: frozenset[Concerns] | None,
        offers: Offers,
    ) -> Generator[Sequence[Woken], None, Collection[EquivalenceClass]]:
        """The classes that may hear of it, once that is found out. What ended one pod's nomination
        may be news to itself, which no key tells.
        """
        classes = group.classes
        if change.priority_at_most is not None or concerns is None:
            return tuple(classes.values())
        return (yield from group.concerned.among(classes, concerns, offers))

    def _of_those_in_turn(
        self, group: RejectorGroup, equals: EquivalenceClass, one: Round
    ) -> Sequence[Woken]:
        pods, change = equals.in_turn, one.change
        if group.key.gated_by:
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
        looks = ClassDryRuns(self._blame, self._budget)
        worth = looks.worth(queued)
        self._note(queued, looks)
        return worth

    def _note(self, queued: QueuedPod, looks: ClassDryRuns) -> None:
        blamed = looks.noted(queued) - queued.rejectors - queued.also_blamed
        if blamed:
            self.notes.append((queued, blamed))

    def _of_class(
        self, group: RejectorGroup, pods: Mapping[str, QueuedPod], one: Round
    ) -> list[tuple[QueuedPod, Worth]]:
        change = one.change
        if all(map(one.held.__contains__, pods)):
            return []
        asks_each = one.profits or change.only_if_fits or one.except_uid
        if asks_each or change.priority_at_most is not None:
            free = filterfalse(one.held.__contains__, pods)
            return self._of_each(map(pods.__getitem__, free), one)
        return self._of_equals(group, pods, one)

    def _of_equals(
        self, group: RejectorGroup, pods: Mapping[str, QueuedPod], one: Round
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

    def _of_each(self, pods: Iterable[QueuedPod], one: Round) -> list[tuple[QueuedPod, Worth]]:
        change = one.change
        left, node_of = one.left, one.expecting.node_of
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
            if looks and (is_nominated(queued) or queued.is_gated):
                worth = self._worth(queued, one)
            else:
                if shared is None:
                    shared = self._worth(queued, one)
                worth = shared
            if worth is Worth.SKIP and one.looks.asked == asked:
                break  # the hints, which the class shares, have said no
            if worth is not Worth.SKIP and node_of.get(queued.key, left) != left:
                worth = one.worth_elsewhere(queued)
            if worth is not Worth.SKIP:
                found.append((queued, worth))
            elif one.looks.asked != asked:
                self._note(queued, one.looks)
        return found

    def _worth(self, queued: QueuedPod, one: Round) -> Worth:
        worth = Worth.SKIP
        if one.hears:
            worth = self._judge.worth(queued, one.change, one.memo)
        if worth is not Worth.SKIP:
            return self._look(queued, one) if one.change.only_if_fits else worth
        if one.profits and self._judge.profits(queued, one.change, one.memo, one.second_memo):
            return self._look(queued, one)
        return Worth.SKIP

    def _look(self, queued: QueuedPod, one: Round) -> Worth:
        """A gate that goes on to refuse the pod says so for less than a look costs."""
        if self.gates.refuses(queued):
            one.looks.asked += 1
            return Worth.SKIP
        return one.looks.worth(queued)


def _examples(equals: EquivalenceClass) -> Iterator[QueuedPod]:
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
