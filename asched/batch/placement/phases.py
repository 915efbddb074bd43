"""The status of a PodGroup of scheduling.x-k8s.io: its phase and its pods' counts, step by step.

    ""          Pending
    Pending     Scheduling, once minMember pods are there; occupiedBy names their owners
    any other   counts of running, succeeded and failed pods, and of these the last that holds:
                  Scheduling   running and succeeded ones are fewer than minMember
                  Running      they are not
                  Failed       one has failed, and as many as minMember have come so far
                  Finished     minMember have succeeded
                or Pending, if fewer than minMember pods are there
    Failed, Finished             for good

Phases of older releases (PreScheduling, Scheduled, Unknown) count as any other. One call makes one
step; its write leads to the next call. Unlike upstream's controller, it counts the pods of the
group's own namespace alone.

Source  kubernetes-sigs/scheduler-plugins pkg/controllers/podgroup_controller.go
"""

from collections.abc import Collection
from typing import Final, NamedTuple

from msgspec.structs import replace

from asched.core.model.pod import Pod
from asched.core.model.workload import CoschedulingGroup, CoschedulingStatus

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
    running, succeeded, failed = (
        phases.count(phase) for phase in ("Running", "Succeeded", "Failed")
    )
    phase = SCHEDULING if running + succeeded < minimum else RUNNING
    if failed and failed + running + succeeded >= minimum:
        phase = FAILED
    if succeeded >= minimum:
        phase = FINISHED
    if len(members) < minimum:
        phase = PENDING
    found = replace(status, phase=phase, running=running, succeeded=succeeded, failed=failed)
    return status if found == status else found
