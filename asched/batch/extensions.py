"""All extensions of the scheduling cycle, each with the package that does its work."""

from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence

from asched.batch.backfill import keeping, recall, times
from asched.batch.capacity import warnings
from asched.batch.groups import incomplete
from asched.batch.groups.attempt import GroupAttempt, gather
from asched.batch.groups.cycle import schedule_group
from asched.batch.groups.dry_run import GangDryRuns
from asched.batch.provisioning import book, consuming, cycle, kept_nodes
from asched.batch.resizes import DeferredResizes
from asched.batch.scale_up import cycle as scale_ups
from asched.core.cluster.facts import Answer
from asched.core.cluster.pods import PodInfo
from asched.core.config.args import BackfillArgs, CheckAndHoldArgs, GroupScaleUpArgs
from asched.core.cycle.context import Attempt, SchedulerContext
from asched.core.cycle.extension import Extension, Finding, SchedulingUnit, Steps, Work
from asched.core.framework.attempt import Rejection
from asched.core.framework.effects import Effect
from asched.core.framework.placements import Mask
from asched.core.framework.runner import Runner
from asched.core.model.kinds import ELASTIC_QUOTA
from asched.core.model.pod import Pod
from asched.core.queue.queued import QueuedPod


class GroupUnits(Extension):
    """Pods of a group are tried together, and groups that stay incomplete are reported."""

    name = "groups"

    def __init__(self, context: SchedulerContext) -> None:
        super().__init__(context)
        self._dry_runs = GangDryRuns()
        self._version: Hashable = None

    def is_used(self) -> bool:
        return self.context.gangs.are_tried

    def unit(self, popped: Attempt, begin: Callable[[QueuedPod], Attempt | None]) -> SchedulingUnit:
        return gather(self.context, popped, begin)

    def schedule(self, unit: SchedulingUnit) -> Steps:
        assert isinstance(unit, GroupAttempt)
        return schedule_group(self.context, unit)

    def lacks_places(self, runner: Runner, queued: QueuedPod, version: Hashable) -> bool:
        if version != self._version:
            self._version = version
            self._dry_runs.forget()
        return self._dry_runs.has_no_places(self.context, runner, queued)

    def begin_turn(self) -> Iterable[Effect]:
        return incomplete.look(self.context)

    def next_deadline_s(self) -> float | None:
        return incomplete.next_look_s(self.context.cluster)


class QuotaWarnings(Extension):
    """ElasticQuotas that do not count because Kueue has a quota there are reported."""

    name = "quotas"

    def is_used(self) -> bool:
        runners = self.context.runners.values()
        return any(ELASTIC_QUOTA in runner.profile.kinds for runner in runners)

    def begin_turn(self) -> Iterable[Effect]:
        return warnings.look(self.context)


class PromisedStarts(Extension):
    """Backfill: units that fit on no node now get a promised start time."""

    name = "starts"

    def is_used(self) -> bool:
        return bool(self.context.args_by_profile(BackfillArgs))

    def rejected(self, attempts: Sequence[Attempt]) -> Generator[Effect, Answer, str]:
        return times.promise(self.context, attempts)

    def placed(self, pod: Pod) -> None:
        keeping.started(self.context, pod)

    def begin_turn(self) -> Iterable[Effect]:
        if keeping.keep(self.context):
            recall.recall(self.context)
        return ()

    def next_deadline_s(self) -> float | None:
        return keeping.next_s(self.context.cluster)


class HeldPlaces(Extension):
    """CheckAndHold: places are held for accepted ProvisioningRequests."""

    name = "requests"

    def is_used(self) -> bool:
        return bool(self.context.args_by_profile(CheckAndHoldArgs))

    def place(self, attempt: Attempt, within: Mask | None) -> Finding:
        return consuming.find_node(self.context, attempt, within)

    def yields_to(self, priority: int) -> bool:
        return self.context.cluster.singleton(book.Bookings).priorities.are_below(priority)

    def yields_places(self, pod: PodInfo, rejection: Rejection) -> bool:
        return bool(consuming.where_slots_give_way(self.context.cluster, pod, rejection))

    def refresh(self, *, may_decide: bool) -> None:
        if may_decide:
            book.keep(self.context)
        else:
            book.settle_consumers(self.context)

    def begin_turn(self) -> Iterator[Effect | Work]:
        yield from cycle.due(self.context)
        is_on = any(args.keep_nodes for args in cycle.served(self.context).values())
        yield from kept_nodes.due(self.context, is_on=is_on)

    def next_deadline_s(self) -> float | None:
        cluster = self.context.cluster
        deadlines = (
            book.next_s(cluster),
            cycle.next_s(cluster),
            cluster.singleton(kept_nodes.KeptNodes).next_s,
        )
        return min((at_s for at_s in deadlines if at_s is not None), default=None)


class NewNodes(Extension):
    """GroupScaleUp: nodes are requested for gangs that do not fit."""

    name = "scale-ups"

    def is_used(self) -> bool:
        return bool(self.context.args_by_profile(GroupScaleUpArgs))

    def rejected(self, attempts: Sequence[Attempt]) -> Generator[Effect, Answer, str]:
        return scale_ups.request_nodes(self.context, attempts)

    def begin_turn(self) -> Iterator[Work]:
        return scale_ups.due(self.context)

    def next_deadline_s(self) -> float | None:
        return scale_ups.next_s(self.context.cluster)


EXTENSIONS: tuple[type[Extension], ...] = (
    GroupUnits,
    QuotaWarnings,
    PromisedStarts,
    HeldPlaces,
    DeferredResizes,
    NewNodes,
)
