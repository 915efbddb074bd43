"""Orders: what the process around the machine has it do, as facts in line with all others.

What a reload changes, or whom a death makes suspect, decides as much as what a watch sees. Taken in
like a fact it has one place among them, and whoever repeats the facts repeats it.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from asched import names
from asched.core.cycle.context import SchedulerContext
from asched.core.cycle.standing import Fault, fault_of
from asched.core.framework.effects import Effect, EmitEvent
from asched.core.framework.runner import Runner
from asched.core.model.meta import ObjectReference
from asched.core.queue.backoff import BackoffTimes
from asched.core.queue.due import WAKE_STEPS
from asched.core.queue.gangs import Gangs
from asched.core.queue.profile import QueueProfile
from asched.core.queue.reprofile import reprofile
from asched.core.queue.suspects import put_behind
from asched.core.state.facts import Fact

#: Steps of the budget for a pod that is looked at, and mostly left as it is.
LOOKED_AT_STEPS: Final = 0.1
#: Of a class whose results are given up.
GIVE_UP_STEPS: Final = 5


class Order(Fact, frozen=True):
    """Base of all orders."""

    @abstractmethod
    def carry_out(self, context: SchedulerContext) -> Iterable[Effect]:
        """Between two attempts, at the time of the turn."""


class LeaderDied(Order, frozen=True):
    """The leader before us died, maybe of a pod that waits. `life` is another number in each."""

    life: int
    died_young: bool

    def carry_out(self, context: SchedulerContext) -> Iterable[Effect]:
        put_behind(context.queue, context.now_s, self.life, died_young=self.died_young)
        return ()


class KubeletRefused(Order, frozen=True):
    """The kubelet of its node refused a pod, whoever bound it there. `owner` is its controller's
    uid, empty if it has none; `reporter` the scheduler that is told of in the event.
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
        kept, now_s = "", cluster.wall_clock_s
        row = cluster.nodes.row_of.get(self.node)
        if row is not None:
            there = reversed(list(cluster.pods_on(row).values()))
            last = next((info for info in there if not context.owns(info.pod)), None)
            cluster.refusals.clash(self.node, last, now_s)
        if self.owner:
            hold_s = cluster.refusals.note(self.owner, self.node, now_s)
            kept = f"; no other pod of its owner goes there for {hold_s:.0f} s"
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
            note=f"the kubelet of {self.node} refused the pod: {self.reason}{kept}",
            reporting_controller=self.reporter,
        )


class QueueAmended(Order, frozen=True):
    """An audit found pods (by "namespace/name") that are not where they should be in the queue."""

    keys: tuple[str, ...]

    def carry_out(self, context: SchedulerContext) -> Iterable[Effect]:
        queue, now_s = context.queue, context.now_s
        for key in self.keys:
            fault = fault_of(context, key)  # it may have ended by itself
            queued = queue.places.get(key)
            if fault in (Fault.QUEUED, Fault.OUTDATED) and queued is not None:
                queue.delete(queued.pod)
            if fault in (Fault.UNQUEUED, Fault.OUTDATED):
                queue.add(context.cluster.pods_seen[key], now_s)
        return ()


class Reconfigured(Order, frozen=True):
    """Other profiles judge from now on. `document` is the configuration that they came of, as far
    as it decides, and `edition` tells the plugins that users wrote.

    Cycles under way end with what they began with; every waiting pod keeps its place, and
    unschedulable ones are tried again, because whoever rejected them may be gone.
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
        reprofile(queue, self.profiles, self.backoff, now_s)
        queue.sliced.do(_adopting(context, now_s))
        queue.sliced.do(_giving_up(context, before.values()))
        return ()


def _adopting(context: SchedulerContext, now_s: float) -> Iterator[None]:
    """Take in pods that wait for a profile that is new."""
    queue, cluster, note = context.queue, context.cluster, context.queue.sliced.budget.note
    for pod in tuple(cluster.pods_seen.values()):
        is_waiting = not pod.spec.node_name and pod.uid not in cluster.placed
        is_known = pod.key in queue.places or pod.uid in queue.in_flight
        if is_waiting and not is_known and context.owns(pod):
            queue.add(pod, now_s)
            note(WAKE_STEPS)
        note(LOOKED_AT_STEPS)
        yield


def _giving_up(context: SchedulerContext, runners: Iterable[Runner]) -> Iterator[None]:
    """Forget what those knew who judge no longer."""
    for runner in runners:
        for _ in runner.cache.give_up():
            context.queue.sliced.budget.note(GIVE_UP_STEPS)
            yield
