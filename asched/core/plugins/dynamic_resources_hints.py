"""When a pod that DynamicResources rejected is worth another attempt.

A claim that lost its allocation frees devices for everybody; beyond that only the pod's own claims
matter, and only once all of them can be used. New nodes, slices and classes always count. A claim
that is removed makes no change: it was deallocated before.

Source  kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/dynamicresources
"""

from collections.abc import Sequence

from asched.core.framework.points import Hint, Registration
from asched.core.model.claim import ResourceClaim
from asched.core.model.kinds import DEVICE_CLASS, NODE, POD, RESOURCE_CLAIM, RESOURCE_SLICE
from asched.core.model.pod import Pod
from asched.core.plugins.dynamic_resources_claims import ClaimError, claims_of
from asched.core.state.changes import Action, Trigger
from asched.core.state.cluster import Cluster


class ClaimHints:
    """The hint functions; they read the cluster as it is after the change."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def registrations(self) -> Sequence[Registration]:
        appeared = Action.ADD | Action.UPDATE
        node = Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE
        generated = Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM
        return (
            Registration(Trigger(NODE.resource, node)),
            Registration(Trigger(RESOURCE_CLAIM.resource, appeared), self.claim_changed),
            Registration(Trigger(POD.resource, generated), self.pod_changed),
            Registration(Trigger(DEVICE_CLASS.resource, appeared)),
            Registration(Trigger(RESOURCE_SLICE.resource, appeared)),
        )

    def claim_changed(self, pod: Pod, old: ResourceClaim | None, new: ResourceClaim) -> Hint:
        try:
            claims = claims_of(pod, self._cluster)
        except ClaimError:
            return Hint.SKIP
        if old is not None and old.status.allocation is not None and new.status.allocation is None:
            return Hint.QUEUE
        if all(claim.uid != new.uid for claim in claims):
            return Hint.SKIP
        return Hint.SKIP if old is not None and old.status == new.status else Hint.QUEUE

    def pod_changed(self, pod: Pod, old: Pod | None, new: Pod) -> Hint:  # noqa: ARG002
        if pod.uid != new.uid:
            return Hint.SKIP
        try:
            claims_of(new, self._cluster)
        except ClaimError:
            return Hint.SKIP
        return Hint.QUEUE
