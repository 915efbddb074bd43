"""SchedulingGates: a pod stays out of the queue until every one of its scheduling gates is removed.

Rejects   a pod with gates, before it enters the queue; no attempt and no backoff follow.
Retry     the last gate of the pod is removed.
Cost      one attribute read.
Source    kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/schedulinggates
"""

from collections.abc import Sequence

from asched import names
from asched.core.cluster.changes import Action, Trigger
from asched.core.framework.points import PreEnqueuePlugin, Scope
from asched.core.framework.registrations import Hint, Registration
from asched.core.framework.status import SUCCESS, Status, unresolvable
from asched.core.model.kinds import POD
from asched.core.model.pod import Pod


class SchedulingGates(PreEnqueuePlugin):
    name = names.SCHEDULING_GATES
    scope = Scope.NODE

    def registrations(self) -> Sequence[Registration]:
        gates_gone = Trigger(POD.resource, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
        return (Registration(gates_gone, _pod_changed),)

    def pre_enqueue(self, pod: Pod) -> Status:
        gates = pod.spec.scheduling_gates
        if not gates:
            return SUCCESS
        listed = " ".join(gate.name for gate in gates)
        return unresolvable(f"waiting for scheduling gates: [{listed}]")


def _pod_changed(pod: Pod, _old: Pod | None, new: Pod) -> Hint:
    is_free = new.uid == pod.uid and not new.spec.scheduling_gates
    return Hint.QUEUE if is_free else Hint.SKIP
