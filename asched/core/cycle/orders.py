"""Orders: commands of the process to the machine, handled as facts.

A reload, or the death of a leader, changes decisions like a watched object does. As a fact it has a
place in the order of all facts, so that a replay of the facts repeats it.
"""

from abc import abstractmethod
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, Final

from asched import names
from asched.core.cluster.changes import UNSCHEDULABLE_TIMEOUT, Change
from asched.core.cluster.facts import Fact
from asched.core.cluster.pool_tenure import Versions
from asched.core.cluster.pools import Pools
from asched.core.cluster.refusals import Owner
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.history import DecisionStep
from asched.core.cycle.place_faults import Fault, fault_of
from asched.core.framework.effects import Effect, EmitEvent
from asched.core.framework.runner import Runner
from asched.core.model.kinds import POD
from asched.core.model.meta import ObjectReference
from asched.core.queue.backoff import BackoffTimes
from asched.core.queue.due import WAKE_STEPS
from asched.core.queue.gangs import Gangs
from asched.core.queue.profile import QueueProfile
from asched.core.queue.queued import QueuedPod
from asched.core.queue.reprofile import reprofile
from asched.core.queue.suspects import try_later

#: Budget steps for a pod that is checked, and mostly left as it is.
LOOKED_AT_STEPS: Final = 0.1
#: Budget steps for a class whose cached results are dropped.
GIVE_UP_STEPS: Final = 5


class Order(Fact, frozen=True):
    """Base of all orders."""

    @abstractmethod
    def carry_out(self, context: SchedulerContext) -> Iterable[Effect]:
        """Carry out the order between two attempts, at the time of the turn."""


class LeadersEnded(Order, frozen=True):
    """So many leaders ended within ten minutes without releasing the lease, maybe because of a pod
    that waits.
    """

    ends: int

    def carry_out(self, context: SchedulerContext) -> Iterable[Effect]:
        def chosen(suspect: QueuedPod) -> None:
            pod = suspect.pod
            context.observer.tried_later(pod.key, self.ends)
            context.requested.append(
                EmitEvent(
                    regarding=POD.reference(pod.metadata),
                    type="Warning",
                    reason=names.EVENT_TRIED_LATER,
                    action="Scheduling",
                    note=f"{self.ends} schedulers ended without notice within ten minutes, and this"
                    " pod may be the cause: it is tried after the others of its priority",
                    reporting_controller=pod.spec.scheduler_name,
                )
            )

        try_later(context.queue, context.now_s, self.ends, chosen)
        return ()


class KubeletRefused(Order, frozen=True):
    """A kubelet refused a pod whose node this process chose. `owner` is the uid of the pod's
    controller, empty if it has none; `reporter` the reporting controller of the event.
    """

    namespace: str
    name: str
    uid: str
    owner: str
    node: str
    reason: str
    reporter: str

    def carry_out(self, context: SchedulerContext) -> Iterable[Effect]:
        cluster = context.cluster
        consequence, now_s = "", cluster.steady_s
        said = f"by the kubelet of {self.node}: {self.reason}"
        context.histories.tell(
            f"{self.namespace}/{self.name}", context.now_s, 0, DecisionStep.REFUSED, said
        )
        if self.owner:
            owner = Owner(self.namespace, self.owner)
            hold_s = cluster.refusals.note(owner, self.node, now_s)
            consequence = f"; no other pod of its owner goes there for {hold_s:.0f} s"
        yield EmitEvent(
            regarding=ObjectReference(
                api_version="v1",
                kind="Pod",
                namespace=self.namespace,
                name=self.name,
                uid=self.uid,
            ),
            type="Warning",
            reason=names.EVENT_KUBELET_REFUSED,
            action="Admitting",
            note=f"the kubelet of {self.node} refused the pod: {self.reason}{consequence}",
            reporting_controller=self.reporter,
        )


class QueueAmended(Order, frozen=True):
    """An audit found pods (by "namespace/name") whose place in the queue is wrong."""

    keys: tuple[str, ...]

    def carry_out(self, context: SchedulerContext) -> Iterable[Effect]:
        queue, now_s = context.queue, context.now_s
        for key in self.keys:
            fault = fault_of(context, key)  # it may have been corrected already
            queued = queue.places.get(key)
            if fault in (Fault.QUEUED, Fault.OUTDATED) and queued is not None:
                queue.delete(queued.pod)
            if fault in (Fault.UNQUEUED, Fault.OUTDATED):
                queue.add(context.cluster.pods_seen[key], now_s)
        return ()


class PoolsHeld(Order, frozen=True):
    """Decide for these pools only from now on. `let_go`: by name of a held pool, up to which
    versions of nodes and namespaces all other pools have let go; `new`: those that were taken just
    now.
    """

    let_go: Mapping[str, tuple[int, int]]
    new: tuple[str, ...] = ()

    def carry_out(self, context: SchedulerContext) -> Iterable[Effect]:
        pools = context.pools
        assert pools is not None, "the configuration has pools"
        let_go = {name: Versions(*versions) for name, versions in self.let_go.items()}
        changed = pools.hold(let_go, self.new)
        context.queue.in_flight.record(Change(UNSCHEDULABLE_TIMEOUT))
        context.queue.sliced_work.do(_gating(context, pools, changed))
        return ()


def _gating(context: SchedulerContext, pools: Pools, changed: Container[int]) -> Iterator[None]:
    """Gate the waiting pods of pools that are not held any more, and try those of the others."""
    queue, note = context.queue, context.queue.sliced_work.budget.note
    for queued in queue.places.all():
        note(LOOKED_AT_STEPS)
        if pools.of_waiting(queued.pod) in changed:
            queue.places.leave(queued)
            queue.try_again(queued, context.now_s)
            note(WAKE_STEPS)
        yield


class Reconfigured(Order, frozen=True):
    """Replace the profiles. `document` is the part of their configuration that affects decisions,
    `edition` the versions of user plugins.

    Open cycles end with the old profiles. Waiting pods keep their places in the queue, and
    unschedulable pods are tried again, because the plugins that rejected them may be gone.
    """

    runners: Mapping[str, Runner]
    profiles: Mapping[str, QueueProfile]
    backoff: BackoffTimes
    gangs: Gangs
    document: Mapping[str, Any]
    edition: tuple[tuple[str, str, str], ...] = ()

    def carry_out(self, context: SchedulerContext) -> Iterable[Effect]:
        queue, now_s, before = context.queue, context.now_s, context.runners
        context.runners = self.runners
        queue.gangs = self.gangs
        context.extensions.follow_profiles()
        queue.sliced_work.do(_serving(context))
        reprofile(queue, self.profiles, self.backoff, now_s)
        queue.sliced_work.do(_adopting(context, now_s))
        queue.sliced_work.do(_giving_up(context, before.values()))
        return ()


def _serving(context: SchedulerContext) -> Iterator[None]:
    """Count the pods of groups anew that a new profile serves, or none any more."""
    for _ in context.cluster.pod_groups.serve(context.runners):
        context.queue.sliced_work.budget.note(LOOKED_AT_STEPS)
        yield


def _adopting(context: SchedulerContext, now_s: float) -> Iterator[None]:
    """Queue pods that waited for a new profile."""
    queue, cluster, note = context.queue, context.cluster, context.queue.sliced_work.budget.note
    for pod in tuple(cluster.pods_seen.values()):
        is_waiting = not pod.spec.node_name and pod.uid not in cluster.placed
        is_known = pod.key in queue.places or pod.uid in queue.in_flight
        if is_waiting and not is_known and context.owns(pod):
            queue.add(pod, now_s)
            note(WAKE_STEPS)
        note(LOOKED_AT_STEPS)
        yield


def _giving_up(context: SchedulerContext, runners: Iterable[Runner]) -> Iterator[None]:
    """Drop the cached results of removed runners."""
    for runner in runners:
        for _ in runner.cache.give_up():
            context.queue.sliced_work.budget.note(GIVE_UP_STEPS)
            yield
