"""The status controller of PodGroups of scheduling.x-k8s.io, as in scheduler-plugins.

    PodGroups, from the watch ─────────────────┐
    labelled pods, also finished ones ────────┴─> changed groups ─> next_status ─> PATCH

The scheduler's own watch excludes finished pods, so the labelled pods are watched here again. Runs
with --status-controllers, where the controller of scheduler-plugins does not: two writers would
undo each other's counts. `statusController: false` in the args of Coscheduling turns this one off.
Only a leader writes.

    ""          Pending
    Pending     Scheduling, once minMember pods are there; occupiedBy names their owners
    any other   counts of running, succeeded and failed pods, and of these the last that holds:
                  Scheduling   running and succeeded ones are fewer than minMember
                  Running      they are not
                  Failed       one has failed, and as many as minMember have come so far
                  Finished     minMember have succeeded
                or Pending, if fewer than minMember pods are there
    Failed, Finished             for good

Phases of older releases (PreScheduling, Scheduled, Unknown) count as any other. One write makes one
step and leads to the next. Unlike upstream's controller, it counts the pods of the group's own
namespace alone.

Bounds  one small entry per labelled pod; one request at a time; RETRY_S after failures.
Source  kubernetes-sigs/scheduler-plugins pkg/controllers/podgroup_controller.go
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from asched.core.cluster.facts import Fact, Gone, Listed, Seen
from asched.core.cluster.pod_groups import COSCHEDULING_LABEL
from asched.core.config.args import CoschedulingArgs
from asched.core.model.kinds import COSCHEDULING_GROUP, POD
from asched.core.model.meta import runs_backwards
from asched.core.model.pod import Pod
from asched.core.model.workload import CoschedulingGroup, CoschedulingStatus
from asched.kube.pace import ReflectorOptions
from asched.kube.session import Session
from asched.kube.watch import Reflector
from asched.ops.status_patch import LOOK_S, RETRY_S, StatusController

#: Statuses written and not yet received by the watch; dropping one costs a second request.
AHEAD_MAX: Final = 4_096


class GroupStatus(StatusController):
    """Spawn `run`; observes facts about PodGroups."""

    def __init__(
        self,
        session: Session,
        *,
        args: Callable[[], Mapping[str, CoschedulingArgs]],
        may_act: Callable[[], bool],
        spawn: Callable[[str, Coroutine[Any, Any, None]], object],
        written: Callable[[str], None],
        options: ReflectorOptions | None = None,
    ) -> None:
        """`written` is called with the phase of each written status; `options` are those of the
        process's streams.
        """
        super().__init__(session, COSCHEDULING_GROUP, args, may_act, written)
        self._spawn = spawn
        self._options = replace(options or ReflectorOptions(), label_selector=COSCHEDULING_LABEL)
        self._groups: dict[str, CoschedulingGroup] = {}
        self._members: dict[str, dict[str, MemberPhase]] = {}  # group's key -> uid -> member
        self._group_of: dict[str, str] = {}  # pod's uid -> group's key
        self._listed: set[str] = set()  # uids in the received parts of a list
        #: written statuses that the watch may not have delivered: group's uid -> status, version
        self._ahead: dict[str, tuple[CoschedulingStatus, str]] = {}

    # --- input -----------------------------------------------------------------------------------

    def observing(self, put: Callable[[Fact], None]) -> Callable[[Fact], None]:
        """Wrap a receiver of facts about PodGroups and mark changed groups."""

        def hear(fact: Fact) -> None:
            put(fact)
            match fact:
                case Seen(obj=CoschedulingGroup() as group):
                    self._groups[group.metadata.key] = group
                    self._mark(group.metadata.key)
                case Gone(obj=CoschedulingGroup() as group):
                    self._groups.pop(group.metadata.key, None)
                    self._ahead.pop(group.metadata.uid, None)
                case Listed():
                    groups = [obj for obj in fact.objects if isinstance(obj, CoschedulingGroup)]
                    self._groups = {group.metadata.key: group for group in groups}
                    for key in self._groups:
                        self._mark(key)

        return hear

    def hear_pods(self, fact: Fact) -> None:
        """Process labelled pods of any phase."""
        match fact:
            case Seen(obj=Pod() as pod):
                self._take(pod)
            case Gone(obj=Pod() as pod):
                self._drop(pod.uid)
            case Listed():
                if not fact.part:
                    self._listed.clear()
                for obj in fact.objects:
                    assert isinstance(obj, Pod)
                    self._listed.add(obj.uid)
                    self._take(obj)
                if not fact.has_more:
                    for uid in self._group_of.keys() - self._listed:
                        self._drop(uid)
                    self._listed.clear()

    def _take(self, pod: Pod) -> None:
        name = pod.labels.get(COSCHEDULING_LABEL, "")
        key = f"{pod.metadata.namespace}/{name}"
        if self._group_of.get(pod.uid, key) != key or not name:
            self._drop(pod.uid)
        if not name:
            return
        members, member = self._members.setdefault(key, {}), MemberPhase.of(pod)
        if members.get(pod.uid) != member:
            members[pod.uid] = member
            self._group_of[pod.uid] = key
            self._mark(key)

    def _drop(self, uid: str) -> None:
        key = self._group_of.pop(uid, None)
        if key is None:
            return
        members = self._members[key]
        del members[uid]
        if not members:
            del self._members[key]
        self._mark(key)

    # --- output ----------------------------------------------------------------------------------

    async def run(self) -> None:
        while not self.is_on:  # noqa: ASYNC110 - a reload has no event
            await asyncio.sleep(LOOK_S)
        reflector = Reflector(POD, self._session.general, self.hear_pods, options=self._options)
        self._spawn("watch labelled pods", reflector.run())
        await reflector.synced.wait()
        while True:
            await self._woken.wait()
            self._woken.clear()
            await self._write_all()

    async def _write_all(self) -> None:
        refused: dict[str, None] = {}
        while self._due:
            if not await self._may_write():
                continue
            key = next(iter(self._due))
            del self._due[key]
            if not await self.is_done(self._write(key), key):
                refused[key] = None
        if refused:
            await asyncio.sleep(RETRY_S)
            for key in refused:
                self._mark(key)

    async def _write(self, key: str) -> None:
        group = self._as_written(key)
        if group is None:
            return
        status = next_status(group, tuple(self._members.get(key, {}).values()))
        if status == group.status:
            return
        version = await self._patch(group.metadata, _fields(group.status, status))
        if len(self._ahead) >= AHEAD_MAX:
            self._ahead.clear()
        self._ahead[group.metadata.uid] = status, version
        self._written(status.phase)

    def _as_written(self, key: str) -> CoschedulingGroup | None:
        """A group from the watch, or as written if the watch is behind."""
        group = self._groups.get(key)
        if group is None:
            return None
        status, version = self._ahead.get(group.metadata.uid, (group.status, ""))
        if runs_backwards(version, group.metadata.resource_version):
            return replace(group, status=status)
        self._ahead.pop(group.metadata.uid, None)
        return group


def _fields(old: CoschedulingStatus, new: CoschedulingStatus) -> dict[str, object]:
    """The fields that differ, with the API's names."""
    pairs = {
        "phase": (old.phase, new.phase),
        "occupiedBy": (old.occupied_by, new.occupied_by),
        "running": (old.running, new.running),
        "succeeded": (old.succeeded, new.succeeded),
        "failed": (old.failed, new.failed),
    }
    return {name: after for name, (before, after) in pairs.items() if before != after}


PENDING: Final = "Pending"
SCHEDULING: Final = "Scheduling"
RUNNING: Final = "Running"
FAILED: Final = "Failed"
FINISHED: Final = "Finished"


class MemberPhase(NamedTuple):
    """What the status reads of a pod of the group, finished ones included."""

    phase: str
    owners: tuple[str, ...] = ()

    @classmethod
    def of(cls, pod: Pod) -> "MemberPhase":
        owners = pod.metadata.owner_references or ()
        return cls(pod.status.phase, tuple(owner.name for owner in owners))


def next_status(group: CoschedulingGroup, members: Collection[MemberPhase]) -> CoschedulingStatus:
    """The status after one step; the same object if nothing is to be written."""
    status, minimum = group.status, group.spec.min_member
    if status.phase in (FAILED, FINISHED):
        return status
    if not status.phase:
        return replace(status, phase=PENDING)
    if status.phase == PENDING:
        if len(members) < minimum or not members:
            return status
        owners = sorted(f"{group.metadata.namespace}/{name}" for name in next(iter(members)).owners)
        occupied = ",".join(owners) or status.occupied_by
        return replace(status, phase=SCHEDULING, occupied_by=occupied)
    phases = [member.phase for member in members]
    running, succeeded, failed = map(phases.count, ("Running", "Succeeded", "Failed"))
    phase = SCHEDULING if running + succeeded < minimum else RUNNING
    if failed and failed + running + succeeded >= minimum:
        phase = FAILED
    if succeeded >= minimum:
        phase = FINISHED
    if len(members) < minimum:
        phase = PENDING
    found = replace(status, phase=phase, running=running, succeeded=succeeded, failed=failed)
    return status if found == status else found
