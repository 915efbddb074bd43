"""Waking: decide which unschedulable pods a change is worth an attempt for, and wake them.

    a hint of a plugin that rejected the pod says Queue      its class is due (`due.py`)
    only an extra event, without such a hint, may help       the same, if the pod fits
    otherwise                                                the pod stays unschedulable

Pods that room is being made for on some node are an exception. Until that is done, pods that leave
other nodes wake them only if they fit now, and not while room is being made there for another pod,
because the remaining room is known only afterwards. Otherwise hundreds of pods would be tried
without success for every pod that leaves. They get no dry run either where the free amounts of the
node are too small.

Pods `apart`, behind a gate or just back from an attempt are not of a due class: a hint wakes them
at once, an extra event only after a dry run. They stay unschedulable if it rejects them by plugins
that rejected them before, whose changes they are notified of anyway.

Of thousands of classes, a change is checked against those it can concern (`concern_indexes.py`).

Pods of one class and group share the result, except for their identity: hints are called once, and
the pods are woken one by one. A class that is due is not checked again before its dry run: with
thousands of classes, each pod that leaves would cost milliseconds.

One change may concern a hundred thousand classes, and as many pods may exceed their longest wait at
once. So the work is sliced: it stops after each class and each pod, and goes on in later turns,
before other facts or attempts.

Bounds  DRY_RUNS_MAX dry runs at once for one change, not counting pods that room is being made for
        elsewhere: most of these need none, by the free amounts of the node.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/backend/queue/scheduling_queue.go; the extra
        events are our own
"""

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

from asched.core.cluster.budget import SlicedWork
from asched.core.cluster.changes import ASSIGNED_POD_DELETE, Change
from asched.core.framework.expecting import NONE_EXPECTED, Expecting
from asched.core.framework.registrations import Concerns
from asched.core.framework.status import MISTAKES
from asched.core.model.pod import Pod
from asched.core.queue.concern_indexes import Offers
from asched.core.queue.due import WAKE_STEPS
from asched.core.queue.due_filter import DueFilter
from asched.core.queue.equivalence import DueReason, EquivalenceClass, class_of
from asched.core.queue.gangs import Gangs
from asched.core.queue.hints import HintEvaluator, Memo, TriggerEffect
from asched.core.queue.places import SubQueues
from asched.core.queue.profile import Gates
from asched.core.queue.queued import QueuedPod, Worth
from asched.core.queue.unschedulable import RejectorGroup, group_of

#: A pod, or a class whose first pod is to be woken, and the worth of the change.
Woken = tuple[QueuedPod | EquivalenceClass, Worth]

#: Classes with a dry run for one change; further classes are woken without. A guess: with cached
#: results a dry run takes about as long as waking the pod.
DRY_RUNS_MAX: Final = 64
#: Budget steps for a dry run.
DRY_RUN_STEPS: Final = 15
#: Budget steps for a class whose hints are called, or that is indexed.
DELIVERY_STEPS: Final = 1


#: Whether a pod that room is being made for elsewhere may fit on the node that another pod left.
RoomTest = Callable[[str], Callable[[QueuedPod], bool]]


def unknown_room(_freed_node: str) -> Callable[[QueuedPod], bool]:
    """The test without dry runs: any pod may fit."""
    return lambda _queued: True


class Round:
    """The delivery of one change to the groups. `effect`: its effect on the current group; `held`:
    keys of its pods that a gate is certain to reject.

    `freed_node`: the node that a pod left, "" without one, or if there are several; `expecting`:
    the nodes where room is being made for pods of the current profile; `is_awaited`: whether
    `freed_node` is one of them.
    """

    def __init__(
        self,
        change: Change,
        except_uid: str,
        freed_node: str,
        rejectors: Callable[[QueuedPod], frozenset[str] | None],
        may_fit: Callable[[QueuedPod], bool],
    ) -> None:
        self.change = change
        self.except_uid = except_uid
        self.freed_node = freed_node
        self._rejectors = rejectors
        self._may_fit = may_fit
        self._rejectors_of: dict[Hashable, frozenset[str] | None] = {}
        self.memo: Memo = {}
        self.effect: TriggerEffect
        self.expecting = NONE_EXPECTED
        self.is_awaited = False
        self.held: Collection[str] = ()

    def expect(self, expecting: Expecting) -> None:
        self.expecting = expecting
        self.is_awaited = bool(expecting) and bool(expecting.keys_at(self.freed_node))

    def passes_by(self, pods: Mapping[str, QueuedPod]) -> bool:
        """Whether the change is of no use to these equal pods: room is being made for all of them
        on other nodes, and this node is awaited by another pod or has too little room.
        """
        elsewhere = self.expecting.node_of
        if not elsewhere:
            return False
        freed_node = self.freed_node
        for key in pods:
            if elsewhere.get(key, freed_node) == freed_node:
                return False
        return self.is_awaited or not self._may_fit(next(iter(pods.values())))

    def worth_elsewhere(self, queued: QueuedPod) -> Worth:
        """The worth for a pod that room is being made for on another node."""
        if self.is_awaited or not self._may_fit(queued):
            return Worth.SKIP
        return self._dry_run(queued, _key_of_equal_pods(queued), bounded=False)

    def worth_if_it_fits(self, queued: QueuedPod) -> Worth:
        return self._dry_run(queued, _own_key(queued), bounded=True)

    def _dry_run(self, queued: QueuedPod, key: Hashable, *, bounded: bool) -> Worth:
        """Dry-run a pod, once for each profile and key."""
        known, key = self._rejectors_of, (queued.profile, key)
        if key not in known:
            is_beyond = bounded and len(known) >= DRY_RUNS_MAX
            known[key] = None if is_beyond else self._rejectors(queued)
        return _worth(queued, known[key])


def _worth(queued: QueuedPod, rejectors: frozenset[str] | None) -> Worth:
    """The worth of an attempt after a dry run."""
    return Worth.SKIP if queued.is_rejected_as_before(rejectors) else Worth.AFTER_BACKOFF


def _own_key(queued: QueuedPod) -> Hashable:
    return queued if is_nominated(queued) else class_of(queued)


def _key_of_equal_pods(queued: QueuedPod) -> Hashable:
    return queued if queued.class_key is None else ("without nomination", queued.class_key)


def is_nominated(queued: QueuedPod) -> bool:
    """Whether the pod has a nominated node, where it may fit although equal pods do not."""
    return bool(queued.pod.status.nominated_node_name)


#: Budget steps for a class that is skipped.
PASS_STEPS: Final = 0.02
#: Budget steps for each pod of such a class, where a gate may reject all of them.
HELD_STEPS: Final = 0.004


class Waking:
    """Wakes the pods that changes may help. `requeue(queued, worth, label, now_s)` moves a pod to
    where a change sends it; False if that is unschedulable.
    """

    def __init__(
        self,
        places: SubQueues,
        due_filter: DueFilter,
        requeue: Callable[[QueuedPod, Worth, str, float], bool],
        sliced_work: SlicedWork,
        hints: HintEvaluator,
        gates: Gates,
        room_test: RoomTest,
    ) -> None:
        self._places = places
        self._due_filter = due_filter
        self._requeue = requeue
        self._sliced_work = sliced_work
        self._hints = hints
        self._gates = gates
        self._room_test = room_test

    def deliver(self, change: Change, now_s: float, except_uid: str, gangs: Gangs) -> None:
        """Deliver a change."""
        if not self._sliced_work.pieces and self._concerns_no_class(change):
            departed = _departed(change)
            if departed is not None:
                self._gates.expecting(departed)  # lets plugins forget the victim
            return
        self._sliced_work.do(self._delivering(change, now_s, except_uid, gangs))

    def _concerns_no_class(self, change: Change) -> bool:
        """Whether no group listens to a change, or the registrations of all that do exclude all of
        their classes. Usual for pods that arrive before their gang is complete, or are deleted and
        had no devices. Such a change allocates nothing.
        """
        listeners = self._hints.listeners(self._places.unschedulable.groups(), change.trigger)
        if not listeners.groups:
            return True
        if listeners.concerns is None or change.priority_at_most is not None:
            return False
        old, new = change.old, change.new
        try:
            for concern, indexes in listeners.concerns:
                offered = concern.offered(old, new)
                if offered is None:
                    return False
                for index in indexes if offered or not concern.is_of_gang else ():
                    if index.may_have(concern, offered):
                        return False
        except MISTAKES:  # the hints are called instead
            return False
        return True

    def flush(self, overdue: Iterable[QueuedPod], timeout: Change, now_s: float) -> None:
        """Requeue pods that have been unschedulable for too long."""
        self._sliced_work.do(self._flushing(overdue, timeout, now_s))

    def _delivering(
        self, change: Change, now_s: float, except_uid: str, gangs: Gangs
    ) -> Iterator[None]:
        label, note = change.trigger.label, self._sliced_work.budget.note
        freed_node = _freed_node(change) if change.priority_at_most is None else ""
        woken: list[Woken] = []
        groups = self._places.unschedulable.groups()
        for of_class in self._woken(groups, change, except_uid):
            woken += of_class
            note(DELIVERY_STEPS)
            yield
        if gangs.are_tried:
            gangs.complete(woken, self._places.get(getattr(change.new, "key", "")))
        for target, worth in woken:
            if isinstance(target, EquivalenceClass):
                reason = DueReason(worth, label)
                node = "" if worth is Worth.IF_IT_FITS else freed_node
                self._due_filter.wake(target, reason, now_s, except_uid, node)
            elif target.rejector_group is not None:
                self._requeue(target, worth, label, now_s)
            note(WAKE_STEPS)
            yield

    def _flushing(
        self, overdue: Iterable[QueuedPod], timeout: Change, now_s: float
    ) -> Iterator[None]:
        for queued in overdue:
            if queued.rejector_group is None:
                continue  # it left meanwhile
            queued.was_flushed = True
            if self._hints.effect(group_of(queued).key, timeout.trigger).has_hint:
                worth = self._hints.worth(queued, timeout)
                self._requeue(queued, worth, timeout.trigger.label, now_s)
            self._sliced_work.budget.note(WAKE_STEPS)
            yield

    def _woken(
        self, groups: tuple[RejectorGroup, ...], change: Change, except_uid: str
    ) -> Iterator[Sequence[Woken]]:
        """Yield, class by class, the pods that the change is worth an attempt for, or the class for
        equal pods. The sequence of a class may be empty.
        """
        trigger, offers = change.trigger, Offers(change)
        note = self._sliced_work.budget.note
        round_: Round | None = None
        departed, freed_node = _departed(change), _freed_node(change)
        # Called for every change, since the plugins forget the departed pod in this call.
        expecting = {} if departed is None else self._gates.expecting(departed)
        for group, effect in self._hints.listeners(groups, trigger).groups:
            key = group.key
            concerned = yield from self._concerned(group, change, effect.concerns, offers)
            if not concerned:  # usual for pods that arrive before their gang is complete
                continue
            if round_ is None:
                may_fit = self._room_test(freed_node)
                round_ = Round(change, except_uid, freed_node, self._rejectors, may_fit)
            round_.expect(expecting.get(key.profile, NONE_EXPECTED))
            round_.effect = effect
            round_.held = self._gates.holding(key.profile, key.gated_by) if key.gated_by else ()
            # due classes need no check: no change is worth more to them
            passes_due = not key.pending_on
            for equals in concerned:
                note(PASS_STEPS + (HELD_STEPS * len(equals.apart) if round_.held else 0.0))
                if equals.apart and not round_.passes_by(equals.apart):
                    yield self._of_class(equals.apart, round_)
                if equals.in_turn and not (passes_due and equals.awaits_dry_run):
                    yield self._of_those_in_turn(group, equals, round_)

    def _concerned(
        self,
        group: RejectorGroup,
        change: Change,
        concerns: frozenset[Concerns] | None,
        offers: Offers,
    ) -> Generator[Sequence[Woken], None, Collection[EquivalenceClass]]:
        """Return the classes that the change may concern. The end of a nomination may concern any
        class, which the keys do not show.
        """
        classes = group.classes
        if change.priority_at_most is not None or concerns is None:
            return tuple(classes.values())
        return (yield from group.concerned.among(classes, concerns, offers))

    def _of_those_in_turn(
        self, group: RejectorGroup, equals: EquivalenceClass, round_: Round
    ) -> Sequence[Woken]:
        if group.key.gated_by:
            classes = equals.classes().values()
            return [woken for alike in classes for woken in self._of_class(alike, round_)]
        limit = round_.change.priority_at_most
        for example in _examples(equals):
            if limit is not None and example.pod.priority > limit:
                continue
            worth = self._worth(example, round_)
            if worth is not Worth.SKIP:
                return ((equals, worth),)
        return ()

    def of_itself(self, queued: QueuedPod, change: Change) -> Worth:
        """The worth of a change of the pod itself."""
        worth = self._hints.worth(queued, change)
        if worth is Worth.SKIP and self._hints.profits(queued, change):
            return self._worth_alone(queued)
        return worth

    def of_missed(self, queued: QueuedPod, missed: Iterable[Change]) -> Worth:
        """The highest worth of the changes that a pod missed during its attempt."""
        best = Worth.SKIP
        may_profit = False
        for change in missed:
            worth = self._hints.worth(queued, change)
            if worth is Worth.SKIP or change.only_if_fits:
                may_profit |= worth is not Worth.SKIP or self._hints.profits(queued, change)
                continue
            best = worth
            if best is Worth.IMMEDIATELY or not queued.pending_on:
                break  # this is the highest worth
        if best is Worth.SKIP and may_profit:
            return self._worth_alone(queued)
        return best

    def _worth_alone(self, queued: QueuedPod) -> Worth:
        return _worth(queued, self._rejectors(queued))

    def _rejectors(self, queued: QueuedPod) -> frozenset[str] | None:
        """The plugins that reject a pod in a dry run now; None if it fits."""
        self._sliced_work.budget.note(DRY_RUN_STEPS)
        return self._due_filter.rejectors(queued)

    def _of_class(
        self, pods: Mapping[str, QueuedPod], round_: Round
    ) -> list[tuple[QueuedPod, Worth]]:
        change = round_.change
        if all(map(round_.held.__contains__, pods)):
            return []
        asks_each = round_.effect.profits or change.only_if_fits or round_.except_uid
        if asks_each or change.priority_at_most is not None:
            free = filterfalse(round_.held.__contains__, pods)
            return self._of_each(map(pods.__getitem__, free), round_)
        return self._of_equals(pods, round_)

    def _of_equals(
        self, pods: Mapping[str, QueuedPod], round_: Round
    ) -> list[tuple[QueuedPod, Worth]]:
        """Decide for equal pods by hints alone, with one call for all. Pods that room is being made
        for elsewhere must also fit, by one dry run for all. A class may have thousands of pods, so
        pods that are not woken are not iterated over in Python.
        """
        worth = self._worth(next(iter(pods.values())), round_)
        if worth is Worth.SKIP:
            return []
        elsewhere, freed_node, held = round_.expecting.node_of, round_.freed_node, round_.held
        keys: Iterable[str] = pods
        worth_of_equals: Worth = worth
        example = _example_elsewhere(pods, elsewhere, freed_node)
        if example is not None:
            worth_of_equals = round_.worth_elsewhere(example)
            if worth_of_equals is Worth.SKIP:
                awaiting = filter(pods.__contains__, round_.expecting.keys_at(freed_node))
                keys = chain(filterfalse(elsewhere.__contains__, pods), awaiting)
        return [
            (pods[key], worth if elsewhere.get(key, freed_node) == freed_node else worth_of_equals)
            for key in filterfalse(held.__contains__, keys)
        ]

    def _of_each(self, pods: Iterable[QueuedPod], round_: Round) -> list[tuple[QueuedPod, Worth]]:
        change = round_.change
        freed_node, node_of = round_.freed_node, round_.expecting.node_of
        priority_max = change.priority_at_most
        of_class: Worth | None = None
        woken: list[tuple[QueuedPod, Worth]] = []
        for queued in pods:
            if priority_max is not None and queued.pod.priority > priority_max:
                continue
            if queued.pod.uid == round_.except_uid:
                continue
            if of_class is None:
                of_class = self._worth(queued, round_)
            worth: Worth = of_class
            if worth is Worth.SKIP:
                break
            if worth is Worth.IF_IT_FITS:  # its gate comes first, since that is cheaper
                is_held = self._gates.refuses(queued)
                worth = Worth.SKIP if is_held else round_.worth_if_it_fits(queued)
            if worth is not Worth.SKIP and node_of.get(queued.key, freed_node) != freed_node:
                worth = round_.worth_elsewhere(queued)
            if worth is not Worth.SKIP:
                woken.append((queued, worth))
        return woken

    def _worth(self, queued: QueuedPod, round_: Round) -> Worth:
        """The worth for a pod and its class, by hints."""
        effect, change, memo = round_.effect, round_.change, round_.memo
        worth = self._hints.worth(queued, change, memo) if effect.has_hint else Worth.SKIP
        if worth is not Worth.SKIP:
            return Worth.IF_IT_FITS if change.only_if_fits else worth
        is_extra = effect.profits and self._hints.profits(queued, change)
        return Worth.IF_IT_FITS if is_extra else Worth.SKIP


def _examples(equals: EquivalenceClass) -> Iterator[QueuedPod]:
    """Yield one pod in turn of each class; only a gang has several classes."""
    for pods in equals.classes().values():
        yield next(iter(pods.values()))


def _example_elsewhere(
    pods: Mapping[str, QueuedPod], node_of: Mapping[str, str], freed_node: str
) -> QueuedPod | None:
    """A pod that room is being made for on another node than `freed_node`, or None."""
    for key in filter(node_of.__contains__, pods):
        if node_of[key] != freed_node:
            return pods[key]
    return None


def _departed(change: Change) -> Pod | None:
    """The pod that left its node."""
    gone = change.old if change.trigger == ASSIGNED_POD_DELETE else None
    return gone if isinstance(gone, Pod) else None


def _freed_node(change: Change) -> str:
    """The node that a pod left; "" for other changes, and if pods left several nodes."""
    gone = _departed(change)
    return "" if gone is None or change.is_of_many else gone.spec.node_name
