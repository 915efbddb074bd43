"""The scheduling queue: the order of attempts, waiting pods, and the changes that wake them.

    active          ready, in the order of the queue sort; `pop` takes the head
    backoff         to be tried again after a pause; the head is popped early if no pod is active
    error_backoff   the same after an error, for a pod of a group (`gangs.py`), or after Permit
                    rejected a pod that waited there; only a group is popped early, once a dry run
                    shows that freed room suffices for it
    unschedulable   until a change helps, or for max_in_unschedulable_s
    gated           unschedulable because of a PreEnqueue plugin
    in flight       popped and neither done nor returned; changes are recorded for it meanwhile

A pod is in one of the first five by its key (namespace/name), in flight by its uid. Times are
seconds; nothing blocks, and equal inputs give equal states.

Bounds  one record per pod; those of `heap.py` and `in_flight.py`. Changes for thousands of classes
        or pods are sliced: the machine goes on with them in later turns, before other facts and
        attempts; FLUSHED_AT_ONCE pods whose backoff ended a tick.
Source  kubernetes/kubernetes v1.36 pkg/scheduler/backend/queue/scheduling_queue.go
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from itertools import count
from typing import Final

from asched.core.cluster.budget import SlicedWork
from asched.core.cluster.changes import (
    ASSIGNED_POD_DELETE,
    BACKOFF_COMPLETE,
    FORCE_ACTIVATE,
    POP_FROM_BACKOFF_Q,
    SCHEDULE_ATTEMPT_FAILURE,
    UNSCHEDULABLE_POD_ADD,
    UNSCHEDULABLE_POD_UPDATE,
    UNSCHEDULABLE_TIMEOUT,
    Change,
)
from asched.core.cluster.nominated import Nominator
from asched.core.model.kinds import NODE
from asched.core.model.pod import Pod
from asched.core.queue.backoff import BackoffTimes, is_backing_off
from asched.core.queue.due import DRY_RUNS_MAX, WAKE_STEPS
from asched.core.queue.due_filter import DryRunner, DueFilter
from asched.core.queue.event_handlers import pod_triggers
from asched.core.queue.gangs import Gangs
from asched.core.queue.heap import CHECK_STEPS, SORT_STEPS
from asched.core.queue.hints import HintEvaluator, Interest
from asched.core.queue.in_flight import InFlightPods
from asched.core.queue.places import SubQueues
from asched.core.queue.profile import Gates, QueueObserver, QueueProfile
from asched.core.queue.queued import QueuedPod, Worth
from asched.core.queue.waking import Waking, unknown_room

#: The default of --pod-max-in-unschedulable-pods-duration, and how often it is checked.
MAX_IN_UNSCHEDULABLE_S: Final = 300.0
UNSCHEDULABLE_FLUSH_EVERY_S: Final = 30.0
#: Some 10 µs each.
FLUSHED_AT_ONCE: Final = 500
#: Seconds since the epoch as floats are exact to a quarter of this.
CLOCK_GRAIN_S: Final = 1e-6

_ARRIVED: Final = UNSCHEDULABLE_POD_ADD.label
#: A pod that becomes active with one of these labels gets the nomination of its status.
_ARRIVALS: Final = (_ARRIVED, UNSCHEDULABLE_POD_UPDATE.label)


class SchedulingQueue:
    """`profiles` by scheduler name.

    `class_key_of` gives equal keys to pods that no hint can distinguish; None shares nothing.
    `dry_runner` runs dry runs, which save unnecessary attempts (`due_filter.py`).
    """

    def __init__(
        self,
        profiles: Mapping[str, QueueProfile],
        nominator: Nominator,
        *,
        backoff: BackoffTimes = BackoffTimes(),  # noqa: B008 - immutable
        max_in_unschedulable_s: float = MAX_IN_UNSCHEDULABLE_S,
        observer: QueueObserver | None = None,
        monotonic_s: Callable[[], float] = lambda: 0.0,
        class_key_of: Callable[[Pod], Hashable | None] = lambda _: None,
        gangs: Gangs = Gangs(),  # noqa: B008 - immutable
        dry_runner: DryRunner | None = None,
        gated_pods_hold_room: bool = False,
    ) -> None:
        self.places = SubQueues(next(iter(profiles.values())))
        self.sliced_work = SlicedWork()
        self.due_filter = DueFilter(
            self.places, dry_runner, self._requeue, self._count_rejectors, self.sliced_work
        )
        self._dry_runner = dry_runner
        self._observer = observer or QueueObserver()
        self._monotonic_s = monotonic_s
        self.gangs = gangs
        self.learn(profiles, backoff)
        self._max_in_unschedulable_s = max_in_unschedulable_s
        self._class_key_of = class_key_of
        self.nominator = nominator
        self._gated_pods_hold_room = gated_pods_hold_room
        self.in_flight = InFlightPods()
        #: ends the attempt, which cannot be rejected any more, at the pod with this uid
        self.done: Callable[[str], None] = self.in_flight.done
        self._arrivals = count(1)
        self._next_unschedulable_flush_s: float | None = None
        #: whether room was freed since groups in backoff were listed, and those still to be checked
        self._is_room_freed = False
        self._gangs_due: dict[str, None] = {}

    def learn(self, profiles: Mapping[str, QueueProfile], backoff: BackoffTimes) -> None:
        """Use these profiles from now on; `reprofile.py` moves the waiting pods."""
        interests = {name: Interest(profile.registrations) for name, profile in profiles.items()}
        extra_events = {name: Interest(profile.extra_events) for name, profile in profiles.items()}
        self._hints = HintEvaluator(interests, self._observer, self._monotonic_s, extra_events)
        self._gates = Gates(profiles, self._observer, self._monotonic_s, self.gangs.profile_of)
        # whether a node may have room for pods that wait, by amounts
        room_test = unknown_room if self._dry_runner is None else self._dry_runner.room_test
        receivers = self.places, self.due_filter, self._requeue, self.sliced_work
        self._waking = Waking(*receivers, self._hints, self._gates, room_test)
        self.backoff_rule = backoff
        gates = [plugin for profile in profiles.values() for plugin in profile.pre_enqueue]
        #: whether a profile gates pods, as those of a gang, until further pods have arrived
        self.awaits_pods = any(plugin.awaits_pods for plugin in gates)

    # --- changes of pods and other objects --------------------------------------------------------

    def add(self, pod: Pod, now_s: float) -> None:
        """Add a new pod without a node."""
        self._enter(pod, _ARRIVED, now_s)

    def update(self, old: Pod, new: Pod, now_s: float) -> None:
        """Store a new version of a waiting pod. A pod in flight gets its new version on return."""
        if new.uid in self.in_flight:
            for trigger in pod_triggers(old, new):
                self.in_flight.record(Change(trigger, old, new))
            return
        queued = self.places.get(new.key)
        if queued is None:
            self._enter(new, UNSCHEDULABLE_POD_UPDATE.label, now_s)
            return
        class_key, gang = self._class_key_of(new), self.gangs.key_of(new)
        wakes = self.places.replace_pod(queued, new, class_key, gang)
        self.nominator.update(old, new)
        if queued.rejector_group is None:  # it is not unschedulable
            return
        label = UNSCHEDULABLE_POD_UPDATE.label
        if wakes and self._requeue(queued, Worth.AFTER_BACKOFF, label, now_s):
            return
        for trigger in pod_triggers(old, new):
            worth = self._waking.of_itself(queued, Change(trigger, old, new))
            if self._requeue(queued, worth, trigger.label, now_s):
                break

    def delete(self, pod: Pod) -> None:
        """Remove a deleted or placed pod. An attempt in flight is not interrupted."""
        if pod.metadata.uid in self.nominator.by_uid:
            self.nominator.delete(pod.metadata.uid)
        queued = self.places.get(pod.key)
        if queued is not None:
            self.places.leave(queued)
            self._count_rejectors(queued, -1)

    @property
    def ignores_changes(self) -> bool:
        """Whether a change notifies no pod: none is unschedulable, and none is in flight."""
        return not self.places.unschedulable.count and not self.in_flight

    def move(self, change: Change, now_s: float, *, except_uid: str = "") -> None:
        """Wake the unschedulable pods that a change of an object may help, or make their classes
        due.

        A change that no plugin is registered for costs one look-up. The pod `except_uid` is not
        notified.
        """
        trigger = change.trigger
        if not self._hints.is_of_interest(trigger):
            return
        if self.places.gangs and (
            trigger == ASSIGNED_POD_DELETE or trigger.resource == NODE.resource
        ):
            self._is_room_freed = True
        # Gates are notified of deleted pods even if no pod is unschedulable.
        if self.places.unschedulable.count or trigger == ASSIGNED_POD_DELETE:
            self._waking.deliver(change, now_s, except_uid, self.gangs)
        self.in_flight.record(change)

    # --- attempts ---------------------------------------------------------------------------------

    def pop(self, now_s: float) -> QueuedPod | None:
        """Pop the next pod, which is then in flight; None if there is none.

        If no pod is active, the head of backoff is popped before its pause ends.
        """
        while True:
            self.due_filter.is_unfinished = False
            if self.places.unschedulable.count:
                self.due_filter.wake_next(now_s)
            queued = self.places.take(self.places.active)
            if queued is None:
                queued = self.places.take(self.places.backoff) or self._early_gang()
                if queued is None:
                    return None
                self._observer.incoming("active", POP_FROM_BACKOFF_Q.label, queued)
            if self.gangs.profile_of(queued.pod) != queued.profile:
                self.classify(queued)
                self.try_again(queued, now_s)
                continue
            if queued.gang:
                queued.was_early = is_backing_off(queued, now_s)
            if self._start(queued):
                return queued

    def _early_gang(self) -> QueuedPod | None:
        """Remove and return the first pod of a group in backoff for which freed room suffices."""
        if self._dry_runner is None or not (self._gangs_due or self._is_room_freed):
            return None
        if self._is_room_freed:
            self._is_room_freed, self._gangs_due = False, self.places.gangs_in_order()
        due = self._gangs_due
        for _ in range(DRY_RUNS_MAX):
            if not due:
                return None
            gang = next(iter(due))
            del due[gang]
            first = next(iter(self.places.gangs.get(gang, {}).values()), None)
            if first is not None and first.may_be_early and self._dry_runner.may_start(first):
                self.places.leave(first)
                return first
        self.due_filter.is_unfinished |= bool(due)
        return None

    def pop_member(self, pod: Pod, popped: QueuedPod, now_s: float) -> QueuedPod | None:
        """Pop this pod from any place, for an attempt together with `popped`; it is then in flight.
        None if it does not wait, or is gated.
        """
        queued = self.places.get(pod.key)
        if queued is None or queued.pod.metadata.uid != pod.metadata.uid:
            return None
        if self.gangs.profile_of(pod) != queued.profile:
            self.change_profile(queued, now_s)
        if queued.heap is not self.places.active:
            has_passed = queued.rejector_group is None  # the gates: it was not unschedulable
            if not self._to_active(queued, FORCE_ACTIVATE.label, now_s, has_passed=has_passed):
                return None
        self.places.leave(queued)
        queued.woken_by, queued.was_early = popped.woken_by, popped.was_early
        return queued if self._start(queued) else None

    def return_failed(
        self,
        queued: QueuedPod,
        pod_now: Pod,
        rejectors: Collection[str],
        pending_rejectors: Collection[str],
        now_s: float,
        *,
        is_patient: bool = False,
        is_promised: bool = False,
        pause_s: float = 0.0,
    ) -> None:
        """Return the pod of a failed attempt. Without rejectors it was an error, else the rejectors
        decide which changes wake the pod.

        `is_patient`: the pod waits out its backoff. Otherwise pods that give back room could wake
        each other, popped early from backoff, without a pause.
        `is_promised`: there is room once victims are gone, or room may be made.
        `pause_s`: the shortest backoff.
        `pod_now` is the newest version of the pod. Changes missed in flight are handled here.
        """
        uid = queued.pod.uid
        present = self.places.get(queued.key)
        if present is not None:
            self.in_flight.done(uid)
            self._observer.complaint(
                f"Pod {queued.key} is already present in the {self.places.name_of(present)} queue"
            )
            return
        queued.pod = pod_now
        self.classify(queued)
        queued.rejected_by, queued.pending_on = frozenset(rejectors), frozenset(pending_rejectors)
        queued.is_patient, queued.is_promised = is_patient, is_promised
        queued.pause_s = pause_s
        if queued.rejectors:
            queued.unschedulable_count += 1
            queued.consecutive_errors = 0
        else:
            queued.consecutive_errors += 1
        queued.timestamp_s = now_s
        queued.backoff_until_s = self.backoff_rule.until_s(queued)
        queued.was_flushed = False
        self._count_rejectors(queued, 1)
        # None: too many to be stored, so that the pod is tried after its backoff
        missed, worth = self.in_flight.changes_since(uid), Worth.AFTER_BACKOFF
        self._is_room_freed |= bool(queued.gang) and missed != []
        if self.gangs.profile_of(pod_now) != queued.profile:
            missed = None  # its rejectors are those of another profile
        if queued.rejectors and missed is not None and not self.gangs.brings_back(queued):
            worth = self._waking.of_missed(queued, missed)
        self.in_flight.done(uid)
        self._requeue(queued, worth, SCHEDULE_ATTEMPT_FAILURE.label, now_s)

    def put_back(self, queued: QueuedPod, pod_now: Pod, now_s: float) -> None:
        """Return a pod in flight without an attempt; it is active again."""
        self.in_flight.done(queued.pod.uid)
        queued.pod = pod_now
        self.classify(queued)
        queued.attempts -= 1
        self._count_rejectors(queued, 1)
        self._to_active(queued, FORCE_ACTIVATE.label, now_s)

    def activate(self, pods: Iterable[Pod], now_s: float) -> None:
        """Make pods active without backoff. A pod in flight is tried again when it returns."""
        for pod in pods:
            queued = self.places.get(pod.key)
            if queued is None or queued.heap is self.places.active:
                if pod.uid in self.in_flight:
                    self.in_flight.record(Change(FORCE_ACTIVATE, None, pod))
                continue
            self._to_active(
                queued, FORCE_ACTIVATE.label, now_s, has_passed=queued.rejector_group is None
            )

    def end_pauses(self, which: Callable[[QueuedPod], bool], now_s: float) -> None:
        """Make the pods active that wait in `error_backoff` and for which `which` is true."""
        self.sliced_work.do(self._ending_pauses(which, now_s))

    def _ending_pauses(self, which: Callable[[QueuedPod], bool], now_s: float) -> Iterator[None]:
        note = self.sliced_work.budget.note
        for queued in self.places.error_backoff.in_order_by_steps():
            note(SORT_STEPS if queued is None else CHECK_STEPS)
            if queued is not None and which(queued):
                self._to_active(queued, FORCE_ACTIVATE.label, now_s, has_passed=True)
                note(WAKE_STEPS)
            yield

    def retry(self, pod: Pod, now_s: float) -> None:
        """Try an unschedulable pod again after its whole backoff. A pod in flight is tried again
        when it returns.
        """
        queued = self.places.get(pod.key)
        if queued is not None and queued.rejector_group is not None:
            self.places.leave(queued)  # from now on it stands apart from equal pods
            queued.is_patient = True
            self._requeue(queued, Worth.AFTER_BACKOFF, FORCE_ACTIVATE.label, now_s)
        elif pod.uid in self.in_flight:
            self.in_flight.record(Change(FORCE_ACTIVATE, None, pod))

    def put_behind(self, queued: QueuedPod, now_s: float) -> None:
        """Put an active pod behind the other pods of its priority."""
        queued.timestamp_s, queued.arrival = now_s, next(self._arrivals)
        self.places.into(queued, self.places.active)

    def postpone(self, queued: QueuedPod, until_s: float) -> None:
        """Let other pods come before an active one, though it has not failed: it backs off, and is
        popped early if no pod is active.
        """
        queued.backoff_until_s = until_s
        self.places.into(queued, self.places.backoff)

    def try_again(self, queued: QueuedPod, now_s: float) -> None:
        """Queue a pod that was removed from its place, if it passes the gates."""
        if self._gates.admit(queued):
            self._to_active(queued, FORCE_ACTIVATE.label, now_s, has_passed=True)
        else:
            self.places.to_rest(queued)

    def change_profile(self, queued: QueuedPod, now_s: float) -> None:
        """Try a waiting pod for which another profile decides now, if that does not gate it."""
        self.places.leave(queued)
        self.classify(queued)
        self.try_again(queued, now_s)

    # --- timers -----------------------------------------------------------------------------------

    def tick(self, now_s: float) -> None:
        """Run the flushes that are due. Call it at `next_deadline_s`, or more often."""
        self.flush_backoff(now_s)
        if self.places.unschedulable.count:
            self.places.unschedulable.due.refile(now_s)
        due_s = self._next_unschedulable_flush_s
        if due_s is None or now_s >= due_s:
            self.flush_unschedulable(now_s)
            self._next_unschedulable_flush_s = now_s + UNSCHEDULABLE_FLUSH_EVERY_S

    def next_deadline_s(self) -> float | None:
        """The time at which `tick` has work next; None if a change has to come first."""
        deadlines = []
        for heap in (self.places.backoff, self.places.error_backoff):
            head = heap.head()
            if head is not None and head.backoff_until_s is not None:
                deadlines.append(head.backoff_until_s + 1)  # to the end of that second
        due_s = self.places.unschedulable.due.next_deadline_s()
        if due_s is not None:
            deadlines.append(due_s)
        if self.places.unschedulable.count:
            deadlines.append(self._next_unschedulable_flush_s or 0.0)
        return min(deadlines, default=None)

    def flush_backoff(self, now_s: float) -> None:
        """Make pods active whose pause ended before this second."""
        remaining = FLUSHED_AT_ONCE
        for heap in (self.places.backoff, self.places.error_backoff):
            while (
                remaining and (head := heap.head()) is not None and not is_backing_off(head, now_s)
            ):
                self._to_active(head, BACKOFF_COMPLETE.label, now_s, has_passed=True)
                remaining -= 1

    def flush_unschedulable(self, now_s: float) -> None:
        """Try pods again that were unschedulable for too long, gated pods excepted."""
        oldest_s = now_s - self._max_in_unschedulable_s - CLOCK_GRAIN_S
        overdue = [queued for queued in self.places.unschedulable if queued.timestamp_s < oldest_s]
        if not overdue:
            return
        timeout = Change(UNSCHEDULABLE_TIMEOUT)
        self._waking.flush(overdue, timeout, now_s)
        self.in_flight.record(timeout)

    # --- inside -----------------------------------------------------------------------------------

    def classify(self, queued: QueuedPod) -> None:
        """Set a pod's class and group by its present version."""
        pod, gangs = queued.pod, self.gangs
        queued.class_key = self._class_key_of(pod)
        may_be_of_gang = gangs.coscheduled or pod.spec.scheduling_group
        queued.gang = gangs.key_of(pod) if may_be_of_gang else ""

    def _start(self, queued: QueuedPod) -> bool:
        """Begin an attempt at a popped pod."""
        queued.attempts += 1
        queued.backoff_until_s = None
        if queued.rejected_by or queued.pending_on:
            self._count_rejectors(queued, -1)
        if self.in_flight.start(queued):
            return True
        self._observer.complaint(
            f"pod {queued.key} was dropped from the active queue:"
            " the same pod is tracked in multiple places in the scheduler"
        )
        return False

    def _enter(self, pod: Pod, label: str, now_s: float) -> None:
        queued = QueuedPod(pod, now_s)
        self.classify(queued)
        present = self.places.get(queued.key)
        if present is not None:
            self.places.leave(present)
            self._count_rejectors(present, -1)
        queued.arrival = next(self._arrivals)
        if not self._to_active(queued, label, now_s) and self._gated_pods_hold_room:
            self.nominator.add(pod)

    def _requeue(self, queued: QueuedPod, worth: Worth, label: str, now_s: float) -> bool:
        """Put a pod where `worth` sends it; False if that is unschedulable."""
        if worth is Worth.SKIP:
            return self._to_rest(queued, label)
        queued.woken_by = label
        if worth is not Worth.IMMEDIATELY and is_backing_off(queued, now_s):
            return self._to_backoff(queued, label)
        return self._to_active(queued, label, now_s)

    def _to_active(
        self, queued: QueuedPod, label: str, now_s: float, *, has_passed: bool = False
    ) -> bool:
        """Make a pod active unless a gate stops it. `has_passed`: no gate is asked, since the pod
        has passed them already.
        """
        if not (has_passed or self._gates.admit(queued)):
            return self._to_rest(queued, label)
        if queued.initial_attempt_s is None:
            queued.initial_attempt_s = now_s
        self.places.into(queued, self.places.active)
        self._observer.incoming("active", label, queued)
        if label in _ARRIVALS:
            pod = queued.pod
            if pod.status.nominated_node_name or pod.metadata.uid in self.nominator.by_uid:
                self.nominator.add(pod)
        return True

    def _to_backoff(self, queued: QueuedPod, label: str) -> bool:
        if not self._gates.admit(queued):
            return self._to_rest(queued, label)
        places = self.places
        is_patient = queued.is_patient or self.gangs.has(queued.pod)
        may_be_early = queued.rejectors and not is_patient
        places.into(queued, places.backoff if may_be_early else places.error_backoff)
        self._observer.incoming("backoff", label, queued)
        return True

    def _to_rest(self, queued: QueuedPod, label: str) -> bool:
        """Make a pod unschedulable. Always returns False, the result of `_requeue`."""
        if self.places.to_rest(queued):
            self._observer.incoming("unschedulable", label, queued)
        return False

    def _count_rejectors(self, queued: QueuedPod, by: int) -> None:
        for plugin in queued.rejectors:
            self._observer.unschedulable(plugin, queued.profile, by)
