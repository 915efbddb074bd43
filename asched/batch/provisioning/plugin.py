"""CheckAndHold: answer ProvisioningRequests and reserve their places.

A ProvisioningRequest of the class is accepted only if all of its pods fit now, by the profile that
their templates name; from then on their places are reserved (`batch/provisioning/cycle.py`). A pod
that consumes a request gets one of its places.

Rejects   a pod before it enters the queue, while the request that it consumes is of our class and
          not yet decided: the pod would take the place that the request needs.
Retry     the request is decided or deleted.
Cost      one lookup.
Source    our own; the object, its conditions and annotations are those of cluster-autoscaler
          (kubernetes/autoscaler cluster-autoscaler/provisioningrequest), which Kueue waits for
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from asched import names
from asched.core.cluster.changes import Action, Trigger
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.consumers import request_of
from asched.core.config.args import CheckAndHoldArgs
from asched.core.framework.points import PreEnqueuePlugin, Scope
from asched.core.framework.registrations import Hint, Registration
from asched.core.framework.status import SUCCESS, Status, unresolvable
from asched.core.model.kinds import POD_TEMPLATE, PROVISIONING_REQUEST, Kind
from asched.core.model.pod import Pod
from asched.core.model.provisioning import ProvisioningRequest, RequestStage


class CheckAndHold(PreEnqueuePlugin):
    name = names.CHECK_AND_HOLD
    scope = Scope.NAMESPACE
    kinds: ClassVar[tuple[Kind, ...]] = (PROVISIONING_REQUEST, POD_TEMPLATE)

    def __init__(self, args: CheckAndHoldArgs | None, cluster: Cluster) -> None:
        self.args = args or CheckAndHoldArgs()
        self._cluster = cluster

    def registrations(self) -> Sequence[Registration]:
        answered = Trigger(PROVISIONING_REQUEST.resource, Action.UPDATE | Action.DELETE)
        return (Registration(answered, self._answered),)

    def pre_enqueue(self, pod: Pod) -> Status:
        key = request_of(pod)
        if not key or not self._is_undecided(key):
            return SUCCESS
        name = key.rpartition("/")[2]
        return unresolvable(f'waiting for an answer to its ProvisioningRequest "{name}"')

    def _is_undecided(self, key: str) -> bool:
        request: ProvisioningRequest | None = self._cluster.stored(PROVISIONING_REQUEST, key)
        return (
            request is not None
            and request.spec.provisioning_class_name == self.args.provisioning_class_name
            and request.stage is RequestStage.UNDECIDED
        )

    def _answered(self, pod: Pod, old: Any, new: Any) -> Hint:
        key = request_of(pod)
        is_of_it = bool(key) and key == (new or old).metadata.key
        return Hint.QUEUE if is_of_it and not self._is_undecided(key) else Hint.SKIP
